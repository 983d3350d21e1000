"""The messages of a conversation, for a model that is not shown all of them any more."""

import re
from tempfile import TemporaryFile
from typing import BinaryIO

from harness_actors.conversation import Conversation
from harness_actors.errors import ToolError
from harness_actors.messages import Message
from harness_actors.ports.artifacts import pieces_of

_ID = re.compile(r"m(0|[1-9][0-9]{0,9})")


class LogMessages:
    """Opens messages of a log by their positions.

    Args:
        log: The conversation; it grows while the turn goes on.
    """

    def __init__(self, log: Conversation) -> None:
        self._log = log

    def open(self, message_id: str) -> BinaryIO:
        """The text of a message; see `ConversationMessages`."""
        found = _ID.fullmatch(message_id)
        at = -1 if found is None else int(found[1])
        if not 0 <= at < len(self._log):
            last = len(self._log) - 1
            raise ToolError(f"There is no message {message_id!r:.40}: there are m0 to m{last}.")
        file = TemporaryFile()  # noqa: SIM115 - who asked closes it
        for piece in pieces_of(_text_of(self._log[at])):
            file.write(piece)
        file.seek(0)
        return file


def _text_of(message: Message) -> str:
    calls = (f"[calls {call.name} with {call.arguments}]" for call in message.tool_calls)
    return "\n".join([*filter(None, [message.text]), *calls]) or "[no text]"
