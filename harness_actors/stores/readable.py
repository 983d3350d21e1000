"""The half of a journal that reads: the same for its one writer and for those who look."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from harness_actors.stores import queries
from harness_actors.stores.headings import headings as read_headings

P = ParamSpec("P")
T = TypeVar("T")


def reading(
    query: Callable[Concatenate[sqlite3.Connection, P], T],
) -> "Callable[Concatenate[ReadableJournal, P], T]":
    """The method of a journal that makes a query, in a transaction of its own, and has its name."""

    @wraps(query)
    def read(self: "ReadableJournal", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._read(lambda connection: query(connection, *args, **kwargs))

    return read


class ReadableJournal(ABC):
    """What can be read of a journal; each call is explained at its query.

    Raises, from every call:
        StoreError: The file cannot be read; names file and cause.
    """

    @abstractmethod
    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Do one reading, in a transaction of its own."""

    known = reading(queries.known)
    load_run = reading(queries.load_run)
    run_after = reading(queries.run_after)
    load_result = reading(queries.load_result)
    load_unfinished = reading(queries.load_unfinished)
    load_tree = reading(queries.load_tree)
    load_conversation = reading(queries.load_conversation)
    load_plan = reading(queries.load_plan)
    has_conversation = reading(queries.has_conversation)
    waiting_in = reading(queries.waiting_in)
    load_own_messages = reading(queries.load_own_messages)
    load_code = reading(queries.load_code)
    load_processes = reading(queries.load_processes)
    load_events = reading(queries.load_events)
    load_previews = reading(queries.load_previews)
    load_changes = reading(queries.load_changes)
    headings = reading(read_headings)
    position = reading(queries.position)
