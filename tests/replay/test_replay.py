"""A run comes out the same from its journal, however it went."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness_actors.agents import Program
from harness_actors.config import HarnessConfig, TurnLimits
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import ContextOverflowError, ModelRefusedError
from harness_actors.events import Event, ExecutorLost, RunParked, ToolCalled, TurnStarted
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.replay import Recording, Replay, load_recording, replay
from harness_actors.replay.stage import Stage
from harness_actors.replay.stand_ins import RecordedClock
from harness_actors.signals import Outcome, Signal
from harness_actors.state import OPEN_CALLS, StateDelta, StateKey, Write
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel, an_agent
from tests.data import recorded as recorded_conversations
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    SECOND_COMMAND,
    TOOLS,
    CountingModel,
    GatedModel,
    Session,
    SilentModel,
    done,
    ended_otherwise,
    opened_locally,
    program,
    recorded,
    with_another_nudge,
)

WRITE = Reply.call("write", {"text": "a"})
READ = Reply.call("read", {"text": "a"})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def contents(path: Path) -> bytes:
    return path.read_bytes()


def check(replayed: Replay) -> None:
    """The rerun made the same log and the same end."""
    assert not replayed.differences, replayed.differences
    assert replayed.same
    assert replayed.same_messages == replayed.messages > 0


RUNS: dict[str, list[Reply]] = {
    "done at once": [done()],
    "tools of both kinds": [
        WRITE,
        READ,
        Reply.calls([("write", {"text": "b"}), ("read", {"text": "c"})], said="both"),
        done(),
    ],
    "nudges": [Reply.text("I think"), WRITE, Reply.text("that is all"), Reply.text(""), done()],
    "nudges spent": [Reply.text(f"no {number}") for number in range(9)],
    "failing tools": [
        Reply.call("fail", {"how": "told"}),
        Reply.call("fail", {"how": "raised"}),
        Reply.call("slow"),
        Reply.call("write", {"wrong": 1}),
        Reply.call("write", "no json"),
        done(),
    ],
    "a tool that there is not": [Reply.call("delete"), Reply.call("read", {"text": "x"}), done()],
    "a long result": [Reply.call("long", {"characters": 300_000}), done()],
    "work that is not complete": [
        Reply.calls([("work_complete", {"summary": "early"}), ("write", {"text": "x"})]),
        Reply.calls([("fail", {"how": "told"}), ("work_complete", {"summary": "late"})]),
        Reply.call("work_complete", {"summary": " "}),
        done(),
    ],
    "ids used again": [
        Reply.calls([("write", {"text": "1"}), ("write", {"text": "2"})], ids=["a", "a"]),
        Reply.calls([("write", {"text": "3"})], ids=["a"]),
        done(),
    ],
    "an answer cut in its arguments": [
        replace(Reply.call("write", '{"text": "never end'), finish_reason="length"),
        done(),
    ],
    "a text that is cut off, and again": [
        Reply.text("It is all but", finish_reason="length"),
        WRITE,
        Reply.text("It is all but", finish_reason="length"),
        Reply.text("It is all but", finish_reason="length"),
        done(),
    ],
    "no more replies": [WRITE],
    "waves of reading calls": [
        Reply.calls([("read", {"text": str(number)}) for number in range(5)]),
        Reply.calls(
            [
                ("read", {"text": "1"}),
                ("delete", {}),
                ("read", {"text": "2"}),
                ("write", {"text": "3"}),
                ("read", {"text": "4"}),
                ("long", {"characters": "many"}),
                ("read", {"text": "5"}),
                ("write", {"text": "6"}),
                ("write", {"text": "7"}),
                ("work_complete", {"summary": "not yet"}),
            ]
        ),
        Reply.calls([("write", {"text": "8"}), ("read", {"text": "9"}), ("read", {"text": "10"})]),
        done(),
    ],
}


@pytest.mark.parametrize("name", RUNS)
async def test_a_run_comes_out_the_same(store: Path, name: str) -> None:
    session = await recorded(store, RUNS[name])

    check(await session.replayed())


async def test_settings_are_those_of_the_run(store: Path) -> None:
    replies = [Reply.text("one"), READ, READ, *(Reply.text(f"no {n}") for n in range(3))]
    session = await recorded(
        store,
        replies,
        max_rounds_per_turn=1,
        continuation={"max_prompts": 2},
        stop_policy="strict_automation",
        max_input_tokens=60,
        compaction=None,
    )

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is not None
    assert (replayed.end.status, replayed.end.reason.kind) == ("stalled", "no_completion")


async def test_an_agent_that_answers_needs_no_completion(store: Path) -> None:
    session = await recorded(store, [READ, Reply.text("it is a")], completion="answer")

    check(await session.replayed())


def _always(reply: Reply) -> Callable[[Sequence[Message]], Reply]:
    return lambda _messages: reply


LIMITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "max_turns": (ScriptedModel(_always(Reply.text("more"))), {"max_turns": 2}),
    "model_calls": (ScriptedModel(_always(READ)), {"limits": {"model_calls": 3}}),
    "tool_calls": (ScriptedModel(_always(WRITE)), {"limits": {"tool_calls": 2}}),
    "tokens": (CountingModel(_always(READ)), {"limits": {"tokens": 250}}),
    "cost": (CountingModel(_always(WRITE)), {"limits": {"cost_usd": 0.025}}),
    "time": (SilentModel([WRITE, READ]), {"limits": {"time_s": 0.3}}),
    "context": (
        ScriptedModel([WRITE, Reply.error(ContextOverflowError("scripted", "too long"))]),
        {},
    ),
}


@pytest.mark.parametrize("kind", LIMITS)
async def test_a_run_that_ended_by_a_limit_comes_out_the_same(store: Path, kind: str) -> None:
    model, settings = LIMITS[kind]
    session = await recorded(store, program(model), **settings)

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is not None
    assert (replayed.end.status, replayed.end.reason.kind) == ("limit", kind)
    outside = {"context": "how the model failed", "time": "when its time was over"}
    told = [fact for fact in replayed.facts if fact in outside.values()]
    assert told == ([outside[kind]] if kind in outside else [])


@pytest.mark.parametrize("limit", ["time_s", "working_s"])
@pytest.mark.parametrize("name", ["hang", "look_long"])
async def test_time_that_was_over_during_a_call_is_taken_from_the_journal(
    store: Path, limit: str, name: str
) -> None:
    calls = Reply.calls([("read", {"text": "a"}), (name, {}), ("write", {"text": "b"})])
    session = await recorded(store, [WRITE, calls, done()], limits={limit: 2.0})

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is not None
    assert replayed.end.status == "limit"
    assert "when its time was over" in replayed.facts
    texts = [message.text for message in session.recording().messages[-2:]]
    assert [text.rsplit(" ", 1)[1] for text in texts] == ["finished.", "began."]


@pytest.mark.parametrize("names", [("look_long", "look_long"), ("write", "look_long", "look_long")])
async def test_time_that_was_over_during_a_wave(store: Path, names: tuple[str, ...]) -> None:
    reply = Reply.calls([(name, {"text": "a"} if name == "write" else {}) for name in names])
    session = await recorded(store, [reply, done()], limits={"working_s": 0.3})

    replayed = await session.replayed()

    check(replayed)
    results = [m for m in session.recording().messages if m.role == "tool"]
    assert [m.disposition for m in results[-2:]] == ["timed_out", "timed_out"]


@pytest.mark.parametrize(
    "limits", [{"model_calls": 2}, {"tool_calls": 3}, {"tokens": 250}, {"time_s": 0.02}]
)
async def test_a_run_whose_turns_have_bounds_comes_out_the_same(
    store: Path, limits: dict[str, Any]
) -> None:
    both = Reply.calls([("write", {"text": "a"}), ("read", {"text": "b"})])
    session = await recorded(
        store,
        program(CountingModel([both, both, Reply.call("slow"), both, done()])),
        turn_limits=limits,
    )

    check(await session.replayed())
    assert session.recording().end is not None


def test_a_turn_that_was_out_of_time_is_so_again_whatever_was_used_before_it() -> None:
    config = HarnessConfig(turn_limits=TurnLimits(time_s=0.02))
    spec = SimpleNamespace(config=config)
    stage = Stage()
    stage.tape = cast(Any, SimpleNamespace(turn_is_out_of_time=lambda _: True, seconds_left=int))
    clock = RecordedClock(stage, cast(Any, SimpleNamespace(added_at=0.0, spec=spec)))

    before = [number / 1000 for number in range(1000)]
    left = [used for used in before if (used + clock.monotonic()) - used < 0.02]
    assert left == []


async def test_time_that_was_over_between_two_rounds(store: Path) -> None:
    class Slow(CountingModel):
        async def complete(self, request: Any) -> Any:
            await asyncio.sleep(0.06)
            return await super().complete(request)

    session = await recorded(store, program(Slow(_always(READ))), limits={"working_s": 0.1})

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is not None
    assert replayed.end.reason.kind == "working_time"


async def test_a_model_that_failed_fails_in_the_same_words(store: Path) -> None:
    error = ModelRefusedError("scripted", "filtered", 400)
    session = await recorded(store, [WRITE, Reply.error(error)])

    replayed = await session.replayed()

    check(replayed)
    assert "how the model failed" in replayed.facts
    assert "filtered" in session.recording().changes[-1].delta.events[-1].message  # type: ignore[attr-defined]


async def test_a_model_with_a_fault_fails_in_the_same_words(store: Path) -> None:
    def broken(_messages: Sequence[Message]) -> Reply:
        raise LookupError("no such page")

    session = await recorded(store, program(ScriptedModel(broken)))

    check(await session.replayed())


# ---- what came from outside -------------------------------------------------------------


def _hung(name: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, ToolCalled) and event.tool_name == name


async def test_a_run_that_was_cancelled_in_a_call(store: Path) -> None:
    session = Session(store, program([WRITE, Reply.call("hang"), done()]))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_hung("hang"), runtime)
        await runtime.stop(["run"], "cancel")

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is not None
    assert replayed.end.status == "cancelled"
    assert any("cancelled" in fact for fact in replayed.facts)


async def test_a_bound_that_others_watch_over_is_taken_from_the_journal(store: Path) -> None:
    """As that of a whole batch, which ends its runs from outside of their turns."""
    session = Session(store, program([WRITE, Reply.call("hang"), done()]))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_hung("hang"), runtime)
        await runtime.stop(["run"], "cancel")

    replayed = await replay(ended_otherwise(session.recording(), "limit", "budget", "all is spent"))

    check(replayed)
    assert replayed.end is not None
    assert replayed.end.reason.kind == "budget"
    assert "what ended the run: all is spent" in replayed.facts


async def test_a_run_that_was_cancelled_while_the_model_was_silent(store: Path) -> None:
    session = Session(store, program(SilentModel([READ])))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_hung("read"), runtime)
        await runtime.stop(["run"], "cancel")

    check(await session.replayed())


async def test_a_run_that_was_put_aside_and_taken_up(store: Path) -> None:
    session = Session(store, program(SilentModel([READ, WRITE])))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_hung("write"), runtime)
        await runtime.stop(["run"], "park_now")
    async with opened_locally(store, SECOND_COMMAND) as runtime:
        await runtime.resume(["run"], secrets={})
        await session.until(lambda event: event.type == "run_resumed", runtime)
        await runtime.stop(["run"], "cancel")

    check(await session.replayed())


async def test_a_run_that_is_put_aside_is_replayed_to_there(store: Path) -> None:
    session = Session(store, program(SilentModel([READ, WRITE])))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_hung("write"), runtime)
        await runtime.stop(["run"], "park_now")

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is None
    assert "the run was put aside, and nobody has taken it up again" in replayed.facts
    assert not any("goes on" in fact for fact in replayed.facts)


@pytest.mark.parametrize("replies", [[READ], [Reply.text("hm")]])
async def test_a_run_that_was_put_aside_after_its_round(
    store: Path, tmp_path: Path, replies: list[Reply]
) -> None:
    """It was asked in the middle of a round, which goes on or ends its turn."""
    gate = tmp_path / "gate"
    session = Session(store, program(GatedModel([*replies, done()], str(gate))))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, TurnStarted), runtime)
        await runtime.stop(["run"], "park")
        gate.touch()
        await session.until(lambda event: isinstance(event, RunParked), runtime)
    await session.taken_up()

    replayed = await session.replayed()

    check(replayed)
    assert any("put aside" in fact for fact in replayed.facts)


@pytest.mark.parametrize("hanging", ["hang", "look_long"])
async def test_a_run_whose_process_died_in_a_call(store: Path, hanging: str) -> None:
    replies = [WRITE, Reply.call(hanging), done()]
    session = Session(store, program(replies))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await _hanging(session, runtime, hanging)
        runtime.starter.hosts[Slot("agent_turn")].kill()
        await session.until(lambda event: isinstance(event, ExecutorLost), runtime)
        await runtime.stop(["run"], "cancel")

    replayed = await session.replayed()

    check(replayed)
    assert any("died while a tool ran" in fact for fact in replayed.facts)


async def _hanging(session: Session, runtime: Any, name: str) -> None:
    """Return when the tool runs, which an idempotent call does not announce."""
    if name == "hang":
        await session.until(_hung("hang"), runtime)
        return
    coordinator = runtime._coordinator._coordinator
    async with asyncio.timeout(10):
        while coordinator.runs["run"].busy_since is None:  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(0)


async def test_a_run_that_kills_its_process_again_and_again(store: Path) -> None:
    session = Session(store, program([Reply.call("look_long"), done()]))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        for slot in (Slot("agent_turn"), Slot("agent_turn"), Slot("agent_turn", index=-1)):
            await _hanging(session, runtime, "look_long")
            runtime._coordinator._coordinator.runs["run"].busy_since = 0.0
            losses = runtime._coordinator._coordinator.runs["run"].losses
            runtime.starter.hosts[slot].kill()
            await session.until(
                lambda e, n=losses: isinstance(e, ExecutorLost) and e.losses == n + 1,  # type: ignore[misc]
                runtime,
            )

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is not None
    assert replayed.end.reason.kind == "executor_lost"
    assert "the tool 'look_long' of this run was running" in replayed.end.reason.message


@pytest.mark.parametrize("hanging", ["hang", "look_long"])
@pytest.mark.parametrize("command", [FIRST_COMMAND, SECOND_COMMAND])
async def test_a_run_whose_cell_died_and_that_was_resumed(
    store: Path, hanging: str, command: str
) -> None:
    replies = [
        WRITE,
        Reply.calls([("read", {"text": "1"}), (hanging, {}), ("write", {"text": "2"})]),
        done(),
    ]
    first = Session(store, program(replies))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await first.submit(runtime)
        if hanging == "hang":
            await first.until(_hung("hang"), runtime)
        else:
            await first.until(_hung("write"), runtime)
    if command == FIRST_COMMAND:
        # The same command goes on by itself; what hung before may hang again.
        async with opened_locally(store, command) as runtime:
            await first.until(lambda event: event.type == "run_resumed", runtime)
            await runtime.stop(["run"], "cancel")
    else:
        async with opened_locally(store, command) as runtime:
            await runtime.resume(["run"], secrets={})
            await first.until(lambda event: event.type == "run_resumed", runtime)
            await runtime.stop(["run"], "cancel")

    replayed = await first.replayed()

    check(replayed)
    assert any("a process died" in fact for fact in replayed.facts)


async def test_a_run_that_died_at_any_commit(tmp_path: Path) -> None:
    """Its cell is closed when so much is on disk, and the same command goes on."""
    replies = [
        Reply.calls([("write", {"text": "1"}), ("read", {"text": "2"}), ("delete", {})]),
        Reply.calls([(name, {"text": name}) for name in ("read", "read", "write", "read", "read")]),
        Reply.text("hm"),
        Reply.calls([("read", {"text": "3"}), ("read", {"text": "4"})]),
        done(),
    ]
    for commits in (1, 3, 4, 5, 7, 8, 9, 10, 13):
        session = Session(tmp_path / f"{commits}.db", program(replies))
        async with opened_locally(session.store, FIRST_COMMAND) as runtime:
            await session.submit(runtime)
            while await runtime.position() < commits:
                await runtime.wait_for_news(await runtime.position(), messages=True)
        async with opened_locally(session.store, FIRST_COMMAND) as runtime:
            await runtime.resume(["run"], secrets={})
            async with asyncio.timeout(10):
                while not (await runtime.headings())[0].end:
                    await runtime.wait_for_news(await runtime.position(), messages=True)

        check(await session.replayed())


async def test_a_run_in_flight_is_replayed_as_far_as_it_is(store: Path) -> None:
    session = Session(store, program([WRITE, READ, Reply.call("hang")]))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_hung("hang"), runtime)
        replayed = await session.replayed()

    check(replayed)
    assert replayed.end is None


# ---- conversations ----------------------------------------------------------------------


async def test_a_run_that_continues_a_conversation(store: Path) -> None:
    agent = program(ScriptedModel(_always(done())))
    for name in ("one", "two", "three"):
        await Session(store, agent, {}, f"task {name}", name, "one").to_its_end()

    for name in ("one", "two", "three"):
        check(await replay(load_recording(JournalReader(store), name)))


@pytest.mark.parametrize("place", range(0, len(recorded_conversations()), 5))
async def test_real_conversations_come_out_the_same(store: Path, place: int) -> None:
    conversation = recorded_conversations()[place]
    session = await _as_a_run(store, conversation.messages)

    check(await session.replayed())
    assert session.recording().messages[: len(session.task)]


async def _as_a_run(store: Path, messages: Sequence[Message]) -> Session:
    """A run whose model and tools say what was recorded, as far as the log's rules let them."""
    begins = next(i for i, m in enumerate(messages) if m.role == "assistant")
    task = tuple(m for m in messages[:begins] if m.role == "user") or (Message.user("go on"),)
    answers = [m for m in messages[begins:] if m.role == "assistant"][:30]
    replies = [
        Reply(
            said=m.text,
            asked=tuple((call.name, call.arguments) for call in m.tool_calls),
            ids=tuple(call.id for call in m.tool_calls),
        )
        for m in answers
    ]
    session = Session(store, program([*replies, done()]), {"max_turns": 200}, task)
    session.settings["continuation"] = {"max_prompts": 100}
    await session.to_its_end()
    return session


