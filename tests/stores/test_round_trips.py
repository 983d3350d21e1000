"""What was committed is what is loaded, by this process or the next."""

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.config import ContinuationConfig, HarnessConfig, Limits
from harness_actors.events import CustomEvent, RunStarted, ToolReturned
from harness_actors.messages import FAILURES, Message, MessageFacts, ToolCall
from harness_actors.records import (
    CodeStored,
    Entry,
    Hop,
    MadeWith,
    ProcessMark,
    RunAdded,
    SnapshotTaken,
    WorkspaceSpec,
)
from harness_actors.signals import (
    CompactionComplete,
    CustomSignal,
    RepairComplete,
    RepairTrigger,
    Signal,
    TurnComplete,
)
from harness_actors.state import SharedState, StateDelta, Write
from harness_actors.stores import SqliteJournal
from tests.stores.entries import COMMAND, a_round, a_spec, added, an_end, changed


def commit_in_turn(journal: SqliteJournal, *entries: Entry) -> None:
    term = journal.begin_term()
    for entry in entries:
        journal.commit(term, [entry])


def test_an_empty_journal_knows_nothing(journal: SqliteJournal) -> None:
    assert journal.load_run("run-1") is None
    assert journal.load_unfinished(COMMAND) == []
    assert journal.load_conversation("talk") == []
    assert journal.load_code("c0de") is None
    assert journal.load_processes() == []
    assert journal.load_events(0) == []
    assert journal.headings() == []
    assert journal.position() == 0


@pytest.mark.parametrize(
    "config",
    [
        HarnessConfig(),
        HarnessConfig(continuation=None, completion="answer"),
        HarnessConfig(
            max_turns=7,
            stop_policy="strict_automation",
            continuation=ContinuationConfig(max_prompts=2),
            limits=Limits(model_calls=3, tokens=10_000, cost_usd=0.5, time_s=1.5),
        ),
    ],
    ids=["defaults", "answer", "everything set"],
)
def test_a_spec_comes_back_as_it_was(journal: SqliteJournal, config: HarnessConfig) -> None:
    spec = replace(
        a_spec(),
        task=(Message.system("Be brief.", tokens=3), Message.user("Grüße 漢字 🚚\n\t\0")),
        config=config,
        edges=(("repair", "audit"), ("audit", "repair")),
        custom=("audit",),
        keys=("OPENAI_API_KEY",),
        workspace=WorkspaceSpec(path="/tmp/w", source="template"),
        metadata={"id": "t1", "tags": ["a", None, 1.5], "ключ": {"deep": True}},
        made_with=MadeWith(agent="ann", model="scripted", setup="5e7"),
        late_hooks=True,
    )
    commit_in_turn(journal, RunAdded(spec=spec, command=COMMAND, at=17.25))

    stored = journal.load_run("run-1")

    assert stored is not None
    assert stored.spec == spec
    assert (stored.command, stored.added_at) == (COMMAND, 17.25)
    assert (stored.hop, stored.losses, stored.end) == (None, 0, None)
    assert (stored.state.values, len(stored.state.log), stored.state.version) == ({}, 0, 0)


@pytest.mark.parametrize(
    "signal",
    [
        RepairTrigger(resumed=True),
        RepairComplete(repairs_made=2),
        CompactionComplete(tokens=700, compaction_needed=True),
        TurnComplete(ending="limit", text="…", progressed=True, limit="tokens"),
        TurnComplete(ending="error", error={"kind": "model_error", "status": None}),
        CustomSignal(name="audited", data={"score": 0.5, "notes": ["a"]}),
    ],
    ids=lambda signal: type(signal).__name__,
)
def test_every_signal_on_its_way_comes_back(journal: SqliteJournal, signal: Signal) -> None:
    hop = Hop(to="somewhere", signal=signal)
    commit_in_turn(journal, added(), changed(1, hop=hop))

    stored = journal.load_run("run-1")

    assert stored is not None
    assert stored.hop == hop


