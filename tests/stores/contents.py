"""All that a journal tells, as plain values, so that it can be compared with what was stored."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from harness_actors.events import RunEvent, encode_event
from harness_actors.messages import Message
from harness_actors.records import Hop, RunHeading, StoredRun, WorkspaceSpec
from harness_actors.results import HarnessResult, encode_result
from harness_actors.signals import encode_signal
from harness_actors.stores import JournalReader, SqliteJournal


def contents_of(journal: SqliteJournal | JournalReader) -> dict[str, Any]:
    """What each `load_*` returns; what depends on a key, for every key that occurs."""
    headings = journal.headings()
    runs = [journal.load_run(heading.run_id) for heading in headings]
    stored = [run for run in runs if run is not None]
    talks = sorted({heading.conversation_id for heading in headings})
    found = {
        "position": journal.position(),
        "headings": [_heading(heading) for heading in headings],
        "runs": [_run(run) for run in stored],
        "unfinished": {
            command: [run.spec.run_id for run in journal.load_unfinished(command)]
            for command in sorted({run.command for run in stored})
        },
        "conversations": {talk: _messages(journal.load_conversation(talk)) for talk in talks},
        "code": {
            code: hashlib.sha256(journal.load_code(code) or b"").hexdigest()
            for code in sorted({run.spec.code for run in stored})
        },
        "processes": [asdict(mark) for mark in journal.load_processes()],
        "events": [_event(event) for event in journal.load_events(0, limit=100_000)],
        "events_of_runs": {
            run.spec.run_id: len(journal.load_events(0, run_id=run.spec.run_id, limit=100_000))
            for run in stored
        },
    }
    # As whoever reads the expectation from a file sees it.
    plain: dict[str, Any] = orjson.loads(orjson.dumps(found))
    return plain


def _heading(heading: RunHeading) -> dict[str, Any]:
    return {
        "run_id": heading.run_id,
        "conversation_id": heading.conversation_id,
        "added_at": heading.added_at,
        "metadata": heading.metadata,
        "end": _end(heading.end),
    }


def _run(run: StoredRun) -> dict[str, Any]:
    spec = run.spec
    return {
        "run_id": spec.run_id,
        "conversation_id": spec.conversation_id,
        "task": _messages(spec.task),
        "code": spec.code,
        "config": spec.config.as_mapping(),
        "edges": spec.edges,
        "custom": spec.custom,
        "keys": spec.keys,
        "workspace": None if spec.workspace is None else _workspace(spec.workspace),
        "metadata": spec.metadata,
        "command": run.command,
        "added_at": run.added_at,
        "values": run.state.values,
        "log": _messages(run.state.log),
        "version": run.state.version,
        "hop": _hop(run.hop),
        "losses": run.losses,
        "end": _end(run.end),
    }


def _workspace(spec: WorkspaceSpec) -> dict[str, Any]:
    """Without what a batch has not asked for, or could not ask for when it was written."""
    fields = asdict(spec)
    return {
        name: value
        for name, value in fields.items()
        if value or name not in ("covered", "must_be_covered", "base", "read_only")
    }


def _messages(messages: Sequence[Message]) -> list[Any]:
    return [[m.role, m.encoded.decode(), m.tokens, m.is_error] for m in messages]


def _hop(hop: Hop | None) -> Any:
    return None if hop is None else {"to": hop.to, "signal": encode_signal(hop.signal)}


def _end(end: HarnessResult | None) -> Any:
    return None if end is None else encode_result(end)


def _event(event: RunEvent) -> list[Any]:
    return [event.position, event.run_id, event.at, encode_event(event.event)]
