"""Changing what a process says in its environment, so that a run can be found by it.

A worker serves many runs, one after the other. Whoever ends what a run has left looks at the
environment that a process was started with; so that is written over, where the kernel reads it.
"""

import os
from collections.abc import Mapping

ROOM = 128
"""Characters for the value of a mark; a worker for a longer one is started with more."""


def with_room(marks: Mapping[str, str]) -> dict[str, str]:
    """Variables to start a process with, so that others can take their places."""
    return {name: value.ljust(ROOM, " ") for name, value in marks.items()}


def mark(values: Mapping[str, str]) -> None:
    """Give this process, and what it starts, other values of the variables that it began with.

    Args:
        values: By name; none is longer than that which the process was started with.

    Raises:
        OSError: Its environment is not to be had.
        ValueError: It has no such variable, or not the room.
    """
    # What it starts itself is given this one.
    os.environ.update(values)
    begin, end = _place()
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(begin)
        entries = memory.read(end - begin)
        for name, value in values.items():
            at, room = _room_of(name, entries)
            memory.seek(begin + at)
            memory.write(_padded(value, room))


def _place() -> tuple[int, int]:
    """Where in this process's memory its environment is."""
    with open("/proc/self/stat", "rb") as file:
        text = file.read()
    facts = text[text.rindex(b")") + 2 :].split()
    return int(facts[47]), int(facts[48])


def _room_of(name: str, entries: bytes) -> tuple[int, int]:
    """Where the value of a variable is, and how much room it has."""
    head = f"{name}=".encode()
    at = 0 if entries.startswith(head) else entries.find(b"\0" + head) + 1
    if not entries[at:].startswith(head):
        raise ValueError(f"the process was started without {name}")
    at += len(head)
    end = at
    # Zeros after a shorter value are room, too, up to the next variable.
    while end < len(entries) and not (entries[end - 1] == 0 and entries[end] != 0):
        end += 1
    return at, end - at - 1


def _padded(value: str, room: int) -> bytes:
    data = value.encode()
    if len(data) > room:
        raise ValueError(f"a mark of {len(data)} bytes has room for {room}")
    return data.ljust(room, b"\0")