def test_a_change_without_a_hop_leaves_the_earlier_one_in_force(journal: SqliteJournal) -> None:
    hop = Hop(to="agent_turn", signal=CompactionComplete(tokens=5))
    commit_in_turn(journal, added(), changed(1, hop=hop), changed(2, losses=1), a_round(3))
    commit_in_turn(journal, SnapshotTaken(run_id="run-1", version=3, values={}))

    stored = journal.load_run("run-1")

    assert stored is not None
    assert stored.hop == hop


def test_losses_are_those_of_the_newest_change(journal: SqliteJournal) -> None:
    commit_in_turn(journal, added(), changed(1, losses=1), changed(2, losses=2))
    commit_in_turn(journal, added(command="another", again=True))

    stored = journal.load_run("run-1")

    assert stored is not None
    assert stored.losses == 2


def test_a_message_comes_back_byte_for_byte(journal: SqliteJournal) -> None:
    spaced = Message("user", b'{ "role" : "user",  "content" : "\xc3\xa4" }', 11)
    failed = Message.tool_result("call-1", "no such file: \udcff", is_error=True)
    unusual = Message.from_wire({"role": "developer", "content": None, "audio": [1]})
    commit_in_turn(journal, added(), changed(1, messages=[spaced, failed, unusual]))

    assert journal.load_conversation("talk-of-run-1") == [spaced, failed, unusual]


def test_a_result_comes_back_and_finishes_its_run(journal: SqliteJournal) -> None:
    commit_in_turn(journal, added(), added("run-2"), changed(1, end=an_end()))

    stored = journal.load_run("run-1")

    assert stored is not None
    assert stored.end == an_end()
    assert [run.spec.run_id for run in journal.load_unfinished(COMMAND)] == ["run-2"]


def test_headings_list_all_runs_oldest_first(journal: SqliteJournal) -> None:
    commit_in_turn(
        journal, added("b", at=1.0), added("a", at=2.0), changed(1, "b", end=an_end("b"))
    )

    headings = journal.headings()

    assert [(h.run_id, h.conversation_id, h.added_at, h.metadata) for h in headings] == [
        ("b", "talk-of-b", 1.0, {"id": "b"}),
        ("a", "talk-of-a", 2.0, {"id": "a"}),
    ]
    assert [h.end for h in headings] == [an_end("b"), None]


def test_how_tasks_begin_is_read_of_many_runs_at_once(journal: SqliteJournal) -> None:
    began = RunStarted(task_preview="tidy up", stop_policy="interactive", max_turns=3)
    other = RunStarted(task_preview="write it down", stop_policy="interactive", max_turns=3)
    commit_in_turn(
        journal,
        added("a"),
        added("b"),
        added("c"),
        changed(1, "b", events=(CustomEvent(name="first", data={}), other)),
        changed(1, "a", events=(began,)),
        # What is told later is not looked at.
        changed(2, "a", events=(other,)),
    )

    assert journal.load_previews(["c", "b", "a", "d"]) == {"a": "tidy up", "b": "write it down"}
    assert journal.load_previews([]) == {}


def test_of_many_runs_the_known_ones_are_told(journal: SqliteJournal) -> None:
    journal.commit(journal.begin_term(), [added("run-1"), added('run"2')])

    assert journal.known(["run-3", 'run"2', "run-1", "RUN-1"]) == {"run-1", 'run"2'}
    assert journal.known([]) == set()
    # As many as a batch may have.
    many = [f"run-{number}" for number in range(300_000)]
    assert journal.known([*many, 'run"2']) == {"run-1", 'run"2'}


