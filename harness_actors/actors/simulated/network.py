"""Calls between simulated actors: they come late, twice, in another order, or not at all."""

import asyncio
import pickle
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.simulated.lanes import LANE, Lane
from harness_actors.actors.simulated.processes import Note, SimulatedMachine, SimulatedProcess
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.errors import ActorLostError

UNTOLD = 0.1
"""How often there is no way to an actor but a call that is answered."""


@dataclass(slots=True, kw_only=True)
class Weather:
    """What a network does to calls. All chances are per call, from 0 to 1.

    Attributes:
        slow: It takes up to `slow_s`, so that later ones overtake it.
        slow_s: Seconds.
        lost: It never arrives, and its caller is told that the connection broke.
        unanswered: The same, but it arrives: before or after its caller is told.
        twice: It arrives twice.
        broken_watch: A call that waits for an actor's death breaks though that lives.
        early: Of deaths: they are told while the process runs on for a moment.
    """

    slow: float = 0.0
    slow_s: float = 3.0
    lost: float = 0.0
    unanswered: float = 0.0
    twice: float = 0.0
    broken_watch: float = 0.0
    early: float = 0.0


class Incarnation:
    """One process of an actor, and the object that serves its calls there.

    Attributes:
        process: The process.
        instance: The object; None until it is made.
        up: Set when it is.
    """

    def __init__(self, process: SimulatedProcess) -> None:
        self.process = process
        self.instance: Any = None
        self.up = asyncio.Event()


class SimulatedActor:
    """An actor as Ray shows it: a name, behind which a process may be replaced.

    Attributes:
        name: For messages.
        address: Where it is found; empty where nobody looks for it.
        restarts: Its calls are told that it is away, and not that it is dead.
        now: Where it lives now.
        dead: Ray says so; its process may still be there.
        away: The same, but it may come back.
        buried: Set when it is dead, for those who wait for its name.
        calls: Those that wait for an answer, and who waits.
    """

    def __init__(self, name: str, process: SimulatedProcess, *, restarts: bool = False) -> None:
        self.name = name
        self.address = ""
        self.restarts = restarts
        self.now = Incarnation(process)
        self.dead = False
        self.away = False
        self.buried = asyncio.Event()
        self.calls: dict[asyncio.Future[Any], Lane] = {}

    @property
    def process(self) -> SimulatedProcess:
        return self.now.process


