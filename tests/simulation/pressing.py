"""Runs of a schedule whose windows are small: what their models are shown, and by which plan."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from harness_actors.config import CompactionConfig
from harness_actors.conversation import repaired
from harness_actors.errors import ContextOverflowError
from harness_actors.events import ContextCompacted
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, is_pinned, render
from harness_actors.ports import Candidate
from harness_actors.records import RunChanged
from harness_actors.state import PRESSURE
from tests.simulation.disk import DiskRun
from tests.simulation.ledger import Ledger
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, ToolKind, Workload

ONE_PLAN = "a request shows its conversation by one plan that was adopted"
IN_TURN = "a plan follows the one that it was made from, and knows of no later message"
FITS = "a request fits the window of its model"
OWN_WORDS = "a user's own words stay in sight"
SMALLER_NEXT = "what a provider has refused as too large is not asked again"
MADE = "room that was made is on disk with the word that it was"
ACCEPTED = "what a model is shown keeps calls with their results"

PRESSED = 0.12
"""Share of the schedules in which windows are small."""
DRAW = 1989
"""Of all draws, one that leaves the schedules as they are by which rare faults are found."""
MESSAGE_TOKENS = 120
"""Of each message, as the provider counts them."""
HEAD_TOKENS = 1_300
"""Of prompt and tools: more than they are by our count."""
ROUND_MESSAGES = 5
"""What one round adds, of which the provider has not counted anything yet."""
SMALLER, REAL_SHARE = 0.25, 0.8
"""Share of the runs whose window is smaller than is said, and how much of it is there."""
STRATEGIC = 0.2
"""Share of those schedules in which agents have a strategy of their own."""
KINDS: tuple[ToolKind, ...] = ("look", "again", "effect", "thread")


def plan_pressure(workload: Workload, seed: int) -> Workload:
    """The workload of a seed with runs that outgrow their windows."""
    chance = Random(f"{seed}/pressure/{DRAW}")
    calls = [len(planned.calls) for run in workload.runs.values() for planned in run.rounds]
    if chance.random() >= PRESSED or workload.passed or max(calls, default=0) > ROUND_MESSAGES:
        # What stands around calls knows them by how much a model was shown; and what a message of
        # many calls comes to is known when its provider has counted it.
        return workload
    runs = {name: _pressed(chance, run) for name, run in workload.runs.items()}
    strategic = Random(f"{seed}/strategic").random() < STRATEGIC
    if strategic:
        runs = {name: _with_strategy(run) for name, run in runs.items()}
    return replace(workload, runs=runs, pressed=True, strategic=strategic)


def _with_strategy(run: PlannedRun) -> PlannedRun:
    """The run, asking the strategy of its agent; others have executors of their user's own."""
    settings = run.config.compaction
    if settings is None or run.program not in ("plain", "keyed", "hosted"):
        return run
    settings = replace(settings, strategies=("clear", "externalize", "planned", "drop"))
    return replace(run, config=replace(run.config, compaction=settings))


def _pressed(chance: Random, run: PlannedRun) -> PlannedRun:
    rounds = longer(chance, run.rounds, chance.randint(6, 16))
    # Some are summarized as well; see `summarizing`.
    config = replace(
        run.config,
        compaction=CompactionConfig(summaries=False),
        max_input_tokens=chance.choice((3_000, 3_600, 4_200)),
        limits=replace(run.config.limits, tokens=None),
    )
    real = int(config.window_tokens * REAL_SHARE) if chance.random() < SMALLER else None
    return replace(run, rounds=rounds, config=config, real_window=real)


def longer(chance: Random, planned: Sequence[PlannedRound], more: int) -> tuple[PlannedRound, ...]:
    """Rounds with so many more among them."""
    rounds = list(planned)
    for _ in range(more):
        calls = tuple(
            PlannedTool(chance.choice(KINDS), 0.01) for _ in range(chance.choice((1, 1, 2)))
        )
        rounds.insert(chance.randint(0, len(rounds)), PlannedRound(calls, 0.02))
    return tuple(rounds)


