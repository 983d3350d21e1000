"""Events are read from the journal in pages, those of the messages included."""

from harness_actors.events import (
    AgentResponse,
    CustomEvent,
    RunCompleted,
    RunEvent,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from harness_actors.messages import Message, ToolCall
from harness_actors.stores import SqliteJournal
from tests.stores.entries import a_round, added, an_end, changed


def test_those_of_the_messages_come_first_then_the_changes_own(journal: SqliteJournal) -> None:
    call = ToolCall("call-1", "read_file", '{"path": "a.py"}')
    turn = TurnStarted(turn=1, max_turns=50)
    own = CustomEvent(name="audited", data={"score": 1})
    messages = [
        Message.user("Go on."),
        Message.assistant("Let me look.", [call]),
        Message.tool_result("call-1", "no such file", is_error=True),
    ]
    journal.commit(
        journal.begin_term(), [added(), changed(1, messages=messages, events=[turn, own])]
    )

    found = journal.load_events(0)

    assert [one.event for one in found] == [
        AgentResponse(text="Let me look.", tool_names=("read_file",)),
        ToolCalled(call_id="call-1", tool_name="read_file", arguments='{"path": "a.py"}'),
        ToolReturned(call_id="call-1", text="no such file", is_error=True, failure="failed"),
        turn,
        own,
    ]
    assert {(one.position, one.run_id, one.at) for one in found} == {(2, "run-1", 101.0)}


def test_the_task_of_a_run_is_no_event_and_no_part_of_the_log(journal: SqliteJournal) -> None:
    journal.commit(journal.begin_term(), [added(), added(again=True, command="later")])

    assert journal.load_events(0) == []
    assert journal.load_conversation("talk-of-run-1") == []


def test_the_last_event_of_a_run_tells_its_end(journal: SqliteJournal) -> None:
    over = RunCompleted(status="done", reason="completed", message="all done")
    journal.commit(journal.begin_term(), [added(), changed(1, events=[over], end=an_end())])

    assert [one.event for one in journal.load_events(0)] == [over]


def test_paging_by_position_sees_every_event_once_and_splits_no_change(
    journal: SqliteJournal,
) -> None:
    term = journal.begin_term()
    journal.commit(term, [added("a"), added("b")])
    for version in range(1, 8):
        # Changes without events lie between them.
        group = [a_round(version, "a"), changed(version, "b"), a_round(version + 100, "b")]
        journal.commit(term, group)
    whole = journal.load_events(0)
    assert len(whole) == 7 * 2 * 3

    for limit in (1, 2, 3, 4, 7, 1000):
        paged: list[RunEvent] = []
        while page := journal.load_events(paged[-1].position if paged else 0, limit=limit):
            assert len(page) <= limit + 2
            paged += page
        assert paged == whole


def test_the_events_of_one_run_are_read_apart(journal: SqliteJournal) -> None:
    term = journal.begin_term()
    journal.commit(term, [added("a"), added("b")])
    for version in range(1, 4):
        journal.commit(term, [a_round(version, "a"), a_round(version, "b")])
    whole = journal.load_events(0)

    assert journal.load_events(0, run_id="a") == [one for one in whole if one.run_id == "a"]
    assert journal.load_events(whole[3].position, run_id="b", limit=1) == whole[9:12]
    assert journal.load_events(0, run_id="stranger") == []
    assert journal.load_events(journal.position()) == []
