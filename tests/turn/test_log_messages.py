"""A model reads messages that it is not shown any more."""

import pytest

from harness_actors.conversation import Conversation
from harness_actors.errors import ToolError
from harness_actors.messages import Message, ToolCall
from harness_actors.turn.log_messages import LogMessages

LOG = Conversation(
    [
        Message.user("the tásk"),
        Message.assistant("I look", [ToolCall("c1", "look", '{"at": 1}')]),
        Message.tool_result("c1", "seen"),
        Message.assistant(""),
    ]
)


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        ("m0", "the tásk"),
        ("m1", 'I look\n[calls look with {"at": 1}]'),
        ("m2", "seen"),
        ("m3", "[no text]"),
    ],
)
def test_a_message_is_read_with_its_calls(message_id: str, text: str) -> None:
    with LogMessages(LOG).open(message_id) as file:
        assert file.read().decode() == text
        assert file.fileno() > 0


@pytest.mark.parametrize(
    "message_id", ["m4", "m-1", "m", "m01", "m1 ", "mm1", "m" + "9" * 40, "m٣"]
)
def test_what_is_no_message_is_told(message_id: str) -> None:
    with pytest.raises(ToolError, match="there are m0 to m3"):
        LogMessages(LOG).open(message_id)
