"""Ctrl-C, step by step: first in good order, then at once."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_interrupt(*steps: Callable[[], None]) -> Iterator[None]:
    """Do the first step when the user interrupts, the next at the next time.

    Behind the last one an interrupt does what it does in any program.

    Args:
        steps: What to do, called in the running event loop.
    """
    loop = asyncio.get_running_loop()
    left = list(steps)

    def interrupted() -> None:
        step = left.pop(0)
        if not left:
            _let_go(loop)
        step()

    for number in SIGNALS:
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        _let_go(loop)


def _let_go(loop: asyncio.AbstractEventLoop) -> None:
    for number in SIGNALS:
        loop.remove_signal_handler(number)