@dataclass
class PlannedStrategy:
    """Drops some, in any order; or fails, in its ways. It answers by what it is asked alone."""

    name: str = "planned"
    action: str = "drop"

    def choose(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        chance = Random("/".join(str(one.start) for one in candidates))
        mood = chance.random()
        if mood < 0.1:
            raise LookupError("it does not want to")
        if mood < 0.2:
            return [*candidates, None]  # type: ignore[list-item]
        return chance.sample(candidates, chance.randint(0, len(candidates)))


@dataclass
class _Talk:
    """The plans of one conversation, each with what it shows of what it knows."""

    plans: list[tuple[CompactionPlan, list[Message]]] = field(default_factory=list)


class Pressing:
    """Watches plans as they come to the disk, and requests as they are made.

    Args:
        ledger: Where it is written down.
        pressed: Windows are small.
    """

    def __init__(self, ledger: Ledger, *, pressed: bool) -> None:
        self._ledger = ledger
        self._pressed = pressed
        self._talks: dict[str, _Talk] = {}
        self._refused: dict[str, int] = {}
        """By run: how many tokens a request had that was refused last, until one is answered."""
        self._known: set[str] = set()
        """Runs that have it on disk that a request was refused."""

    @property
    def plans(self) -> int:
        """How many were adopted."""
        return sum(len(talk.plans) for talk in self._talks.values())

    def plan_of(self, run: DiskRun) -> CompactionPlan | None:
        """How the conversation of a run is shown; None for as it is."""
        talk = self._talks.get(run.spec.conversation_id)
        return None if talk is None else talk.plans[-1][0]

    def request_tokens(self, shown: int) -> int:
        """What a provider counts of a request of so many messages."""
        if not self._pressed:
            return 10 * shown
        return HEAD_TOKENS + MESSAGE_TOKENS * shown

    def changed(self, run: DiskRun, change: RunChanged, log: Sequence[Message]) -> None:
        """A change of a run is on disk, and in its log."""
        for write in change.delta.writes:
            if write.key == PRESSURE.name and write.value["refused"]:
                self._known.add(run.spec.run_id)
        plan = change.delta.plan
        if plan is None:
            if any(isinstance(event, ContextCompacted) for event in change.delta.events):
                self._ledger.broken(MADE, f"{change.run_id} at {change.version} has no plan")
            return
        talk = self._talks.setdefault(run.spec.conversation_id, _Talk())
        before = talk.plans[-1][0].version if talk.plans else 0
        known = len(log) - len(change.delta.messages)
        if (plan.base, plan.version) != (before, before + 1) or plan.upto > known:
            text = f"{change.run_id}: {plan.version} on {plan.base}, of {plan.upto} of {known}"
            self._ledger.broken(IN_TURN, f"{text} messages, follows {before}")
        talk.plans.append((plan, list(render(log, plan))))

    def check_window(self, run_id: str, shown: int, window: int | None) -> None:
        """A provider takes a request of so many messages, or refuses it.

        Raises:
            ContextOverflowError: It is larger than its window.
        """
        tokens = self.request_tokens(shown)
        if window is None or tokens <= window:
            self._refused.pop(run_id, None)
            self._known.discard(run_id)
            return
        if run_id in self._known and tokens >= self._refused.get(run_id, tokens + 1):
            self._ledger.broken(SMALLER_NEXT, f"{run_id}: {tokens} tokens, and {window} are taken")
        self._refused[run_id] = tokens
        raise ContextOverflowError("planned", "too large", 400)

    def unfolded(self, run_id: str, messages: Sequence[Message]) -> Sequence[Message]:
        """A request with all of its conversation, as if nothing had been left out of it."""
        run = self._ledger.disk.runs.get(run_id)
        talk = None if run is None else self._talks.get(run.spec.conversation_id)
        if not self._pressed or run is None:
            return messages
        self._check(run, messages)
        if talk is None:
            return messages
        log, shown = self._ledger.disk.logs[run.spec.conversation_id], messages[1:]
        for plan, rendered in reversed(talk.plans):
            if list(shown[: len(rendered)]) == rendered:
                return [messages[0], *log[: plan.upto], *shown[len(rendered) :]]
        first = talk.plans[0][0].upto
        if list(shown[:first]) != log[:first]:
            self._ledger.broken(ONE_PLAN, f"{run_id} is shown {[m.text[:40] for m in shown]}")
        return messages

    def _check(self, run: DiskRun, messages: Sequence[Message]) -> None:
        run_id, config = run.spec.run_id, run.spec.config
        tokens = HEAD_TOKENS + MESSAGE_TOKENS * (len(messages) - ROUND_MESSAGES)
        # Of a run's first request, the provider has counted nothing yet.
        if tokens > config.window_tokens and messages[-1].role in ("tool", "assistant"):
            text = f"{run_id}: {tokens} of {config.window_tokens} tokens"
            self._ledger.broken(FITS, text)
        if repaired(messages[1:])[1]:
            self._ledger.broken(ACCEPTED, f"{run_id}: {[m.text[:40] for m in messages]}")
        log = self._ledger.disk.logs[run.spec.conversation_id]
        seen = {message.encoded for message in messages}
        said = [message for message in log if message.role == "user" and is_pinned(message)]
        # Those between may be dropped, where nothing else is left to be.
        for message in (*said[:1], *said[-1:]):
            if message.encoded not in seen:
                self._ledger.broken(OWN_WORDS, f"{run_id} is not shown {message.text!r}")
