"""`@tool`: makes a function a tool, its schema read from signature and docstring."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from harness_actors.errors import ConfigError
from harness_actors.plan import Durability
from harness_actors.ports import Effect, LargeResult, ToolContext, ToolOutput, ToolSpec
from harness_actors.tools.by_name import standing, travels_by_name
from harness_actors.tools.invocation import invoke
from harness_actors.tools.open_resources import OpenResources
from harness_actors.tools.options import ToolOptions, checked_options
from harness_actors.tools.retrying import with_retries
from harness_actors.tools.signature import Signature, check_parameters, read_signature

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
            needs=self.options.needs,
            polled=self.options.polled,
            durability=self.options.durability,
            keep=self.options.keep,
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Do one call; see `Tool.run`. What the function raises is not caught."""
        if self.options.worker and context.workers is not None:
            return await context.workers.run(self, arguments, context)
        signature = self._read()
        parse = signature.arguments.parse
        if len(arguments) <= LONG_ARGUMENTS:
            given = parse(arguments)
        else:
            given = await context.in_thread(parse, arguments)
        given.update(dict.fromkeys(signature.contexts, context))
        if not signature.resources and not self.options.retries:
            return await invoke(self.function, given, context, self.options.name)
        attempt = partial(self._with_resources, given, signature, context)
        result, tries = await with_retries(attempt, self.options, context)
        if tries == 1:
            return result
        if isinstance(result, LargeResult):
            return result.beside(ToolOutput("", tries=tries))
        output = result if isinstance(result, ToolOutput) else ToolOutput(result)
        output.tries = tries
        return output

    async def _with_resources(
        self, given: dict[str, Any], signature: Signature, context: ToolContext
    ) -> str:
        # Where nothing stays open, it is open for this call alone.
        resources = context.resources or OpenResources()
        try:
            for parameter, resource in signature.resources:
                given[parameter] = await resources.get(resource, context.in_thread)
            return await invoke(self.function, given, context, self.options.name)
        finally:
            if isinstance(resources, OpenResources) and resources is not context.resources:
                await resources.close()

    def __repr__(self) -> str:
        return f"<tool {self.options.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if travels_by_name(self):
            return (_by_name, (self.__module__, self.__qualname__))
        return (_rebuild, (self.function, self.options, self._read()))

    def _read(self) -> Signature:
        if self._signature is None:
            self._signature = read_signature(self.function, self.options.name, None)
        return self._signature


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
    needs: Sequence[str] = (),
    name: str | None = None,
    worker: bool = False,
    retries: int = 0,
    retry_on: Sequence[type[Exception]] = (ConnectionError, TimeoutError),
    polled: bool | None = None,
    durability: Durability | None = None,
    keep: Sequence[str] = (),
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
    needs: Sequence[str] = (),
    name: str | None = None,
    worker: bool = False,
    retries: int = 0,
    retry_on: Sequence[type[Exception]] = (ConnectionError, TimeoutError),
    polled: bool | None = None,
    durability: Durability | None = None,
    keep: Sequence[str] = (),
) -> Any:
    """Make a function a tool.

    The model sees the parameters as a JSON schema, described by the docstring's
    ``Args:``; the docstring's own text is the tool's description. A parameter
    annotated `ToolContext` is filled in and not shown, and so is one that names a
    `resource`. A function that is not ``async`` runs in a thread. Of a generator, each
    value is told to whoever reads along, and the last one is the result.

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
        needs: Capabilities that an agent must have to be offered it; one that says nothing of
            its capabilities has all.
        name: What the model calls it; None means the function's name.
        worker: Run it in a process that is killed when its time is up; for what works the
            processor hard or cannot be trusted to end.
        retries: How often a failed call is made again, 0 to 10; for idempotent tools.
        retry_on: Which exceptions are worth that. `timeout_s` is for all tries together.
        polled: It is meant to be asked again and again, as how a job is: a run that does so is
            not told that it goes in circles. None means: if it is `volatile`.
        durability: What results are worth once the window of the model is full:
            ``"replayable"`` (the same call brings it back), ``"ephemeral"``, ``"anchoring"``
            (that it was done matters) or ``"non_replayable"`` (nothing brings it back). None
            leaves it to what else is declared.
        keep: Fields of arguments and results, as JSON objects, that stay in sight then.

    Raises:
        ConfigError: An option or the function's signature cannot be used.
    """
    facts: dict[str, Any] = {
        "effect": effect,
        "idempotent": idempotent,
        "resource_keys": resource_keys,
        "timeout_s": timeout_s,
        "volatile": volatile,
        "needs": needs,
        "worker": worker,
        "retries": retries,
        "retry_on": retry_on,
        "polled": polled,
        "durability": durability,
        "keep": keep,
    }
    if function is not None:
        return _decorate(function, name, facts, sys._getframe(1).f_locals)

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return _decorate(function, name, facts, sys._getframe(1).f_locals)

    return decorate


def _decorate(
    function: Callable[..., Any],
    name: str | None,
    facts: Mapping[str, Any],
    local_names: Mapping[str, Any],
) -> FunctionTool[..., Any]:
    if not inspect.isroutine(function):
        raise ConfigError("tool", f"must be a function or a bound method, not {function!r}")
    name = function.__name__ if name is None else name
    options = checked_options(name, check_parameters(function, name), **facts)
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
    """The tool that stands in a module; agents in journals call it by this name."""
    return standing(module, qualname)


def _rebuild(
    function: Callable[..., Any], options: ToolOptions, signature: Signature
) -> FunctionTool[..., Any]:
    return FunctionTool(function, options, signature=signature)
