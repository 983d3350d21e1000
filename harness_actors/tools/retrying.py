"""Trying a call again: which failures, how often, and after which pauses."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from harness_actors.ports import ToolContext
from harness_actors.tools.options import ToolOptions

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
"""Longest pause before the first retry, which doubles each time, and of them all."""

T = TypeVar("T")


async def with_retries(
    attempt: Callable[[], Awaitable[T]], options: ToolOptions, context: ToolContext
) -> tuple[T, int]:
    """Do something until it does not fail in a way that another try may mend.

    Returns:
        What it came to, and how often it was tried.

    Raises:
        Exception: What the last try raised, with a note of how many there were.
        CancelledError: Nobody waits any more; with such a note where a try has failed.
    """
    tries, failed = 0, ""
    try:
        for tries in count(1):
            try:
                return await attempt(), tries
            except Exception as error:
                if tries > options.retries or not isinstance(error, options.retry_on):
                    if tries > 1:
                        error.add_note(f"It was tried {tries} times.")
                    raise
                failed = type(error).__name__
                context.emit(f"try {tries} of {options.retries + 1}: {failed}")
            pause_s = pause_before(tries, f"{context.run_id}/{context.call_id}")
            await (context.clock.sleep if context.clock is not None else asyncio.sleep)(pause_s)
    except asyncio.CancelledError as stopped:
        if failed:
            # By its kind alone: its words would pass no middleware on this way.
            stopped.add_note(f"It was tried {tries} times; the last failure was {failed}.")
        raise
    raise AssertionError("counts without end")


def pause_before(retry: int, call: str) -> float:
    """How long to wait, in seconds.

    It is different for each call, so that those that failed together do not come together again,
    and for one call always the same.

    Args:
        retry: Which retry, from 1.
        call: Names the call.
    """
    longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (retry - 1))
    drawn = hashlib.blake2b(f"{call}/{retry}".encode(), digest_size=4).digest()
    return longest_s * (0.5 + 0.5 * int.from_bytes(drawn) / 2**32)
