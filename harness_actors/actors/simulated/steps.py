"""Whose step is next: the queues of many processes, and the time between them."""

from collections.abc import Callable
from heapq import heappop
from random import Random

from harness_actors.actors.simulated.lanes import LANE, Due, Lane, ProcessDiedError

TICK_S = 1e-6
"""Time moves by at least this much from timer to timer, or sums of fractions stand still."""
MOST_STEPS = 200_000
"""A schedule that takes more goes round in a circle."""


class EndlessScheduleError(Exception):
    """A schedule came to no end: nothing is left to wait for, or it goes round in a circle."""


class Steps:
    """Runs the steps of many processes, one at a time, in an order of chance.

    A step takes no time; time moves when no process has a step to do, to the next timer. A
    stopped process keeps its steps for later; those of a process that is gone are dropped.

    Args:
        chance: Chooses whose step is next.

    Attributes:
        steps: How many were done.
        faults: Exceptions that nobody caught.
    """

    def __init__(self, chance: Random) -> None:
        self._random = chance.random
        self._now = 0.0
        self._timers: list[tuple[float, int, Lane, Due]] = []
        self._lanes: list[Lane] = []
        self.world = Lane()
        """Of what happens by itself: the network, and whoever disturbs."""
        self.steps = 0
        self.disturb_at = MOST_STEPS
        """The number of steps after which `disturb` is called."""
        self.disturb: Callable[[], None] = self.exhausted
        self.faults: list[BaseException] = []
        self.halted = False
        self.latest: Lane = self.world
        """Whose step was the last."""

    def halt(self) -> None:
        """End `run_world` after this step."""
        self.halted = True

    def block_until(self, over: Callable[[], bool]) -> None:
        """Block the process of this step, while all others go on, until something is over.

        Not within a task.

        Raises:
            ProcessDiedError: The process died meanwhile.
        """
        lane = LANE.get()
        lane.blocked = True
        self._withdraw(lane)
        self._run(lambda: lane.gone or (over() and not lane.stopped))
        lane.blocked = False
        if lane.gone:
            raise ProcessDiedError
        self._admit(lane)

    def _run(self, over: Callable[[], bool]) -> None:
        lanes, random = self._lanes, self._random
        while not self.halted and not over():
            if not lanes:
                self._next_timer()
                continue
            place = int(random() * len(lanes)) if len(lanes) > 1 else 0
            lane = lanes[place]
            due = lane.ready.popleft()
            if not lane.ready:
                lane.running = False
                lanes[place] = lanes[-1]
                lanes.pop()
            if due.callback is None:
                continue
            self.steps += 1
            self.latest = lane
            try:
                due.context.run(due.callback, *due.args)
            except ProcessDiedError:
                pass  # nothing is left of it that could go on
            except Exception as error:  # noqa: BLE001 - told at the end, as asyncio would log it
                self.faults.append(error)
            if self.steps >= self.disturb_at:
                self.world.context.run(self.disturb)

    def _enqueue(self, lane: Lane, due: Due) -> None:
        if lane.gone:
            return
        lane.ready.append(due)
        self._admit(lane)

    def _admit(self, lane: Lane) -> None:
        if lane.ready and not (lane.running or lane.stopped or lane.blocked or lane.gone):
            lane.running = True
            self._lanes.append(lane)

    def _next_timer(self) -> None:
        timers = self._timers
        while timers:
            when, _, lane, due = heappop(timers)
            if due.callback is None or lane.gone:
                continue
            self._now = max(self._now + TICK_S, when)
            self._enqueue(lane, due)
            if not lane.stopped:
                return
        raise EndlessScheduleError("nothing is left that could happen")

    def exhausted(self) -> None:
        """Give up: this goes round in a circle."""
        raise EndlessScheduleError(f"{self.steps} steps, and no end of it")

    def stop_lane(self, lane: Lane) -> None:
        """Freeze a process: nothing of it runs, until `resume_lane`."""
        lane.stopped = True
        self._withdraw(lane)

    def resume_lane(self, lane: Lane) -> None:
        lane.stopped = False
        self._admit(lane)

    def end_lane(self, lane: Lane) -> None:
        """Nothing of the process runs any more, not even its `finally` blocks."""
        lane.gone = True
        lane.ready.clear()
        self._withdraw(lane)

    def _withdraw(self, lane: Lane) -> None:
        if lane.running:
            lane.running = False
            self._lanes.remove(lane)
