"""Faults in what a function as a tool has: other tries, and what stays open."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from harness_actors.tools import function, retrying
from harness_actors.tools.open_resources import OpenResources
from harness_actors.tools.options import ToolOptions
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.trying import NOT_OVER, OPENED_ONCE, PAUSED, TRIED


def _with(**options: Any) -> Patches:
    async def patched(attempt: Any, given: ToolOptions, context: Any) -> Any:
        return await retrying.with_retries(attempt, replace(given, **options), context)

    return [(function, "with_retries", patched)]


def _without_pauses() -> Patches:
    return [(retrying, "pause_before", lambda retry, call: 0.0)]


def _each_call_opens() -> Patches:
    async def patched(self: OpenResources, resource: Any, in_thread: Any) -> Any:
        return await get(OpenResources(), resource, in_thread)

    get = OpenResources.get
    return [(OpenResources, "get", patched)]


def _tries_go_on() -> Patches:
    async def patched(
        attempt: Callable[[], Awaitable[Any]], options: ToolOptions, context: Any
    ) -> Any:
        trying = asyncio.ensure_future(retrying.with_retries(attempt, options, context))
        return await asyncio.shield(trying)

    return [(function, "with_retries", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("calls are tried again without end", lambda: _with(retries=99), frozenset({TRIED})),
    PlantedBug("no call is tried again", lambda: _with(retries=0), frozenset({TRIED})),
    PlantedBug(
        "whatever fails is tried again", lambda: _with(retry_on=(Exception,)), frozenset({TRIED})
    ),
    PlantedBug("there are no pauses between tries", _without_pauses, frozenset({PAUSED})),
    PlantedBug("each call opens its resources", _each_call_opens, frozenset({OPENED_ONCE})),
    PlantedBug("a call is tried when it is over", _tries_go_on, frozenset({NOT_OVER})),
)
