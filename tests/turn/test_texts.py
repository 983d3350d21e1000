import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.messages import Message, ToolCall
from harness_actors.turn.texts import PART_TOKENS, counted, shortened, well_formed
from tests.executors.driver import WordCounter


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_well_formed_can_be_encoded_and_is_left_alone(text: str) -> None:
    fixed = well_formed(text)
    fixed.encode()
    assert len(fixed) == len(text)
    assert well_formed(fixed) == fixed


@given(st.text(max_size=300), st.integers(2, 100))
def test_what_is_shortened_keeps_head_and_tail(text: str, limit: int) -> None:
    short = shortened(text, limit)
    if len(text) <= limit:
        assert short == text
    else:
        assert short.startswith(text[: limit // 2])
        assert short.endswith(text[-(limit // 2) :])


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (Message.user("one two three"), 3 + 4),
        (Message.assistant("yes", [ToolCall("a", "f", '{"x": 1}')]), 1 + 1 + 2 + 4),
        (Message.tool_result("a", "", is_error=True), 4),
        (
            Message.from_wire(
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "look here"},
                        {"type": "image_url", "image_url": {"url": "data:"}},
                    ],
                }
            ),
            2 + 4 + PART_TOKENS,
        ),
    ],
)
async def test_a_message_counts_its_text_its_calls_and_its_borders(
    message: Message, tokens: int
) -> None:
    exact = await counted(message, WordCounter())
    assert exact.tokens == tokens
    assert (exact.encoded, exact.is_error) == (message.encoded, message.is_error)
