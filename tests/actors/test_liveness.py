"""Who is silent, and what is done until it is certainly gone.

Signs of life are counted in looks, so that one's own pause is not the other's silence.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from harness_actors.actors.liveness import (
    GONE_DEADLINE_S,
    TICKS,
    Death,
    Liveness,
    until_dead,
    until_gone,
)
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.processes import COMPANION_ROLE, COMPANION_S
from harness_actors.errors import ActorLostError
from harness_actors.records import ProcessMark
from tests.virtual_time import VirtualTimeLoop


def after(looks: int, signs: Liveness) -> Liveness:
    for _ in range(looks):
        signs.tick()
    return signs


def test_an_actor_is_asked_in_the_middle_of_its_time_and_gone_at_the_end() -> None:
    signs = after(1, Liveness())
    assert not after(TICKS // 2 - 1, signs).is_doubtful
    assert after(1, signs).is_doubtful
    assert not after(TICKS - TICKS // 2 - 1, signs).is_gone
    assert after(1, signs).is_gone


def test_whatever_it_says_is_a_sign_of_life() -> None:
    signs = after(TICKS, Liveness())
    signs.heard()
    assert not after(1, signs).is_doubtful


def test_a_broken_connection_is_half_of_a_silence() -> None:
    signs = after(1, Liveness())
    signs.doubted()
    assert signs.is_doubtful
    assert not signs.is_gone
    assert after(TICKS - TICKS // 2, signs).is_gone


def test_a_connection_that_breaks_again_and_again_does_not_put_the_end_off() -> None:
    signs = after(1, Liveness())
    for _ in range(TICKS):
        signs.tick()
        signs.doubted()
    assert signs.is_gone


# ---- until nothing of it can happen any more -------------------------------------------

ACTOR = ProcessMark(role="agent_turn", node="here", pid=1, started=1)
COMPANION = ProcessMark(role=COMPANION_ROLE + "agent_turn", node="here", pid=2, started=1)
MARKS = (ACTOR, COMPANION)


class Suspect:
    """An actor that is dead, or says nothing.

    Args:
        dead: It is dead by itself.
        deeds: Where it is noted that it is killed.
        breaks: How often its connection breaks before its death is seen.
        answers: It says hello when it is asked.
    """

    def __init__(
        self,
        deeds: list[object] | None = None,
        *,
        dead: bool = False,
        breaks: int = 0,
        answers: bool = False,
    ) -> None:
        self._deeds = [] if deeds is None else deeds
        self._dead = dead
        self._breaks = breaks
        self._answers = answers
        self.asked = 0

    async def hello(self) -> tuple[ProcessMark, ...]:
        self.asked += 1
        if not self._answers:
            await asyncio.Event().wait()
        return MARKS

    async def watch(self) -> None:
        if self._breaks:
            self._breaks -= 1
            raise UnreachableError("the connection broke")
        if not self._dead:
            await asyncio.Event().wait()
        raise ActorLostError("agent_turn", "it died")

    def kill(self) -> None:
        self._deeds.append("kill the actor")


class Machine:
    """Processes that end when they are killed, and some by themselves, or never.

    Attributes:
        deeds: What was asked of it, in order: who was killed, and who was waited for how long.
    """

    def __init__(
        self, *, ending: Collection[ProcessMark] = (), immortal: Collection[ProcessMark] = ()
    ) -> None:
        self._gone = set(ending)
        self._immortal = immortal
        self.deeds: list[object] = []

    async def gone(self, mark: ProcessMark, *, timeout_s: float) -> bool:
        self.deeds.append((mark.pid, timeout_s))
        return mark in self._gone

    def kill(self, mark: ProcessMark) -> None:
        self.deeds.append(f"kill {mark.pid}")
        if mark not in self._immortal:
            self._gone.add(mark)

    def end(
        self, marks: Iterable[ProcessMark], *, journal: Path, timeout_s: float
    ) -> list[ProcessMark]:
        raise NotImplementedError("that is for earlier terms")

    async def end_tools(self, run_ids: Sequence[str]) -> None:
        raise NotImplementedError("that is for runs that nobody serves")


async def test_a_companion_that_hangs_is_given_its_time_and_killed() -> None:
    machine = Machine(ending=[ACTOR])

    death = await until_gone(Suspect(dead=True), MARKS, Liveness(), machine)

    assert death == Death(silent=False, left=None)
    assert machine.deeds == [
        (ACTOR.pid, GONE_DEADLINE_S),
        (COMPANION.pid, COMPANION_S),
        f"kill {COMPANION.pid}",
        (COMPANION.pid, GONE_DEADLINE_S),
    ]


async def test_a_companion_that_ends_by_itself_is_awaited_and_not_killed() -> None:
    machine = Machine(ending=MARKS)

    assert await until_gone(Suspect(dead=True), MARKS, Liveness(), machine) == Death(False)
    assert [deed for deed in machine.deeds if isinstance(deed, str)] == []
    assert (COMPANION.pid, GONE_DEADLINE_S) in machine.deeds


async def test_a_silent_actor_is_killed_by_ray_and_by_its_pid_before_it_is_awaited() -> None:
    machine = Machine(ending=[COMPANION])
    silent = Suspect(machine.deeds)

    death = await until_gone(silent, MARKS, Liveness(), machine, suspect_s=0.02)

    assert death == Death(silent=True, left=None)
    assert silent.asked == 1
    assert machine.deeds[:3] == [
        "kill the actor",
        f"kill {ACTOR.pid}",
        (ACTOR.pid, GONE_DEADLINE_S),
    ]


async def test_an_actor_that_is_dead_by_itself_is_awaited_all_the_same_and_not_killed() -> None:
    machine = Machine(ending=MARKS)

    await until_gone(Suspect(machine.deeds, dead=True), MARKS, Liveness(), machine)

    assert machine.deeds[0] == (ACTOR.pid, GONE_DEADLINE_S)
    assert "kill the actor" not in machine.deeds


@pytest.mark.parametrize("stays", MARKS, ids=["the actor", "its companion"])
async def test_a_process_that_does_not_end_at_all_is_told(stays: ProcessMark) -> None:
    machine = Machine(ending=[mark for mark in MARKS if mark != stays], immortal=[stays])

    death = await until_gone(Suspect(dead=True), MARKS, Liveness(), machine)

    assert death == Death(silent=False, left=stays)


async def test_an_actor_that_is_dead_when_it_is_asked_did_not_fall_silent() -> None:
    class Dead(Suspect):
        async def hello(self) -> tuple[ProcessMark, ...]:
            raise ActorLostError("agent_turn", "it died")

    assert not await until_dead(Dead(), Liveness(), suspect_s=0.02)


async def test_an_actor_that_answers_is_asked_again_and_never_given_up() -> None:
    living = Suspect(answers=True)
    watching = asyncio.create_task(until_dead(living, Liveness(), suspect_s=0.02))
    async with asyncio.timeout(30):
        while living.asked < 2 * TICKS and not watching.done():  # noqa: ASYNC110 - the looks are what takes time
            await asyncio.sleep(0)

    assert not watching.done()
    watching.cancel()


# ---- how long it takes -----------------------------------------------------------------


class OutOfReach(Suspect):
    """Its connection breaks at once, whoever calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = 0

    async def hello(self) -> tuple[ProcessMark, ...]:
        self.asked += 1
        raise UnreachableError("the connection broke")

    async def watch(self) -> None:
        self.watched += 1
        assert self.watched < 1000, "it is not called without a pause"
        raise UnreachableError("the connection broke")