def test_a_run_taken_up_again_belongs_to_the_later_command(journal: SqliteJournal) -> None:
    commit_in_turn(journal, added(command="first", at=1.0), a_round(1))
    commit_in_turn(journal, added(command="second", again=True, at=2.0))

    assert journal.load_unfinished("first") == []
    (stored,) = journal.load_unfinished("second")
    assert stored.added_at == 1.0
    assert stored.spec == a_spec()
    assert stored.state.version == 1
    assert len(journal.headings()) == 1


def test_code_stored_again_changes_nothing(journal: SqliteJournal) -> None:
    commit_in_turn(journal, CodeStored(code="c0de", blob=b"\x00\xffblob"))
    commit_in_turn(journal, CodeStored(code="c0de", blob=b"\x00\xffblob"))

    assert journal.load_code("c0de") == b"\x00\xffblob"
    assert journal.load_code("0ther") is None


def test_processes_of_all_terms_are_known_until_they_are_forgotten(journal: SqliteJournal) -> None:
    marks = [ProcessMark(role="coordinator", node="boot", pid=7, started=n) for n in (1, 2)]
    journal.commit(journal.begin_term(), marks[:1])
    newest = journal.begin_term()
    journal.commit(newest, marks[1:])
    assert journal.load_processes() == marks

    journal.forget_processes(newest)

    assert journal.load_processes() == marks[1:]


def test_a_second_run_continues_the_conversation_and_nothing_else(journal: SqliteJournal) -> None:
    first = [Message.user("Why was order 17 late?"), Message.assistant("Snow.")]
    second = [Message.user("And order 18?"), Message.assistant("Ice.")]
    counted = Write("harness.turn_count", "increment", 1)
    commit_in_turn(
        journal,
        added("r1", conversation_id="talk"),
        changed(1, "r1", messages=first, writes=[counted], end=an_end("r1")),
        added("r2", conversation_id="talk"),
        added("r3"),
        changed(1, "r3", messages=[Message.user("another conversation")]),
        changed(1, "r2", messages=second[:1]),
        changed(2, "r2", messages=second[1:]),
    )

    stored = journal.load_run("r2")

    assert stored is not None
    assert list(stored.state.log) == first + second
    assert stored.state.log.tokens == sum(m.tokens for m in first + second)
    assert stored.state.values == {}
    assert stored.state.version == 2
    assert journal.load_conversation("talk") == first + second


def test_what_a_run_said_itself_is_read_apart_from_its_conversation(
    journal: SqliteJournal,
) -> None:
    said = [Message.user(f"word {number}") for number in range(4)]
    commit_in_turn(
        journal,
        added("a", conversation_id="talk"),
        added("b", conversation_id="talk"),
        changed(1, "a", messages=said[:1]),
        changed(1, "b", messages=said[1:2]),
        changed(2, "a", messages=said[2:]),
        added("c", conversation_id="talk"),
    )

    assert journal.load_own_messages("a") == [said[0], *said[2:]]
    assert journal.load_own_messages("b") == said[1:2]
    assert journal.load_own_messages("c") == journal.load_own_messages("nobody") == []


def test_runs_that_take_turns_in_a_conversation_are_loaded_in_the_order_in_which_they_spoke(
    journal: SqliteJournal,
) -> None:
    said = [Message.user(f"word {number}") for number in range(5)]
    commit_in_turn(
        journal,
        added("a", conversation_id="talk"),
        added("b", conversation_id="talk"),
        changed(1, "b", messages=said[:1]),
        changed(1, "a", messages=said[1:3]),
        changed(2, "b", messages=said[3:4]),
        changed(2, "a", messages=said[4:]),
    )
    assert journal.load_conversation("talk") == said
    for run_id in ("a", "b"):
        stored = journal.load_run(run_id)
        assert stored is not None
        assert list(stored.state.log) == said


