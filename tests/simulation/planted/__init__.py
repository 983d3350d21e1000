"""Faults that were made on purpose: the simulator must find each of them."""

from tests.simulation.planted import (
    actors,
    approving,
    beside,
    budget,
    circling,
    coordination,
    engine,
    gates,
    gating,
    guarding,
    keeping,
    moving,
    observing,
    pressing,
    talks,
    trying,
    turn,
    valuing,
    verifying,
    waiting,
    workflows,
    working,
)
from tests.simulation.planted.bug import PlantedBug

BUGS = (
    *actors.BUGS,
    *approving.BUGS,
    *beside.BUGS,
    *budget.BUGS,
    *circling.BUGS,
    *coordination.BUGS,
    *engine.BUGS,
    *keeping.BUGS,
    *gates.BUGS,
    *gating.BUGS,
    *guarding.BUGS,
    *moving.BUGS,
    *observing.BUGS,
    *pressing.BUGS,
    *talks.BUGS,
    *trying.BUGS,
    *turn.BUGS,
    *valuing.BUGS,
    *verifying.BUGS,
    *waiting.BUGS,
    *workflows.BUGS,
    *working.BUGS,
)

__all__ = ["BUGS", "PlantedBug"]
