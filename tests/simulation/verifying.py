"""Verifications of a schedule: what was found, and what became of the runs it was found of."""

import asyncio
from collections import defaultdict
from random import Random

from harness_actors.actors.simulated.processes import SimulatedMachine, current_process
from harness_actors.contracts.plain import contract_of
from harness_actors.contracts.predicates import AllOf, AnyOf, Predicate, leaves
from harness_actors.events import ContractVerified, StopDecided
from harness_actors.records import RunChanged
from harness_actors.results import HarnessResult
from harness_actors.state import AGENT_TURN, SAID_DONE, STOP_DECISION
from tests.simulation.disk import DiskRun
from tests.simulation.ledger import Ledger
from tests.simulation.serving import SERVED

COMPLETED_VERIFIED = "no run ends completed whose last verification failed"
ONE_DECISION = "one decision is recorded of a turn"
ONE_MESSAGE = "a refusal is one message with every cause"
ITS_OWN = "a finding is never older than the attempt that it judges"
COUNTED_UP = "attempts to be done are counted one by one"
SAID_ONCE = "no model is asked for an end that gates are judging"

MET = 0.6
CRASHES = 0.02
"""Of looks by functions: they end their process."""
RAISES = 0.05
MOST_CRASHES = 2
"""In one run: with one more it would be ended."""
TAKES_S = (0.0, 0.0, 0.01, 0.1, 0.7)
HANGS_S = 30.0
HANGS = 0.02

OURS = frozenset({AGENT_TURN, STOP_DECISION})
"""Executors in whose place others may do what they like with what was found."""


class Verifying:
    """Draws what verifications find, and watches what becomes of that.

    Args:
        ledger: Where it is written down.
        machine: Where it happens.
        seed: That of the schedule.
    """

    def __init__(self, ledger: Ledger, machine: SimulatedMachine, seed: int) -> None:
        self._ledger = ledger
        self._machine = machine
        self._chance = Random(f"{seed}/verifying")
        self._looks: dict[str, dict[tuple[str, str], bool]] = {}
        """What was found in each run since its model was asked last, by what was looked at."""
        self._crashes: defaultdict[str, int] = defaultdict(int)
        self._last: dict[str, ContractVerified] = {}
        self._decided: defaultdict[str, set[int]] = defaultdict(set)
        self._judged: set[str] = set()
        """Runs that have said on disk that they are done, and are not answered yet."""

    def asked(self, run_id: str) -> None:
        """A model is asked: what was found before is of an earlier attempt."""
        self._looks[run_id] = {}
        if run_id in self._judged:
            self._ledger.broken(SAID_ONCE, f"{run_id} has said that it is done, and is asked")

    async def look(self, key: str, kind: str) -> bool:
        """Look at something; whether it is so is drawn.

        Args:
            key: The run and the output, as `run-0-0/R1`; or the output of the run that is served.
            kind: How it is looked at.
        """
        named, _, output = key.rpartition("/")
        run_id = named or SERVED.get()
        chance, place = self._chance, (output, kind)
        verdict, mood = chance.random() < MET, chance.random()
        takes_s = chance.choice(TAKES_S)
        looks = self._looks.setdefault(run_id, {})
        looks[place] = False
        if kind == "custom" and mood < CRASHES and self._crashes[run_id] < MOST_CRASHES:
            self._crashes[run_id] += 1
            await self._crash()
        if kind != "file":
            # Files are looked at, at one moment.
            await asyncio.sleep(HANGS_S if mood > 1 - HANGS else takes_s)
        if kind == "custom" and mood < CRASHES + RAISES:
            raise ValueError(key)
        looks[place] = verdict
        return verdict

    async def _crash(self) -> None:
        process = current_process()
        if process.companion is not None:
            self._machine.end_process(process.companion)
        self._machine.end_process(process)
        await asyncio.Event().wait()

    def changed(self, run: DiskRun, change: RunChanged) -> None:
        """A change of a run is on disk."""
        if OURS.intersection(run.spec.custom):
            return
        for write in change.delta.writes:
            if write.key == SAID_DONE.name:
                said = self._judged.discard if write.value is None else self._judged.add
                said(run.spec.run_id)
        for event in change.delta.events:
            match event:
                case ContractVerified():
                    self._verified(run, event)
                case StopDecided():
                    self._decides(run, event, change)
        if change.end is not None:
            self._ends(run, change.end)

    def _verified(self, run: DiskRun, event: ContractVerified) -> None:
        run_id, before = run.spec.run_id, self._last.get(run.spec.run_id)
        expected = 1 if before is None else before.attempt + 1
        if event.attempt != expected:
            text = f"{run_id}: attempt {event.attempt} follows {expected - 1}"
            self._ledger.broken(COUNTED_UP, text)
        self._last[run_id] = event
        if event.limit:
            return
        looks = self._looks.get(run_id, {})
        contract = contract_of(run.spec.config.contract)
        unmet, unseen = [], []
        for output in contract.required:
            seen = {place: met for place, met in looks.items() if place[0] == output.id}
            if len(seen) < len({type(leaf) for leaf in leaves(output.predicate)}):
                unseen.append(output.id)
            if not _is_met(output.predicate, list(seen.values())):
                unmet.append(output.id)
        if unseen or tuple(unmet) != event.unmet or event.satisfied != (not unmet):
            text = f"{run_id}: {event}, and {unmet} were found unmet, {unseen} not looked at"
            self._ledger.broken(ITS_OWN, text)

    def _decides(self, run: DiskRun, event: StopDecided, change: RunChanged) -> None:
        run_id = run.spec.run_id
        if event.turn in self._decided[run_id]:
            self._ledger.broken(ONE_DECISION, f"{run_id}: turn {event.turn} is decided again")
        self._decided[run_id].add(event.turn)
        if event.reason != "not_accepted":
            return
        said = [message.text for message in change.delta.messages if message.role == "user"]
        last = self._last.get(run_id)
        causes = last.unmet if last is not None and last.turn == event.turn else ()
        if len(said) != 1 or any(f"{cause}: what" not in said[0] for cause in causes):
            text = f"{run_id}: turn {event.turn} is refused for {causes}, and is told {said}"
            self._ledger.broken(ONE_MESSAGE, text)

    def _ends(self, run: DiskRun, end: HarnessResult) -> None:
        if run.spec.config.contract is None or end.reason.kind not in ("completed", "answered"):
            return
        last = self._last.get(run.spec.run_id)
        if last is None or not last.satisfied or last.turn != end.turn_count:
            text = f"{run.spec.run_id} is {end.reason.kind} in turn {end.turn_count} after {last}"
            self._ledger.broken(COMPLETED_VERIFIED, text)


def _is_met(predicate: Predicate, seen: list[bool]) -> bool:
    match predicate:
        case AllOf():
            return all(seen) and bool(seen)
        case AnyOf():
            return any(seen)
    return seen == [True]
