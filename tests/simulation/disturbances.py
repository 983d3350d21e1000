"""What goes wrong in a schedule, and when: chosen by its seed."""

from collections.abc import Callable
from random import Random

from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.actors.simulated.network import SimulatedActor, Weather
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.actors.simulated.steps import MOST_STEPS
from tests.simulation.journals import Faults
from tests.simulation.ledger import Ledger

KINDS = ("kill", "stop", "early", "commit", "driver", "slow", "lost", "twice")
"""`kill`: a process is killed; `stop`: it is stopped, for a while or for good; `early`: its
actor is called dead while it lives; `commit`: one fails; `driver`: the driver dies; `slow`,
`lost`, `twice`: what the network does to calls."""

WEIGHTS = {"kill": 5.0, "stop": 2.0, "early": 1.5, "commit": 0.7, "driver": 0.8}
UNTIL_S = 90.0
"""Virtual time after which nothing goes wrong any more."""


class Disturber:
    """Disturbs a schedule between any two steps, so many times.

    Args:
        seed: Of the schedule.
        ray: Whose actors are disturbed.
        weather: The network's.
        faults: The journal's.
        without: Kinds that are left out.
        ledger: Told what is done.
        kill_driver: Kills the driver and perhaps its cell.
    """

    def __init__(
        self,
        seed: int,
        ray: SimulatedRay,
        weather: Weather,
        faults: Faults,
        *,
        without: frozenset[str],
        ledger: Ledger,
        kill_driver: Callable[[], None],
    ) -> None:
        self._chance = chance = Random(f"{seed}/disturbances")
        self._ray = ray
        self._loop: SimulatedLoop = ray.loop
        self._weather = weather
        self._faults = faults
        self._ledger = ledger
        self._kill_driver = kill_driver
        self._left = chance.choice((0, 1, 1, 2, 2, 3, 4, 6, 9))
        self._pace = chance.choice((60, 200, 500, 1200))
        self._kinds = [kind for kind in WEIGHTS if kind not in without]
        if chance.random() < 0.3 and len(self._kinds) > 1:
            self._kinds = [chance.choice(self._kinds)]
        rough = chance.choice((0.0, 0.3, 1.0, 3.0))
        weather.slow = 0.0 if "slow" in without else 0.03 * rough
        weather.slow_s = chance.choice((0.05, 1.0, 4.0))
        weather.lost = 0.0 if "lost" in without else 0.02 * rough
        weather.unanswered = 0.0 if "lost" in without else 0.03 * rough
        weather.twice = 0.0 if "twice" in without else 0.03 * rough
        weather.broken_watch = 0.0 if "lost" in without else 0.2 * rough
        weather.early = 0.0 if "early" in without else 0.3
        ledger.prompt = ledger.calm = rough == 0.0
        self._next()

    def _next(self) -> None:
        if self._left <= 0 or self._loop.time() > UNTIL_S or not self._kinds:
            self._loop.disturb_at = MOST_STEPS
            self._loop.disturb = self._loop.exhausted
            return
        self._left -= 1
        self._loop.disturb_at = self._loop.steps + 1 + int(self._chance.expovariate(1 / self._pace))
        self._loop.disturb = self._disturb

    def _disturb(self) -> None:
        weights = [WEIGHTS[kind] for kind in self._kinds]
        kind = self._chance.choices(self._kinds, weights)[0]
        if kind == "commit":
            if self._chance.random() < 0.5:
                self._faults.before = True
            else:
                self._faults.after = True
        elif kind == "driver":
            self._kill_driver()
        else:
            actor = self._victim()
            if actor is not None:
                self._harm(kind, actor)
        self._next()

    def _victim(self) -> SimulatedActor | None:
        """An actor that is up; half of the time the one whose step was the last."""
        alive = [actor for actor in self._ray.actors if not actor.process.gone]
        busy = [actor for actor in alive if actor.process is self._loop.latest]
        if busy and self._chance.random() < 0.5:
            return busy[0]
        return self._chance.choice(alive) if alive else None

    def _harm(self, kind: str, actor: SimulatedActor) -> None:
        process, machine = actor.process, self._ray.machine
        match kind:
            case "kill":
                self._ledger.note("!", f"{process!r} is killed")
                if process.companion is not None and self._chance.random() < 0.5:
                    # As whoever kills a whole group of processes does.
                    machine.end_process(process.companion)
                machine.end_process(process)
            case "early":
                self._ledger.note("!", f"{process!r} is called dead, and lives on")
                self._ledger.harmed.add(process)
                self._ray.call_dead(actor)
            case "stop":
                self._ledger.prompt = False
                self._ledger.harmed.add(process)
                machine.stop(process)
                for_s = self._chance.choice((0.3, 3.0, 13.0, 25.0, None))
                if for_s is not None:
                    self._go_on_later(process, for_s)

    def _go_on_later(self, process: SimulatedProcess, seconds: float) -> None:
        self._loop.call_later(
            seconds, self._ray.machine.resume, process, context=self._loop.world.context
        )

    def calm(self) -> None:
        """From here on nothing goes wrong any more."""
        self._left = 0
        self._kinds = []
        self._next()
        self._faults.before = self._faults.after = False
        weather = self._weather
        weather.slow = weather.lost = weather.unanswered = weather.twice = 0.0
        weather.broken_watch = weather.early = 0.0
