"""Random tools, keys, failures, timeouts and cancellations: what holds of every message."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.events import Event, ToolProgress
from harness_actors.executors import DeltaContext
from harness_actors.ports import Effect, ToolContext, ToolSpec
from harness_actors.signals import CompactionComplete, RunEnd
from harness_actors.testing.scripted import Reply
from harness_actors.turn.deadline import GRACE_S
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, finishes
from tests.virtual_time import VirtualTimeLoop

TIMEOUT_S = 2.0
LONG_S = 50.0
"""How long after its deadline a call comes back that swallows its cancellation."""
SETTLED_S = 10 * LONG_S

How = Literal["returns", "raises", "late"]
"""What a call does after its time: the last one swallows every cancellation, and returns then."""


@dataclass(frozen=True)
class ACall:
    """A call of a message; `tool` is the place of its tool, or of none."""

    tool: int
    how: How
    takes_s: float
    of: int | None
    """Fills the keys of its tool; None leaves them open."""


@dataclass(frozen=True)
class Declared:
    effect: Effect
    keys: tuple[str, ...]
    timed: bool


@dataclass(frozen=True)
class Message:
    tools: tuple[Declared, ...]
    calls: tuple[ACall, ...]
    at_once: int

    def keys_of(self, call: ACall) -> frozenset[str] | None:
        """What a call may share with none beside it; None where it must be alone."""
        if call.tool >= len(self.tools):
            return frozenset()
        tool = self.tools[call.tool]
        if tool.effect != "read_only" or (call.of is None and "of:{of}" in tool.keys):
            return None
        return frozenset(key.format(of=call.of) for key in tool.keys)

    def ends_of_waves(self) -> set[int]:
        """How many calls have a result when a wave has ended, or none has begun."""
        ends, taken = {0}, set[str]()
        alone = False
        for place, call in enumerate(self.calls):
            keys = self.keys_of(call)
            if place and (keys is None or alone or taken & keys):
                ends.add(place)
                taken = set()
            alone = keys is None
            taken |= keys or set()
        return ends | {len(self.calls)}

    def disposition(self, call: ACall) -> str:
        if call.tool >= len(self.tools):
            return "refused"
        late = call.how == "late" or call.takes_s > TIMEOUT_S
        if late and self.tools[call.tool].timed:
            return "timed_out"
        return "failed" if call.how == "raises" else "done"


tools = st.builds(
    Declared,
    effect=st.sampled_from(("read_only", "read_only", "read_only", "local_write", "network")),
    keys=st.lists(st.sampled_from(("a", "b", "of:{of}")), max_size=2, unique=True).map(tuple),
    timed=st.booleans(),
)
acts = st.builds(
    ACall,
    tool=st.integers(0, 4),
    how=st.sampled_from(("returns", "returns", "raises", "late")),
    takes_s=st.sampled_from((0.0, 0.5, 1.0, 3.0)),
    of=st.sampled_from((0, 1, 2, None)),
)
messages = st.builds(
    Message,
    tools=st.lists(tools, min_size=1, max_size=4).map(tuple),
    calls=st.lists(acts, min_size=1, max_size=9).map(tuple),
    at_once=st.integers(1, 4),
)


@dataclass
class Stay:
    """When a call was at work, in seconds."""

    begun: float
    ended: float = float("inf")


@dataclass
class Floor:
    """Where the calls of a message run, and are seen."""

    message: Message
    stays: dict[int, Stay] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    over: bool = False
    """Nobody waits for any of them any more."""
    heard_late: list[Event] = field(default_factory=list)

    async def act(self, place: int, context: ToolContext) -> str:
        assert place not in self.stays, "it was made twice"
        loop, call = asyncio.get_running_loop(), self.message.calls[place]
        stay = self.stays[place] = Stay(loop.time())
        self.order.append(place)
        timed = self.message.tools[call.tool].timed
        if timed:
            # Then it is left alone, whatever it does.
            stay.ended = stay.begun + TIMEOUT_S + GRACE_S
        try:
            if call.how == "late":
                await self._stubbornly(stay.begun + (LONG_S if timed else call.takes_s))
                context.emit("late" if timed or self.over else "in time")
            else:
                await asyncio.sleep(call.takes_s)
            if call.how == "raises":
                raise LookupError(f"failed {place}")
            return f"late {place}" if call.how == "late" else f"result {place}"
        finally:
            stay.ended = min(stay.ended, loop.time())

    async def _stubbornly(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while (left := until - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left)

    # As a reader of the run.

    def begin(self, turn: int, round: int) -> None: ...

    def say(self, text: str) -> None: ...

    def end(self) -> None: ...

    def announce(self, turn: int, round: int, event: Event) -> None:
        if isinstance(event, ToolProgress) and event.text == "late":
            self.heard_late.append(event)

    def check(self) -> None:
        """What holds of all that ran beside each other."""
        assert self.order == sorted(self.order), "each begins when those before it have begun"
        moments = [stay.begun for stay in self.stays.values()]
        for moment in moments:
            running = [s for s in self.stays.values() if s.begun <= moment < s.ended]
            assert len(running) <= self.message.at_once
        for one, other in combinations(self.stays, 2):
            first, second = self.stays[one], self.stays[other]
            if first.begun < second.ended and second.begun < first.ended:
                keys = [self.message.keys_of(self.message.calls[place]) for place in (one, other)]
                assert None not in keys, "what may write, or touches who knows what, runs alone"
                assert not (keys[0] or set()) & (keys[1] or set()), "they touch the same"


@dataclass(frozen=True)
class OnFloor:
    """A tool of a message."""

    name: str
    declared: Declared
    floor: Floor

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="A tool.",
            parameters={"type": "object"},
            effect=self.declared.effect,
            resource_keys=self.declared.keys,
            timeout_s=TIMEOUT_S if self.declared.timed else None,
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        return await self.floor.act(json.loads(arguments)["place"], context)


def a_driver(message: Message) -> tuple[Driver, Floor]:
    floor = Floor(message)
    named = [OnFloor(f"tool{place}", tool, floor) for place, tool in enumerate(message.tools)]
    wanted = [
        (f"tool{call.tool}", {"place": place, **({} if call.of is None else {"of": call.of})})
        for place, call in enumerate(message.calls)
    ]
    model = RecordingModel([Reply.calls(wanted), finishes()])
    driver = Driver(SimpleAgent(model, named), max_parallel_calls=message.at_once)
    driver.texts = floor
    return driver, floor


async def whole(message: Message) -> None:
    driver, floor = a_driver(message)

    end = await driver.run()

    assert isinstance(end, RunEnd)
    assert end.status == "done"
    driver.check_log()
    floor.check()
    results = driver.results()[:-1]
    became = [result.disposition for result in results]
    assert became == [message.disposition(call) for call in message.calls]
    for place, (call, result) in enumerate(zip(message.calls, results, strict=True)):
        if became[place] in ("done", "failed"):
            said = {"returns": "result", "raises": "LookupError: failed", "late": "late"}
            assert result.text == f"{said[call.how]} {place}"
    before = [m.encoded for m in driver.state.log]
    # Whoever was left alone comes back.
    await asyncio.sleep(SETTLED_S)
    assert [m.encoded for m in driver.state.log] == before
    assert not floor.heard_late


async def cut(message: Message, after_s: float) -> None:
    driver, floor = a_driver(message)
    context = driver.open_context("agent_turn")
    loop = asyncio.get_running_loop()
    turn = asyncio.ensure_future(
        driver.executors["agent_turn"].handle(CompactionComplete(), context)
    )
    await asyncio.wait((turn,), timeout=after_s)
    begun, was_done = set(floor.stays), turn.done()
    cut_at = loop.time()
    floor.over = True
    turn.cancel()
    await asyncio.wait((turn,))

    assert was_done or turn.cancelled()
    assert loop.time() - cut_at <= GRACE_S + 1e-6, "a call that does not end holds up nobody"
    answered = results_of(context, message)
    await asyncio.sleep(SETTLED_S)
    assert set(floor.stays) == begun, "no call begins after it"
    assert results_of(context, message) == answered
    assert not floor.heard_late
    for stay in floor.stays.values():
        stay.ended = min(stay.ended, cut_at)
    floor.check()


def results_of(context: DeltaContext, message: Message) -> Sequence[str]:
    """Ids of the calls that have results, which are those of whole waves."""
    log = list(context.log)
    asked = [m for m in log if m.role == "assistant"][:1]
    ids = [call.id for m in asked for call in m.tool_calls]
    answered = [m.tool_call_id or "" for m in log if m.role == "tool"][: len(ids)]
    assert answered == ids[: len(answered)]
    assert len(answered) in message.ends_of_waves()
    return answered


@settings(max_examples=150)
@given(message=messages)
def test_each_call_of_a_message_gets_its_one_answer_in_order(message: Message) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(whole(message))


@settings(max_examples=100)
# Never in the moment in which a call ends: what it tells then may come first.
@given(message=messages, after_s=st.sampled_from((0.01, 0.1, 0.77, 1.52, 2.1, 4.03)))
def test_a_turn_that_is_cut_anywhere_ends_and_has_the_results_of_whole_waves(
    message: Message, after_s: float
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(cut(message, after_s))
