"""What a cell needs of Ray, simulated: actors that are started, watched, killed, restarted."""

from collections.abc import Callable
from random import Random
from typing import Any

from harness_actors.actors.simulated.network import Incarnation, Network, SimulatedActor
from harness_actors.actors.simulated.processes import SimulatedMachine, SimulatedProcess

Make = Callable[[SimulatedProcess], Any]
"""Makes what serves an actor's calls, as a step of its process."""

CHILDREN_DIE_WITHIN_S = 0.1
LONGEST_DEATH_S = 5.0
"""How long a process may be there still when Ray calls its actor dead."""


class SimulatedRay:
    """Places actors on a machine.

    Args:
        machine: Where they live.
        network: Carries their calls.
        chance: Says how long things take.
    """

    def __init__(self, machine: SimulatedMachine, network: Network, chance: Random) -> None:
        self.machine = machine
        self.network = network
        self.loop = machine.loop
        self.actors: list[SimulatedActor] = []
        """All that ever were, oldest first."""
        self._chance = chance.random
        self._makes: dict[SimulatedActor, Make] = {}
        self._mourned: set[int] = set()
        """Positions of the processes whose deaths have had their consequences."""

    def start(
        self, role: str, make: Make, *, owner: SimulatedProcess | None, restarts: bool = False
    ) -> SimulatedActor:
        """Begin to start an actor.

        Args:
            role: What its process is called.
            make: Makes its instance.
            owner: The process with which it dies; None for a detached one.
            restarts: It is started again whenever it dies, until it is killed for good.
        """
        process = self.machine.spawn(role, owner)
        actor = SimulatedActor(role, process, restarts=restarts)
        self.actors.append(actor)
        self._makes[actor] = make
        self._bring_up(actor)
        return actor

    def _bring_up(self, actor: SimulatedActor) -> None:
        target, process = actor.now, actor.process
        process.on_death = lambda: self._died(actor, process)
        after = 0.05 + 0.3 * self._chance()
        make = self._makes[actor]
        self.loop.call_later(after, _make, target, make, context=process.context)

    # ---- deaths ---------------------------------------------------------------------

    def _died(self, actor: SimulatedActor, process: SimulatedProcess) -> None:
        # The connection breaks at once; that a whole machine is away is seen later.
        after = 0.3 * self._chance() if self._chance() < 0.9 else 3 * self._chance()
        self._later(after, self._mourn, actor, process)

    def _mourn(self, actor: SimulatedActor, process: SimulatedProcess) -> None:
        """What Ray does about a death, once for each."""
        if actor.process is not process or process.mark.started in self._mourned:
            return
        self._mourned.add(process.mark.started)
        self.network.report_death(actor)
        for child in self.actors:
            if child.process.parent is process:
                self.machine.kill_soon(child.process, CHILDREN_DIE_WITHIN_S)
        if actor.restarts:
            self._later(0.1 + 2 * self._chance(), self._restart, actor)

    def _restart(self, actor: SimulatedActor) -> None:
        if not actor.restarts:
            return
        actor.now = Incarnation(self.machine.spawn(actor.name))
        actor.away = False
        self._bring_up(actor)

    def call_dead(self, actor: SimulatedActor, *, within_s: float = LONGEST_DEATH_S) -> None:
        """Declare an actor dead whose process goes on for a while."""
        process = actor.process
        self.machine.kill_soon(process, within_s)
        self._mourn(actor, process)

    def kill(self, actor: SimulatedActor, *, for_good: bool = True) -> None:
        """`ray.kill`: Ray calls it dead soon, and its process ends a little later."""
        if for_good:
            actor.restarts = False
        early = self.network.weather.early
        lingers = actor.process.stopped or (early and self._chance() < early)
        within_s = LONGEST_DEATH_S if lingers else 0.1
        after = 0.02 * self._chance()
        process = actor.process
        self._later(after, self._kill_now, actor, process, within_s)

    def _kill_now(self, actor: SimulatedActor, process: SimulatedProcess, within_s: float) -> None:
        if actor.process is not process:
            return
        # Once more, where it was away already and would have come back.
        self.network.report_death(actor)
        self.call_dead(actor, within_s=within_s)

    def _later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        self.loop.call_later(seconds, call, *arguments, context=self.loop.world.context)


def _make(target: Incarnation, make: Make) -> None:
    target.instance = make(target.process)
    target.up.set()