def test_values_that_fast_json_refuses_come_back_too(journal: SqliteJournal) -> None:
    odd = {"big": 2**80, "surrogate": "\udcff", "both": [-(2**70), {"\ud800": 1}]}
    event = CustomEvent(name="odd", data=odd)
    commit_in_turn(journal, added(), changed(1, writes=[Write("k", "set", odd)], events=[event]))

    stored = journal.load_run("run-1")

    assert stored is not None
    assert stored.state.values == {"k": odd}
    assert [found.event for found in journal.load_events(0)] == [event]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
numbers = st.integers(-1000, 1000)
writes = st.one_of(
    st.builds(Write, st.sampled_from(["set.a", "set.ß"]), st.just("set"), json_values),
    st.builds(Write, st.just("list"), st.just("append"), json_values),
    st.builds(Write, st.just("count"), st.just("increment"), numbers),
    st.builds(
        Write,
        st.just("usage"),
        st.just("increment"),
        st.dictionaries(st.sampled_from("abc"), numbers, max_size=3),
    ),
)
messages = st.one_of(
    st.builds(Message.user, st.text()),
    st.builds(Message.assistant, st.text()),
    st.builds(
        Message.tool_result, st.text(), st.text(), failure=st.sampled_from((None, *FAILURES))
    ),
)
events = st.builds(
    CustomEvent, name=st.text(), data=st.dictionaries(st.text(), json_values, max_size=2)
)
deltas = st.builds(
    StateDelta,
    st.lists(writes, max_size=3).map(tuple),
    st.lists(messages, max_size=3).map(tuple),
    st.lists(events, max_size=2).map(tuple),
)
histories = st.lists(st.tuples(deltas, st.booleans()), min_size=1, max_size=8)


