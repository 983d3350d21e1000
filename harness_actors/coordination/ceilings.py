"""Bounds of a run that hold whatever its workflow: no cycle of executors goes past them."""

from dataclasses import replace

from harness_actors.coordination.active import ActiveRun
from harness_actors.coordination.endings import agent_error, limit_reached
from harness_actors.ports import Clock
from harness_actors.results import Usage
from harness_actors.signals import RunEnd
from harness_actors.state import (
    AGENT_TURN,
    CHILDREN_USAGE,
    TURN,
    TURN_COUNT,
    TURNS_MADE,
    USAGE,
    StateDelta,
    Write,
)
from harness_actors.turn.bounds import Bounds, out_of_turns

MOST_HOPS = 10_000
"""Between two turns. The longest workflow has a hop for each of its executors, so that only one
whose cycle leaves the turn out comes here; it does after some ten seconds."""


class Ceilings:
    """Says where a run that is to go on has come to an end.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def count(self, run: ActiveRun, delta: StateDelta) -> StateDelta:
        """An executor has answered, and the run is to leave it.

        Args:
            run: The run, its hop still that to the executor.
            delta: The change that comes with the answer.

        Returns:
            The same change, with what is to be kept of it.
        """
        run.hops += 1
        if run.hop.to == AGENT_TURN:
            run.hops = 0
            if AGENT_TURN in run.spec.custom:
                made = run.state.values.get(TURNS_MADE.name, 0) + 1
                return replace(delta, writes=(*delta.writes, Write(TURNS_MADE.name, "set", made)))
        return delta

    def reached(self, run: ActiveRun) -> RunEnd | None:
        """How a run ends instead of its next hop; None where it goes on.

        Only in front of the agent turn, and of a turn that is to begin: one that is under way
        knows its bounds itself, and what is done is to end as done.
        """
        if run.hops >= MOST_HOPS:
            return agent_error(
                f"its workflow made {run.hops} hops without a turn of the agent, the last to "
                f"{run.hop.to!r}: one of its executors must end the run or lead to {AGENT_TURN!r}"
            )
        if run.hop.to != AGENT_TURN:
            return None
        values, config = run.state.values, run.spec.config
        if out_of_turns(config, values.get(TURNS_MADE.name, 0)):
            return limit_reached("max_turns", run)
        if values.get(TURN.name) is not None:
            return None
        if out_of_turns(config, values.get(TURN_COUNT.name, 0)):
            return limit_reached("max_turns", run)
        below = values.get(CHILDREN_USAGE.name)
        children = None if below is None else Usage(**below)
        bounds = Bounds(config.limits, run.counts_from, self._clock, children)
        kind = bounds.reached(Usage(**values.get(USAGE.name, {})))
        return None if kind is None else limit_reached(kind, run)
