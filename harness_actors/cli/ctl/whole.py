"""What `harness ctl run show` tells at length: all messages, and where user code failed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from harness_actors.errors import BadInputError

if TYPE_CHECKING:
    from harness_actors.events import Event
    from harness_actors.records import RunHeading, StoredRun
    from harness_actors.stores import JournalReader

LAST_ERRORS = 5
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)$', re.MULTILINE)


def run(journal: "JournalReader", run_id: str) -> "StoredRun":
    """All that a journal has of a run that was found in it just now.

    Raises:
        BadInputError: It was removed since then, as runs are that ended long enough ago.
    """
    stored = journal.load_run(run_id)
    if stored is None:
        problem = (
            f"run {run_id!r} was removed from {str(journal.path)!r} just now, as runs are that "
            "ended $HARNESS_KEEP_DAYS ago; `harness ctl run list` has those that are there"
        )
        raise BadInputError("RUN_ID", (problem,))
    return stored


def log(store: Path, run_id: str) -> str | None:
    """Where what a run printed is kept; None where it printed nothing."""
    from harness_actors.stores.logs import log_of

    path = log_of(store, run_id)
    return str(path) if path.exists() else None


def artifacts(store: Path, conversation_id: str) -> str | None:
    """Where the results of a conversation are kept that were too long for it; None where it has
    none. The names of the files begin with their ids."""
    from harness_actors.stores.artifacts import folder_of

    path = folder_of(store, conversation_id)
    return str(path) if path.exists() else None


def conversation(journal: "JournalReader", stored: "StoredRun") -> list[dict[str, Any]]:
    """All messages in the Chat Completions format; of failed calls `is_error` besides, and what
    became of them where that is on record."""
    from harness_actors.stores.conversations import conversation_of

    messages = [dict(message) for message in conversation_of(journal, stored).messages]
    log = stored.state.log
    for plain, message in zip(messages[len(messages) - len(log) :], log, strict=True):
        if message.is_error:
            plain["is_error"] = True
            plain |= {"disposition": message.failure} if message.failure else {}
    return messages


def tool_errors(journal: "JournalReader", run_id: str) -> list[dict[str, Any]]:
    """The calls of a run that failed in code of its user, oldest first."""
    from harness_actors.events import ToolCalled, ToolReturned

    names: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for event in events_of(journal, run_id):
        if isinstance(event, ToolCalled):
            names[event.call_id] = event.tool_name
        elif isinstance(event, ToolReturned) and event.traceback:
            found.append(
                {
                    "call_id": event.call_id,
                    "tool": names.get(event.call_id, ""),
                    "error": event.text,
                    "traceback": event.traceback,
                }
            )
    return found


def fallbacks(journal: "JournalReader", run_id: str) -> list[dict[str, Any]]:
    """The rounds of a run that were not answered by the first of its models alone."""
    from harness_actors.events import ModelFellBack

    return [
        {"turn": event.turn, "round": event.round, "model": event.model, "failed": event.failed}
        for event in events_of(journal, run_id)
        if isinstance(event, ModelFellBack)
    ]


def fallback_rows(told: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """How often each model of a chain failed, with its newest problem, and how many rounds each
    has answered in place of another."""
    failed: dict[str, list[str]] = {}
    answered: dict[str, int] = {}
    for one in told:
        for attempt in one["failed"]:
            failed.setdefault(attempt["model"], []).append(attempt["problem"])
        if one["model"]:
            answered[one["model"]] = answered.get(one["model"], 0) + 1
    rows = [
        ("fallback", f"{model} did not answer {_times(len(problems))}, last: {problems[-1]}")
        for model, problems in failed.items()
    ]
    rows += [
        ("fallback", f"{model} answered {count} round{'' if count == 1 else 's'} in its place")
        for model, count in answered.items()
    ]
    return rows


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def questions(
    journal: "JournalReader", stored: "StoredRun", heading: "RunHeading"
) -> list[dict[str, Any]]:
    """What a run has asked its user so far, oldest first, with the answers that there are; one at
    the top of a tree has asked for those below it, too."""
    from harness_actors.events import InputAwaited
    from harness_actors.state import ANSWERS, CHILDREN, QUESTIONS_ASKED

    values = stored.state.values
    if not values.get(QUESTIONS_ASKED.name) and not values.get(CHILDREN.name):
        return []
    answers = values.get(ANSWERS.name) or {}
    found: dict[str, dict[str, Any]] = {}
    for event in events_of(journal, stored.spec.run_id):
        for asked in event.questions if isinstance(event, InputAwaited) else ():
            found[asked["id"]] = {**asked, "answer": answers.get(asked["id"])}
    # What has expired, or was answered at the top; and what is asked below while others go on.
    for open_now in heading.questions:
        found[open_now["id"]] = {**found.get(open_now["id"], {}), **open_now}
    return list(found.values())


def events_of(journal: "JournalReader", run_id: str) -> "Iterator[Event]":
    after = 0
    while events := journal.load_events(after, run_id=run_id):
        after = events[-1].position
        yield from (told.event for told in events)


def error_rows(errors: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The newest failed calls, a line each."""
    rows = [("tool failed", _brief(error)) for error in errors[-LAST_ERRORS:]]
    if len(errors) > LAST_ERRORS:
        rows.insert(0, ("tool failed", f"{len(errors)} times; --json has all, the last were"))
    return rows


def _brief(error: Mapping[str, Any]) -> str:
    said = " ".join(error["error"].split())
    said = said if len(said) <= 120 else said[:120] + "…"
    frames = list(_FRAME.finditer(error["traceback"]))
    at = f", {frames[-1]['file']}:{frames[-1]['line']} in {frames[-1]['name']}" if frames else ""
    return f"{error['tool']} ({error['call_id']}): {said}{at}"


def written_out(
    messages: Sequence[Mapping[str, Any]], errors: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """The conversation for a person, with the tracebacks below the calls that failed."""
    from harness_actors.events import preview

    tracebacks: dict[tuple[str, str], list[str]] = {}
    for error in errors:
        # Models use an id again: each result takes the next of its own.
        tracebacks.setdefault((error["call_id"], error["error"]), []).append(error["traceback"])
    for number, message in enumerate(messages, start=1):
        failed = f" ({message.get('disposition', 'failed')})" if message.get("is_error") else ""
        call_id = str(message.get("tool_call_id") or "")
        yield f"\n── {number} {message['role']}{failed} {call_id}".rstrip()
        text = _text(message)
        if text:
            yield text
        for call in message.get("tool_calls") or ():
            function = call["function"]
            yield f"→ {function['name']} {function['arguments']}  ({call['id']})"
        waiting = tracebacks.get((call_id, preview(text)))
        if failed and waiting:
            yield indent(waiting.pop(0), "    ")


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or f"[{part.get('type')}]") for part in content)
    return content or ""
