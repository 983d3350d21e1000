"""Long results of workers: written to a file that the actor makes, hands over and takes back.

The worker asks for it when it has such a result, so that others cost nothing. The file is the
actor's: whatever code of a user does there, the actor reads what it has made itself.
"""

import os
import pickle
import socket
from dataclasses import dataclass
from typing import BinaryIO

from harness_actors.errors import ToolError
from harness_actors.ports import ConversationArtifacts, LargeResult, ToolContext
from harness_actors.ports.artifacts import pieces_of
from harness_actors.tools.workers.channel import WorkerChannel, framed

NOT_WHOLE = "the result of the call could not be kept whole: {problem}; what is left of it:\n{text}"
BEYOND = (
    "it is more than there is room for, since the artifacts of this conversation may take "
    "{cap:,} bytes together (artifacts.cap_bytes)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a worker is told that asks for a file, which comes with it.

    Attributes:
        room: Bytes that may be written; 0 where there is no file.
        problem: Why there is none, or no more.
    """

    room: int
    problem: str


def write_whole(text: str, channel: WorkerChannel) -> str:
    """Write a result to a file of the actor's; for the worker.

    Args:
        text: The result; of a `LargeResult`, what is in its file.
        channel: Of the worker.

    Returns:
        Why it is not there whole; empty where it is.
    """
    channel.send({"kind": "long"})
    body, file = channel.receive_file()
    place: Place = pickle.loads(body)
    if file is None:
        return place.problem
    room = place.room
    try:
        with file:
            for piece in pieces_of(text):
                room -= len(piece)
                if room < 0:
                    return place.problem
                left = memoryview(piece)
                while left:
                    left = left[file.write(left) :]
    except OSError as error:
        return error.strerror or str(error)
    return ""


class Handover:
    """The actor's side: makes the file for the result of one call.

    Args:
        context: Of the call.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._file: BinaryIO | None = None
        self._asked = False

    async def make(self, stream: int) -> None:
        """Make the file, and send it to the worker.

        Args:
            stream: Descriptor of the socket to it, on which nothing waits to be sent.

        Raises:
            OSError: It has asked before, or for what it was not offered; or it is gone.
        """
        artifacts = self._context.artifacts
        if artifacts is None or self._asked:
            raise OSError("the worker process does not speak as it should")
        self._asked = True
        try:
            self._file, room = await self._context.in_thread(_begun, artifacts)
            place = Place(room=room, problem=BEYOND.format(cap=artifacts.cap_bytes))
        except ToolError as error:
            place = Place(room=0, problem=error.text)
        files = [] if self._file is None else [self._file.fileno()]
        with socket.socket(fileno=os.dup(stream)) as sending:
            socket.send_fds(sending, [framed(pickle.dumps(place))], files)

    def taken(self, text: str, lost: str) -> str:
        """A result of the worker, whole where it has written it.

        Args:
            text: What it says of it.
            lost: Why it is not whole; empty where it is.
        """
        if lost:
            return NOT_WHOLE.format(problem=lost, text=text)
        file, self._file = self._file, None
        return text if file is None else LargeResult(text, file)

    def close(self) -> None:
        """Let the file go, unless it was taken."""
        if self._file is not None:
            self._file.close()


def _begun(artifacts: ConversationArtifacts) -> tuple[BinaryIO, int]:
    return artifacts.begin(), artifacts.room_bytes()
