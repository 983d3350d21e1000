import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType

import pytest

from harness_actors.turn.interruption import is_ctrl_c


def raises(number: int, frame: FrameType | None) -> None:
    further()


def further() -> None:
    raise KeyboardInterrupt


class Guard:
    def __call__(self, number: int, frame: FrameType | None) -> None:
        raises(number, frame)


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def signalled() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def raised_by(cause: Callable[[], None]) -> KeyboardInterrupt:
    with pytest.raises(KeyboardInterrupt) as caught:
        cause()
    return caught.value


@pytest.mark.parametrize("handler", [raises, partial(raises), Guard()])
def test_what_a_handler_raised_is_told_from_what_a_tool_raised(
    handler: Callable[[int, FrameType | None], None],
) -> None:
    signal.signal(signal.SIGINT, handler)

    assert is_ctrl_c(raised_by(signalled))
    assert not is_ctrl_c(raised_by(further))


def test_what_cannot_be_told_apart_is_taken_for_the_users() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)

    assert is_ctrl_c(raised_by(signalled))
    assert is_ctrl_c(raised_by(further))
    assert not is_ctrl_c(SystemExit(3))


def test_what_a_thread_raises_is_its_own() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ThreadPoolExecutor(1) as thread:
        assert not thread.submit(is_ctrl_c, raised_by(further)).result()
