import asyncio
from typing import Any

import pytest

from harness_actors.config import HarnessConfig
from harness_actors.conversation import Conversation
from harness_actors.errors import WorkflowError
from harness_actors.events import RunParked
from harness_actors.executors import DeltaContext
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.records import RunSpec
from harness_actors.results import Usage
from harness_actors.state import (
    NUDGES,
    OPEN_CALLS,
    TURN,
    TURN_COUNT,
    USAGE,
    OpenCall,
    StateDelta,
    StateKey,
    TurnProgress,
    Write,
)
from tests.executors.driver import RecordingModel, SimpleAgent

NOTES: StateKey[tuple[str, ...]] = StateKey("user.notes", str, "critic", "append", [])


class Mail:
    """Takes deltas as a host does."""

    def __init__(self) -> None:
        self.sent: list[StateDelta] = []
        self.commits: list[asyncio.Future[None]] = []

    def send(self, delta: StateDelta) -> asyncio.Future[None]:
        self.sent.append(delta)
        self.commits.append(asyncio.get_running_loop().create_future())
        return self.commits[-1]


def a_context(
    writer: str = "agent_turn",
    reads: tuple[StateKey[Any], ...] = (TURN_COUNT, USAGE, TURN, NOTES),
    values: dict[str, Any] | None = None,
    log: Conversation | None = None,
    mail: Mail | None = None,
) -> DeltaContext:
    spec = RunSpec(
        run_id="r", conversation_id="r", task=(), code="", config=HarnessConfig(), edges=()
    )
    return DeltaContext(
        spec=spec,
        agent=SimpleAgent(RecordingModel([])),
        writer_name=writer,
        reads=reads,
        values=values or {},
        log=log,
        started_at=0.0,
        send=(mail or Mail()).send,
    )


def test_it_answers_the_port() -> None:
    context: RunContext = a_context()
    assert context.parking is False


def test_an_entry_that_nobody_wrote_has_its_default() -> None:
    context = a_context()
    assert context.get(TURN_COUNT) == 0
    assert context.get(USAGE) == Usage()
    assert context.get(TURN) is None
    assert context.get(NOTES) == ()


def test_own_changes_are_seen_at_once_and_the_values_given_stay_as_they_are() -> None:
    values = {TURN_COUNT.name: 2, USAGE.name: {"model_calls": 3}}
    context = a_context(values=values)

    context.increment(TURN_COUNT, 1)
    context.increment(USAGE, Usage(model_calls=1, cost_usd=0.5))
    context.set(TURN, TurnProgress(rounds=1))
    context.append(NOTES, "first")

    assert context.get(TURN_COUNT) == 3
    assert context.get(USAGE) == Usage(model_calls=4, cost_usd=0.5)
    assert context.get(TURN) == TurnProgress(rounds=1)
    assert context.get(NOTES) == ("first",)
    assert values == {TURN_COUNT.name: 2, USAGE.name: {"model_calls": 3}}


def test_an_entry_that_is_not_declared_cannot_be_read() -> None:
    with pytest.raises(WorkflowError, match=r"agent_turn.*'harness.nudges' without declaring"):
        a_context().get(NUDGES)


def test_a_change_to_an_entry_that_is_not_declared_does_not_make_it_readable() -> None:
    context = a_context(reads=())
    context.increment(TURN_COUNT, 1)
    with pytest.raises(WorkflowError):
        context.get(TURN_COUNT)


def test_an_entry_that_was_set_can_be_read() -> None:
    context = a_context(reads=())
    context.set(TURN, TurnProgress(rounds=4))
    assert context.get(TURN) == TurnProgress(rounds=4)


def test_a_value_of_another_type_is_refused_where_it_is_written_and_named() -> None:
    count: StateKey[Any] = StateKey("user.count", int, "critic")
    places: StateKey[Any] = StateKey("user.places", tuple[int, ...], "critic")
    context = a_context("critic", reads=())

    with pytest.raises(WorkflowError, match=r"critic.*'user.count' 'many', which is no int"):
        context.set(count, "many")
    with pytest.raises(WorkflowError, match=r"'user.notes' 7, which is no str"):
        context.append(NOTES, 7)
    # As an annotation would have it in many a program.
    context.set(places, [1, 2])
    assert context.get(places) == (1, 2)


