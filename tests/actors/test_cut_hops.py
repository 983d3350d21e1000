"""A host and the hops that were cut: it waits for them a little, and never for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from harness_actors.actors.host.executor_host import CUT_GRACE_S, ExecutorHost
from harness_actors.coordination.protocol import (
    Answered,
    Changed,
    Cut,
    GoOn,
    Park,
    Slot,
    SnapshotWanted,
)
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.signals import Parked, RepairComplete, Signal
from harness_actors.state import REPAIR
from tests.actors.places import a_place
from tests.actors.test_executor_host import Acting, Coordinator, Desk, deliver, settled


class Hops:
    """An executor whose first hop ends when it is released and not before; the others at once."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.ended = asyncio.Event()
        self.logs: list[list[str]] = []

    async def __call__(self, signal: Signal, context: RunContext) -> RepairComplete:
        self.logs.append([message.text for message in context.log])
        if len(self.logs) == 1:
            while not self.released.is_set():
                try:
                    await self.released.wait()
                except asyncio.CancelledError:
                    continue
            context.add_message(Message.user("from a hop that is over"))
            context.flush()
            self.ended.set()
        return RepairComplete()


@pytest.fixture
async def hops() -> AsyncIterator[Hops]:
    hops = Hops()
    yield hops
    hops.released.set()
    await asyncio.sleep(0)


def a_desk(act: Any) -> Desk:
    coordinator, executor = Coordinator(), Acting(act)
    return Desk(ExecutorHost(executor, a_place(Slot(REPAIR), coordinator)), coordinator, executor)


async def test_a_run_goes_on_beside_a_hop_that_does_not_end(hops: Hops) -> None:
    desk = a_desk(hops)
    await desk.say(deliver(Message.user("task")), hop_number=1)
    await settled()
    await desk.say(Cut(), hop_number=1, seq=2)
    began = asyncio.get_running_loop().time()
    await desk.say(deliver(Message.user("task")), hop_number=2)
    answer = await desk.coordinator.next(Answered)
    assert answer.hop_number == 2
    assert asyncio.get_running_loop().time() - began < CUT_GRACE_S + 0.5
    desk.host.close()


async def test_a_run_that_comes_again_waits_for_what_a_cut_hop_ends() -> None:
    happened: list[str] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        happened.append("begins")
        if len(happened) > 1:
            return RepairComplete()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            # As a tool whose processes are being killed.
            await asyncio.sleep(0.05)
            happened.append("has ended")
            raise
        return RepairComplete()

    desk = a_desk(act)
    await desk.say(deliver(Message.user("task")), hop_number=1)
    await settled()
    await desk.say(Cut(), hop_number=1, seq=2)
    await settled()
    await desk.say(deliver(Message.user("task")), hop_number=2)
    await desk.coordinator.next(Answered)
    assert happened == ["begins", "has ended", "begins"]
    desk.host.close()


async def test_a_hop_that_overhears_that_it_is_cut_is_told_again() -> None:
    ended: list[str] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        if ended or context.log[-1].text == "again":
            return RepairComplete()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("at the second time")
        return RepairComplete()

    desk = a_desk(act)
    await desk.say(deliver(Message.user("task")), hop_number=1)
    await settled()
    await desk.say(deliver(Message.user("again")), hop_number=2)
    assert (await desk.coordinator.next(Answered)).hop_number == 2
    await settled()
    assert ended
    desk.host.close()


async def test_what_a_cut_hop_adds_later_is_in_no_other_hops_log(hops: Hops) -> None:
    desk = a_desk(hops)
    await desk.say(deliver(Message.user("task")), hop_number=1)
    await settled()
    # The coordinator has gone on without a word, so the host's own log is to be used.
    await desk.say(deliver(Message.user("more"), log_from=1, again=True), hop_number=2)
    await desk.coordinator.next(Answered)
    hops.released.set()
    await hops.ended.wait()
    await desk.coordinator.next(Changed)
    await desk.say(deliver(Message.user("most"), log_from=2, again=True), hop_number=3)
    await desk.coordinator.next(Answered, 3)

    assert hops.logs == [["task"], ["task", "more"], ["task", "more", "most"]]
    assert not desk.coordinator.of(SnapshotWanted)
    assert {envelope.hop_number for envelope in desk.coordinator.of(Changed)} == {1}, (
        "it is dropped"
    )
    desk.host.close()


async def test_a_host_that_is_told_to_go_on_does_not_park() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(signal: Signal, context: RunContext) -> Parked | RepairComplete:
        begun.set()
        await go_on.wait()
        return Parked() if context.parking else RepairComplete()

    desk = a_desk(act)
    await desk.say(deliver())
    await begun.wait()
    await desk.say(Park(), seq=2)
    await desk.say(GoOn(), seq=3)
    go_on.set()
    assert (await desk.answer()).outcome == RepairComplete()
    desk.host.close()
