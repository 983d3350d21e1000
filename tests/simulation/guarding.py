"""Guards of a schedule: what they say of tasks and of ends, and what becomes of that."""

from collections.abc import Sequence
from typing import Any

from harness_actors.events import TurnCompleted, TurnStarted
from harness_actors.messages import Message
from harness_actors.policies import (
    AgentStop,
    Deny,
    EndRun,
    Hook,
    HookEvent,
    Hooks,
    InputText,
    OutputText,
)
from harness_actors.records import RunChanged
from harness_actors.results import HarnessResult
from harness_actors.state import AGENT_TURN, STOP_DECISION
from tests.simulation.disk import DiskRun
from tests.simulation.gated_calls import mood_of
from tests.simulation.ledger import Ledger
from tests.simulation.places import is_here
from tests.simulation.workflows import JUDGED

ACCEPTED = "a run is done only when all of its guards agree"
REFUSED_TASK = "a task that a guard refuses reaches no model"
GUARD_ENDS = "a run that a guard ends goes on no more"
TOLD_WHY = "a model that a guard has denied is told why"
GUARDED_ONCE = "no guard is asked again about what is on disk"

WORDS = "the guard says no"
"""In the end of a run that a guard has ended."""
INPUT = (*("allow",) * 6, "deny", "deny", "end", "raise")
OUTPUT = (*("allow",) * 6, "deny", "deny", "deny", "end", "raise")
STOP = (*("allow",) * 5, "deny", "deny", "raise")
STRICT = (*("allow",) * 6, "raise")
"""Moods of a guard that denies where it fails."""
LAST_TURN = 4
"""After which all guards agree, in all runs but a few."""
PATIENCE = ("patient",) * 7 + ("never",)

_GOES_ON = frozenset({"no_completion", "blocked", "max_turns"})
"""Ends that nobody comes to whom a guard has stopped."""
OURS = frozenset({AGENT_TURN, STOP_DECISION})
"""Executors in whose place others may do what they like with what guards have said."""

Turn = tuple[str, int]