def replay(history: list[tuple[StateDelta, bool]], *, snapshots: bool, grouped: bool) -> Any:
    """Commit deltas, with a snapshot where the history says so; what another journal loads."""
    state = SharedState()
    groups: list[list[Entry]] = [[added()]]
    for delta, snapshot in history:
        state.apply(delta)
        entry = changed(
            state.version, writes=delta.writes, messages=delta.messages, events=delta.events
        )
        group: list[Entry] = [entry]
        if snapshot and snapshots:
            values = dict(state.values)
            group.append(SnapshotTaken(run_id="run-1", version=state.version, values=values))
        groups.append(group)
    if grouped:
        groups = [[entry for group in groups for entry in group]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        journal = SqliteJournal(path)
        term = journal.begin_term()
        for group in groups:
            journal.commit(term, group)
        journal.close()
        reopened = SqliteJournal(path)
        stored = reopened.load_run("run-1")
        reopened.close()
    assert stored is not None
    return state, stored.state


@settings(max_examples=60, deadline=None)
@given(histories, st.booleans(), st.booleans())
def test_replaying_any_deltas_gives_the_state_that_they_made(
    history: list[tuple[StateDelta, bool]], snapshots: bool, grouped: bool
) -> None:
    made, loaded = replay(history, snapshots=snapshots, grouped=grouped)

    assert loaded.values == made.values
    assert list(loaded.log) == list(made.log)
    assert loaded.version == made.version


def test_a_snapshot_stands_for_the_changes_before_it(journal: SqliteJournal) -> None:
    commit_in_turn(journal, added(), *(a_round(version) for version in range(1, 6)))
    full = journal.load_run("run-1")
    assert full is not None

    # In the group after a newer change, as a group may have it.
    values = {"harness.usage": {"model_calls": 4, "tool_calls": 4}}
    commit_in_turn(journal, SnapshotTaken(run_id="run-1", version=4, values=values))

    stored = journal.load_run("run-1")
    assert stored is not None
    assert stored.state.values == full.state.values
    assert list(stored.state.log) == list(full.state.log)
    assert stored.state.version == 5


def test_a_later_snapshot_takes_the_place_of_the_earlier(journal: SqliteJournal) -> None:
    commit_in_turn(journal, added(), changed(1), changed(2))
    for version in (1, 2):
        values = {"at": version}
        commit_in_turn(journal, SnapshotTaken(run_id="run-1", version=version, values=values))

    stored = journal.load_run("run-1")

    assert stored is not None
    assert stored.state.values == {"at": 2}
    assert stored.state.version == 2


def test_what_became_of_a_call_comes_back_wherever_its_result_is_read(
    journal: SqliteJournal,
) -> None:
    told = [Message.tool_result(f"call-{how}", "no", failure=how) for how in FAILURES]
    told += [Message.tool_result("call-done", "yes"), Message.user("and then?")]
    commit_in_turn(journal, added(), changed(1, messages=told))

    (change,) = journal.load_changes("run-1")

    dispositions = [*FAILURES, "done", None]
    assert [message.disposition for message in change.delta.messages] == dispositions
    log = journal.load_conversation("talk-of-run-1")
    assert [message.disposition for message in log] == dispositions
    returned = [e.event for e in journal.load_events(0) if isinstance(e.event, ToolReturned)]
    assert [event.failure for event in returned] == [*FAILURES, ""]


def test_an_error_of_an_earlier_version_does_not_say_what_became_of_its_call(
    journal: SqliteJournal,
) -> None:
    old = Message("tool", Message.tool_result("call-1", "no").encoded, 3, is_error=True)
    commit_in_turn(journal, added(), changed(1, messages=[old]))

    (read,) = journal.load_conversation("talk-of-run-1")

    assert read == old
    assert (read.is_error, read.failure, read.disposition) == (True, None, None)
    with closing(sqlite3.connect(journal.path)) as connection:
        assert connection.execute("SELECT max(is_error) FROM messages").fetchone() == (1,)


def test_facts_of_messages_come_back_with_their_change_alone(journal: SqliteJournal) -> None:
    call = ToolCall("call-1", "look", '{"at')
    facts = [
        MessageFacts(finish_reason="length"),
        MessageFacts(limit="time"),
        MessageFacts(limit="working_time", traceback="line 3"),
        MessageFacts(),
        MessageFacts(traceback="line 4"),
    ]
    told = [replace(Message.assistant(None, [call]), facts=facts[0])]
    told += [Message.tool_result("c", "no", failure="failed", facts=fact) for fact in facts[1:]]
    commit_in_turn(journal, added(), changed(1, messages=told))

    (change,) = journal.load_changes("run-1")

    assert [message.facts for message in change.delta.messages] == facts
    log = journal.load_conversation("talk-of-run-1")
    assert not any(message.facts for message in log)


def test_a_traceback_comes_back_wherever_its_message_is_read(journal: SqliteJournal) -> None:
    call = ToolCall("call-1", "look", "{}")
    line_3, line_4 = (MessageFacts(traceback=f"line {number}") for number in (3, 4))
    told = [
        Message.assistant(None, [call]),
        Message.tool_result(call.id, "ValueError", is_error=True, facts=line_3),
        Message.tool_result(call.id, "found"),
        Message.tool_result(call.id, "not found", is_error=True),
        Message.tool_result(call.id, "KeyError", is_error=True, facts=line_4),
    ]
    traced = ["", "line 3", "", "", "line 4"]
    commit_in_turn(journal, added(), changed(1, messages=told), changed(2, messages=told[::-1]))
    # With nothing to be kept beside it.
    commit_in_turn(journal, changed(3, messages=[told[3]]))

    first, second, third = journal.load_changes("run-1")

    assert [message.facts.traceback for message in first.delta.messages] == traced
    assert [message.facts.traceback for message in second.delta.messages] == traced[::-1]
    assert third.delta.messages == (told[3],)
    # Its model is not told what a program looks like inside.
    log = journal.load_conversation("talk-of-run-1")
    assert [message.facts.traceback for message in log] == [""] * 11
    returned = [e.event for e in journal.load_events(0) if isinstance(e.event, ToolReturned)]
    assert [event.traceback for event in returned] == [*traced[1:], *traced[:0:-1], ""]