def test_only_its_owner_sets_an_entry() -> None:
    with pytest.raises(WorkflowError, match="belongs to 'stop_decision' alone"):
        a_context().set(NUDGES, 1)


def test_repair_may_set_the_open_calls_of_the_agent_turn() -> None:
    context = a_context("repair", reads=())
    context.set(OPEN_CALLS, ())
    with pytest.raises(WorkflowError):
        a_context("compaction", reads=()).set(OPEN_CALLS, ())


def test_who_may_set_a_list_may_drop_the_first_of_it() -> None:
    index = [OpenCall(call_id=name, tool_name="f", idempotent=True, turn=1) for name in "abc"]
    context = a_context("repair", reads=())
    context.set(OPEN_CALLS, tuple(index))
    context.drop(OPEN_CALLS, 2)

    assert context.get(OPEN_CALLS) == (index[2],)
    assert context.take().writes[-1] == Write(OPEN_CALLS.name, "drop", 2)
    with pytest.raises(WorkflowError, match="belongs to"):
        a_context("compaction", reads=()).drop(OPEN_CALLS)


def test_an_entry_changes_in_its_own_way_only() -> None:
    with pytest.raises(WorkflowError, match="changes by 'increment', not by 'set'"):
        a_context().set(TURN_COUNT, 5)
    with pytest.raises(WorkflowError, match="changes by 'set', not by 'append'"):
        a_context().append(TURN, 5)


def test_the_log_of_an_executor_that_declares_it_grows_at_once() -> None:
    context = a_context(log=Conversation([Message.user("a")]))
    context.add_message(Message.user("b"))
    assert [message.text for message in context.log] == ["a", "b"]
    assert [message.text for message in context.take().messages] == ["b"]


def test_an_executor_that_does_not_declare_the_log_adds_to_it_unseen() -> None:
    context = a_context(log=None)
    context.add_message(Message.user("b"))
    with pytest.raises(WorkflowError, match="reads_log"):
        _ = context.log
    assert len(context.take().messages) == 1


async def test_a_flush_sends_at_once_and_ends_when_it_is_on_disk() -> None:
    mail = Mail()
    context = a_context(mail=mail)
    context.increment(TURN_COUNT, 1)
    first = context.flush()
    context.emit(RunParked(turn=1))
    second = context.flush()

    assert [bool(delta.writes) for delta in mail.sent] == [True, False]
    waiting = asyncio.ensure_future(_wait(first))
    await asyncio.sleep(0)
    assert not waiting.done()
    mail.commits[0].set_result(None)
    await waiting
    mail.commits[1].set_result(None)
    await second
    assert not context.take()


async def test_a_flush_of_nothing_sends_nothing_and_is_done() -> None:
    mail = Mail()
    await a_context(mail=mail).flush()
    assert mail.sent == []


def test_what_is_left_goes_with_the_answer_once() -> None:
    context = a_context()
    context.set(OPEN_CALLS, (OpenCall(call_id="a", tool_name="f", idempotent=True, turn=1),))
    delta = context.take()
    assert delta.writes[0].value == [
        {"call_id": "a", "tool_name": "f", "idempotent": True, "turn": 1}
    ]
    assert not context.take()


@pytest.mark.parametrize("asked_before", [True, False])
def test_whoever_waits_for_a_request_to_park_is_told_of_it_also_where_it_came_before(
    asked_before: bool,
) -> None:
    context, told = a_context(), list[str]()
    if asked_before:
        context.parking = True
    context.when_parking(lambda: told.append("one"))
    assert told == (["one"] if asked_before else [])

    context.parking = True
    context.when_parking(None)
    context.parking = True
    context.parking = False

    assert told[-1:] == ["one"]
    assert len(told) == 1 + asked_before


def test_tools_begin_also_where_nobody_is_told_of_it() -> None:
    a_context().tools_started(["look"])


async def _wait(flushed: Any) -> None:
    await flushed
