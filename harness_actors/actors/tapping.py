"""Putting the taps of `output` into a process: for good in one of ours, for a while elsewhere."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from harness_actors.actors.output import (
    Tap,
    Unhandled,
    is_kept,
    is_terminal_taken,
    of_no_run,
)

_NAMES = ("stdout", "stderr")
_TALKATIVE = ("harness_actors", "httpx", "openai")
"""What is theirs to say below a warning is nothing of a user's."""

# Checkers do not see that a method may be replaced.
_THREAD: Any = threading.Thread
_POOL: Any = ThreadPoolExecutor

_taps: dict[str, Tap] = {}
_hooked: dict[str, Callable[..., Any]] = {}
_users = 0
_changing = threading.Lock()


def tap_own_process() -> None:
    """Keep what is printed in this process, which serves runs and nothing else, for good.

    Where nobody configures logging, what is logged from INFO on is kept, too. A thread that
    is started for a run prints for that run.
    """
    tap_for_a_while()
    logging.lastResort = Unhandled(logging.lastResort)
    for name in _TALKATIVE:
        if logging.getLogger(name).level == logging.NOTSET:
            logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger().setLevel(logging.INFO)
    if not _hooked:
        _hook_threads()


def tap_for_a_while() -> Callable[[], None]:
    """Keep what is printed for runs in a process that is not ours alone.

    It goes where it went before, too, unless a command has taken the terminal.

    Returns:
        What ends it; of several, the last one that does takes the taps out.
    """
    global _users
    with _changing:
        if _users == 0:
            _put_in()
            if is_terminal_taken():
                # A command's own process: what its threads print would spoil its stdout.
                _hook_threads()
        _users += 1
    return _end_once()


def _end_once() -> Callable[[], None]:
    ended = False

    def end() -> None:
        nonlocal ended
        global _users
        with _changing:
            if not ended:
                ended = True
                _users -= 1
                if _users == 0:
                    _take_out()

    return end


def _put_in() -> None:
    for name in _NAMES:
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Tap):
            _taps[name] = tap = Tap(stream, name)
            setattr(sys, name, tap)
            _swap_in_handlers(stream, tap)


def _take_out() -> None:
    for name in _NAMES:
        tap = _taps.pop(name, None)
        # Somebody else may have put something over it, as pytest and notebooks do.
        if tap is not None and getattr(sys, name) is tap:
            setattr(sys, name, tap.stream)
        if tap is not None:
            _swap_in_handlers(tap, tap.stream)
    if _hooked:
        _THREAD.start, _POOL.submit = _hooked.pop("start"), _hooked.pop("submit")


@contextmanager
def without_taps() -> Iterator[None]:
    """In here the streams are what they were: a pickler knows these by identity."""
    with _changing:
        tapped = {name: tap for name, tap in _taps.items() if getattr(sys, name) is tap}
        for name, tap in tapped.items():
            setattr(sys, name, tap.stream)
        try:
            yield
        finally:
            for name, tap in tapped.items():
                setattr(sys, name, tap)


def _hook_threads() -> None:
    _hooked["start"], _hooked["submit"] = _THREAD.start, _POOL.submit
    _THREAD.start, _POOL.submit = _starting(_THREAD.start), _submitting(_POOL.submit)


def _swap_in_handlers(old: Any, new: Any) -> None:
    """Handlers hold on to the stream that there was when logging was configured."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is old:
            handler.setStream(new)


def _starting(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    """`Thread.start` as Python 3.14 has it: with the context of whoever starts the thread."""

    def start_in_context(thread: threading.Thread) -> None:
        if is_kept():
            run, context = thread.run, copy_context()

            def run_in_context() -> None:
                # Else the thread would hold on to itself.
                del thread.run
                context.run(run)

            thread.run = run_in_context  # type: ignore[method-assign]
        start(thread)

    return start_in_context


def _submitting(submit: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    """`submit` with the context of each job: a thread of a pool serves many runs."""

    def submit_in_context(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        if not is_kept():
            return submit(pool, function, *args, **kwargs)
        context = copy_context()
        with of_no_run():
            return submit(pool, context.run, function, *args, **kwargs)

    return submit_in_context
