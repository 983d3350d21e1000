"""Calls that run at once, and calls that need not be made again: planned, and watched."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, get_args

import orjson

from harness_actors.messages import Message, ToolCall
from harness_actors.state import AGENT_TURN
from harness_actors.turn.call_gates import WITHHELD
from tests.simulation.disk import DiskRun
from tests.simulation.ledger import Happening, Ledger
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, ToolKind, Workload

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

AT_ONCE = "no more calls run at once than a run may have"
APART = "calls whose keys overlap do not run at once"
WRITES_ALONE = "nothing runs beside a call that may write"
FRESH = "a call is answered from the log only while nothing was written since"
OWN_RESULT = "a result is that of its call"
OVER = "no call goes on when its turn is over"
ANEW = "a volatile tool is called each time"

WAVES = 0.3
"""Share of the schedules in which messages have many calls that only read."""
IN_WAVES: tuple[ToolKind, ...] = (
    *("look", "look", "peek", "peek", "peek", "recall", "recall", "recall", "watch", "watch"),
    *("again", "effect", "thread", "fail"),
)
READS = frozenset({"look", "peek", "recall", "watch"})
KINDS = frozenset(get_args(ToolKind))
WRITES = KINDS - READS
REPEATED = ("recall", "watch")
"""Kinds of which two calls may be the same."""
SHELVES = "ab"


def plan_waves(workload: Workload, seed: int) -> Workload:
    """The workload of a seed with messages of several calls that may run at once."""
    chance = Random(f"{seed}/waves")
    if chance.random() >= WAVES:
        return workload
    runs = {name: _with_waves(chance, run) for name, run in workload.runs.items()}
    return replace(workload, runs=runs)


def _with_waves(chance: Random, run: PlannedRun) -> PlannedRun:
    rounds = list(run.rounds)
    for _ in range(chance.choice((1, 2, 3))):
        calls = tuple(_plan_call(chance) for _ in range(chance.randint(2, 7)))
        rounds.insert(chance.randint(0, len(rounds)), PlannedRound(calls, 0.05))
    most = chance.choice((64, 64, 1, 2, 3))
    config = replace(run.config, max_parallel_calls=most)
    return replace(run, rounds=tuple(rounds), config=config)


def _plan_call(chance: Random) -> PlannedTool:
    kind, takes_s = chance.choice(IN_WAVES), chance.choice((0.0, 0.01, 0.05, 0.2))
    return PlannedTool(kind, takes_s, shelf=chance.choice(SHELVES))


class AtOnce:
    """Watches what runs beside what.

    A call that was told to end, and goes on, is nobody's any more.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._running: list[tuple[Happening, str]] = []

    def called(self, call: Happening, shelf: str) -> None:
        """A tool is called.

        Args:
            call: The call.
            shelf: The one that it has for itself; empty for none.
        """
        self._running = [one for one in self._running if one[0].is_open and not one[0].let_go]
        beside = [
            one
            for one in self._running
            if (one[0].run_id, one[0].process) == (call.run_id, call.process)
        ]
        self._running.append((call, shelf))
        if not beside:
            return
        broken, name = self._ledger.broken, f"{call.what} of {call.key}"
        config = self._ledger.disk.runs[call.run_id].spec.config
        if len(beside) >= config.max_parallel_calls:
            broken(AT_ONCE, f"{name} begins beside {len(beside)} others")
        if {call.what, *(other.what for other, _ in beside)} - READS:
            broken(WRITES_ALONE, f"{name} begins beside {[o.key for o, _ in beside]}")
        if shelf and shelf in [other for _, other in beside]:
            broken(APART, f"{name} begins beside another one at shelf {shelf!r}")

    def ended(self, call: Happening) -> None:
        """A tool has done what it was called for."""
        if call.let_go:
            return
        turns = (
            step
            for step in reversed(self._ledger.steps)
            if (step.run_id, step.what, step.process) == (call.run_id, AGENT_TURN, call.process)
        )
        if not any(step.is_open for step in turns):
            self._ledger.broken(OVER, f"{call.what} of {call.key} goes on to its end")

    def seen(self, call: Happening) -> str:
        """What a call that reads sees: how much its run has written, and how often it looked."""
        own = [one for one in self._ledger.tools if one.run_id == call.run_id]
        written = sum(one.what not in READS for one in own)
        return f"{written}/{len(own)}"


def check_repeats(schedule: "Schedule") -> None:
    """What was read is what was there, whoever answered; and volatile tools were called."""
    for run in schedule.disk.runs.values():
        workload = schedule.workload
        made = not workload.passed and workload.approvals is None
        _check_run(schedule.ledger, run, made=made)


def _check_run(ledger: Ledger, run: DiskRun, *, made: bool) -> None:
    """Of calls that are not made whatever their result says, nobody knows what they would see."""
    messages = [message for _, change in run.changes for message in change.delta.messages]
    if run.spec.parent is not None:
        # A fork begins with what another one has done.
        del messages[: run.spec.parent.forked]
    calls: dict[str | None, ToolCall] = {}
    written, looked = 0, Counter[str]()
    for message in messages:
        if message.role == "assistant":
            calls = {call.id: call for call in message.tool_calls}
            continue
        call = calls.get(message.tool_call_id) if message.role == "tool" else None
        if call is None:
            continue
        # What hooks keep back does not say what it has seen.
        told = message.disposition == "done" and message.text not in WITHHELD.values()
        if call.name in KINDS and told and not _is_of(message, call):
            ledger.broken(OWN_RESULT, f"{call.id} of {call.arguments}: {message.text!r}")
        written += call.name in WRITES and _was_made(message)
        if call.name in REPEATED and told:
            seen, number = message.text.rpartition(" ")[2].split("/")
            if made and int(seen) < written:
                text = f"{run.spec.run_id}: {message.text!r}, and {written} calls had written"
                ledger.broken(FRESH, text)
            looked[number] += call.name == "watch"
    if any(count > 1 for count in looked.values()):
        ledger.broken(ANEW, f"{run.spec.run_id}: {looked}")


def _is_of(result: Message, call: ToolCall) -> bool:
    key: str = orjson.loads(call.arguments)["key"]
    # Of a long one the beginning is shown; of one by a person, what it says comes behind a colon.
    return key in result.text.replace(":", " ").split()


def _was_made(result: Message) -> bool:
    return result.disposition not in ("refused", "denied", "unknown")
