"""The cells that this process has open: harnesses with one store share theirs."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from harness_actors.actors import Runtime, RuntimeKind, open_runtime
from harness_actors.errors import BadInputError, StoreInUseError
from harness_actors.stores.lock import ORDERED_WITHIN_S, hold, release, when_free


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell, open or on its way.

    Attributes:
        kind: What it runs on.
        loop: The event loop that it lives in; None on Ray, where it lives elsewhere.
        runtime: What serves it. Of a kind that other threads may wait for, too.
    """

    kind: RuntimeKind
    loop: asyncio.AbstractEventLoop | None
    runtime: "Future[Runtime]" = field(default_factory=Future)

    @property
    def is_gone(self) -> bool:
        """It cannot be reached any more, and its place is free."""
        if self.kind == "local":
            # Its actors ended with their loop, as after an earlier `asyncio.run`.
            return self.loop is not None and self.loop.is_closed()
        if not self.runtime.done() or self.runtime.cancelled() or self.runtime.exception():
            return False
        from harness_actors.actors.on_ray.runtime import RayRuntime

        served = self.runtime.result()
        return isinstance(served, RayRuntime) and not served.is_connected


T = TypeVar("T")

_cells: dict[Path, _Cell] = {}
_placing = threading.Lock()
"""Of two threads that lock one file, the second must not take this process for another."""


async def open_cell(
    store: Path,
    kind: RuntimeKind,
    address: str | None,
    on_loss: Callable[[str], None] | None = None,
    *,
    wait_s: float = ORDERED_WITHIN_S,
) -> Runtime:
    """The cell of a store: the one that this process has open, or a new one.

    Args:
        store: The journal's file, an absolute path; locked until `close_cell`.
        kind: What it runs on.
        address: Which Ray a new one is started on; see `joining.connect`.
        on_loss: As of `open_runtime`, for a new one.
        wait_s: How long to wait, in seconds, where another process works on the store: one that
            only answers a run of it has it for a moment.

    Raises:
        BadInputError: The journal cannot be in that place.
        StoreInUseError: Another process works on the store still, or this one does in a way
            that cannot be shared.
        HarnessError: As `open_runtime`.
    """
    loop = _loop_of(kind)
    while True:
        own = _Cell(kind, loop)
        cell = _cells.setdefault(store, own)
        if cell is own:
            return await _start(own, store, address, on_loss, wait_s)
        if cell.is_gone:
            _cells.pop(store, None)
            continue
        if (cell.kind, cell.loop) != (kind, loop):
            raise StoreInUseError(str(store), _not_shared(cell, kind))
        opened = await _opened(cell)
        if not opened.cancelled():
            return opened.result()
        # Whoever opened it was cancelled meanwhile, so now it is our turn.


async def close_cell(store: Path, kind: RuntimeKind) -> None:
    """Stop the cell that `open_cell` gives for this, and unlock its store.

    Nothing happens where there is none.
    """
    cell = _cells.get(store)
    if cell is None or (cell.kind, cell.loop) != (kind, _loop_of(kind)):
        return
    opened = await _opened(cell)
    if _cells.get(store) is cell:
        del _cells[store]
        try:
            await opened.result().close()
        finally:
            release(store)


def in_place(place: Path, take: Callable[[], T]) -> T:
    """Take a place for a journal.

    Raises:
        BadInputError: The file system does not let us.
    """
    try:
        with _placing:
            return take()
    except OSError as error:
        problem = (
            f"the journal cannot be there ({error.strerror or error}); set HARNESS_HOME to a "
            "folder on a local disk that you may write to, or name another store"
        )
        raise BadInputError(str(place), (problem,)) from error


async def _start(
    cell: _Cell,
    store: Path,
    address: str | None,
    on_loss: Callable[[str], None] | None,
    wait_s: float,
) -> Runtime:
    try:
        await when_free(lambda: in_place(store, lambda: hold(store)), wait_s=wait_s)
        runtime = await open_runtime(
            cell.kind, store=store, address=address, command=uuid4().hex, on_loss=on_loss
        )
    except BaseException as error:
        _cells.pop(store, None)
        release(store)
        if isinstance(error, Exception):
            cell.runtime.set_exception(error)
        else:
            cell.runtime.cancel()
        raise
    cell.runtime.set_result(runtime)
    return runtime


async def _opened(cell: _Cell) -> "asyncio.Future[Runtime]":
    """The cell's runtime when it is there, or could not be opened."""
    # Waiting, unlike awaiting, leaves it alone when the one who waits is cancelled.
    opened: asyncio.Future[Runtime] = asyncio.wrap_future(cell.runtime)
    await asyncio.wait([opened])
    return opened


def _loop_of(kind: RuntimeKind) -> asyncio.AbstractEventLoop | None:
    return asyncio.get_running_loop() if kind == "local" else None


def _not_shared(cell: _Cell, kind: RuntimeKind) -> str:
    how = f"with runtime {cell.kind!r}" if cell.kind != kind else "in another event loop"
    return (
        f"this process works on it {how}; close that harness first (`await harness.close()`), "
        "or name another store"
    )
