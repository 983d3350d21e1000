"""`@resource`: opened once, given to all who ask, closed with the process."""

import asyncio
import pickle
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Annotated, Any

import cloudpickle
import pytest

from harness_actors.errors import ConfigError, ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools import Resource, open_resources, resource, tool
from harness_actors.tools.open_resources import OpenResources
from tests.tools import worker_tools

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@pytest.fixture
def resources() -> OpenResources:
    return OpenResources()


@pytest.fixture
def context(context: ToolContext, resources: OpenResources) -> ToolContext:
    return replace(context, resources=resources)


@resource
def plain() -> str:
    done.append("open plain")
    return "plain"


@resource
async def waiting() -> str:
    await asyncio.sleep(0)
    done.append("open waiting")
    return "waiting"


@resource
def yielding() -> Iterator[str]:
    done.append("open yielding")
    yield "yielding"
    done.append("close yielding")


@resource
async def yielding_async() -> AsyncIterator[str]:
    done.append("open yielding_async")
    yield "yielding_async"
    done.append("close yielding_async")


KINDS = (plain, waiting, yielding, yielding_async)
CLOSING = (yielding, yielding_async)


def using(source: Resource[str]) -> Any:
    @tool
    def use(number: int, db: Annotated[str, source]) -> str:
        return f"{db} {number}"

    return use


@pytest.mark.parametrize("kind", KINDS)
async def test_it_is_opened_at_the_first_use_and_once(
    kind: Resource[str], context: ToolContext
) -> None:
    use = using(kind)
    assert done == []

    results = await asyncio.gather(*(use.run(f'{{"number": {n}}}', context) for n in range(5)))

    assert results == [f"{kind.__name__} {n}" for n in range(5)]
    assert done == [f"open {kind.__name__}"]


def test_the_model_does_not_see_it() -> None:
    assert list(using(plain).spec.parameters["properties"]) == ["number"]


async def test_a_model_cannot_give_one(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="db: no such argument"):
        await using(plain).run('{"number": 1, "db": "mine"}', context)


@pytest.mark.parametrize("kind", CLOSING)
async def test_it_is_closed_with_the_process_and_not_opened_again(
    kind: Resource[str], context: ToolContext, resources: OpenResources
) -> None:
    await using(kind).run('{"number": 1}', context)

    await resources.close()

    assert done == [f"open {kind.__name__}", f"close {kind.__name__}"]
    with pytest.raises(ToolError, match="was closed with its process"):
        await using(kind).run('{"number": 1}', context)


async def test_the_newest_is_closed_first(context: ToolContext, resources: OpenResources) -> None:
    for kind in CLOSING:
        await using(kind).run('{"number": 1}', context)

    await resources.close()

    assert done[2:] == ["close yielding_async", "close yielding"]


async def test_a_failed_opening_fails_its_calls_and_is_tried_again(context: ToolContext) -> None:
    fails = [True]

    @resource
    async def flaky() -> str:
        await asyncio.sleep(0.01)
        if fails.pop() if fails else False:
            raise ConnectionError("refused")
        return "open"

    use = using(flaky)
    calls = (use.run('{"number": 1}', context) for _ in range(3))
    first = await asyncio.gather(*calls, return_exceptions=True)

    assert [repr(error) for error in first] == ["ConnectionError('refused')"] * 3
    assert await use.run('{"number": 1}', context) == "open 1"


async def test_an_opening_that_hangs_is_given_up_with_the_last_who_waits(
    context: ToolContext,
) -> None:
    begun, hangs = asyncio.Event(), [True]

    @resource
    async def slow() -> str:
        if hangs.pop() if hangs else False:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                done.append("given up")
        return "open"

    use = using(slow)
    users = [asyncio.ensure_future(use.run('{"number": 1}', context)) for _ in range(2)]
    await begun.wait()
    users[0].cancel()
    await asyncio.wait((users[0],))
    assert done == []
    users[1].cancel()
    await asyncio.wait((users[1],))

    assert await use.run('{"number": 2}', context) == "open 2"
    assert done == ["given up"]


async def test_one_user_who_leaves_takes_it_from_nobody(context: ToolContext) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @resource
    async def slow() -> str:
        begun.set()
        await go_on.wait()
        return "open"

    use = using(slow)
    leaves, stays = (asyncio.ensure_future(use.run('{"number": 1}', context)) for _ in range(2))
    await begun.wait()
    leaves.cancel()
    await asyncio.wait((leaves,))
    go_on.set()

    assert await stays == "open 1"


async def test_one_that_opens_while_its_call_is_stopped_is_left_to_the_next(
    context: ToolContext, resources: OpenResources
) -> None:
    using_it = asyncio.ensure_future(resources.get(yielding_async, context.in_thread))
    await asyncio.sleep(0)
    opening = resources._opened[yielding_async].opening
    # At once, before the call itself hears of it.
    opening.add_done_callback(lambda _: using_it.cancel())

    with pytest.raises(asyncio.CancelledError):
        await using_it
    assert await resources.get(yielding_async, context.in_thread) == "yielding_async"
    await resources.close()

    assert done == ["open yielding_async", "close yielding_async"]


async def test_closing_takes_no_longer_than_its_bound(
    context: ToolContext, resources: OpenResources
) -> None:
    @resource
    async def stuck() -> AsyncIterator[str]:
        yield "open"
        await asyncio.Event().wait()

    await using(yielding).run('{"number": 1}', context)
    await using(stuck).run('{"number": 1}', context)

    async with asyncio.timeout(open_resources.CLOSE_WITHIN_S + 5):
        await resources.close()


async def test_one_that_does_not_close_keeps_the_others_from_nothing(
    context: ToolContext, resources: OpenResources
) -> None:
    @resource
    def broken() -> Iterator[str]:
        yield "open"
        raise KeyError("while closing")

    @resource
    def twice() -> Iterator[str]:
        yield "open"
        yield "again"

    for kind in (yielding, broken, twice):
        await using(kind).run('{"number": 1}', context)

    await resources.close()

    assert done == ["open yielding", "close yielding"]


async def test_what_yields_nothing_fails_its_call(context: ToolContext) -> None:
    @resource
    def empty() -> Iterator[str]:
        yield from ()

    with pytest.raises(ToolError, match="'empty' yields nothing"):
        await using(empty).run('{"number": 1}', context)


async def test_where_nothing_stays_open_it_is_open_for_the_call(context: ToolContext) -> None:
    alone = replace(context, resources=None)

    for _ in range(2):
        assert await using(yielding).run('{"number": 1}', alone) == "yielding 1"

    assert done == ["open yielding", "close yielding"] * 2


def test_it_is_still_the_function() -> None:
    assert plain() == "plain"
    assert plain.__name__ == "plain"


def test_it_travels_by_name_or_with_its_code() -> None:
    assert pickle.loads(pickle.dumps(worker_tools.connection)) is worker_tools.connection
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        again = cloudpickle.loads(cloudpickle.dumps((using(plain), plain)))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    function, source = again
    assert source is not plain
    # The tool has the same one as whoever travels with it: it is opened once for both.
    assert function._read().resources == (("db", source),)


def with_a_parameter(host: str) -> str:
    return host


@pytest.mark.parametrize("function", [with_a_parameter, int, 7])
def test_what_nobody_could_open_is_refused(function: Any) -> None:
    with pytest.raises(ConfigError, match="resource"):
        resource(function)


def test_a_parameter_has_one_resource() -> None:
    @tool
    def use(db: Annotated[str, plain, waiting]) -> str:
        return db

    with pytest.raises(ConfigError, match="'db' names 2 resources"):
        use.spec  # noqa: B018
