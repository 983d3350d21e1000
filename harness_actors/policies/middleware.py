"""Middleware: what stands around a tool call or a model call, and decides how it is made."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness_actors.errors import ConfigError
from harness_actors.exact_json import values_in, values_text
from harness_actors.policies.hooks import hook_name, signature_fault
from harness_actors.policies.verdicts import Deny, shortened_reason
from harness_actors.ports import Effect, ModelRequest, ModelResponse

OWN_TIME_S = 10.0
"""How long one middleware may take of its own, what it waits for `next` left out."""
ENDS_WITHIN_S = 0.2
"""How long what it has begun in tasks of its own may take to end when its call is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvocation:
    """A call as middleware sees it.

    Attributes:
        run_id: The run.
        agent_path: Names of the agents from the one that the user began to the one at work.
        call_id: The call.
        tool_name: What it calls.
        arguments: As text: what the model wrote, or what a hook or middleware made of it.
        effect: What the tool may change.
        idempotent: It may be made twice.
    """

    run_id: str
    agent_path: tuple[str, ...]
    call_id: str
    tool_name: str
    arguments: str
    effect: Effect
    idempotent: bool

    def parsed(self) -> Any:
        """The arguments as plain values, a copy of one's own; None where they are no JSON."""
        try:
            return values_in(self.arguments)
        except ValueError:
            return None

    def with_arguments(self, arguments: Any) -> "ToolInvocation":
        """The same call with other arguments, plain JSON values by name.

        Raises:
            TypeError: They are no plain JSON values.
            ValueError: A number is infinite or none.
        """
        return replace(self, arguments=values_text(arguments))


NextTool = Callable[[ToolInvocation], Awaitable[str]]
NextModel = Callable[[ModelRequest], Awaitable[ModelResponse]]


class TextFilter(Protocol):
    """Looks at text that is told while a model says it."""

    def feed(self, piece: str) -> str:
        """Take the next piece; what of it all may be told by now."""

    def end(self) -> str:
        """The answer is over; what is left."""


