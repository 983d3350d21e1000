"""How large a request may be, by the name of its model."""

from collections.abc import Mapping

from harness_actors.config import USUAL_WINDOW
from harness_actors.models.prices import is_version_of

# Source: the providers' pages on their models. Where one has changed, or another model is meant,
# give `max_input_tokens`.
WINDOWS: Mapping[str, int] = {
    "gpt-5": 400_000,
    "gpt-5-mini": 400_000,
    "gpt-5-nano": 400_000,
    "gpt-5-pro": 400_000,
    "gpt-5-chat-latest": 128_000,
    "gpt-5.1": 400_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.1-mini": 1_047_576,
    "gpt-4.1-nano": 1_047_576,
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o3-mini": 200_000,
    "o4-mini": 200_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "gpt-4-32k": 32_768,
    "gpt-3.5-turbo": 16_385,
}
FAMILIES: Mapping[str, int] = {"claude-2": 100_000, "claude-": 200_000, "gemini-": 1_048_576}
"""The same by how a name begins."""
RESERVED_SHARE, MOST_RESERVED = 8, 32_768
"""What of a window is left to the answer: this part, and so many tokens at most."""


def window_of(model: str) -> int:
    """How large a request may be: the window of the model less what is left to its answer.

    Args:
        model: Name as its provider knows it, dated ones included, also behind its maker's name.

    Returns:
        Tokens.

    >>> window_of("gpt-4o-2024-11-20"), window_of("openai/gpt-4.1"), window_of("unheard-of")
    (112000, 1014808, 128000)
    """
    name = model.rpartition("/")[2]
    known = [WINDOWS[one] for one in WINDOWS if is_version_of(name, one)]
    known += [tokens for begins, tokens in FAMILIES.items() if name.startswith(begins)]
    if not known:
        return USUAL_WINDOW
    # What is written first is the more particular one.
    return known[0] - min(known[0] // RESERVED_SHARE, MOST_RESERVED)
