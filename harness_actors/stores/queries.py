"""What a journal holds, read back.

Every function expects a transaction around it, so that its statements see one state.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import orjson

from harness_actors.conversation import Conversation
from harness_actors.events import Event, RunEvent, RunStarted, message_events
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, Summary
from harness_actors.records import ProcessMark, StoredChange, StoredRun
from harness_actors.results import HarnessResult
from harness_actors.state import SharedState, StateDelta, is_waiting
from harness_actors.stores.codec import (
    unpack,
    unpack_delta,
    unpack_events,
    unpack_hop,
    unpack_message,
    unpack_plan,
    unpack_result,
    unpack_spec,
    unpack_summary,
    unpack_writes,
    with_failure,
)
from harness_actors.stores.columns import check_body, mapping, number, text, whole
from harness_actors.stores.schema import ADDED_IN, PLACES


def known(connection: sqlite3.Connection, run_ids: Sequence[str]) -> set[str]:
    """Those of these runs that the journal has, over or not."""
    found = connection.execute(
        "SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(list(run_ids)).decode(),),
    )
    return {text(run_id) for (run_id,) in found}


def load_run(connection: sqlite3.Connection, run_id: str) -> StoredRun | None:
    """A run as it stands; None where the journal does not have it."""
    found = connection.execute(
        "SELECT id, conversation_id, command, added_at, metadata, spec, result "
        "FROM runs LEFT JOIN results ON results.run = runs.id WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    if found is None:
        return None
    run, conversation_id, command, added_at, metadata, spec, result = found
    hop = connection.execute(
        "SELECT hop FROM records WHERE run = ? AND hop IS NOT NULL ORDER BY position DESC LIMIT 1",
        (run,),
    ).fetchone()
    losses = connection.execute(
        "SELECT losses FROM records WHERE run = ? AND version IS NOT NULL "
        "ORDER BY position DESC LIMIT 1",
        (run,),
    ).fetchone()
    state = _entries(connection, run)
    state.log = Conversation(load_conversation(connection, conversation_id))
    state.plan = load_plan(connection, conversation_id)
    return StoredRun(
        spec=unpack_spec(
            spec,
            run_id=run_id,
            conversation_id=text(conversation_id),
            task=_task(connection, run),
            metadata=mapping(unpack(metadata)),
        ),
        command=text(command),
        added_at=number(added_at),
        state=state,
        hop=None if hop is None else unpack_hop(hop[0]),
        losses=0 if losses is None else whole(losses[0]),
        end=unpack_result(result),
        summaries={} if result is not None else load_summaries(connection, conversation_id),
    )


def load_result(connection: sqlite3.Connection, run_id: str) -> HarnessResult | None:
    """How a run ended; None while it is unfinished, or where nobody knows it."""
    found = connection.execute(
        "SELECT result FROM runs JOIN results ON results.run = runs.id WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    return None if found is None else unpack_result(found[0])


def load_unfinished(connection: sqlite3.Connection, command: str) -> list[StoredRun]:
    """The runs of a command that are not over, oldest first, and all below them."""
    roots = "SELECT id FROM runs WHERE command = ?1"
    below = f"UNION SELECT run FROM children WHERE root IN ({roots})"
    wanted = f"{roots} {below}" if has_table(connection, "children") else roots
    return _unfinished(connection, wanted, command)


def load_tree(connection: sqlite3.Connection, root: str) -> list[StoredRun]:
    """The runs of a tree that are not over, oldest first, so that each comes after its parent."""
    top = "SELECT id FROM runs WHERE run_id = ?1"
    below = f"UNION SELECT run FROM children WHERE root = ({top})"
    wanted = f"{top} {below}" if has_table(connection, "children") else top
    return _unfinished(connection, wanted, root)


def _unfinished(connection: sqlite3.Connection, wanted: str, name: str) -> list[StoredRun]:
    unfinished = connection.execute(
        f"SELECT run_id FROM runs WHERE id IN ({wanted}) "
        "AND NOT EXISTS (SELECT 1 FROM results WHERE run = runs.id) ORDER BY id",
        (name,),
    ).fetchall()
    runs = (load_run(connection, run_id) for (run_id,) in unfinished)
    return [run for run in runs if run is not None]


def _task(connection: sqlite3.Connection, run: int) -> list[Message]:
    position = connection.execute(
        "SELECT min(position) FROM records WHERE run = ? AND version IS NULL", (run,)
    ).fetchone()[0]
    return load_messages(connection, whole(position))


def _entries(connection: sqlite3.Connection, run: int) -> SharedState:
    """The state of a run without its log."""
    snapshot = connection.execute(
        "SELECT version, state FROM snapshots WHERE run = ?", (run,)
    ).fetchone()
    state = SharedState()
    if snapshot is not None:
        state.version = whole(snapshot[0])
        state.values = mapping(unpack(snapshot[1]))
    changes = connection.execute(
        "SELECT version, delta FROM records WHERE run = ? AND version > ? ORDER BY position",
        (run, state.version),
    )
    for version, delta in changes:
        state.apply(StateDelta(writes=unpack_writes(delta)))
        state.version = whole(version)
    return state


def load_own_messages(connection: sqlite3.Connection, run_id: str) -> list[Message]:
    """What a run itself added to its conversation's log, its task included."""
    return _log_of(connection, "run_id", run_id)


