"""How full the window of a model is, for whoever watches a run."""

from harness_actors.cli.screen import Shown
from harness_actors.events import ContextCompacted, RunEvent, RunStarted, TurnCompleted

WORTH_TELLING = 0.25
"""Of a window: below, nobody needs to think of it."""


class WindowUse:
    """Follows the events of a conversation's runs.

    Args:
        window_tokens: How large a request may be.
    """

    def __init__(self, window_tokens: int) -> None:
        self._window_tokens = window_tokens
        self._tokens = 0

    def take(self, item: Shown) -> None:
        """An event, or a piece of text, of which nothing follows."""
        match item:
            case RunEvent(path=path) if path:
                pass  # it has a window of its own
            case RunEvent(event=RunStarted()):
                # Perhaps of another conversation.
                self._tokens = 0
            case RunEvent(event=TurnCompleted(token_estimate=tokens)):
                self._tokens = tokens
            case RunEvent(event=ContextCompacted(tokens_after=tokens, window_tokens=most)):
                # A provider may have refused what its model's name promises.
                self._tokens, self._window_tokens = tokens, most

    @property
    def line(self) -> str:
        """How full it is, in words; empty where that is nothing to think of.

        >>> use = WindowUse(1_000)
        >>> use.line
        ''
        """
        share = self._tokens / self._window_tokens
        if share < WORTH_TELLING:
            return ""
        sizes = f"{self._tokens:,} of {self._window_tokens:,} tokens"
        return f"the next request takes {share:.0%} of the window, {sizes}"
