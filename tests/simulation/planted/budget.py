"""Faults in when runs hear that all is spent: one round late is one round too many."""

from harness_actors.actors.coordinator.roster import Seats
from harness_actors.coordination.active import ActiveRun, Effects, Post
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.protocol import Envelope, Park
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import SPENT


def _receipts_overtake_posts() -> Patches:
    return [(Seats, "is_idle", lambda self, slot: True)]


def _it_is_told_after_the_commit() -> Patches:
    take = Coordinator._take

    def patched(self: Coordinator, run: ActiveRun, envelope: Envelope, effects: Effects) -> None:
        before = len(effects.posts)
        take(self, run, envelope, effects)
        effects.posts[before:] = sorted(effects.posts[before:], key=_is_a_stop)

    return [(Coordinator, "_take", patched)]


def _is_a_stop(post: Post) -> bool:
    return isinstance(post.envelope.body, Park)


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "receipts overtake what was posted before", _receipts_overtake_posts, frozenset({SPENT})
    ),
    PlantedBug(
        "a spent budget is told after the commit that spends it",
        _it_is_told_after_the_commit,
        frozenset({SPENT}),
    ),
)