def has_conversation(connection: sqlite3.Connection, conversation_id: str) -> bool:
    """Whether a run of a conversation is in the journal."""
    query = "SELECT 1 FROM runs WHERE conversation_id = ? LIMIT 1"
    return connection.execute(query, (conversation_id,)).fetchone() is not None


def load_conversation(connection: sqlite3.Connection, conversation_id: str) -> list[Message]:
    """The messages of a conversation, oldest first."""
    return _log_of(connection, "conversation_id", conversation_id)


def load_plan(connection: sqlite3.Connection, conversation_id: str) -> CompactionPlan | None:
    """How a conversation is shown to its model; None for as it is."""
    if not has_table(connection, "plans"):
        return None
    found = connection.execute(
        "SELECT plan FROM runs CROSS JOIN plans ON plans.run = runs.id "
        "WHERE conversation_id = ? ORDER BY position DESC LIMIT 1",
        (conversation_id,),
    ).fetchone()
    return None if found is None else unpack_plan(found[0])


def load_summaries(connection: sqlite3.Connection, conversation_id: str) -> dict[str, Summary]:
    """The summaries of parts of a conversation that are in no plan yet, by their keys."""
    if not has_table(connection, "summaries"):
        return {}
    found = connection.execute(
        "SELECT key, summary FROM runs CROSS JOIN summaries ON summaries.run = runs.id "
        "WHERE conversation_id = ? ORDER BY position",
        (conversation_id,),
    ).fetchall()
    used = _in_plans(connection, conversation_id) if found else frozenset()
    return {text(key): unpack_summary(made) for key, made in found if key not in used}


def _in_plans(connection: sqlite3.Connection, conversation_id: str) -> frozenset[str]:
    """The keys of the summaries that plans of a conversation were made of."""
    plans = connection.execute(
        "SELECT plan FROM runs CROSS JOIN plans ON plans.run = runs.id WHERE conversation_id = ?",
        (conversation_id,),
    )
    return frozenset(key for (packed,) in plans for key in unpack_plan(packed).made_of)


def _log_of(connection: sqlite3.Connection, column: str, wanted: str) -> list[Message]:
    # CROSS JOIN fixes the order of the loops: runs, their changes, the range of each.
    found = connection.execute(
        "SELECT role, encoded, tokens, is_error FROM runs "
        "CROSS JOIN records ON records.run = runs.id AND version IS NOT NULL "
        "CROSS JOIN messages ON messages.id >= position * ?1 AND messages.id < (position + 1) * ?1 "
        f"WHERE {column} = ?2 ORDER BY messages.id",
        (PLACES, wanted),
    )
    return [_message(row) for row in found]


def run_after(connection: sqlite3.Connection, run_id: str) -> str | None:
    """The first other run that spoke in its conversation after a run had begun to.

    Results that answer what a run left open do not count. None where there is no such
    run, and where the run itself has said nothing.
    """
    # CROSS JOIN as in `load_conversation`; a result may answer what the run itself left open.
    said = (
        "CROSS JOIN records ON records.run = runs.id AND version IS NOT NULL "
        "CROSS JOIN messages ON messages.id >= position * ?1 AND messages.id < (position + 1) * ?1 "
    )
    own = connection.execute(
        f"SELECT conversation_id, min(position) FROM runs {said}WHERE run_id = ?2",
        (PLACES, run_id),
    ).fetchone()
    found = connection.execute(
        f"SELECT run_id FROM runs {said}WHERE conversation_id = ?2 AND run_id != ?3 "
        "AND position > ?4 AND role != 'tool' ORDER BY messages.id LIMIT 1",
        (PLACES, own[0], run_id, own[1]),
    ).fetchone()
    return None if found is None else str(found[0])


def load_messages(connection: sqlite3.Connection, position: int) -> list[Message]:
    """The messages of one record, in their order."""
    found = connection.execute(
        "SELECT role, encoded, tokens, is_error FROM messages WHERE id >= ? AND id < ? ORDER BY id",
        (position * PLACES, (position + 1) * PLACES),
    )
    return [_message(row) for row in found]


def load_events(
    connection: sqlite3.Connection, after: int, *, run_id: str | None = None, limit: int = 1000
) -> list[RunEvent]:
    """Events after a position, oldest first; those of one change are never split.

    Of one change, those of its messages come first, in the order of the messages, then
    those that it carries itself.

    Args:
        connection: To the journal.
        after: A journal position; 0 begins at the first event.
        run_id: Only those of this run.
        limit: Events after which the list ends with the change that it is in.
    """
    of_run = "" if run_id is None else "AND run = (SELECT id FROM runs WHERE run_id = :run_id) "
    changes = connection.execute(
        "SELECT position, run_id, at, delta FROM records JOIN runs ON runs.id = run "
        f"WHERE position > :after AND version IS NOT NULL {of_run}ORDER BY position",
        {"after": after, "run_id": run_id},
    )
    found: list[RunEvent] = []
    for position, owner, at, delta in changes:
        change = unpack_delta(delta, load_messages(connection, position))
        events: list[Event] = [*message_events(change.messages), *change.events]
        found.extend(
            RunEvent(position=position, run_id=text(owner), at=number(at), event=event)
            for event in events
        )
        if len(found) >= limit:
            break
    changes.close()
    return found