# ---- what is not ours -------------------------------------------------------------------

CHECKS: StateKey[int] = StateKey("tests.checks", int, "checker", "increment", 0)


class Checker:
    """An executor of a user, which adds to the state and to the log."""

    name = "checker"
    reads: tuple[StateKey[Any], ...] = (CHECKS,)
    reads_log = True

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.increment(CHECKS, 1)
        await context.flush()
        if context.get(CHECKS) == 1:
            context.add_message(Message.user("remember to be brief"))
        if context.get(CHECKS) > 2:
            raise RuntimeError("the checker is tired")
        return signal


async def test_executors_of_a_user_are_taken_as_they_were(store: Path) -> None:
    agent = an_agent(ScriptedModel([Reply.text("hm"), done()]), TOOLS)
    workflow = HarnessWorkflowBuilder(agent).insert_after("repair", Checker()).build()
    session = await recorded(store, Program.of(workflow))

    replayed = await session.replayed()

    check(replayed)
    assert "all that came from the executor 'checker'" in replayed.facts


async def test_a_failure_of_users_code_is_taken_from_the_journal(store: Path) -> None:
    agent = an_agent(ScriptedModel(_always(Reply.text("hm"))), TOOLS)
    workflow = HarnessWorkflowBuilder(agent).insert_after("repair", Checker()).build()
    session = await recorded(store, Program.of(workflow))

    replayed = await session.replayed()

    check(replayed)
    assert replayed.end is not None
    assert replayed.end.reason.kind == "agent_error"


