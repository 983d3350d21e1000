"""Agents that work beside those that have sent them out: what is drawn, and what must hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import orjson

from harness_actors.config import Limits
from harness_actors.events import InputAwaited, RunParked
from harness_actors.messages import Message, ToolCall
from harness_actors.records import CHILD_MARK, RunChanged
from harness_actors.state import CHILD_WAITS
from harness_actors.subagents import SubAgentSpec
from harness_actors.subagents.letters import ENDED, SAID
from tests.simulation.kin import Kid, Kin, results_in, says, status_of, without_notes
from tests.simulation.ledger import Ledger
from tests.simulation.trees import PlannedDelegation
from tests.simulation.workload import PlannedRound, PlannedTool, Workload

TOLD_ONCE = "what became of a run beside is told once, when it is over, and as it was"
WAITED = "who waits for runs beside goes on when they have ended, or its time is over"
STEERED = "what a run is told it reads once"
SHARE = 0.4
"""Of the schedules with trees."""
SCOUT = "scout"
LONG_S = 50_000.0
"""Longer than any schedule: such a wait is over by ends alone."""
LATE_S = 1.0
"""How long after its time a wait may go on, at most."""
PATIENCE_S = 60.0
"""Longer than it takes a letter to come while nothing is disturbed."""
ASKS = ("agent_wait", "agent_wait", "agent_list", "agent_status", "agent_result", "agent_send")


def with_scouts(workload: Workload, seed: int) -> Workload:
    """The workload, in which some of those that are delegated to work beside."""
    chance = Random(f"{seed}/sent out")
    if not workload.sub_agents or chance.random() >= SHARE:
        return workload
    runs = {
        name: replace(run, rounds=_rounds(chance, run.rounds))
        for name, run in workload.runs.items()
    }
    return replace(workload, runs=runs, sub_agents=_specs(workload.sub_agents))


def _rounds(chance: Random, rounds: Sequence[PlannedRound]) -> tuple[PlannedRound, ...]:
    found: list[PlannedRound] = []
    has_some = False
    for planned in rounds:
        calls = tuple(_scouting(chance, call) for call in planned.calls)
        has_some |= any(call.to is not None and call.to.agent == SCOUT for call in calls)
        if has_some and chance.random() < 0.3:
            calls = (*calls, _asking(chance))
        found.append(replace(planned, calls=calls))
        while has_some and chance.random() < 0.5:
            asks = tuple(_asking(chance) for _ in range(chance.choice((1, 1, 2))))
            found.append(PlannedRound(asks, chance.choice((0.0, 0.1, 1.0))))
    return tuple(found)


def _scouting(chance: Random, call: PlannedTool) -> PlannedTool:
    if call.to is None:
        return call
    agent = SCOUT if chance.random() < 0.5 else call.to.agent
    return replace(call, to=replace(call.to, agent=agent, rounds=_rounds(chance, call.to.rounds)))


def _asking(chance: Random) -> PlannedTool:
    name = "agent_cancel" if chance.random() < 0.1 else chance.choice(ASKS)
    handles = [f"{SCOUT}-{chance.randint(1, 4)}" for _ in range(chance.choice((1, 1, 2)))]
    wait_s = chance.choice((0.05, 1.0, LONG_S, LONG_S))
    given: dict[str, object] = {}
    if name == "agent_wait":
        given = {"until": chance.choice(("any", "all")), "timeout_s": wait_s}
        given |= {"agents": handles} if chance.random() < 0.4 else {}
    elif name == "agent_cancel":
        given = {"agents": handles}
    elif name != "agent_list":
        given = {"agent": handles[0]}
    return PlannedTool("delegate", 0.0, to=PlannedDelegation(name, given=given))


def _specs(specs: Sequence[SubAgentSpec]) -> tuple[SubAgentSpec, ...]:
    """With one that works beside, wherever there are some."""
    if not specs:
        return ()
    below = [replace(one, sub_agents=_specs(one.sub_agents)) for one in specs]
    forked = any(one.fork for one in specs)
    scout = SubAgentSpec(
        name=SCOUT,
        description="Scouts.",
        instructions="" if forked else "Scout.",
        limits=Limits(model_calls=100),
        background=True,
        fork=forked,
        sub_agents=() if forked else below[0].sub_agents,
    )
    return (*below, scout)


@dataclass
class SentOut:
    """Watches what runs are told of those beside them, by what is on disk.

    Args:
        ledger: Where it is written down.
        kin: Knows whose children they are.
    """

    ledger: Ledger
    kin: Kin
    _told: set[str] = field(default_factory=set)
    _ended_at: dict[str, float] = field(default_factory=dict)
    _waits: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """Until when each call waits, by the clock of the schedule, and in which term it has begun."""

    def changed(self, change: RunChanged, log: Sequence[Message]) -> None:
        """A change is on disk, and in its log."""
        if change.end is not None and change.run_id in self.kin.kids:
            self._ended_at[change.run_id] = self.ledger.loop.time()
        self._watch_waits(change)
        for message in change.delta.messages:
            if message.role == "user" and message.by_harness and ENDED in message.text:
                self._letter(change.run_id, message.text)
        for call, result in results_in(log, len(change.delta.messages)):
            if call.name == "agent_wait" and result.disposition == "done":
                self._waited(change.run_id, call, result.text)

    def _watch_waits(self, change: RunChanged) -> None:
        """Calls begin to wait, or are answered: not long after their time."""
        if change.end is not None or any(
            isinstance(e, RunParked | InputAwaited) for e in change.delta.events
        ):
            for key in [key for key in self._waits if key[0] == change.run_id]:
                del self._waits[key]
        for write in change.delta.writes:
            if write.key != CHILD_WAITS.name:
                continue
            waits = {(change.run_id, one["call_id"]): one["until"] for one in write.value or ()}
            for key in [key for key in self._waits if key[0] == change.run_id and key not in waits]:
                until, term = self._waits.pop(key)
                late = change.at - until
                if late > LATE_S and term == self.ledger.term and not self.ledger.harmed:
                    self.ledger.broken(WAITED, f"{key} is answered {late:.1f} s after its time")
            for key, until in waits.items():
                self._waits.setdefault(key, (until, self.ledger.term))

    def asked(self, run_id: str, messages: Sequence[Message]) -> None:
        """A model is asked with this conversation."""
        texts = [one.text for one in messages if one.role == "user"]
        letters = "\n".join(text for text in texts if ENDED in text)
        for child, kid in self._beside(run_id):
            times = letters.count(f"report of {child}:")
            if times > 1:
                self.ledger.broken(TOLD_ONCE, f"{run_id} reads {times} times of {child}")
            late = self.ledger.loop.time() - self._ended_at.get(child, self.ledger.loop.time())
            heading = f"[{_handle(child)} "
            if late > PATIENCE_S and heading not in letters and kid.spec.parent is not None:
                text = f"{run_id} goes on {late:.0f} s after {child} ended, and was not told"
                if not self.ledger.harmed and run_id not in self.kin.kids:
                    self.ledger.broken(TOLD_ONCE, text)
        steered = "\n".join(text for text in texts if SAID in text)
        keys = [word for word in steered.split() if word.startswith("steer:")]
        if len(keys) != len(set(keys)):
            self.ledger.broken(STEERED, f"{run_id} reads {keys}")

    def _letter(self, run_id: str, text: str) -> None:
        """A run is told of some that have ended."""
        text, parts = without_notes(text), {}
        for child, kid in self._beside(run_id):
            end = self.ledger.disk.runs[child].end
            status = "" if end is None else status_of(kid.spec, end)
            found = text.count(f"[{_handle(child)} ")
            if not found:
                continue
            if end is None or found > 1 or child in self._told:
                self.ledger.broken(TOLD_ONCE, f"{run_id} is told {found} times more of {child}")
                continue
            self._told.add(child)
            parts[f"[{_handle(child)} {status}]"] = (kid, end)
        for heading, (kid, end) in parts.items():
            if f"{heading}\n" not in text:
                self.ledger.broken(TOLD_ONCE, f"{run_id} reads {text!r}, and not {heading}")
                continue
            said = text.partition(f"{heading}\n")[2]
            ends = [said.index(f"\n\n{one}") for one in parts if f"\n\n{one}" in said]
            if not says(said[: min(ends, default=len(said))], kid.spec, end):
                self.ledger.broken(TOLD_ONCE, f"{run_id} reads {said!r} of {end.output_text!r}")

    def _waited(self, run_id: str, call: ToolCall, text: str) -> None:
        given, left = orjson.loads(call.arguments), 0
        for line in text.splitlines():
            handle, _, status = line.partition(": ")
            child = f"{run_id}{CHILD_MARK}{handle.rpartition('-')[2]}"
            if child not in self.kin.kids:
                continue
            end = self.ledger.disk.runs[child].end
            if status == "still at work":
                left += 1
            elif end is None or status_of(self.kin.kids[child].spec, end) != status:
                self.ledger.broken(WAITED, f"{run_id} is told {line!r}, and {child} is {end}")
        lines = len(text.splitlines())
        over = left < lines if given["until"] == "any" else left == 0
        if not over and given["timeout_s"] == LONG_S:
            self.ledger.broken(WAITED, f"{run_id} has waited by {given}, and is told {text!r}")

    def _beside(self, run_id: str) -> list[tuple[str, Kid]]:
        kids = ((child, self.kin.kids[child]) for child in self.kin.of(run_id))
        return [(child, kid) for child, kid in kids if kid.is_beside]


def _handle(child: str) -> str:
    return f"{SCOUT}-{child.rpartition(CHILD_MARK)[2]}"
