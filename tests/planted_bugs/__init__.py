"""Bugs that were planted on purpose: the tests must find each of them. See `docs/testing.md`."""

from tests.planted_bugs import actors, batch, coordination, stores, supervision, turn
from tests.planted_bugs.bug import Bug, NotPlantableError

BUGS = (
    *coordination.BUGS,
    *turn.BUGS,
    *actors.BUGS,
    *stores.BUGS,
    *batch.BUGS,
    *supervision.BUGS,
)

__all__ = ["BUGS", "Bug", "NotPlantableError"]