def load_previews(connection: sqlite3.Connection, run_ids: Sequence[str]) -> dict[str, str]:
    """How the tasks of runs begin, by run id; of one that has not begun, nothing."""
    firsts = connection.execute(
        "SELECT run_id, delta FROM runs JOIN records ON position = (SELECT min(position) "
        "FROM records AS first WHERE first.run = runs.id AND version IS NOT NULL) "
        "WHERE run_id IN (SELECT value FROM json_each(?))",
        (orjson.dumps(list(run_ids)).decode(),),
    )
    return {
        text(run_id): event.task_preview
        for run_id, delta in firsts
        for event in unpack_events(delta)
        if isinstance(event, RunStarted)
    }


def load_changes(
    connection: sqlite3.Connection, run_id: str, after: int = 0, limit: int = 1000
) -> list[StoredChange]:
    """Changes of a run after a position, oldest first; empty after the newest.

    Args:
        connection: To the journal.
        run_id: The run.
        after: A journal position, that of the last change of the page before; 0
            begins at the first change.
        limit: Most changes in the list.
    """
    changes = connection.execute(
        "SELECT position, at, version, delta, hop, losses FROM records "
        "WHERE run = (SELECT id FROM runs WHERE run_id = ?) "
        "AND position > ? AND version IS NOT NULL ORDER BY position LIMIT ?",
        (run_id, after, limit),
    ).fetchall()
    plans = _plans_of(connection, run_id) if changes else {}
    return [
        StoredChange(
            position=position,
            at=number(at),
            version=whole(version),
            delta=_planned(
                unpack_delta(delta, load_messages(connection, position)), plans.get(position)
            ),
            hop=None if hop is None else unpack_hop(hop),
            losses=whole(losses),
        )
        for position, at, version, delta, hop, losses in changes
    ]


def _plans_of(connection: sqlite3.Connection, run_id: str) -> dict[int, CompactionPlan]:
    """The plans that a run adopted, by the position of the change."""
    if not has_table(connection, "plans"):
        return {}
    found = connection.execute(
        "SELECT position, plan FROM plans WHERE run = (SELECT id FROM runs WHERE run_id = ?)",
        (run_id,),
    )
    return {whole(position): unpack_plan(plan) for position, plan in found}


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether the journal is of a version that has a table."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version >= ADDED_IN[table]


def _planned(delta: StateDelta, plan: CompactionPlan | None) -> StateDelta:
    return delta if plan is None else replace(delta, plan=plan)


def load_code(connection: sqlite3.Connection, code: str) -> bytes | None:
    """What the journal keeps under a name; None where it keeps nothing."""
    found = connection.execute("SELECT blob FROM code WHERE code = ?", (code,)).fetchone()
    return None if found is None else bytes(found[0])


def load_processes(connection: sqlite3.Connection) -> list[ProcessMark]:
    """The processes of all terms that were marked and not forgotten, oldest first."""
    found = connection.execute("SELECT role, node, pid, started FROM processes ORDER BY rowid")
    return [
        ProcessMark(role=text(role), node=text(node), pid=whole(pid), started=whole(started))
        for role, node, pid, started in found
    ]


def waiting_in(connection: sqlite3.Connection, conversation_id: str) -> str | None:
    """The run of a conversation that waits for its user; None where none does."""
    unfinished = connection.execute(
        "SELECT id, run_id FROM runs WHERE conversation_id = ? AND command = '' "
        "AND NOT EXISTS (SELECT 1 FROM results WHERE run = runs.id)",
        (conversation_id,),
    ).fetchall()
    waiting = (run_id for run, run_id in unfinished if is_waiting(_entries(connection, run).values))
    return next((text(run_id) for run_id in waiting), None)


def load_removed_cost(connection: sqlite3.Connection) -> float:
    return number(connection.execute("SELECT cost_usd FROM removed").fetchone()[0])


def position(connection: sqlite3.Connection) -> int:
    """The newest position; 0 in an empty journal."""
    newest = connection.execute("SELECT max(position) FROM records").fetchone()[0]
    return 0 if newest is None else whole(newest)


def _message(row: tuple[str, bytes, int, int]) -> Message:
    role, encoded, tokens, is_error = row
    encoded = unpack_message(encoded)
    # Whoever asks for a body later would fail on it, and not only that caller.
    check_body(orjson.loads(encoded))
    return with_failure(text(role), encoded, whole(tokens), is_error)
