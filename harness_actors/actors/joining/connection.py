"""A connection of this process to a Ray: how it is used, lost, and left, and what is left of one
that is dead."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar

import ray
import ray._private.worker  # see `connection`
from ray.runtime_context import RuntimeContext

from harness_actors.actors.joining.quiet import RAYLET_VARIABLE
from harness_actors.actors.joining.signs import sign_of_head
from harness_actors.actors.joining.starter import STARTER_THREAD
from harness_actors.actors.processes import end_processes, mark_of
from harness_actors.records import ProcessMark
from harness_actors.tools.processes import carries, list_processes

T = TypeVar("T")

logger = logging.getLogger(__name__)

LEAVE_S = 20.0
USING_S = 2.0


class RayLostError(Exception):
    """The Ray that this process is connected to is dead, or this node of it.

    Only for those who call its actors; they tell their callers something else.

    Attributes:
        problem: What was seen of it.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRay:
    """What there is to end of a Ray that this process has started.

    Attributes:
        processes: Those of its head, which live as long as their keeper at most.
        release: Lets the thread end that keeps them.
    """

    processes: tuple[ProcessMark, ...] = ()
    release: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class Connection:
    """One connection of this process, from ``ray.init()`` to ``ray.shutdown()``.

    Args:
        name: What it is known by.
        address: ``HOST:PORT`` of its head.
        raylet: Ray's process on this node; None where it cannot be told.
        is_ours: We have connected this process, so we may disconnect it.
        own: What there is to end of it; None for a Ray that somebody else has started.

    Attributes:
        is_named: Its address stands for whoever is there; else only for this user or root.
        problem: Why the Ray is known to be lost; None while it is not.
        left: Done when a Ray that is lost was disconnected from, and our own one is gone.
    """

    name: str
    address: str
    raylet: ProcessMark | None
    _: KW_ONLY
    is_ours: bool
    own: OwnRay | None
    is_named: bool = field(default=False, init=False)
    problem: str | None = field(default=None, init=False)
    left: Future[None] = field(default_factory=Future, init=False)
    _using: threading.Lock = field(default_factory=threading.Lock, init=False)
    _telling: threading.Lock = field(default_factory=threading.Lock, init=False)
    _waiting: dict[asyncio.AbstractEventLoop, asyncio.Future[None]] = field(
        default_factory=dict, init=False
    )

    @property
    def is_current(self) -> bool:
        """This process has it still."""
        return connection() == self.name

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Nobody disconnects this process meanwhile, for a moment at most.

        Raises:
            RayLostError: The Ray is lost.
        """
        # Else Ray would connect anew by itself, in this thread, to whatever it finds.
        if self.problem is not None:
            raise RayLostError(self.problem)
        with self._using:
            yield

    async def unless_lost(self, awaitable: Awaitable[T]) -> T:
        """What is awaited; whoever waits for a Ray that is lost would wait for ever.

        Raises:
            RayLostError: The Ray is lost.
        """
        awaited = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait((awaited, self.loss()), return_when=asyncio.FIRST_COMPLETED)
            if awaited.done():
                return awaited.result()
            raise RayLostError(str(self.problem))
        finally:
            awaited.cancel()

    def loss(self) -> "asyncio.Future[None]":
        """Done when the Ray is lost; the same for all who wait in one event loop."""
        loop = asyncio.get_running_loop()
        with self._telling:
            waiting = self._waiting.get(loop)
            if waiting is None:
                for closed in [known for known in self._waiting if known.is_closed()]:
                    del self._waiting[closed]
                waiting = self._waiting[loop] = loop.create_future()
                if self.problem is not None:
                    waiting.set_result(None)
        return waiting

    def lose(self, problem: str) -> None:
        """Say that the Ray is lost; where it was us who connected this process, it leaves."""
        with self._telling:
            if self.problem is not None or not self.is_current:
                return
            self.problem = problem
            waiting = list(self._waiting.items())
        logger.info("Ray at %s is lost: %s", self.address, problem)
        for loop, future in waiting:
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(_finish, future)
        if self.is_ours:
            with suppress(RuntimeError):  # this process ends
                STARTER_THREAD.submit(self.leave)

    def leave(self) -> None:
        """Disconnect this process from a Ray that is lost, and see our own one gone.

        In the starter thread.
        """
        held = self._using.acquire(timeout=USING_S)
        try:
            if self.left.done():
                return
            if self.is_current:
                if self.own is not None:
                    # Ray's processes die with their keeper, so nothing is asked of them.
                    self.own.release.set()
                    end_processes(self.own.processes, timeout_s=LEAVE_S)
                ray.shutdown()
            if self.own is not None and self.raylet is not None:
                # What was started below it, and tools in turn. A raylet that dies leaves them.
                end_what_is_left(self.raylet, within_s=LEAVE_S)
        except Exception:
            logger.exception("Ray at %s, which is lost, was not left", self.address)
        finally:
            if held:
                self._using.release()
            if not self.left.done():
                self.left.set_result(None)

    async def is_lost(self, *, within_s: float) -> bool:
        """Whether the Ray is lost, or is seen to be so in a while."""
        try:
            async with asyncio.timeout(within_s):
                await self.unless_lost(asyncio.to_thread(self.ask_head))
                await self.loss()
        except (RayLostError, TimeoutError):
            pass  # it was seen, or was not
        return self.problem is not None

    def ask_head(self) -> None:
        """Ask the head for this node, and say so if it has given that up.

        Blocks, for as long as the head takes.
        """
        if not self.is_current or sign_of_head(self.address) != "there":
            return
        with self.in_use():
            nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
            here = ray.get_runtime_context().get_node_id()
        if any(node["NodeID"] == here and not node["Alive"] for node in nodes):
            self.lose("it has given up this node")


def connection() -> str:
    """What this process's connection to Ray is known by; empty where there is none.

    After ``ray.shutdown()`` there is none, and another ``ray.init()`` makes another.
    """
    if not ray.is_initialized():
        return ""
    # Not by `ray.get_runtime_context`, which would connect anew if another thread just left.
    here = RuntimeContext(ray._private.worker.global_worker)  # type: ignore[no-untyped-call]
    try:
        # The first driver of each Ray has the same id.
        return f"{here.get_worker_id()}@{here.get_node_id()}"
    except (RuntimeError, AttributeError):
        # Another thread may be about to end it.
        return ""


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def end_what_is_left(raylet: ProcessMark, *, within_s: float) -> None:
    """End what a raylet that is dead has started, and what that has started in turn.

    A raylet that dies leaves its actors, and they their tools.
    """
    # Not what only looks so from here: another namespace counts pids of its own.
    namespace = os.readlink("/proc/self/ns/pid")
    until = time.monotonic() + within_s
    carried = {RAYLET_VARIABLE: str(raylet.pid)}
    while time.monotonic() < until:
        found = [
            mark_of(process.pid, "left by a raylet")
            for process in list_processes().values()
            if process.started >= raylet.started
            and process.pid != os.getpid()
            and carries(process.pid, carried)
            and _namespace(process.pid) == namespace
        ]
        if not found:
            return
        end_processes(found, timeout_s=within_s)


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""  # it ended meanwhile
