"""Processes on a virtual time: they stop, die and block as real ones do."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.actors.simulated.processes import (
    SimulatedMachine,
    SimulatedProcess,
    current_process,
)
from harness_actors.actors.simulated.steps import EndlessScheduleError


class Pauses:
    """Blocking calls take a second, and are told of a second later."""

    def before(self) -> float:
        return 1.0

    def after(self) -> float:
        return 1.0


class World:
    """A loop and a machine."""

    def __init__(self) -> None:
        self.loop = SimulatedLoop(Random(1), Pauses())
        self.machine = SimulatedMachine(self.loop, Random(1))
        self.did: list[str] = []

    def run(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            return self.loop.run_world(main())
        finally:
            self.loop.dispose()

    def begin(
        self, process: SimulatedProcess, work: Coroutine[Any, Any, None]
    ) -> "asyncio.Task[None]":
        return process.context.run(self.loop.create_task, work)

    async def tick(self) -> None:
        """Does something every second, and something else on its way out."""
        try:
            while True:
                await asyncio.sleep(1)
                self.did.append(f"{self.loop.time():.0f}")
        finally:
            self.did.append("cleaned up")


def test_time_moves_to_the_next_timer() -> None:
    world = World()

    async def main() -> float:
        await asyncio.sleep(1_000_000)
        return world.loop.time()

    assert world.run(main) == pytest.approx(1_000_000)


def test_what_waits_for_nothing_is_told() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(EndlessScheduleError):
        World().run(main)


def test_a_stopped_process_does_nothing_until_it_goes_on() -> None:
    world = World()

    async def main() -> None:
        process = world.machine.spawn("a")
        world.begin(process, world.tick())
        await asyncio.sleep(1.5)
        world.machine.stop(process)
        await asyncio.sleep(10)
        world.machine.resume(process)
        await asyncio.sleep(1)

    world.run(main)
    # The timer of the second had passed when it went on.
    assert world.did[:2] == ["1", "12"]


def test_of_a_killed_process_not_even_its_cleaning_up_runs() -> None:
    world = World()
    seen: list[str] = []

    async def main() -> None:
        process = world.machine.spawn("a")
        world.begin(process, world.tick())
        await asyncio.sleep(2.5)
        world.machine.end_process(process)
        await asyncio.sleep(10)
        seen.extend(world.did)

    world.run(main)
    assert seen == ["1", "2"]


def test_a_tool_may_kill_the_process_that_it_runs_in() -> None:
    world = World()

    async def crash() -> None:
        world.machine.end_process(current_process())
        await asyncio.sleep(0)
        world.did.append("lived on")

    async def main() -> bool:
        process = world.machine.spawn("a")
        world.begin(process, crash())
        return await world.machine.gone(process.mark, timeout_s=5)

    assert world.run(main) is True
    assert world.did == []


def test_a_blocking_call_can_be_cut_between_what_it_does_and_its_answer() -> None:
    world = World()

    async def write() -> None:
        await asyncio.to_thread(world.did.append, "written")
        world.did.append("acknowledged")

    async def main() -> None:
        process = world.machine.spawn("a")
        world.begin(process, write())
        await asyncio.sleep(1.5)
        world.machine.end_process(process)
        await asyncio.sleep(10)

    world.run(main)
    assert world.did == ["written"]


def test_calls_of_one_thread_are_done_in_order() -> None:
    world = World()
    thread = object()

    async def main() -> list[str]:
        loop: Any = asyncio.get_running_loop()
        calls = [loop.run_in_executor(thread, str, number) for number in range(20)]
        for call in calls:
            call.add_done_callback(lambda done: world.did.append(done.result()))
        await asyncio.gather(*calls)
        return world.did

    assert world.run(main) == [str(number) for number in range(20)]


def test_others_go_on_while_a_process_blocks_for_the_death_of_one() -> None:
    world = World()

    async def main() -> None:
        old, new = world.machine.spawn("old"), world.machine.spawn("new")
        world.loop.call_soon(
            lambda: world.did.append(
                str(world.machine.end([old.mark], journal=Path(), timeout_s=5))
            ),
            context=new.context,
        )
        world.loop.call_later(0.0, world.did.append, "the old one acts", context=old.context)
        world.loop.call_later(0.0, world.did.append, "the new one acts", context=new.context)
        await world.machine.gone(old.mark, timeout_s=5)
        await asyncio.sleep(1)

    world.run(main)
    assert world.did == ["the old one acts", "[]", "the new one acts"]


def test_a_pid_that_is_given_again_is_another_process() -> None:
    world = World()

    async def main() -> tuple[bool, bool]:
        first = world.machine.spawn("first")
        world.machine.end_process(first)
        second = world.machine.spawn("second")
        assert second.mark.pid == first.mark.pid
        world.machine.kill(first.mark)
        await asyncio.sleep(1)
        return first.gone, second.gone

    assert world.run(main) == (True, False)
