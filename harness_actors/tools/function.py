"""`@tool`: makes a function a tool, its schema read from signature and docstring."""

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from harness_actors.errors import ConfigError
from harness_actors.ports import Effect, ToolContext, ToolSpec
from harness_actors.tools.options import ToolOptions, checked_options
from harness_actors.tools.rendering import render_result
from harness_actors.tools.signature import Signature, check_parameters, read_signature
from harness_actors.tools.stopping import told_of_its_stop

LONG_ARGUMENTS = 100_000
"""Characters above which arguments are read in a thread: 10 MB take some 50 ms."""

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Generic[P, R]):
    """A function that a model can call; calling it as a function still does.

    It is pickled by reference where its module is, and by value elsewhere; what
    was read of the signature travels along, validators are built where they run.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[P, R],
        options: ToolOptions,
        *,
        local_names: Mapping[str, Any] | None = None,
        signature: Signature | None = None,
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self.options = options
        self._signature = signature or _read_early(function, options, local_names)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @cached_property
    def spec(self) -> ToolSpec:
        """What the model and the harness know of it.

        Raises:
            ConfigError: An annotation cannot be resolved or has no JSON schema.
        """
        signature = self._read()
        return ToolSpec(
            name=self.options.name,
            description=signature.description,
            parameters=signature.arguments.schema,
            effect=self.options.effect,
            idempotent=self.options.idempotent,
            resource_keys=self.options.resource_keys,
            timeout_s=self.options.timeout_s,
            volatile=self.options.volatile,
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Do one call; see `Tool.run`. What the function raises is not caught."""
        signature = self._read()
        parse = signature.arguments.parse
        if len(arguments) <= LONG_ARGUMENTS:
            given = parse(arguments)
        else:
            given = await context.in_thread(parse, arguments)
        given.update(dict.fromkeys(signature.contexts, context))
        call = partial(self.function, **given)
        try:
            value = await self._value(call, context)
        except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if isinstance(error, Exception):
                raise
            # `sys.exit()` in a tool, or a panic of native code, must not end the actor.
            problem = f"{self.options.name!r} ended with {type(error).__name__}: {error}"
            raise RuntimeError(problem) from error
        return render_result(value, self.options.name)

    async def _value(self, call: Callable[[], Any], context: ToolContext) -> Any:
        if inspect.iscoroutinefunction(self.function):
            return await call()
        with told_of_its_stop():
            value = await context.in_thread(_in_thread, call)
        return await value if inspect.isawaitable(value) else value

    def __repr__(self) -> str:
        return f"<tool {self.options.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._travels_by_name():
            return (_by_name, (self.__module__, self.__qualname__))
        return (_rebuild, (self.function, self.options, self._read()))

    def _read(self) -> Signature:
        if self._signature is None:
            self._signature = read_signature(self.function, self.options.name, None)
        return self._signature

    def _travels_by_name(self) -> bool:
        from cloudpickle import list_registry_pickle_by_value

        by_value = list_registry_pickle_by_value()
        parts = self.__module__.split(".")
        parents = {".".join(parts[: end + 1]) for end in range(len(parts))}
        if self.__module__ == "__main__" or parents & set(by_value):
            return False
        try:
            return _by_name(self.__module__, self.__qualname__) is self
        except (KeyError, AttributeError, ImportError):
            return False


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    effect: Effect = "local_write",
    idempotent: bool | None = None,
    resource_keys: Sequence[str] = (),
    timeout_s: float | None = None,
    volatile: bool = False,
    name: str | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "local_write",
    idempotent: bool | None = None,
    resource_keys: Sequence[str] = (),
    timeout_s: float | None = None,
    volatile: bool = False,
    name: str | None = None,
) -> Any:
    """Make a function a tool.

    The model sees the parameters as a JSON schema, described by the docstring's
    ``Args:``; the docstring's own text is the tool's description. A parameter
    annotated `ToolContext` is filled in and not shown. A function that is not
    ``async`` runs in a thread.

    Args:
        function: The function, where the decorator stands without parentheses. A
            method is given bound, as ``tool(client.refund)``.
        effect: What a call may change.
        idempotent: A call may run twice with the same outcome. None means: if `effect`
            is ``"read_only"``.
        resource_keys: Templates of what a call touches, over the parameters' names.
        timeout_s: Longest time of one call, in seconds; None sets none.
        volatile: What an idempotent call gives may change though the run writes nothing, so
            that each is made.
        name: What the model calls it; None means the function's name.

    Raises:
        ConfigError: An option or the function's signature cannot be used.
    """
    facts = (effect, idempotent, resource_keys, timeout_s, volatile)
    if function is not None:
        return _decorate(function, name, facts, sys._getframe(1).f_locals)

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return _decorate(function, name, facts, sys._getframe(1).f_locals)

    return decorate


def _decorate(
    function: Callable[..., Any],
    name: str | None,
    facts: tuple[Any, ...],
    local_names: Mapping[str, Any],
) -> FunctionTool[..., Any]:
    if not inspect.isroutine(function) or inspect.isasyncgenfunction(function):
        raise ConfigError("tool", f"must be a function or a bound method, not {function!r}")
    name = function.__name__ if name is None else name
    options = checked_options(name, check_parameters(function, name), *facts)
    return FunctionTool(function, options, local_names=local_names)


def _read_early(
    function: Callable[..., Any], options: ToolOptions, local_names: Mapping[str, Any] | None
) -> Signature | None:
    # Where the function is defined, names around it can be seen that are gone later;
    # but a class further down in its module is there only later.
    try:
        return read_signature(function, options.name, local_names)
    except ConfigError:
        return None


def _by_name(module: str, qualname: str) -> Any:
    """The tool that stands in a module; what a pickle by reference calls."""
    from importlib import import_module

    found: Any = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _in_thread(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (StopIteration, KeyboardInterrupt) as error:
        # A future cannot hold the one, and whoever waits for it would wait for ever; the
        # other, in a thread of the pool, is the tool's own and no Ctrl-C.
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _rebuild(
    function: Callable[..., Any], options: ToolOptions, signature: Signature
) -> FunctionTool[..., Any]:
    return FunctionTool(function, options, signature=signature)
