"""Bugs that were planted on purpose: the tests must find each of them. See `docs/testing.md`."""

from tests.planted_bugs import (
    actors,
    approvals,
    batch,
    children,
    cli,
    compaction,
    contracts,
    coordination,
    copies,
    engine,
    fallback,
    gates,
    models,
    outputs,
    progress,
    recovery,
    replay,
    stores,
    supervision,
    tool_calls,
    turn,
    verification,
)
from tests.planted_bugs.bug import Bug, NotPlantableError

BUGS = (
    *coordination.BUGS,
    *turn.BUGS,
    *compaction.BUGS,
    *children.BUGS,
    *copies.BUGS,
    *verification.BUGS,
    *engine.BUGS,
    *gates.BUGS,
    *approvals.BUGS,
    *actors.BUGS,
    *stores.BUGS,
    *batch.BUGS,
    *supervision.BUGS,
    *tool_calls.BUGS,
    *models.BUGS,
    *outputs.BUGS,
    *fallback.BUGS,
    *recovery.BUGS,
    *progress.BUGS,
    *replay.BUGS,
    *cli.BUGS,
    *contracts.BUGS,
)

__all__ = ["BUGS", "Bug", "NotPlantableError"]
