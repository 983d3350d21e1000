"""What a list of runs shows, read back from a journal of many.

As in `queries`, a transaction is expected around it.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from harness_actors.records import RunHeading, id_at_the_top
from harness_actors.results import Usage
from harness_actors.state import (
    ANSWERS,
    ASKED_BELOW,
    QUESTIONS,
    USAGE,
    SharedState,
    StateDelta,
    asked_in,
    expired,
    is_waiting,
    told_of,
    turns_of,
)
from harness_actors.stores.codec import Packed, unpack, unpack_result, unpack_writes
from harness_actors.stores.columns import mapping, number, text, whole
from harness_actors.stores.queries import has_table

Change: TypeAlias = tuple[int, Packed | None]
"""A row of the run and what it changes."""

SPECS_REMEMBERED = 16

_BEGINNING = "(?1 = '' OR substr(run_id, 1, length(?1)) = ?1)"


def headings(connection: sqlite3.Connection, beginning: str = "") -> list[RunHeading]:
    """The runs whose ids begin so, oldest first; all of them by default."""
    found = _read(connection, beginning)
    known = {one.run_id: one for one in found}
    for root in {one.root for one in found if one.root and one.questions} - known.keys():
        # It was not asked for, and knows what the one below was answered.
        known |= {one.run_id: one for one in _read(connection, root)}
    return [
        _answered_above(one, known[one.root]) if one.root and one.questions else one
        for one in found
    ]


def _read(connection: sqlite3.Connection, beginning: str) -> list[RunHeading]:
    """The same, each by its own entries alone."""
    # Of those that are over, all is in their result.
    roots = _roots(connection)
    found = connection.execute(
        "SELECT runs.id, run_id, conversation_id, added_at, metadata, command, result, at, "
        "CASE WHEN result IS NULL THEN spec END, state "
        "FROM runs LEFT JOIN results ON results.run = runs.id LEFT JOIN records ON position = "
        "(SELECT max(position) FROM records AS newest WHERE newest.run = runs.id) "
        "LEFT JOIN snapshots ON snapshots.run = runs.id "
        f"WHERE {_BEGINNING} ORDER BY runs.id",
        (beginning,),
    )
    changes_of = _changes_by_run(_changes_of_unfinished(connection, beginning))
    # Runs of one agent that have no folder of their own have equal specs.
    workspace_of = lru_cache(SPECS_REMEMBERED)(_workspace)
    return [
        replace(heading, root=roots[row[0]]) if row[0] in roots else heading
        for row in found
        for heading in (_heading(row, changes_of, workspace_of),)
    ]


def _answered_above(heading: RunHeading, top: RunHeading) -> RunHeading:
    """A run below others, with the answers that its questions got where they are asked."""
    asked = {one["id"]: one for one in top.questions}
    questions = tuple(
        {**one, **{name: above[name] for name in ("answer", "expired") if name in above}}
        for one in heading.questions
        for above in (asked.get(id_at_the_top(heading.run_id, top.run_id, one["id"]), {}),)
    )
    return replace(heading, questions=questions)


def _roots(connection: sqlite3.Connection) -> dict[int, str]:
    """Of each child, the run at the top of its tree."""
    if not has_table(connection, "children"):
        return {}
    found = connection.execute(
        "SELECT run, run_id FROM children JOIN runs ON runs.id = children.root"
    )
    return {run: text(root) for run, root in found}


def _changes_of_unfinished(connection: sqlite3.Connection, beginning: str) -> Iterator[Change]:
    """What no snapshot has, by run, and of one in their order."""
    # One statement for all: thousands of runs wait. CROSS JOIN fixes the order of the loops.
    return connection.execute(
        "SELECT records.run, delta FROM runs "
        "LEFT JOIN results ON results.run = runs.id LEFT JOIN snapshots ON snapshots.run = runs.id "
        "CROSS JOIN records ON records.run = runs.id "
        f"WHERE results.run IS NULL AND {_BEGINNING} "
        "AND records.version > coalesce(snapshots.version, 0) ORDER BY runs.id, position",
        (beginning,),
    )


def _changes_by_run(changes: Iterator[Change]) -> Callable[[int], Iterable[Change]]:
    """Find the changes of a run, which is asked for in their order."""
    groups = groupby(changes, itemgetter(0))
    group = next(groups, None)

    def changes_of(run: int) -> Iterable[Change]:
        nonlocal group
        if group is None or group[0] != run:
            return ()
        found = list(group[1])
        group = next(groups, None)
        return found

    return changes_of


def _heading(
    row: tuple[Any, ...],
    changes_of: Callable[[int], Iterable[Change]],
    workspace_of: Callable[[Packed], str | None],
) -> RunHeading:
    run, run_id, conversation_id, added_at, metadata, command, result, at, spec, state = row
    end, workspace = unpack_result(result), None
    questions: tuple[Mapping[str, Any], ...] = ()
    others_go_on = False
    if end is not None:
        turns, usage = end.turn_count, end.usage
    else:
        values = _values(state, changes_of(run))
        turns = whole(turns_of(values))
        usage = _usage(values)
        questions = _questions(values)
        others_go_on = bool(questions) and not is_waiting(values)
        workspace = workspace_of(spec)
    return RunHeading(
        run_id=text(run_id),
        conversation_id=text(conversation_id),
        added_at=number(added_at),
        metadata=mapping(unpack(metadata)),
        end=end,
        command=text(command),
        changed_at=number(added_at if at is None else at),
        turns=turns,
        rounds=whole(usage.model_calls),
        usage=usage,
        workspace=workspace,
        questions=questions,
        others_go_on=others_go_on,
    )


def _values(state: Packed | None, changes: Iterable[Change]) -> dict[str, Any]:
    """The entries of a run: those of its snapshot, if it has one, and what came after it."""
    known = SharedState()
    if state is not None:
        known.values = mapping(unpack(state))
    for _, delta in changes:
        known.apply(StateDelta(writes=unpack_writes(delta)))
    return known.values


def _workspace(spec: Packed) -> str | None:
    return (unpack(spec).get("workspace") or {}).get("path")


def _usage(values: Mapping[str, Any]) -> Usage:
    """What a run has used so far."""
    used = mapping(values.get(USAGE.name) or {})
    for amount in used.values():
        number(amount)
    return Usage(**used)


def _questions(values: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """What a run waits for, with the answers that it has, or gets when somebody takes it up.

    Of one that does not wait: what those below it ask.
    """
    asks_below = any(mapping(values.get(ASKED_BELOW.name) or {}).values())
    if not is_waiting(values) and not asks_below:
        return ()
    answers = mapping(values.get(ANSWERS.name) or {})
    late = expired(values, time.time())
    mapping(values.get(QUESTIONS.name) or {})
    return tuple(_with_answer(mapping(one), answers, late) for one in asked_in(values))


def _with_answer(
    question: Mapping[str, Any], answers: Mapping[str, Any], late: Mapping[str, str]
) -> dict[str, Any]:
    number = question["id"]
    if question.get("call") is None:
        return {**question, "answer": answers.get(number)}
    mapping(question["call"])
    told = {**told_of(question), "call_id": question["call_id"]}
    told["answer"] = answers.get(number, late.get(number))
    return {**told, "expired": True} if number in late else told
