"""What is told of a run at length: its messages, and where code of its user failed."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from harness_actors.cli.ctl import whole
from harness_actors.events import PREVIEW_CHARS, ToolReturned
from harness_actors.messages import Message, ToolCall
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.testing import Reply
from tests.replay.recorded_runs import Session, done, program
from tests.stores.entries import added, changed


def failed(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text, "is_error": True}


def error(call_id: str, text: str, traceback: str) -> Mapping[str, Any]:
    return {"call_id": call_id, "tool": "fail", "error": text, "traceback": traceback}


def test_each_call_that_failed_has_its_own_traceback_below_it() -> None:
    long = "x" * (PREVIEW_CHARS + 1)
    messages = [
        failed("a", "boom"),
        failed("a", "boom"),
        failed("b", "boom"),
        {"role": "tool", "tool_call_id": "a", "content": "boom"},
        failed("a", long),
        failed("a", "boom"),
    ]
    errors = [
        error("a", "boom", "first"),
        error("a", "boom", "second"),
        error("a", long[:PREVIEW_CHARS] + "…", "third"),
    ]

    said = [line.strip() for line in whole.written_out(messages, errors)]

    assert said == [
        "── 1 tool (failed) a",
        "boom",
        "first",
        "── 2 tool (failed) a",
        "boom",
        "second",
        "── 3 tool (failed) b",
        "boom",
        "── 4 tool a",
        "boom",
        "── 5 tool (failed) a",
        long,
        "third",
        "── 6 tool (failed) a",
        "boom",
    ]


def test_what_a_message_says_stands_before_what_it_calls() -> None:
    call = {"id": "a", "function": {"name": "read", "arguments": "{}"}}
    parts = [{"type": "text", "text": "see "}, {"type": "image_url"}]
    messages: list[Mapping[str, Any]] = [
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "hm", "tool_calls": [call]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {**failed("a", "late"), "disposition": "timed_out"},
    ]

    assert list(whole.written_out(messages, [])) == [
        "\n── 1 user",
        "see [image_url]",
        "\n── 2 assistant",
        "hm",
        "→ read {}  (a)",
        "\n── 3 assistant",
        "→ read {}  (a)",
        "\n── 4 tool (timed_out) a",
        "late",
    ]


def test_of_many_failed_calls_the_newest_are_told_with_how_many_there_were() -> None:
    frames = 'Traceback:\n  File "/a.py", line 1, in outer\n  File "/b.py", line 2, in inner\n'
    errors = [error(f"c{number}", "it  did\nnot", frames) for number in range(6)]

    few, many = whole.error_rows(errors[:5]), whole.error_rows(errors)

    assert few[0] == ("tool failed", "fail (c0): it did not, /b.py:2 in inner")
    assert len(few) == 5
    assert many[0] == ("tool failed", "6 times; --json has all, the last were")
    assert [text.split()[1] for _, text in many[1:]] == [f"(c{number}):" for number in range(1, 6)]
    assert whole.error_rows([error("c", "y" * 121, "")]) == [
        ("tool failed", f"fail (c): {'y' * 120}…")
    ]


def test_failed_calls_of_a_run_are_named_by_their_tools(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    calls = [ToolCall(f"c{number}", f"tool-{number}", "{}") for number in range(3)]
    results = [
        ToolReturned(call_id=call.id, text="no", is_error=True, traceback="in it") for call in calls
    ]
    entries = [changed(1, messages=[Message.assistant("", calls)])]
    entries += [changed(number + 2, events=[told]) for number, told in enumerate(results)]
    other = changed(1, "run-2", events=[ToolReturned(call_id="c0", text="no", is_error=True)])
    with closing(SqliteJournal(store)) as journal:
        journal.begin_term()
        journal.commit(1, [added(), added("run-2"), *entries, other])

    found = whole.tool_errors(JournalReader(store), "run-1")

    assert [(one["call_id"], one["tool"]) for one in found] == [
        ("c0", "tool-0"),
        ("c1", "tool-1"),
        ("c2", "tool-2"),
    ]
    assert whole.tool_errors(JournalReader(store), "run-2") == [], "no code of a user failed"


async def test_the_marks_of_failed_calls_are_at_their_own_messages(tmp_path: Path) -> None:
    session = Session(
        tmp_path / "runs.db",
        program([Reply.call("fail", {"how": "told"}), Reply.call("read", {"text": "a"}), done()]),
    )
    await session.to_its_end()
    journal = JournalReader(session.store)
    stored = journal.load_run("run")
    assert stored is not None

    messages = whole.conversation(journal, stored)

    marks = [(m["role"], m.get("is_error"), m.get("disposition")) for m in messages]
    assert marks == [
        ("system", None, None),
        ("user", None, None),
        ("assistant", None, None),
        ("tool", True, "failed"),
        ("assistant", None, None),
        ("tool", None, None),
        ("assistant", None, None),
        ("tool", None, None),
    ]
