"""`harness ctl run show`: one run."""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection, whole
from harness_actors.cli.ctl.family import family, family_rows
from harness_actors.cli.ctl.window import compacted, window, window_rows
from harness_actors.cli.failures import ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, say, say_json

if TYPE_CHECKING:
    from harness_actors.cli.ctl.facts import RunFacts
    from harness_actors.messages import Message
    from harness_actors.records import StoredRun
    from harness_actors.stores import JournalReader

LAST_MESSAGES = 5
SHOWN_CHARS = 200


def show(
    run_id: selection.RunIdArgument,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="The whole conversation, other runs of it included, and where calls of tools "
            "failed.",
        ),
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """One run: its settings, what it used, where it stands, its last messages, its end.

    Messages are those of this run alone. Where other runs have the same
    conversation, --full shows theirs too; so does --json under `conversation`,
    in the Chat Completions format.

    Examples:

        harness ctl run show 3f2a

        harness ctl run show 3f2a --full | less

        harness ctl run show 3f2a --run-dir runs/one --json
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.facts import facts_of
        from harness_actors.stores import JournalReader
        from harness_actors.stores.places import find_run, journals_in

        found = find_run(journals_in(run_dir, store), run_id)
        facts = facts_of(found.store, found.heading)
        journal, run_id = JournalReader(found.store), found.heading.run_id
        # Before the conversation is read, so that long messages are held once.
        room_made = compacted(journal, run_id)
        said = {
            **_own_messages(journal, run_id),
            "fallbacks": whole.fallbacks(journal, run_id),
            "tool_errors": whole.tool_errors(journal, run_id),
        }
        stored = whole.run(journal, run_id)
        told = {
            **_told(facts, stored),
            **said,
            **family(journal, facts, stored),
            "questions": whole.questions(journal, stored, found.heading),
            "log": whole.log(found.store, run_id),
            "artifacts": whole.artifacts(found.store, stored.spec.conversation_id),
            "conversation": whole.conversation(journal, stored),
            "window": window(stored, room_made),
        }
        if as_json:
            say_json(told)
        else:
            _print(told, facts)
            if full:
                for line in whole.written_out(told["conversation"], told["tool_errors"]):
                    say(line)
    raise typer.Exit(ALL_DONE)


def _own_messages(journal: "JournalReader", run_id: str) -> dict[str, Any]:
    messages = journal.load_own_messages(run_id)
    last = [_brief(message) for message in messages[-LAST_MESSAGES:]]
    return {"own_messages": len(messages), "last_messages": last}


def _told(facts: "RunFacts", stored: "StoredRun") -> dict[str, Any]:
    from harness_actors.results import encode_result
    from harness_actors.signals import encode_signal

    spec = stored.spec
    return {
        **facts.as_json(),
        "made_with": None if spec.made_with is None else asdict(spec.made_with),
        "settings": spec.config.as_mapping(),
        "keys": list(spec.keys),
        "workspace": None if spec.workspace is None else spec.workspace.path,
        "stands_at": None
        if stored.hop is None or stored.end is not None
        else {"executor": stored.hop.to, "signal": encode_signal(stored.hop.signal)},
        "losses": stored.losses,
        # A run that is over has closed them: none is without its result.
        "open_calls": [] if stored.end is not None else _open_calls(stored.state.values),
        "messages": len(stored.state.log),
        "result": None if stored.end is None else encode_result(stored.end),
    }


def _open_calls(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls that have no result; what a question holds has not begun, and waits."""
    from harness_actors.state import OPEN_CALLS, QUESTIONS

    held = (values.get(QUESTIONS.name) or {}).get("held", ())
    return [
        {**call, "disposition": "waiting"} if call["call_id"] in held else dict(call)
        for call in values.get(OPEN_CALLS.name) or ()
    ]


def _brief(message: "Message") -> dict[str, Any]:
    return {
        "role": message.role,
        "text": message.text,
        "calls": [{"name": c.name, "arguments": c.arguments} for c in message.tool_calls],
        "is_error": message.is_error,
        "disposition": message.disposition,
    }


def _print(told: dict[str, Any], facts: "RunFacts") -> None:
    from rich.markup import escape
    from rich.table import Table

    from harness_actors.printing.console import PlainConsole

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in _rows(told, facts):
        table.add_row(name, escape(value))
    console = PlainConsole()
    if console.is_terminal:
        console.print(table)
        return
    # In a pipe no line ends in the blanks that fill a table's column.
    wide = PlainConsole(width=200)
    with wide.capture() as drawn:
        wide.print(table)
    say("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def _rows(told: dict[str, Any], facts: "RunFacts") -> list[tuple[str, str]]:
    from harness_actors.cli.ctl.list import age
    from harness_actors.cli.event_lines import question_lines, unmet_lines, used

    settings = told["settings"]
    rows = [
        ("run", told["run_id"]),
        ("status", facts.status),
        ("task", told["what"]),
        ("journal", told["store"]),
        ("submitted", f"{age(time.time() - told['added_at'])} ago"),
        ("last change", f"{age(time.time() - told['changed_at'])} ago"),
        ("used", used(told["turns"], facts.usage)),
        *family_rows(told),
        *window_rows(told["window"]),
        *_made_with(told["made_with"]),
        ("settings", ", ".join(_settings(settings))),
        ("workspace", told["workspace"] or "none"),
    ]
    if told["log"]:
        rows.append(("printed", told["log"]))
    if told["artifacts"]:
        rows.append(("artifacts", told["artifacts"]))
    if told["stands_at"]:
        rows.append(("stands at", told["stands_at"]["executor"]))
    if told["questions"]:
        rows.append(("asked", "\n".join(question_lines(told["questions"], whole=True))))
    if told["losses"]:
        rows.append(("processes lost", str(told["losses"])))
    for call in told["open_calls"]:
        rows.append(("open call", f"{call['tool_name']} ({call['call_id']})"))
    rows += whole.fallback_rows(told["fallbacks"])
    rows += whole.error_rows(told["tool_errors"])
    if others := told["messages"] - told["own_messages"]:
        said = f"{others} more messages of other runs in this conversation; --full shows all"
        rows.append(("conversation", said))
    rows += [(message["role"], _line(message)) for message in told["last_messages"]]
    if told["result"]:
        reason = told["result"]["reason"]
        rows.append(("ended", f"{reason['kind']} {reason['message']}".strip()))
        if where := facts.heading.end.reason.traceback if facts.heading.end else "":
            rows.append(("failed here", where))
        rows.append(("answer", told["result"]["output_text"]))
        if (output := told["result"].get("output")) is not None:
            rows.append(("output", json_line(output)))
        contract = facts.heading.end.contract if facts.heading.end else None
        rows += [("not met", line.strip()) for line in unmet_lines(contract)]
    return rows


def _made_with(made_with: dict[str, str] | None) -> list[tuple[str, str]]:
    if made_with is None:
        return []
    return [
        ("agent", made_with["agent"]),
        ("model", made_with["model"]),
        ("set-up", made_with["setup"]),
    ]


def _settings(settings: dict[str, Any]) -> list[str]:
    flat = {**settings, **{f"limits.{k}": v for k, v in settings["limits"].items()}}
    return [f"{k}={v}" for k, v in flat.items() if k != "limits" and v is not None]


def _line(message: dict[str, Any]) -> str:
    calls = [f"→ {call['name']} {call['arguments']}" for call in message["calls"]]
    text = " ".join([*message["text"].split(), *calls])
    mark = "✗ " if message["is_error"] else ""
    return mark + (text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")
