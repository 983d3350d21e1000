"""Tools that run in worker processes: well-behaved ones, and those that are none."""

import asyncio
import ctypes
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

from pydantic import BaseModel

from harness_actors.errors import ToolError
from harness_actors.ports import LargeResult, ToolContext
from harness_actors.tools import Image, resource, tool

SEEN: ContextVar[str] = ContextVar("seen", default="nothing")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Point(BaseModel):
    x: int


@tool(worker=True, effect="read_only")
def who() -> int:
    """Which process it runs in."""
    return os.getpid()


@tool(worker=True, effect="read_only")
async def who_async() -> int:
    """The same, in a coroutine."""
    await asyncio.sleep(0)
    return os.getpid()


@tool(worker=True)
def loops() -> str:
    """Have an event loop of its own, as a function in a thread may."""

    async def inner() -> str:
        await asyncio.sleep(0)
        return "looped"

    return asyncio.run(inner())


@tool(worker=True)
def thread() -> int:
    return threading.get_ident()


@tool(worker=True, effect="read_only")
def double(point: Point) -> Point:
    return Point(x=2 * point.x)


@tool(worker=True)
def variable(name: str) -> str | None:
    return os.environ.get(name)


@tool(worker=True)
def started_with() -> str:
    """What the kernel says of the environment that this process was started with."""
    return Path("/proc/self/environ").read_text().replace("\0", "\n")


@tool(worker=True)
def pause(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


@tool(worker=True)
def spin(path: str) -> None:
    """Hold on to the interpreter, in native code, and never end."""
    Path(path).write_text(str(os.getpid()))
    libc = ctypes.PyDLL(None)
    while True:
        libc.sleep(1000)


@tool(worker=True)
def leave_child(path: str) -> int:
    """Leave a process in a session of its own."""
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path(path).write_text(str(child.pid))
    return os.getpid()


@tool(worker=True)
def leave_thread() -> int:
    threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
    return os.getpid()


@tool(worker=True)
def fork() -> str:
    """Both come back; only one of them was called."""
    return "child" if os.fork() == 0 else "parent"


@tool(worker=True)
def fork_without_end() -> None:
    while True:
        os.fork()


@tool(worker=True)
def leave(how: str) -> None:
    match how:
        case "sys.exit":
            sys.exit(3)
        case "os._exit":
            os._exit(3)
        case "SIGSEGV":
            ctypes.string_at(0)
        case "KeyboardInterrupt":
            raise KeyboardInterrupt
        case "MemoryError":
            raise MemoryError("no room")
        case "ToolError":
            raise ToolError("not today")
        case "StopIteration":
            raise StopIteration(7)
        case "unpicklable":
            raise UnpicklableError
    raise KeyError(how)


class UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("a lock")
        self.lock = threading.Lock()


@tool(worker=True)
def returned(what: str) -> Any:
    values = {
        "lambda": lambda: None,
        "lock": threading.Lock(),
        "NaN": math.nan,
        "bytes": b"\xff\xfe",
        "text": b"fine",
        "surrogate": "\udcff",
        "image": [Image(PIXEL), "a pixel"],
    }
    return values[what]


@tool(worker=True)
def large(size: int) -> str:
    return "x" * size


def text_of(chars: int) -> str:
    """A text in which each part is another; its first and last characters are no ASCII."""
    return "ü" + "".join(f"{number}\n" for number in range(chars // 5))[: chars - 2] + "ß"


@tool(worker=True)
def long(chars: int, how: str = "text") -> Any:
    """Come to a long text, in one way or another."""
    text = text_of(chars)
    match how:
        case "raised":
            raise ToolError(text)
        case "file":
            file = TemporaryFile()  # noqa: SIM115 - whoever takes it closes it
            file.write(text.encode())
            return LargeResult("in a file", file)
        case "raised file":
            raise ToolError(long.function(chars, "file"))
        case "image":
            return [Image(PIXEL), text]
    return text


@tool(worker=True)
def many(count: int) -> list[int]:
    return list(range(count))


@tool(worker=True)
def prints(text: str) -> str:
    print(text)
    print(text, file=sys.stderr)
    os.write(1, f"{text} by descriptor\n".encode())
    return "done"


@tool(worker=True)
def tells(count: int, context: ToolContext) -> list[bool]:
    return [context.emit(f"step {step}") for step in range(count)]


@tool(worker=True)
def counts(to: int) -> Iterator[int]:
    yield from range(1, to + 1)


@tool(worker=True)
async def counts_async(to: int) -> AsyncIterator[int]:
    for number in range(1, to + 1):
        yield number


@tool(worker=True)
def counts_without_end() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


@tool(worker=True)
def context_variable() -> str:
    before = SEEN.get()
    SEEN.set("the call before")
    return before


@tool(worker=True)
def seconds_left(context: ToolContext) -> float | None:
    return context.deadline.seconds_left()


@tool(worker=True)
def facts(context: ToolContext) -> list[str]:
    return [context.run_id, context.call_id, str(context.workspace)]


@tool(worker=True, idempotent=True, retries=2)
def fails_until(path: str, times: int) -> int:
    tries = len(Path(path).read_text()) if os.path.exists(path) else 0
    Path(path).write_text("x" * (tries + 1))
    if tries < times:
        raise ConnectionError("not yet")
    return tries + 1


@resource
def connection() -> Iterator[str]:
    journal = os.environ["RESOURCE_JOURNAL"]
    with open(journal, "a") as file:
        file.write(f"open {os.getpid()}\n")
    yield f"connection of {os.getpid()}"
    with open(journal, "a") as file:
        file.write(f"close {os.getpid()}\n")


@tool(worker=True)
def connected(db: Annotated[str, connection]) -> str:
    return db
