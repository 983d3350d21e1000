"""The one thread that connects this process to Ray and disconnects it, one thing at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

STARTER_THREAD = ThreadPoolExecutor(1, thread_name_prefix="ray-starter")


async def on_starter_thread(do: Callable[..., T], *arguments: object) -> T:
    """Do there what blocks for seconds, as ``ray.init()`` does; a loop with other work must not."""
    return await asyncio.get_running_loop().run_in_executor(STARTER_THREAD, do, *arguments)