# ---- what differs -----------------------------------------------------------------------


async def test_a_message_that_the_rules_do_not_give_is_told(store: Path) -> None:
    session = await recorded(store, [Reply.text("I am done"), done()])

    replayed = await replay(with_another_nudge(session.recording()))

    assert not replayed.same
    assert replayed.same_messages == 2
    (difference,) = replayed.differences
    assert "stop_decision" in difference.where
    assert "keep going" in difference.journal
    assert "still counts as unfinished" in difference.rerun


async def test_whether_a_call_failed_counts_as_well_as_its_words(store: Path) -> None:
    session = await recorded(store, [WRITE, Reply.call("delete"), done()])
    recording = session.recording()
    refused = next(place for place, m in enumerate(recording.messages) if m.is_error)
    message = recording.messages[refused]
    assert "There is no tool" in message.text

    succeeded = replace(message, is_error=False, failure=None)
    replayed = await replay(_with_message(recording, message, succeeded))

    assert not replayed.same
    assert replayed.same_messages == refused
    (difference,) = replayed.differences
    assert "(refused)" in difference.rerun
    assert "(refused)" not in difference.journal


def _with_message(recording: Recording, message: Message, other: Message) -> Recording:
    changes = []
    for change in recording.changes:
        messages = tuple(other if one is message else one for one in change.delta.messages)
        changes.append(replace(change, delta=replace(change.delta, messages=messages)))
    return replace(recording, changes=tuple(changes))


