"""How a worker process and its actor talk: jobs one way, and what comes of them the other.

Jobs are pickled, as the code in them is. Answers are JSON: whatever code of a user does to its
process, the actor never unpickles what comes out of it.
"""

import json
import os
import pickle
import socket
import threading
from dataclasses import dataclass
from typing import Any, BinaryIO

LENGTH_BYTES = 8
GREETING = b"\0harness worker\0"
"""The first that a worker says; what comes before it is what its interpreter had to complain of."""
MOST_ANSWER_BYTES = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a worker is told when it starts.

    Attributes:
        folder: The actor's current folder.
        texts: A pickled `WorkerTexts`.
        marks: Variables that say whose call it serves, each with the room that it has.
    """

    folder: str
    texts: bytes
    marks: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A call for a worker.

    Attributes:
        tool: Hash of the tool's pickle.
        name: Its name.
        blob: That pickle; None where the worker has it.
        arguments: As the model wrote them.
        seconds_left: How long it may take; None where nothing bounds it.
        facts: The fields of its `ToolContext` that can travel.
        inline_chars: Longest result that is not kept in a file; None where none is.
    """

    tool: str
    name: str
    blob: bytes | None
    arguments: str
    seconds_left: float | None
    facts: dict[str, Any]
    inline_chars: int | None


Answer = dict[str, Any]
"""What a worker says, its kind under ``kind``: ``told``, ``long`` (it asks for a file),
``returned`` or ``raised``."""


def framed(body: bytes) -> bytes:
    """A message as it goes over the stream."""
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


class WorkerChannel:
    """The worker's end.

    Args:
        stream: Connected to the actor.
    """

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._pid = os.getpid()
        self._sending = threading.Lock()

    @classmethod
    def taken(cls) -> tuple["WorkerChannel", Hello]:
        """Take the channel out of this process's stdout, which is the actor's from here on."""
        stream = socket.socket(fileno=os.dup(1))
        stream.sendall(GREETING)
        head, outputs, _, _ = socket.recv_fds(stream, LENGTH_BYTES, 2)
        for number, output in enumerate(outputs, start=1):
            os.dup2(output, number)
            os.close(output)
        channel = cls(stream)
        hello: Hello = pickle.loads(channel._exactly(int.from_bytes(head, "little")))
        return channel, hello

    def receive(self) -> Job | None:
        """The next job; None where the actor has none any more."""
        head = self._exactly(LENGTH_BYTES)
        if len(head) < LENGTH_BYTES:
            return None
        size = int.from_bytes(head, "little")
        body = self._exactly(size)
        if len(body) < size:
            return None
        job: Job = pickle.loads(body)
        return job

    def receive_file(self) -> tuple[bytearray, BinaryIO | None]:
        """What the actor says, and a file that comes with it, if one does."""
        flags = socket.MSG_CMSG_CLOEXEC
        head, handles, _, _ = socket.recv_fds(self._stream, LENGTH_BYTES, 1, flags)
        file: BinaryIO | None = os.fdopen(handles[0], "wb", buffering=0) if handles else None
        return self._exactly(int.from_bytes(head, "little")), file

    def send(self, answer: Answer) -> None:
        """Say something; from any thread."""
        if os.getpid() != self._pid:
            # A fork of a tool's has come to the end of its call: the call is not its own.
            os._exit(0)
        data = framed(json.dumps(answer).encode())
        with self._sending:
            self._stream.sendall(data)

    def _exactly(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size and (more := self._stream.recv(min(size - len(data), 1 << 20))):
            data += more
        return data
