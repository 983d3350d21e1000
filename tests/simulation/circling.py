"""Runs of a schedule whose models go in circles: told once, and ended if they go on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from random import Random
from zlib import crc32

from harness_actors.config import StallConfig
from harness_actors.events import StopDecided
from harness_actors.messages import Message
from harness_actors.policies import AfterRound, Hooks, Novel
from harness_actors.policies import Circling as IsCircling
from harness_actors.records import RunChanged
from harness_actors.state import AGENT_TURN, STOP_DECISION
from tests.simulation.disk import DiskRun
from tests.simulation.ledger import Ledger
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, ToolKind, Workload

TOLD_ONCE = "a model is told once that it goes in circles, and only then"
ENDED = "a run goes on in a circle for no longer than it may"
NOT_BEFORE = "a run ends by a circle only when it was told, and went on"
ONE_DECISION = "a turn has one decision"
AS_HOOKS_SAY = "what hooks say of a round counts, whatever the rules say"

CIRCLING = 0.15
"""Share of the schedules in which models go in circles."""
JUDGED = 0.4
"""Share of those in which hooks have a say in that."""
WARNED = "You go in circles: "
POLLING = "you ask how the job is, again and again"
MISSED_ROUNDS = 3
"""Of which a hook that should hear of them does not: processes that die between a result and it."""
NOT_JUDGED = frozenset({"watch", "work_complete"})
_DECIDING = frozenset({AGENT_TURN, STOP_DECISION})
KINDS: tuple[ToolKind, ...] = ("recall", "recall", "watch")

Shown = tuple[tuple[str, str, str], ...]
"""What happened in a round: tools, arguments and results."""


def plan_circles(workload: Workload, seed: int) -> Workload:
    """The workload of a seed with models that make the same calls again and again."""
    chance = Random(f"{seed}/circles")
    if chance.random() >= CIRCLING:
        return workload
    runs = {name: _in_circles(chance, run) for name, run in workload.runs.items()}
    return replace(workload, runs=runs, rounds_judged=chance.random() < JUDGED)


def _in_circles(chance: Random, run: PlannedRun) -> PlannedRun:
    kind = chance.choice(KINDS)
    shelves = chance.choice(("a", "a", "a", "ab", "aab"))
    circle = [
        PlannedRound(
            tuple(PlannedTool(kind, 0.02, shelf=shelf) for _ in range(chance.choice((1, 1, 2)))),
            chance.choice((0.0, 0.05, 0.3)),
        )
        for shelf in shelves
    ]
    rounds = list(run.rounds)
    place = chance.randint(0, len(rounds))
    rounds[place:place] = circle * (chance.randint(2, 9) // len(shelves) + 1)
    stall = chance.choice(
        (
            StallConfig(),
            StallConfig(threshold=2, grace=1),
            StallConfig(threshold=2, grace=3, no_news=3),
            None,
        )
    )
    return replace(run, rounds=tuple(rounds), config=replace(run.config, stall=stall))


@dataclass
class _Run:
    """What is known of a run.

    Attributes:
        rounds: What happened in each round that is over, the newest last.
        open: The newest answer, with those results that it has.
        told_at: How many rounds there were when the model was last told; None where it was not.
        decisions: Turns that were decided about.
        given: How many messages of its log it was begun with.
    """

    rounds: list[Shown] = field(default_factory=list)
    open: list[Message] = field(default_factory=list)
    told_at: int | None = None
    decisions: set[int] = field(default_factory=set)
    given: int = 0


class Circling:
    """Watches the rounds of runs as they come to the disk.

    Only what is the plainest circle is judged here: equal rounds in a row.

    Args:
        ledger: Where it is written down.
        seed: That of the schedule.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self._ledger = ledger
        self._seed = seed
        self._runs: dict[str, _Run] = {}
        self._hooks_judge = False

    def hooks(self) -> Hooks:
        """Those of the agents, which have a say in rounds from now on."""
        self._hooks_judge = True

        async def judge(event: AfterRound) -> Novel | IsCircling | None:
            answer = next(one for one in reversed(event.messages) if one.role == "assistant")
            match self._mood_of(event.run_id):
                case "novel":
                    return Novel()
                case "impatient" if {call.name for call in answer.tool_calls} == {"watch"}:
                    return IsCircling(POLLING)
            return None

        return Hooks(stall=judge)

    def _mood_of(self, run_id: str) -> str:
        """What the hook says of a run: that all is novel, that to ask for a job is a circle, or
        nothing."""
        moods = ("novel", "impatient", "")
        return moods[crc32(f"{self._seed}/{run_id}".encode()) % 3] if self._hooks_judge else ""

    def changed(self, run: DiskRun, change: RunChanged) -> None:
        """A change of a run is on disk."""
        known = self._runs.setdefault(change.run_id, _Run())
        for message in change.delta.messages:
            if known.given < len(run.spec.task):
                # A fork begins with what its parent was told.
                known.given += 1
            else:
                self._message(run, known, message)
        for event in change.delta.events:
            if isinstance(event, StopDecided) and not run.spec.custom:
                if event.turn in known.decisions:
                    text = f"{change.run_id} is judged again for turn {event.turn}"
                    self._ledger.broken(ONE_DECISION, text)
                known.decisions.add(event.turn)
        if change.end is not None and change.end.reason.kind == "repetition":
            self._ended(run, known)

    def _message(self, run: DiskRun, known: _Run, message: Message) -> None:
        stall, mood = run.spec.config.stall, self._mood_of(run.spec.run_id)
        if message.role == "assistant":
            known.open = [message]
        elif message.role == "tool":
            known.open.append(message)
        elif message.text.startswith(WARNED):
            if stall is None:
                self._ledger.broken(TOLD_ONCE, f"{run.spec.run_id} is told, and is not watched")
            elif mood == "novel":
                self._ledger.broken(AS_HOOKS_SAY, f"{run.spec.run_id} is told, and all is novel")
            elif POLLING in message.text:
                pass  # a hook has said so
            elif known.rounds and _only_polls(known.rounds[-1]):
                self._ledger.broken(TOLD_ONCE, f"{run.spec.run_id} only asks how a job is")
            elif (
                known.told_at is not None
                and _equal(known.rounds) - (len(known.rounds) - known.told_at) >= stall.threshold
            ):
                text = f"{run.spec.run_id} is told after round {known.told_at}, and again"
                self._ledger.broken(TOLD_ONCE, text)
            known.told_at = len(known.rounds)
        if known.open and len(known.open) > len(known.open[0].tool_calls):
            known.rounds.append(_shown(known.open))
            known.open = []
            self._round(run, known)

    def _round(self, run: DiskRun, known: _Run) -> None:
        stall, rounds = run.spec.config.stall, known.rounds
        # A user's own stop decision may go on with a run whose calls are spent.
        theirs = not _DECIDING.isdisjoint(run.spec.custom)
        if stall is None or theirs or not rounds[-1]:
            return
        mood = self._mood_of(run.spec.run_id)
        if mood == "novel":
            return
        if _only_polls(rounds[-1]):
            polls = sum(1 for _ in takewhile(_only_polls, reversed(rounds)))
            if mood and polls > 1 + stall.grace + MISSED_ROUNDS:
                self._ledger.broken(AS_HOOKS_SAY, f"{run.spec.run_id} asks {polls} times")
            return
        equal = _equal(rounds)
        most = stall.threshold + stall.grace
        # Who says that it is done is judged for that, however often it does.
        if equal > most and NOT_JUDGED.isdisjoint(name for name, _, _ in rounds[-1]):
            self._ledger.broken(ENDED, f"{run.spec.run_id} goes on after {equal} equal rounds")

    def _ended(self, run: DiskRun, known: _Run) -> None:
        stall = run.spec.config.stall
        # An answer without a call is judged for what it says: it is no round of a circle.
        since = None if known.told_at is None else sum(map(bool, known.rounds[known.told_at :]))
        if stall is None or since != stall.grace:
            text = f"{run.spec.run_id} ends {since} rounds after it was told"
            self._ledger.broken(NOT_BEFORE, text)


def _shown(messages: Sequence[Message]) -> Shown:
    answer, results = messages[0], {one.tool_call_id: one for one in messages[1:]}
    return tuple(
        (call.name, call.arguments, results[call.id].text if call.id in results else "")
        for call in answer.tool_calls
    )


def _only_polls(shown: Shown) -> bool:
    return bool(shown) and all(name == "watch" for name, _, _ in shown)


def _equal(rounds: Sequence[Shown]) -> int:
    """How many of the newest rounds are equal to the last."""
    count = 0
    for shown in reversed(rounds):
        if shown != rounds[-1]:
            break
        count += 1
    return count