async def test_a_last_change_that_no_rerun_makes_is_told(store: Path) -> None:
    """As when the rules were others: calls were closed when a run was put aside."""
    session = Session(store, program(SilentModel([READ, WRITE])))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_hung("write"), runtime)
        await runtime.stop(["run"], "park_now")
    recording = session.recording()
    last = recording.changes[-1]
    closed = StateDelta(writes=(Write(OPEN_CALLS.name, "set", []),))
    more = replace(last, position=last.position + 1, version=last.version + 1, delta=closed)

    replayed = await replay(replace(recording, changes=(*recording.changes, more)))

    assert not replayed.same
    assert [told.rerun for told in replayed.differences] == ["the rerun was over before"]
    assert replayed.same_messages == replayed.messages


async def test_a_run_that_goes_another_way_is_told(store: Path) -> None:
    """As when the rules were others: the same answers under settings that end it sooner."""
    session = await recorded(store, [WRITE, Reply.text("hm"), READ, done()])
    recording = session.recording()
    config = replace(recording.spec.config, max_turns=1)

    replayed = await replay(replace(recording, spec=replace(recording.spec, config=config)))

    assert not replayed.same
    assert any(difference.what == "the way" for difference in replayed.differences)
    assert [d.rerun for d in replayed.differences if d.what == "reason"] == ["max_turns"]


async def test_what_a_rerun_asks_for_that_the_journal_does_not_have_is_named(store: Path) -> None:
    """As when the rules were others: the same answers under settings that let a turn go on."""
    session = await recorded(store, [WRITE, READ, done()], max_rounds_per_turn=1)
    recording = session.recording()
    config = replace(recording.spec.config, max_rounds_per_turn=2)

    replayed = await replay(replace(recording, spec=replace(recording.spec, config=config)))

    assert not replayed.same
    (way,) = (told.rerun for told in replayed.differences if told.what == "the way")
    assert way.startswith("the model was asked once more where the journal has nothing more")


async def test_a_replay_needs_no_code_and_calls_no_tool(store: Path, tmp_path: Path) -> None:
    session = await recorded(store, [WRITE, done()])
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE code SET blob = x'00' WHERE length(code) = 64")
    connection.close()
    before = contents(store)

    check(await session.replayed())
    assert contents(store) == before