class Network:
    """Carries calls to actors.

    Args:
        machine: Where the actors are.
        chance: Decides what becomes of each call.
        weather: What may become of it.
        copies: What is sent goes through pickle.
        note: Told of calls that went wrong.
    """

    def __init__(
        self,
        machine: SimulatedMachine,
        chance: Random,
        weather: Weather,
        *,
        copies: bool = False,
        note: Note | None = None,
    ) -> None:
        self.machine = machine
        self.weather = weather
        self.note = note
        self._loop = machine.loop
        self._chance = chance
        self._copies = copies

    def delay(self) -> float:
        """Seconds that a message takes."""
        random = self._chance.random
        if self.weather.slow and random() < self.weather.slow:
            return random() * self.weather.slow_s
        return 0.0005 + 0.002 * random()

    async def call(
        self, actor: SimulatedActor, method: str, *arguments: Any, lasting: bool = False
    ) -> Any:
        """Call a method of an actor.

        Args:
            actor: The actor; if it restarts, whoever is behind it when this is called.
            method: Name of a coroutine method.
            arguments: What it is given.
            lasting: It ends only with the actor.

        Raises:
            UnreachableError: The connection broke, or the actor is away; the call may have
                been executed, or be executed later.
            ActorLostError: The actor is dead.
        """
        answer: asyncio.Future[Any] = self._loop.create_future()
        if actor.away:
            self._loop.call_later(self.delay(), _fail, answer, _death(actor))
            return await answer
        actor.calls[answer] = LANE.get()
        try:
            if lasting:
                self._wait_for_death(answer)
            else:
                self._send(actor, method, arguments, answer)
            return await answer
        finally:
            actor.calls.pop(answer, None)

    def tell(self, actor: SimulatedActor, method: str, *arguments: Any) -> bool:
        """Call a method of an actor without waiting, nor hearing, whether it arrives.

        Returns:
            False where there is no way to the actor now, as for a part of all calls.
        """
        if actor.away or self._chance.random() < UNTOLD:
            return False
        self._send(actor, method, arguments, None)
        return True

    def _wait_for_death(self, answer: "asyncio.Future[Any]") -> None:
        if self.weather.broken_watch and self._chance.random() < self.weather.broken_watch:
            after = self._chance.random() * 10
            error = UnreachableError("the connection broke")
            self._loop.call_later(after, _fail, answer, error)

    def _send(
        self,
        actor: SimulatedActor,
        method: str,
        arguments: tuple[Any, ...],
        answer: "asyncio.Future[Any] | None",
    ) -> None:
        loop, weather, chance = self._loop, self.weather, self._chance.random
        if self._copies:
            arguments = pickle.loads(pickle.dumps(arguments))
        there, caller, target = self.delay(), LANE.get(), actor.now
        arrive, where = self._arrive, target.process.context
        fate = chance()
        if fate < weather.lost:
            self._break(actor, method, answer, there)
            return
        fate -= weather.lost
        if fate < weather.unanswered:
            # The caller may hear of it first, and call again before this one arrives.
            self._break(actor, method, answer, there * 2 * chance())
            loop.call_later(there, arrive, target, method, arguments, None, caller, context=where)
            return
        fate -= weather.unanswered
        loop.call_later(there, arrive, target, method, arguments, answer, caller, context=where)
        if fate < weather.twice:
            later = there + self.delay()
            loop.call_later(later, arrive, target, method, arguments, None, caller, context=where)

    def _break(
        self,
        actor: SimulatedActor,
        method: str,
        answer: "asyncio.Future[Any] | None",
        after: float,
    ) -> None:
        if self.note is not None:
            self.note(repr(LANE.get()), f"the connection breaks: {method} of {actor.name}")
        if answer is not None:
            self._loop.call_later(after, _fail, answer, UnreachableError("the connection broke"))

    def _arrive(
        self,
        target: Incarnation,
        method: str,
        arguments: tuple[Any, ...],
        answer: "asyncio.Future[Any] | None",
        caller: Lane,
    ) -> None:
        if self.note is not None and method != "hello":
            self.note(repr(target.process), f"gets {method}({_brief(arguments)})")
        self._loop.create_task(self._execute(target, method, arguments, answer, caller))

    async def _execute(
        self,
        target: Incarnation,
        method: str,
        arguments: tuple[Any, ...],
        answer: "asyncio.Future[Any] | None",
        caller: Lane,
    ) -> None:
        if target.instance is None:
            await target.up.wait()
        call: Callable[..., Awaitable[Any]] = getattr(target.instance, method)
        try:
            result = await call(*arguments)
        except Exception as error:  # noqa: BLE001 - it is the caller's
            if answer is not None:
                self._reply(caller, _fail, answer, error)
            return
        if answer is not None:
            self._reply(caller, _succeed, answer, result)

    def _reply(self, caller: Lane, tell: Callable[..., None], *told: Any) -> None:
        if not caller.gone:
            self._loop.call_later(self.delay(), tell, *told, context=caller.context)

    # ---- deaths ---------------------------------------------------------------------

    def report_death(self, actor: SimulatedActor) -> None:
        """Ray calls an actor dead, whether or not its process is there still."""
        if actor.dead:
            return
        if self.note is not None:
            self.note(actor.name, "is called dead")
        actor.dead, actor.away = not actor.restarts, True
        if actor.dead:
            actor.buried.set()
        for answer, lane in list(actor.calls.items()):
            if not lane.gone:
                self._loop.call_soon(_fail, answer, _death(actor), context=lane.context)
        actor.calls.clear()


def _brief(arguments: tuple[Any, ...]) -> str:
    """A call's arguments for a trace: of envelopes, what they are about."""
    words = []
    for argument in arguments:
        if isinstance(argument, list):
            words += [
                f"{type(part.body).__name__} {part.run_id} step {part.hop_number}.{part.seq}"
                if isinstance(part, Envelope)
                else type(part).__name__
                for part in argument
            ]
        elif isinstance(argument, str | int | Slot):
            words.append(str(argument))
    return ", ".join(words)


def _death(actor: SimulatedActor) -> Exception:
    if actor.restarts:
        return UnreachableError(f"{actor.name} is away")
    return ActorLostError(actor.name, "its process died")


def _fail(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _succeed(answer: "asyncio.Future[Any]", result: Any) -> None:
    if not answer.done():
        answer.set_result(result)
