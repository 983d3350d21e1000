"""Runs below others that ask their user: at the top of their tree, where all else stands still."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_actors.events import InputAwaited, QuestionAnswered
from harness_actors.records import Entry, RunChanged, id_at_the_top
from harness_actors.state import ANSWERS, ASKED_BELOW, AWAITED, QUESTIONS, asked_in
from tests.simulation.disk import DiskRun
from tests.simulation.kin import Kin
from tests.simulation.ledger import Ledger

AT_THE_TOP = "what a run below others asks is asked at the top of its tree, in the same commit"
AS_ANSWERED = "a run below others gets what was answered at the top of its tree, and nothing else"
OTHERS_FIRST = "a tree waits for its user where nobody in it can go on"
TAKEN_BACK = "what nobody waits for any more is not asked"


def is_answer(change: RunChanged, values: Mapping[str, Any]) -> bool:
    """Whether a run that is put aside is only told what its user answers: those below it ask, and
    go on when it does."""
    answered = [one for one in change.delta.events if isinstance(one, QuestionAnswered)]
    told = {write.key for write in change.delta.writes} <= {ANSWERS.name}
    only = told and len(answered) == len(change.delta.events)
    if not answered or not only or change.hop or change.delta.messages or change.end:
        return False
    return {one.question_id for one in answered} <= {one["id"] for one in asked_in(values)}


class AskedBelow:
    """Watches what is asked and answered in trees, by what is on disk.

    Args:
        ledger: Where it is written down.
        kin: Knows whose children they are.
    """

    def __init__(self, ledger: Ledger, kin: Kin) -> None:
        self._ledger = ledger
        self._disk = ledger.disk
        self._kin = kin

    def committed(self, entries: Sequence[Entry]) -> None:
        """Entries are on disk, all at once."""
        changes = [entry for entry in entries if isinstance(entry, RunChanged)]
        for change in changes:
            run = self._disk.runs[change.run_id]
            if run.spec.parent is not None:
                self._check_below(run, change)
            elif any(isinstance(event, InputAwaited) for event in change.delta.events):
                self._check_others(run)
        for root in {self._disk.runs[change.run_id].spec.root for change in changes}:
            self._check_taken_back(root)

    def _check_below(self, run: DiskRun, change: RunChanged) -> None:
        top = self._disk.runs[run.spec.root].values.values
        if any(isinstance(event, InputAwaited) for event in change.delta.events):
            told = (top.get(ASKED_BELOW.name) or {}).get(change.run_id) or ()
            asked = {one["id"] for one in told}
            wanted = {self._above(run, number) for number in self._open(run)}
            if asked != wanted and run.end is None:
                text = f"{change.run_id} asks {sorted(wanted)}, and its root {sorted(asked)}"
                self._ledger.broken(AT_THE_TOP, text)
        given: Mapping[str, Any] = top.get(ANSWERS.name) or {}
        for write in change.delta.writes:
            if write.key == ANSWERS.name and write.change == "put":
                number, text = write.value
                if given.get(self._above(run, number)) != text:
                    told = f"{change.run_id} is answered {text!r} to {number}"
                    self._ledger.broken(AS_ANSWERED, told)

    def _check_others(self, root: DiskRun) -> None:
        """The run at the top waits for its user."""
        host = self._ledger.coordinator
        if not root.values.values.get(AWAITED.name) or host is None or host.term != self._disk.term:
            return
        for run_id, run in host._coordinator.runs.items():
            if run.spec.root == root.spec.run_id and run_id != root.spec.run_id:
                text = f"{root.spec.run_id} waits for its user, and {run_id} is served"
                self._ledger.broken(OTHERS_FIRST, text)

    def _check_taken_back(self, root: str) -> None:
        top = self._disk.runs[root]
        if top.end is not None:
            return
        asked: Mapping[str, Any] = top.values.values.get(ASKED_BELOW.name) or {}
        for run_id, questions in asked.items():
            if questions and self._disk.runs[run_id].end is not None:
                self._ledger.broken(TAKEN_BACK, f"{root} asks for {run_id}, which is over")

    def _open(self, run: DiskRun) -> list[str]:
        values = run.values.values
        answers = values.get(ANSWERS.name) or {}
        asked = (values.get(QUESTIONS.name) or {}).get("asked", ())
        return [one["id"] for one in asked if one["id"] not in answers]

    def _above(self, run: DiskRun, number: str) -> str:
        return id_at_the_top(run.spec.run_id, run.spec.root, number)
