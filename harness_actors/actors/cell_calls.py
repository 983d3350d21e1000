"""What drivers ask of the coordinator of a cell, and the runtime that stands on it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar, TypeVarTuple

from harness_actors.actors.hosted import ActorCall, Reach
from harness_actors.actors.runtime import News, StopMode, TextCursor, Texts
from harness_actors.actors.text.listening import Listener
from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.records import RunHeading, RunSpec

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class CellCalls(Protocol):
    """The calls of a driver; see `Runtime` for what they do.

    A new call is a method here and in the class that answers it, and one in `CellRuntime`.
    """

    async def attach(self, secrets: Mapping[str, str], budget_usd: float | None) -> None: ...

    async def submit(
        self, specs: Sequence[RunSpec], code: Mapping[str, bytes], secrets: Mapping[str, str]
    ) -> None: ...

    async def resume(self, run_ids: Sequence[str], secrets: Mapping[str, str]) -> None: ...

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None: ...

    async def compact(self, run_id: str, keep: str) -> bool: ...

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]: ...

    async def allow(self, budget_usd: float | None) -> None: ...

    async def subscribe(self, run_ids: Sequence[str]) -> str: ...

    async def wait_for_news(self, cursor: int, messages: bool, at_once: bool = False) -> News: ...

    async def position(self) -> int: ...

    async def headings(self, beginning: str) -> list[RunHeading]: ...

    async def events(self, run_id: str) -> tuple[RunEvent, ...]: ...

    async def conversation(self, conversation_id: str) -> list[Message]: ...

    async def close(self) -> None: ...


class PlacedCellCalls(CellCalls, Protocol):
    """Those of a cell on Ray, which may be warm when its driver comes."""

    async def serve(self, idle_s: float | None, warm_cells: int) -> str: ...


class CellRuntime(ABC):
    """Answers the `Runtime` port by calls of the coordinator of a cell.

    Args:
        reach: Finds a stream actor by its name.
        monotonic: The time.
    """

    def __init__(
        self,
        reach: Reach,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = Listener(
            lambda runs: self.ask(CellCalls.subscribe, runs), reach, monotonic
        )

    @abstractmethod
    async def ask(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """Make a call.

        Raises:
            HarnessError: What the coordinator raised, or that it cannot be reached.
        """

    async def submit(
        self,
        specs: Sequence[RunSpec],
        *,
        code: Mapping[str, bytes],
        secrets: Mapping[str, str],
    ) -> None:
        await self.ask(CellCalls.submit, specs, code, secrets)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        await self.ask(CellCalls.resume, run_ids, secrets)

    async def wait_for_news(
        self, cursor: int, *, messages: bool = False, at_once: bool = False
    ) -> News:
        return await self.ask(CellCalls.wait_for_news, cursor, messages, at_once)

    async def subscribe(self, run_ids: Sequence[str]) -> None:
        await self._listener.subscribe(run_ids)

    async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
        return await self._listener.texts(run_id, cursor)

    async def allow(self, budget_usd: float | None) -> None:
        await self.ask(CellCalls.allow, budget_usd)

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
        await self.ask(CellCalls.answer, run_id, answers)

    async def compact(self, run_id: str, keep: str = "") -> bool:
        return await self.ask(CellCalls.compact, run_id, keep)

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        return await self.ask(CellCalls.stop, run_ids, mode)

    async def position(self) -> int:
        return await self.ask(CellCalls.position)

    async def headings(self, beginning: str = "") -> list[RunHeading]:
        return await self.ask(CellCalls.headings, beginning)

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        return await self.ask(CellCalls.events, run_id)

    async def conversation(self, conversation_id: str) -> list[Message]:
        return await self.ask(CellCalls.conversation, conversation_id)

    @abstractmethod
    async def close(self) -> None: ...