class BreaksOnce(Suspect):
    """Its connection breaks after a while, and it says nothing."""

    def __init__(self, after_s: float) -> None:
        super().__init__()
        self._after_s = after_s

    async def watch(self) -> None:
        after_s, self._after_s = self._after_s, 1e9
        await asyncio.sleep(after_s)
        raise UnreachableError("the connection broke")


def silent_after(suspect: Suspect, suspect_s: float) -> float:
    """After how long it is found silent; nothing that looked after it is left then."""

    async def wait() -> float:
        began = asyncio.get_running_loop().time()
        assert await until_dead(suspect, Liveness(), suspect_s=suspect_s)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return asyncio.get_running_loop().time() - began

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(wait())


def test_one_that_says_nothing_has_all_its_time_and_one_that_cannot_be_reached_half_of_it() -> None:
    # Whoever is begun with was heard of just now, at the first look.
    assert silent_after(Suspect(), 10.0) == pytest.approx(11.0)
    assert silent_after(BreaksOnce(after_s=2.5), 10.0) == pytest.approx(7.0)
    out_of_reach = OutOfReach()
    assert silent_after(out_of_reach, 10.0) == pytest.approx(6.0)
    assert out_of_reach.asked > 1


def test_one_that_answers_is_asked_twice_in_its_time_and_no_more() -> None:
    living = Suspect(answers=True)

    async def watch() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(100.0):
                await until_dead(living, Liveness(), suspect_s=10.0)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(watch())
    assert 10 <= living.asked <= 20


def test_whoever_waits_until_all_is_gone_says_how_long_an_actor_may_be_silent() -> None:
    async def wait() -> float:
        await until_gone(Suspect(), MARKS, Liveness(), Machine(ending=MARKS), suspect_s=30.0)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(wait()) == pytest.approx(33.0)
