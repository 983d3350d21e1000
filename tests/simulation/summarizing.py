"""Runs of a schedule that are summarized: by whom, and what may come of it."""

import asyncio
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from harness_actors.actors.host.compaction_worker import CompactionWorker
from harness_actors.actors.hosted import Place
from harness_actors.actors.simulated.processes import SimulatedMachine, current_process
from harness_actors.coordination.protocol import Cut, Envelope, Summarize
from harness_actors.errors import SummaryError
from harness_actors.plan import CompactionPlan, Summary
from harness_actors.ports import MadeSummary, SummaryRequest, ToolContext
from harness_actors.records import RunChanged, SummaryStored
from harness_actors.results import Usage
from harness_actors.state import SIDE_USAGE, USAGE
from tests.simulation.ledger import Ledger
from tests.simulation.places import seated
from tests.simulation.pressing import REAL_SHARE, longer
from tests.simulation.workload import Workload

ON_DISK = "a summary is on disk before it is used"
ONE_JOB = "one job at a time is done for a run"
ONCE = "what is summarized and on disk is not summarized again"
COUNTED = "what summaries cost is the run's, once"
KEPT = "no summary of a conversation is lost by the next one"

SUMMARIZED = 0.6
"""Share of the schedules with small windows in which runs are summarized."""
DRAW = 1
BLOCK_TOKENS = 120
"""What a summarizer takes in one go: two or three rounds."""
COST_USD = 0.002
WISHES = 0.08
"""Share of the calls with which the model of a run that is summarized asks for a summary."""
CALM_S = 5.0
"""After so long, what is on disk is known to whoever begins a job."""

Mood = Literal["good", "slow", "fails", "lies", "hangs", "kills"]
MOODS: dict[Mood, int] = {"good": 14, "slow": 4, "fails": 1, "lies": 1, "hangs": 1, "kills": 1}


def plan_summaries(workload: Workload, seed: int) -> Workload:
    """The workload of a seed whose small windows are kept in the background."""
    chance = Random(f"{seed}/summarized/{DRAW}")
    if not workload.pressed or chance.random() >= SUMMARIZED:
        return workload
    runs = {}
    for name, run in workload.runs.items():
        settings = run.config.compaction
        assert settings is not None, "it is pressed"
        # From early on: between two rounds a window may be full already.
        soft = chance.choice((0.5, 0.65, 0.8))
        settings = replace(settings, summaries=True, soft=soft, low_water=min(0.45, soft - 0.2))
        # Larger than where nobody summarizes: a summary takes its room, too.
        window = chance.choice((4_200, 5_400, 6_600))
        real = None if run.real_window is None else int(window * REAL_SHARE)
        config = replace(run.config, compaction=settings, max_input_tokens=window)
        rounds = longer(chance, run.rounds, chance.randint(6, 16))
        asks = chance.choice(((), (), (0.0,), (0.3,), (0.0, 0.5, 2.0)))
        runs[name] = replace(run, config=config, rounds=rounds, real_window=real, asks=asks)
    return replace(workload, runs=runs, summarized=True)


class PlannedSummarizer:
    """Puts a part of a conversation into one fact that nobody else says; or fails, in its ways.

    Args:
        rules: Who watches it.
    """

    name = "planned"
    most_tokens = BLOCK_TOKENS

    def __init__(self, rules: "Summarizing") -> None:
        self._rules = rules

    async def summarize(self, request: SummaryRequest) -> MadeSummary:
        return await self._rules.summarize(request)