class Guarding:
    """Watches the guards of a schedule.

    Args:
        ledger: Where it is written down.
        seed: That of the schedule.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self._ledger = ledger
        self._seed = seed
        self._guards = False
        self._of_task: dict[str, str] = {}
        """What was said of the task of each run."""
        self._of_end: dict[Turn, dict[str, str]] = {}
        """What was said of the end of each turn, by who said it."""
        self._begun: set[str] = set()
        self._completed: set[Turn] = set()
        self._ended_at: dict[str, int] = {}
        self._reasons: dict[str, list[str]] = {}
        """What models are to be told, by their runs."""

    def hooks(self) -> Hooks:
        """Those of the agents, which have a say from now on."""
        self._guards = True
        return Hooks(
            input_guard=self._input,
            output_guard=[self._output, Hook(self._strict, on_error="deny")],
            agent_stop=self._stop,
        )

    # ---- what happens -----------------------------------------------------------------

    def asked(self, run_id: str, messages: Sequence[Message]) -> None:
        """A model is asked."""
        if not self._guards or OURS.intersection(self._ledger.disk.runs[run_id].spec.custom):
            return
        if self._of_task.get(run_id) == "end":
            self._ledger.broken(REFUSED_TASK, f"{run_id} asks its model")
        said = [message.text for message in messages if message.role == "user"]
        for reason in self._reasons.get(run_id, ()):
            if not any(reason in text for text in said):
                self._ledger.broken(TOLD_WHY, f"{run_id} goes on without {reason!r}")

    def changed(self, run: DiskRun, change: RunChanged) -> None:
        """A change of a run is on disk."""
        run_id = change.run_id
        if not self._guards or OURS.intersection(run.spec.custom):
            return
        for event in change.delta.events:
            match event:
                case TurnStarted(turn=turn):
                    self._starts(run_id, turn)
                case TurnCompleted(turn=turn):
                    ending = "completed" if run.spec.config.completion == "explicit" else "text"
                    self._completes(run_id, turn, judged=event.ending in (ending, "error"))
        if change.end is not None:
            self._ends(run_id, change.end)

    def _starts(self, run_id: str, turn: int) -> None:
        self._begun.add(run_id)
        if turn == 1 and self._of_task.get(run_id) == "deny":
            self._reasons.setdefault(run_id, []).append(_of_task(run_id))
        if turn == 1 and self._of_task.get(run_id) == "end":
            self._ended_at[run_id] = turn
        if turn > self._ended_at.get(run_id, turn):
            text = f"{run_id} begins turn {turn}, and was ended in {self._ended_at[run_id]}"
            self._ledger.broken(GUARD_ENDS, text)

    def _completes(self, run_id: str, turn: int, *, judged: bool) -> None:
        self._completed.add((run_id, turn))
        if not judged:
            return
        said = self._of_end.get((run_id, turn), {})
        if "end" in said.values():
            self._ended_at[run_id] = turn
        elif "deny" in said.values():
            denied = [by for by, verdict in said.items() if verdict == "deny"]
            # Of the guards of one kind the first that denies is heard, and all kinds are asked.
            heard = denied if "output_guard" not in denied else [b for b in denied if b != "strict"]
            self._reasons.setdefault(run_id, []).extend(_of_end(by, (run_id, turn)) for by in heard)

    def _ends(self, run_id: str, end: HarnessResult) -> None:
        went_on = end.status == "done" or end.reason.kind in _GOES_ON
        # An executor of the user's own may end a run before the stop decision hears of the guard.
        if run_id in self._ended_at and went_on and end.reason != JUDGED.reason:
            text = f"{run_id}, which a guard has ended, is {end.status}({end.reason.kind})"
            self._ledger.broken(GUARD_ENDS, text)
        if end.reason.kind in ("completed", "answered"):
            said = self._of_end.get((run_id, end.turn_count), {})
            missing = {"output_guard", "strict", "agent_stop"} - said.keys()
            if missing or set(said.values()) != {"allow"}:
                text = (
                    f"{run_id} is {end.reason.kind}, and of turn {end.turn_count} was said {said}"
                )
                self._ledger.broken(ACCEPTED, text)

    # ---- hooks ------------------------------------------------------------------------

    async def _input(self, event: InputText) -> Any:
        run_id = event.run_id
        mood = mood_of(self._seed, "input", run_id, INPUT)
        if run_id in self._begun and is_here(self._ledger, run_id):
            self._ledger.broken(GUARDED_ONCE, f"the task of {run_id} is asked about again")
        self._of_task[run_id] = "allow" if mood == "raise" else mood
        match mood:
            case "deny":
                return Deny(_of_task(run_id))
            case "end":
                return EndRun(f"{WORDS}: {run_id}")
            case "raise":
                raise ValueError(run_id)
        return None

    async def _output(self, event: OutputText) -> Any:
        # The first of those that are asked about an end.
        if (event.run_id, event.turn) not in self._completed:
            self._of_end[event.run_id, event.turn] = {}
        mood = self._says("output_guard", event, OUTPUT)
        return EndRun(f"{WORDS}: {event.run_id}") if mood == "end" else _as_answer(mood, event)

    async def _strict(self, event: OutputText) -> Any:
        mood = self._says("strict", event, STRICT)
        if mood == "raise":
            self._of_end.setdefault((event.run_id, event.turn), {})["strict"] = "deny"
            raise ValueError(_of_end("strict", (event.run_id, event.turn)))
        return None

    async def _stop(self, event: AgentStop) -> Any:
        return _as_answer(self._says("agent_stop", event, STOP), event)

    def _says(self, by: str, event: HookEvent, moods: Sequence[str]) -> str:
        turn = event.run_id, event.turn
        if turn in self._completed and is_here(self._ledger, event.run_id):
            self._ledger.broken(GUARDED_ONCE, f"{by} is asked again about the end of {turn}")
        mood = mood_of(self._seed, by, f"{event.run_id}/{event.turn}", moods)
        never = mood_of(self._seed, "patience", event.run_id, PATIENCE) == "never"
        if event.turn > LAST_TURN:
            mood = "allow"
        if never and by == "agent_stop":
            mood = "deny"
        if turn not in self._completed:
            self._of_end.setdefault(turn, {})[by] = "allow" if mood == "raise" else mood
        return f"{by}:{mood}" if mood == "deny" else mood


def _as_answer(mood: str, event: HookEvent) -> Deny | None:
    if mood == "raise":
        raise ValueError(event.run_id)
    by, _, denied = mood.partition(":")
    return Deny(_of_end(by, (event.run_id, event.turn))) if denied else None


def _of_task(run_id: str) -> str:
    return f"the task of {run_id} is unkind."


def _of_end(by: str, turn: Turn) -> str:
    return f"{by} wants turn {turn[1]} of {turn[0]} otherwise."
