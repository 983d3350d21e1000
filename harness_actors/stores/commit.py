"""Entries on their way into the journal: one transaction for each group of them."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from harness_actors.errors import StaleTermError, StoreError
from harness_actors.messages import Message
from harness_actors.records import (
    CodeStored,
    Entry,
    ProcessMark,
    RunAdded,
    RunChanged,
    SnapshotTaken,
    SummaryStored,
)
from harness_actors.stores.codec import (
    pack,
    pack_delta,
    pack_failure,
    pack_hop,
    pack_message,
    pack_plan,
    pack_result,
    pack_spec,
    pack_summary,
)
from harness_actors.stores.schema import PLACES
from harness_actors.stores.transactions import transaction

T = TypeVar("T")
P = TypeVar("P")

ROWS_REMEMBERED = 10_000
"""Runs whose place in the file is held in memory; any other is looked up in 10 µs."""


@dataclass(slots=True)
class Rows:
    """What a group adds at its end, one statement per table."""

    records: list[tuple[Any, ...]] = field(default_factory=list)
    messages: list[tuple[Any, ...]] = field(default_factory=list)


class Committer:
    """Writes groups of entries. For one thread at a time.

    Args:
        path: The journal's file, for errors.
        connection: A connection that writes, without a transaction.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        # Row ids of runs never change once they are committed.
        self._rows_of_runs: dict[str, int] = {}

    def begin_term(self) -> int:
        with transaction(self._connection, "IMMEDIATE"):
            self._connection.execute("UPDATE terms SET term = term + 1")
            return self._newest_term()

    def forget_processes(self, term: int) -> None:
        with transaction(self._connection, "IMMEDIATE"):
            self._check_term(term)
            self._connection.execute("DELETE FROM processes WHERE term < ?", (term,))

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        try:
            with transaction(self._connection, "IMMEDIATE"):
                self._check_term(term)
                return self._write(term, entries)
        except BaseException:
            # It may hold runs of the group that was just taken back.
            self._rows_of_runs.clear()
            raise

    def _newest_term(self) -> int:
        term: int = self._connection.execute("SELECT term FROM terms").fetchone()[0]
        return term

    def _check_term(self, term: int) -> None:
        newest = self._newest_term()
        if term != newest:
            problem = (
                f"term {term} is over: term {newest} owns it now; "
                "this coordinator must stop, and its runs go on with the newer one"
            )
            raise StaleTermError(str(self._path), problem)

    def _write(self, term: int, entries: Sequence[Entry]) -> list[int]:
        newest = self._connection.execute("SELECT max(position) FROM records").fetchone()[0]
        position: int = newest or 0
        positions: list[int] = []
        rows = Rows()
        for entry in entries:
            if isinstance(entry, RunChanged | RunAdded):
                position += 1
            self._add(entry, term, position, rows)
            positions.append(position)
        self._connection.executemany("INSERT INTO records VALUES (?,?,?,?,?,?,?)", rows.records)
        self._connection.executemany("INSERT INTO messages VALUES (?,?,?,?,?)", rows.messages)
        return positions

    def _add(self, entry: Entry, term: int, position: int, rows: Rows) -> None:
        match entry:
            case RunChanged():
                self._add_change(entry, position, rows)
            case RunAdded():
                self._add_run(entry, position, rows)
            case CodeStored():
                self._connection.execute(
                    "INSERT OR IGNORE INTO code VALUES (?,?)", (entry.code, entry.blob)
                )
            case SnapshotTaken():
                run = self._row_of(entry.run_id)
                values = self._packed(entry.run_id, pack, entry.values)
                self._connection.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?,?,?)", (run, entry.version, values)
                )
            case SummaryStored():
                run = self._row_of(entry.run_id)
                summary = self._packed(entry.run_id, pack_summary, entry.summary)
                self._connection.execute(
                    "INSERT OR IGNORE INTO summaries VALUES (?,?,?,?)",
                    (run, entry.key, position, summary),
                )
            case ProcessMark():
                self._connection.execute(
                    "INSERT INTO processes VALUES (?,?,?,?,?)",
                    (term, entry.role, entry.node, entry.pid, entry.started),
                )

    def _add_change(self, entry: RunChanged, position: int, rows: Rows) -> None:
        run = self._row_of(entry.run_id)
        hop = self._packed(entry.run_id, pack_hop, entry.hop)
        delta = self._packed(entry.run_id, pack_delta, entry.delta)
        rows.records.append((position, run, entry.version, entry.at, entry.losses, hop, delta))
        self._add_messages(entry.delta.messages, position, rows)
        if entry.delta.plan is not None:
            plan = self._packed(entry.run_id, pack_plan, entry.delta.plan)
            self._connection.execute("INSERT INTO plans VALUES (?,?,?)", (run, position, plan))
        if entry.end is not None:
            result = self._packed(entry.run_id, pack_result, entry.end)
            self._connection.execute("INSERT INTO results VALUES (?,?)", (run, result))
            # A run that is over is not loaded to go on with, so that it needs no shortcut.
            self._connection.execute("DELETE FROM snapshots WHERE run = ?", (run,))
            self._rows_of_runs.pop(entry.run_id, None)

    def _add_run(self, entry: RunAdded, position: int, rows: Rows) -> None:
        spec = entry.spec
        if entry.again:
            run = self._row_of(spec.run_id)
            self._connection.execute(
                "UPDATE runs SET command = ? WHERE id = ?", (entry.command, run)
            )
        else:
            run = self._insert_run(entry)
            self._add_messages(spec.task, position, rows)
        rows.records.append((position, run, None, entry.at, 0, None, None))

    def _insert_run(self, entry: RunAdded) -> int:
        spec = entry.spec
        columns = (
            spec.run_id,
            spec.conversation_id,
            entry.command,
            entry.at,
            self._packed(spec.run_id, pack, dict(spec.metadata)),
            self._packed(spec.run_id, pack_spec, spec),
        )
        if self._find(spec.run_id) is not None:
            raise StoreError(str(self._path), f"run {spec.run_id!r} was added to it before")
        cursor = self._connection.execute(
            "INSERT INTO runs (run_id, conversation_id, command, added_at, metadata, spec) "
            "VALUES (?,?,?,?,?,?)",
            columns,
        )
        assert cursor.lastrowid is not None
        self._remember(spec.run_id, cursor.lastrowid)
        if spec.parent is not None:
            root = self._row_of(spec.parent.root)
            self._connection.execute("INSERT INTO children VALUES (?,?)", (cursor.lastrowid, root))
        return cursor.lastrowid

    def _add_messages(self, messages: Sequence[Message], position: int, rows: Rows) -> None:
        if len(messages) > PLACES:
            problem = f"one change may hold {PLACES} messages, not {len(messages)}"
            raise StoreError(str(self._path), problem)
        rows.messages += [
            (position * PLACES + place, m.role, m.tokens, pack_failure(m), pack_message(m.encoded))
            for place, m in enumerate(messages)
        ]

    def _packed(self, run_id: str, packer: Callable[[T], P], value: T) -> P:
        try:
            return packer(value)
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"run {run_id!r} has a value that is not plain JSON ({error})"
            raise StoreError(str(self._path), problem) from error

    def _row_of(self, run_id: str) -> int:
        row = self._rows_of_runs.get(run_id)
        if row is None:
            row = self._find(run_id)
            if row is None:
                raise StoreError(str(self._path), f"run {run_id!r} was never added to it")
            self._remember(run_id, row)
        return row

    def _remember(self, run_id: str, row: int) -> None:
        # Those that end leave by themselves; a cell may park ever new ones.
        if len(self._rows_of_runs) >= ROWS_REMEMBERED:
            self._rows_of_runs.clear()
        self._rows_of_runs[run_id] = row

    def _find(self, run_id: str) -> int | None:
        found = self._connection.execute("SELECT id FROM runs WHERE run_id = ?", (run_id,))
        row: tuple[int] | None = found.fetchone()
        return None if row is None else row[0]