@dataclass
class Summarizing:
    """Watches summaries being made, stored and used.

    Args:
        ledger: Where it is written down.
        machine: Where workers live.
        seed: That of the schedule.
        wished: Some models ask for summaries.
    """

    ledger: Ledger
    machine: SimulatedMachine
    seed: int
    wished: bool
    _made: int = 0
    _stored: dict[str, tuple[float, str]] = field(default_factory=dict)
    """By what was summarized: when its summary came to the disk, and of which run."""
    _parts: dict[str, str] = field(default_factory=dict)
    """By fact: what was summarized."""

    def __post_init__(self) -> None:
        self._chance = Random(f"{self.seed}/summarizer")

    def called(self, key: str, context: ToolContext) -> None:
        """A tool is called; some ask for a summary."""
        if self.wished and Random(f"{self.seed}/wish/{key}").random() < WISHES:
            context.want_summary("")

    async def summarize(self, request: SummaryRequest) -> MadeSummary:
        """Answer as the schedule says."""
        process, began = current_process(), self.ledger.loop.time()
        said = [message.encoded.decode() for _, message, _ in request.messages]
        # Summarized for other words, it is another summary; and what is said again is said anew.
        part = "|".join((request.keep, str(request.messages[0][0]), *said))
        stored_at, run_id = self._stored.get(part, (began, ""))
        if self.ledger.calm and began - stored_at > CALM_S and self._serves(run_id):
            self.ledger.broken(ONCE, f"messages of {run_id} from {request.messages[0][0]}")
        mood = self._chance.choices(list(MOODS), list(MOODS.values()))[0]
        await asyncio.sleep(self._chance.choice((0.02, 0.2)))
        match mood:
            case "slow":
                await asyncio.sleep(self._chance.choice((2.0, 20.0, 60.0)))
            case "fails":
                raise SummaryError("planned", "it does not want to")
            case "lies":
                return None  # type: ignore[return-value]
            case "hangs":
                await asyncio.sleep(10_000.0)
            case "kills":
                self.machine.kill_soon(process, 0.01)
                await asyncio.sleep(10_000.0)
        self._made += 1
        fact = f"fact {self._made}."
        self._parts[fact] = part
        used = Usage(model_calls=1, input_tokens=50, cost_usd=COST_USD)
        return MadeSummary(summary=Summary(facts=(fact,)), usage=used)

    def _serves(self, run_id: str) -> bool:
        """Whether a run has been in service for as long as it takes to know what it has."""
        host = self.ledger.coordinator
        if host is None or seated(host, current_process()) is None:
            return False
        since = self.ledger.loop.time() - self.ledger.coordinator_since
        return since > CALM_S and run_id in host._coordinator.runs

    def stored(self, entry: SummaryStored) -> None:
        """A summary is on disk."""
        for fact in entry.summary.facts:
            if fact in self._parts:
                now = self.ledger.loop.time()
                self._stored.setdefault(self._parts[fact], (now, entry.run_id))

    def changed(self, change: RunChanged, before: CompactionPlan | None) -> None:
        """A change of a run is on disk; its conversation was shown by this plan."""
        plan, run_id = change.delta.plan, change.run_id
        if plan is not None and plan.summary is not None:
            on_disk = {
                fact for summary in self.ledger.disk.summaries.values() for fact in summary.facts
            }
            for fact in plan.summary.facts:
                if fact not in on_disk:
                    self.ledger.broken(ON_DISK, f"{run_id}: plan {plan.version} has {fact!r}")
        if plan is not None and before is not None and before.summary is not None:
            now = () if plan.summary is None else plan.summary.facts
            if left := set(before.summary.facts) - set(now):
                self.ledger.broken(KEPT, f"{run_id}: {sorted(left)} by plan {plan.version}")
        self._count(change)

    def _count(self, change: RunChanged) -> None:
        """What is counted for summaries is counted for the run, and both with their entry."""
        writes = {write.key: write.value for write in change.delta.writes}
        if SIDE_USAGE.name not in writes:
            return
        aside, whole = writes[SIDE_USAGE.name], writes.get(USAGE.name, {})
        if aside.get("cost_usd") != whole.get("cost_usd") or whole.get("model_calls"):
            self.ledger.broken(COUNTED, f"{change.run_id}: {aside} aside, and {whole}")

    def check_end(self) -> None:
        """All is over: what summaries on disk have cost is counted with their runs."""
        for run_id, run in self.ledger.disk.runs.items():
            made = sum(of == run_id for of in self.ledger.disk.summarized_by.values())
            aside = run.values.values.get(SIDE_USAGE.name, {}).get("model_calls", 0)
            if aside != made:
                self.ledger.broken(COUNTED, f"{run_id}: {made} summaries, and {aside} counted")


class WatchedWorker(CompactionWorker):
    """The shipped worker, of which it is written down what it is given."""

    def __init__(self, rules: Summarizing, place: Place, counter: object) -> None:
        super().__init__(place, lambda _: counter)  # type: ignore[arg-type, return-value]
        self._rules = rules
        self._doing: dict[str, int] = {}

    def _take(self, envelope: Envelope) -> None:
        run_id, number = envelope.run_id, envelope.hop_number
        match envelope.body:
            case Summarize():
                if (other := self._doing.get(run_id)) is not None and other != number:
                    self._rules.ledger.broken(ONE_JOB, f"{run_id}: {number} while {other} is done")
                self._doing[run_id] = number
            case Cut():
                if self._doing.get(run_id) == number:
                    del self._doing[run_id]
        super()._take(envelope)

    async def _work(self, run_id: str, number: int, job: Summarize) -> None:
        try:
            await super()._work(run_id, number, job)
        finally:
            if self._doing.get(run_id) == number:
                del self._doing[run_id]
