"""Middleware stands around calls in its order, and whatever it does has one defined outcome."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from harness_actors.errors import ConfigError, ToolError
from harness_actors.policies import CallDeniedError, Deny, MiddlewareChain, ToolInvocation
from harness_actors.policies.middleware import OWN_TIME_S, as_chain
from harness_actors.ports import ModelRequest, ModelResponse, ToolSet
from tests.policies.calls import a_call, ran
from tests.virtual_time import VirtualTimeLoop

Next = Callable[[Any], Awaitable[Any]]


def named(name: str) -> Callable[[ToolInvocation, Next], Awaitable[str]]:
    async def around(call: ToolInvocation, next: Next) -> str:
        return f"{name}({await next(call)})"

    return around


async def test_the_first_is_the_outermost() -> None:
    chain = MiddlewareChain((named("a"), named("b")))
    assert await chain.call_tool(a_call(), ran) == "a(b(ran note))"


async def test_a_call_may_be_made_with_other_arguments_and_as_no_other_call() -> None:
    seen: list[ToolInvocation] = []

    async def change(call: ToolInvocation, next: Next) -> str:
        other = a_call("other", {"n": 2}, idempotent=True)
        result: str = await next(other)
        return result

    async def run(call: ToolInvocation) -> str:
        seen.append(call)
        return "done"

    await MiddlewareChain((change,)).call_tool(a_call("note", {"n": 1}), run)
    assert (seen[0].tool_name, seen[0].parsed(), seen[0].idempotent) == ("note", {"n": 2}, False)


async def test_one_that_never_calls_next_gives_the_result() -> None:
    async def answer(call: ToolInvocation, next: Next) -> str:
        return "from memory"

    async def deny(call: ToolInvocation, next: Next) -> Deny:
        return Deny("not today")

    assert await MiddlewareChain((answer,)).call_tool(a_call(), ran) == "from memory"
    with pytest.raises(CallDeniedError, match="not today"):
        await MiddlewareChain((named("a"), deny)).call_tool(a_call(), ran)


async def test_what_is_not_idempotent_is_called_once_though_middleware_asks_again() -> None:
    made: list[str] = []

    async def run(call: ToolInvocation) -> str:
        made.append(call.call_id)
        return "done"

    async def twice(call: ToolInvocation, next: Next) -> str:
        await next(call)
        result: str = await next(call)
        return result

    async def both(call: ToolInvocation, next: Next) -> str:
        results = await asyncio.gather(next(call), next(call))
        return "".join(results)

    for function in (twice, both):
        made.clear()
        with pytest.raises(RuntimeError, match="called next twice"):
            await MiddlewareChain((function,)).call_tool(a_call(), run)
        assert len(made) == 1
    made.clear()
    assert await MiddlewareChain((twice,)).call_tool(a_call(idempotent=True), run) == "done"
    assert len(made) == 2


async def test_an_error_after_the_call_says_that_the_call_was_made() -> None:
    async def fails(call: ToolInvocation, next: Next) -> str:
        await next(call)
        raise ValueError("no room")

    with pytest.raises(RuntimeError, match=r"the call was made, but .* ValueError: no room"):
        await MiddlewareChain((fails,)).call_tool(a_call(), ran)


async def test_what_was_made_is_not_denied_any_more() -> None:
    left: list[asyncio.Future[Any]] = []

    async def returns(call: ToolInvocation, next: Next) -> Deny:
        await next(call)
        return Deny("too long")

    async def raises(call: ToolInvocation, next: Next) -> str:
        await next(call)
        raise CallDeniedError("too long")

    async def beside(call: ToolInvocation, next: Next) -> str:
        left.append(asyncio.ensure_future(next(call)))
        await asyncio.sleep(0)
        raise CallDeniedError("too long")

    for function in (returns, raises, beside):
        with pytest.raises(RuntimeError, match=r"was made, but .* denied what was made: too long$"):
            await MiddlewareChain((function,)).call_tool(a_call(), ran)


@pytest.mark.parametrize("how", ["returns", "raises", "is cancelled"])
async def test_nothing_of_a_call_goes_on_when_that_is_over(how: str) -> None:
    made: list[str] = []
    begun = asyncio.Event()

    async def run(call: ToolInvocation) -> str:
        made.append("begun")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            made.append("ended")
        return "done"

    async def leaves(call: ToolInvocation, next: Next) -> str:
        left = asyncio.ensure_future(next(call))
        await asyncio.sleep(0)
        if how == "raises":
            raise ValueError("no room")
        if how == "is cancelled":
            await asyncio.wait((left,))
        return "early"

    calling = asyncio.ensure_future(
        MiddlewareChain((named("a"), leaves, named("b"))).call_tool(a_call(), run)
    )
    if how == "is cancelled":
        await begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    else:
        problem = {"returns": "it returned while next was at work", "raises": "ValueError: no room"}
        told = rf"^the call was made, but middleware .*leaves failed after it.*: {problem[how]}$"
        with pytest.raises(RuntimeError, match=told):
            await calling
    assert made == ["begun", "ended"]


def test_what_does_not_end_with_its_call_is_not_waited_for() -> None:
    left: list[asyncio.Future[Any]] = []

    async def deaf(call: ToolInvocation) -> str:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
                return "never"
            await asyncio.sleep(3600)
            return "late"

    async def leaves(call: ToolInvocation, next: Next) -> str:
        left.append(asyncio.ensure_future(next(call)))
        await asyncio.sleep(0)
        return "early"

    async def all_of_it() -> None:
        with pytest.raises(RuntimeError, match="returned while next was at work"):
            await MiddlewareChain((leaves,)).call_tool(a_call(), deaf)
        assert asyncio.get_running_loop().time() < 1

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(all_of_it())


async def test_an_error_of_the_tool_passes_as_it_is() -> None:
    async def run(call: ToolInvocation) -> str:
        raise ToolError("no such file")

    with pytest.raises(ToolError, match="no such file"):
        await MiddlewareChain((named("a"),)).call_tool(a_call(), run)


def test_one_that_hangs_is_ended_and_the_time_of_the_tool_is_not_its_own() -> None:
    async def hangs(call: ToolInvocation, next: Next) -> str:
        await asyncio.Event().wait()
        return ""

    async def slow(call: ToolInvocation) -> str:
        await asyncio.sleep(20 * OWN_TIME_S)
        return "slow"

    async def hangs_after(call: ToolInvocation, next: Next) -> str:
        await next(call)
        await asyncio.Event().wait()
        return ""

    async def all_of_it() -> None:
        with pytest.raises(RuntimeError, match="took longer than 10 s"):
            await MiddlewareChain((hangs,)).call_tool(a_call(), ran)
        assert await MiddlewareChain((named("a"),)).call_tool(a_call(), slow) == "a(slow)"
        with pytest.raises(RuntimeError, match="the call was made, but"):
            await MiddlewareChain((hangs_after,)).call_tool(a_call(), slow)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(all_of_it())


@pytest.mark.virtual_time
@pytest.mark.parametrize(("pauses", "is_over"), [(2, False), (3, True)])
async def test_what_it_takes_before_and_after_and_between_two_calls_is_its_time_together(
    pauses: int, is_over: bool
) -> None:
    async def pausing(call: ToolInvocation, next: Next) -> str:
        result = ""
        for number in range(pauses):
            await asyncio.sleep(0.4 * OWN_TIME_S)
            result = await next(call) if number < pauses - 1 else result
        return result

    async def slow(call: ToolInvocation) -> str:
        await asyncio.sleep(20 * OWN_TIME_S)
        return "slow"

    calling = MiddlewareChain((pausing,)).call_tool(a_call(idempotent=True), slow)
    if is_over:
        with pytest.raises(RuntimeError, match="took longer than 10 s"):
            await calling
    else:
        assert await calling == "slow"


async def test_next_is_refused_when_the_call_is_over() -> None:
    kept: list[Next] = []

    async def keep(call: ToolInvocation, next: Next) -> str:
        kept.append(next)
        return "early"

    await MiddlewareChain((keep,)).call_tool(a_call(), ran)
    with pytest.raises(RuntimeError, match="when its call was over"):
        await kept[0](a_call())


async def test_one_that_goes_on_to_itself_ends() -> None:
    async def cyclic(call: ToolInvocation, next: Next) -> str:
        result: str = await chain.call_tool(call, ran)
        return result

    chain = MiddlewareChain((cyclic,))
    with pytest.raises(RecursionError):
        await chain.call_tool(a_call(), ran)


async def test_a_model_is_asked_through_it_and_once() -> None:
    class Twice:
        async def around_model(self, request: ModelRequest, next: Next) -> Any:
            await next(request)
            return await next(request)

    async def ask(request: ModelRequest) -> ModelResponse:
        return ModelResponse(text="hello")

    request = ModelRequest(messages=(), tools=ToolSet.of(()))
    chain = MiddlewareChain((Twice(),))
    with pytest.raises(RuntimeError, match="called next twice"):
        await chain.call_model(request, ask)
    assert not chain.streams


@pytest.mark.parametrize("given", ["f", [7], [lambda call, next: "x"], 7])
def test_what_is_no_middleware_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="middleware"):
        as_chain(given)


def test_the_same_one_twice_is_refused() -> None:
    one = named("a")
    with pytest.raises(ConfigError, match="is there twice"):
        as_chain([one, one])


async def test_what_a_middleware_returns_for_a_result_is_its_own_fault_and_not_the_tools() -> None:
    made: list[str] = []

    async def run(call: ToolInvocation) -> str:
        made.append(call.call_id)
        return "paid"

    async def forgets(call: ToolInvocation, next: Next) -> Any:
        await next(call)

    with pytest.raises(RuntimeError, match=r"the call was made, but middleware .*forgets failed"):
        await MiddlewareChain((named("outer"), forgets)).call_tool(a_call(), run)
    assert made == ["c1"]


async def test_what_a_tool_returns_is_not_the_fault_of_what_stands_around_it() -> None:
    async def run(call: ToolInvocation) -> Any:
        return b"bytes"

    async def passes(call: ToolInvocation, next: Next) -> Any:
        return await next(call)

    result: Any = await MiddlewareChain((passes, passes_too)).call_tool(a_call(), run)
    assert result == b"bytes"


async def passes_too(call: ToolInvocation, next: Next) -> Any:
    return await next(call)


def test_whole_numbers_of_any_size_pass_and_what_is_no_number_does_not() -> None:
    call = a_call(raw='{"order": 123456789012345678901234}')

    assert call.parsed() == {"order": 123456789012345678901234}
    assert call.with_arguments(call.parsed()).arguments == '{"order":123456789012345678901234}'
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            call.with_arguments({"usd": number})


class NotAsked:
    async def around_tool(self, call: ToolInvocation) -> str:
        return ""


async def no_next(call: ToolInvocation) -> str:
    return ""


class Around:
    async def around_tool(self, call: ToolInvocation, next: Next) -> str:
        return ""


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (no_next, r"no_next is called with \(call, next\), and takes \(call"),
        (NotAsked(), r"around_tool is called with \(call, next\), and takes \(call"),
        (Around, r"Around is a class: give an object of it, as Around\(\)"),
    ],
)
def test_what_could_never_be_called_is_refused_when_it_is_given(member: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        as_chain([member])
