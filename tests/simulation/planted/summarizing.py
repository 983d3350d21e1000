"""Faults in how conversations are summarized beside their runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_actors.compaction.condensing import Condensation
from harness_actors.compaction.groups import Group
from harness_actors.coordination.active import ActiveRun, Background, Effects
from harness_actors.coordination.background import BackgroundCompaction
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.protocol import Summarize, Summarized
from harness_actors.plan import CompactionPlan, Summary
from harness_actors.records import StoredRun, SummaryStored
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.pressing import IN_TURN, OWN_WORDS
from tests.simulation.summarizing import COUNTED, KEPT, ON_DISK, ONCE, ONE_JOB

ENDS = "every run ends"
IDLE = "nothing is left of runs that are over"


def _not_stored() -> Patches:
    def patched(
        self: BackgroundCompaction,
        run: ActiveRun,
        known: Background,
        made: Summarized,
        effects: Effects,
    ) -> None:
        keep(self, run, known, made, effects)
        effects.entries = [one for one in effects.entries if not isinstance(one, SummaryStored)]

    keep = BackgroundCompaction._keep
    return [(BackgroundCompaction, "_keep", patched)]


def _never_busy() -> Patches:
    return [(Background, "is_idle", property(lambda self: self.offer is None))]


def _not_told_to_the_next_job() -> Patches:
    def patched(
        self: Dispatch, run: ActiveRun, known: Background, job: Summarize, effects: Effects
    ) -> None:
        post_job(self, run, known, replace(job, known={}), effects)

    post_job = Dispatch.post_job
    return [(Dispatch, "post_job", patched)]


def _not_known_to_the_next_cell() -> Patches:
    def patched(self: Coordinator, stored: StoredRun, *, asked: bool = False) -> Effects:
        return adopt(self, replace(stored, summaries={}), asked=asked)

    adopt = Coordinator.adopt
    return [(Coordinator, "adopt", patched)]


def _counted_again() -> Patches:
    def patched(
        self: BackgroundCompaction,
        run: ActiveRun,
        known: Background,
        made: Summarized,
        effects: Effects,
    ) -> None:
        keep(self, run, known, made, effects)
        keep(self, run, known, made, effects)

    keep = BackgroundCompaction._keep
    return [(BackgroundCompaction, "_keep", patched)]


def _said_again() -> Patches:
    """A worker's envelope that comes twice counts twice."""

    def patched(
        self: BackgroundCompaction, run: ActiveRun, envelope: Any, effects: Effects
    ) -> None:
        if run.background is not None:
            run.background.received = 0
        received(self, run, envelope, effects)

    received = BackgroundCompaction.received
    return [(BackgroundCompaction, "received", patched)]


def _never_released() -> Patches:
    return [(BackgroundCompaction, "_release", lambda self, run, effects: None)]


def _waits_for_ever() -> Patches:
    return [(BackgroundCompaction, "next_due", property(lambda self: None))]


def _released_twice() -> Patches:
    def patched(self: BackgroundCompaction, run: ActiveRun, effects: Effects) -> None:
        if run.spec.run_id in self._held:
            self._dispatch.deliver(run, effects)
            self._held[run.spec.run_id] += 1.0

    return [(BackgroundCompaction, "_release", patched)]


def _not_cut() -> Patches:
    def patched(self: Dispatch, run: ActiveRun, known: Background, effects: Effects) -> None:
        return

    return [(Dispatch, "cut_job", patched)]


def _older_summary_is_lost() -> Patches:
    def patched(
        self: Condensation, summaries: Mapping[str, Summary]
    ) -> tuple[CompactionPlan, int] | None:
        plan = self._plan
        if plan is not None:
            self._plan = replace(plan, summary=Summary())
        return proposal(self, summaries)

    proposal = Condensation.proposal
    return [(Condensation, "proposal", patched)]


def _user_is_summarized() -> Patches:
    def patched(self: Condensation, newest_tokens: int) -> Sequence[Group]:
        groups = older(self, newest_tokens)
        for group in groups:
            group.pinned = False
        return groups

    older = Condensation._older
    return [(Condensation, "_older", patched)]


def _stale_offers_stay() -> Patches:
    def patched(self: BackgroundCompaction, run: ActiveRun, effects: Effects) -> None:
        if run.background is not None:
            run.background.base = run.plan_version
        consider(self, run, effects)

    consider = BackgroundCompaction.consider
    return [
        (BackgroundCompaction, "consider", patched),
        (CompactionPlan, "follows", lambda self, plan: True),
    ]


BUGS = (
    PlantedBug("a summary is not stored", _not_stored, frozenset({ON_DISK, COUNTED})),
    PlantedBug("a run is summarized by two at once", _never_busy, frozenset({ONE_JOB})),
    PlantedBug(
        "what is summarized is not told to the next job",
        _not_told_to_the_next_job,
        frozenset({ONCE, COUNTED}),
    ),
    PlantedBug(
        "the next cell does not know what is summarized",
        _not_known_to_the_next_cell,
        frozenset({ONCE, COUNTED}),
    ),
    PlantedBug("a summary is counted twice", _counted_again, frozenset({COUNTED})),
    PlantedBug("a summary that comes twice counts twice", _said_again, frozenset({COUNTED})),
    PlantedBug("a run that waits for a plan is forgotten", _never_released, frozenset({ENDS})),
    PlantedBug("a run waits for a plan for ever", _waits_for_ever, frozenset({ENDS})),
    PlantedBug(
        "a run that has waited for a plan goes on twice",
        _released_twice,
        frozenset({ENDS}),
    ),
    PlantedBug("a job outlives its run", _not_cut, frozenset({IDLE, ONE_JOB})),
    PlantedBug("the older summary is lost", _older_summary_is_lost, frozenset({KEPT})),
    PlantedBug("the user's words are summarized", _user_is_summarized, frozenset({OWN_WORDS})),
    PlantedBug(
        "an offer outlives the plan that it follows",
        _stale_offers_stay,
        frozenset({IN_TURN}),
    ),
)