class CallDeniedError(Exception):
    """Middleware does not want a call, and says why; middleware around it may catch this."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class MiddlewareChain:
    """The middleware of an agent, the outermost first.

    One is an ``async`` function ``(call, next)`` around tool calls, or an object with some of:
    ``around_tool(call, next)``, which returns the result or `Deny`; ``around_model(request,
    next)``, which returns the response; and ``text_filter()``, which returns a `TextFilter`.
    Where one stands around the model and has no filter, text is told when the answer is whole.

    Attributes:
        members: As they were given.

    Raises:
        ConfigError: One is something else, or is there twice.
    """

    members: tuple[Any, ...] = ()
    around_tools: tuple[Any, ...] = field(init=False)
    around_models: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        for place, member in enumerate(self.members):
            if any(member is other for other in self.members[:place]):
                raise ConfigError("middleware", f"{hook_name(member)} is there twice")
            _check(member)
        tools = (_method(member, "around_tool") for member in self.members)
        models = (_method(member, "around_model") for member in self.members)
        object.__setattr__(self, "around_tools", tuple(one for one in tools if one))
        object.__setattr__(self, "around_models", tuple(one for one in models if one))

    def __bool__(self) -> bool:
        """Whether something stands around the model, or looks at its text."""
        return bool(self.around_models) or any(hasattr(m, "text_filter") for m in self.members)

    @property
    def streams(self) -> bool:
        """Whether text may be told while the model says it."""
        around = [member for member in self.members if _method(member, "around_model")]
        return all(hasattr(member, "text_filter") for member in around)

    def text_filters(self) -> list[TextFilter]:
        """Those of one answer, in the order that its text passes them: the innermost first."""
        filtering = [member for member in self.members if hasattr(member, "text_filter")]
        return [member.text_filter() for member in reversed(filtering)]

    async def call_tool(self, invocation: ToolInvocation, run: NextTool) -> str:
        """Make a call through all of it.

        Args:
            invocation: The call.
            run: Runs the tool.

        Returns:
            The result; any object, where the outermost one is at fault.

        Raises:
            CallDeniedError: One did not want it.
            Exception: What the tool or middleware raised.
        """
        for function in reversed(self.around_tools):
            run = _Around(function, run, invocation).call
        return await run(invocation)

    async def call_model(self, request: ModelRequest, ask: NextModel) -> ModelResponse:
        """Ask a model through all of it; as `call_tool`."""
        for function in reversed(self.around_models):
            ask = _Around(function, ask, None).call
        return await ask(request)


def as_chain(given: Sequence[Any] | MiddlewareChain | None) -> MiddlewareChain:
    """Middleware as users give it.

    Raises:
        ConfigError: It is something else.
    """
    if isinstance(given, MiddlewareChain):
        return given
    if given is not None and not isinstance(given, list | tuple):
        raise ConfigError("middleware", f"must be a list of functions or objects, not {given!r}")
    return MiddlewareChain(tuple(given or ()))


class _Around:
    """One middleware around what it calls `next`.

    Args:
        function: It.
        inner: What is within.
        original: The call, which may change its arguments and nothing else; None of a model.
    """

    def __init__(
        self, function: Any, inner: Callable[[Any], Awaitable[Any]], original: ToolInvocation | None
    ) -> None:
        self.name = hook_name(function)
        self.function = function
        self.inner = inner
        self.original = original

    async def call(self, given: Any) -> Any:
        return await _Passage(self).pass_through(given)

    def only_arguments(self, request: Any) -> Any:
        """What a middleware may pass on of what it passes.

        Raises:
            TypeError: It passes something else.
        """
        if self.original is not None and isinstance(request, ToolInvocation):
            return replace(self.original, arguments=request.arguments)
        if self.original is None and isinstance(request, ModelRequest):
            return request
        wanted = ModelRequest if self.original is None else ToolInvocation
        problem = f"called next with {type(request).__name__}, not a {wanted.__name__}"
        raise TypeError(f"middleware {self.name} {problem}")


class _Passage:
    """One call on its way through one middleware."""

    def __init__(self, around: _Around) -> None:
        self._around = around
        self._bound = asyncio.timeout(OWN_TIME_S)
        self._left_s = OWN_TIME_S
        self._begun = self._within = 0
        self._returned = self._is_over = False
        self._result: Any = None
        """The last that `next` returned."""
        self._task = asyncio.current_task()
        self._apart: set[asyncio.Task[Any]] = set()
        """Tasks of the middleware's own that wait for `next`."""

    async def pass_through(self, given: Any) -> Any:
        try:
            value = await self._value(given)
            if self._within:
                raise self._failed("it returned while next was at work")
        finally:
            self._is_over = True
            await self._end_what_is_apart()
        if not isinstance(value, Deny):
            self._check_is_text(value)
            return value
        if self._returned:
            raise self._failed(f"it denied what was made: {shortened_reason(value.reason)}")
        raise CallDeniedError(shortened_reason(value.reason))

    async def _value(self, given: Any) -> Any:
        """What the middleware returns."""
        try:
            async with self._bound:
                return await self._around.function(given, self._next)
        except TimeoutError:
            if not self._bound.expired():
                raise
            raise self._failed(f"it took longer than {OWN_TIME_S:g} s") from None
        except Exception as error:
            if not (self._returned or self._within):
                raise
            if isinstance(error, CallDeniedError):
                raise self._failed(f"it denied what was made: {error.reason}") from None
            raise self._failed(f"{type(error).__name__}: {error}") from error

    async def _end_what_is_apart(self) -> None:
        """Nothing of a call goes on when that is over, for its tool may write."""
        if apart := tuple(self._apart):
            for task in apart:
                task.cancel()
            await asyncio.wait(apart, timeout=ENDS_WITHIN_S)

    async def _next(self, request: Any) -> Any:
        passed = self._around.only_arguments(request)
        self._check_may_begin()
        self._begun += 1
        self._within += 1
        if self._within == 1:
            self._stop_clock()
        if (task := asyncio.current_task()) is not None and task is not self._task:
            self._apart.add(task)
        try:
            value = await self._around.inner(passed)
            self._returned, self._result = True, value
            return value
        finally:
            self._apart -= {task}
            self._within -= 1
            if self._within == 0:
                self._go_on()

    def _check_is_text(self, value: object) -> None:
        """Where a tool returns something else, it is the tool that is at fault, and told so."""
        is_result = self._returned and value is self._result
        if self._around.original is not None and not isinstance(value, str) and not is_result:
            raise self._failed(f"it returned {type(value).__name__}, not text")

    def _check_may_begin(self) -> None:
        name, original = self._around.name, self._around.original
        if self._is_over:
            raise RuntimeError(f"middleware {name} called next when its call was over")
        if self._begun and (original is None or not original.idempotent):
            problem = "called next twice, of what may be done only once"
            raise RuntimeError(f"middleware {name} {problem}")

    def _stop_clock(self) -> None:
        if not self._bound.expired():
            now = asyncio.get_running_loop().time()
            self._left_s = (self._bound.when() or now) - now
            self._bound.reschedule(None)

    def _go_on(self) -> None:
        if not self._bound.expired() and not self._is_over:
            self._bound.reschedule(asyncio.get_running_loop().time() + self._left_s)

    def _failed(self, problem: str) -> RuntimeError:
        name = self._around.name
        if not self._begun or self._around.original is None:
            return RuntimeError(f"middleware {name} failed: {problem}")
        # The model must not take it for a call that was not made.
        return RuntimeError(
            f"the call was made, but middleware {name} failed after it, so its result is "
            f"withheld: {problem}"
        )


def _check(member: object) -> None:
    names = [name for name in ("around_tool", "around_model") if hasattr(member, name)]
    if not names and not callable(member) and not hasattr(member, "counts_tools"):
        problem = (
            f"{member!r} is neither a function (call, next) nor has around_tool or around_model"
        )
        raise ConfigError("middleware", problem)
    if inspect.isclass(member):
        name = hook_name(member)
        raise ConfigError("middleware", f"{name} is a class: give an object of it, as {name}()")
    functions = [getattr(member, name) for name in names] or [member]
    for function in functions:
        if callable(function) and not inspect.iscoroutinefunction(function):
            called = getattr(function, "__call__", None)  # noqa: B004 - its own, to look at it
            if not inspect.iscoroutinefunction(called):
                raise ConfigError("middleware", f"{hook_name(member)} must be async")
        if callable(function) and (fault := signature_fault(function, ("call", "next"))):
            raise ConfigError("middleware", fault)


def _method(member: object, name: str) -> Any:
    found = getattr(member, name, None)
    if found is None and name == "around_tool" and inspect.iscoroutinefunction(member):
        return member
    return found
