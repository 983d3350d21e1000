"""A rerun goes by what the journal says in data: the words of results decide nothing."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from harness_actors.errors import StoreError
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import ModelResponse
from harness_actors.replay import Recording, replay
from harness_actors.testing import Reply, ScriptedModel
from tests.replay.recorded_runs import done, program, recorded

UNKNOWN = Reply.call("unknown")


def with_messages(recording: Recording, change: Callable[[Message], Message]) -> Recording:
    """The recording with other messages in the place of its own."""
    changes = [
        replace(one, delta=replace(one.delta, messages=tuple(map(change, one.delta.messages))))
        for one in recording.changes
    ]
    return replace(recording, changes=tuple(changes))


def in_other_words(message: Message) -> Message:
    """The message of a result with a text that says nothing."""
    if message.role != "tool":
        return message
    words = f"something about {message.tool_call_id}"
    return replace(message, encoded=orjson.dumps({**message.body, "content": words}))


async def test_the_words_of_results_decide_nothing(tmp_path: Path) -> None:
    """Neither that a tool failed, nor that time was up, nor that it was too long to be kept."""
    script = [
        Reply.calls([("fail", {"how": "told"}), ("slow", {}), ("long", {"characters": 300_000})]),
        Reply.calls([("read", {"text": "a"}), ("hang", {}), ("read", {"text": "b"})]),
    ]
    session = await recorded(tmp_path / "runs.db", program(script), limits={"working_s": 1.5})
    recording = session.recording()
    told = [message.disposition for message in recording.messages if message.role == "tool"]
    assert told == ["failed", "timed_out", "done", "done", "timed_out", "refused"]

    replayed = await replay(with_messages(recording, in_other_words))

    assert replayed.same, replayed.differences
    assert replayed.end is not None
    assert replayed.end.reason.kind == "working_time"


async def test_the_tools_of_an_agent_are_known_from_the_journal_and_not_from_a_refusal(
    tmp_path: Path,
) -> None:
    session = await recorded(tmp_path / "runs.db", program([UNKNOWN, UNKNOWN, done()]))
    recording = session.recording()
    assert recording.tools is not None
    assert {"read", "write", "hang"} < recording.tools

    first = next(message for message in recording.messages if message.role == "tool")
    replayed = await replay(
        with_messages(recording, lambda m: in_other_words(m) if m is first else m)
    )

    # It was said again as it had been, which is not what the recording says now.
    assert [difference.what for difference in replayed.differences] == ["message 2 (tool)"]
    assert "There is no tool 'unknown'" in replayed.differences[0].rerun


async def test_tools_that_cannot_be_read_are_damage_of_the_journal(tmp_path: Path) -> None:
    session = await recorded(tmp_path / "runs.db", program([done()]))
    for broken in (b"no json", b"[]", b'{"instructions": "", "tools": [{}], "completion": {}}'):
        with closing(sqlite3.connect(session.store)) as connection, connection:
            connection.execute("UPDATE code SET blob = ? WHERE length(code) != 64", (broken,))

        with pytest.raises(StoreError, match="damaged"):
            session.recording()


async def test_that_an_answer_was_cut_short_is_known_from_the_answer(tmp_path: Path) -> None:
    calls = (ToolCall("a", "write", '{"text": "a"}'), ToolCall("b", "write", '{"text": "cu'))
    cut = ModelResponse(text=None, tool_calls=calls, finish_reason="length")
    session = await recorded(tmp_path / "runs.db", program(_Answers(cut)))
    recording = session.recording()
    told = [message.disposition for message in recording.messages if message.role == "tool"]
    assert told == ["done", "refused", "done"]
    assert (await replay(recording)).same

    def silent(message: Message) -> Message:
        return message.without_facts()

    # Nothing else says it: the call would have been made.
    assert not (await replay(with_messages(recording, silent))).same


class _Answers(ScriptedModel):
    """Gives one answer as it is, and then ends the run."""

    def __init__(self, first: ModelResponse) -> None:
        super().__init__([Reply.text("first"), done()])
        self._first = first

    async def complete(self, request: object) -> ModelResponse:
        answer = await super().complete(request)  # type: ignore[arg-type]
        return self._first if answer.text == "first" else answer


async def test_what_became_of_a_call_is_found_by_its_id_wherever_it_stands(tmp_path: Path) -> None:
    script = [
        Reply.calls([("read", {"text": "a"}), ("read", {"text": "b"})], ids=["one", "two"]),
        Reply.calls([("read", {"text": "c"}), ("read", {"text": "d"})], ids=["two", "one"]),
        done(),
    ]
    session = await recorded(tmp_path / "runs.db", program(script))
    recording = session.recording()
    assert (await replay(recording)).same

    replayed = await replay(_with_results_swapped(recording))

    # Each call has its own result again, in the order of the calls.
    made = [difference.rerun for difference in replayed.differences]
    assert [one for one in ("read a", "read b", "read c", "read d") if one in "".join(made)] == [
        "read a",
        "read b",
        "read c",
        "read d",
    ]
    assert all(f"read {name}" in text for name, text in zip("abcd", made, strict=True))


def _with_results_swapped(recording: Recording) -> Recording:
    changes = []
    for change in recording.changes:
        messages = list(change.delta.messages)
        places = [place for place, message in enumerate(messages) if message.role == "tool"]
        for place, other in zip(places, reversed(places), strict=True):
            messages[place] = change.delta.messages[other]
        changes.append(replace(change, delta=replace(change.delta, messages=tuple(messages))))
    return replace(recording, changes=tuple(changes))
