"""`@resource`: what is opened once per process, given to tools, and closed with the process.

A client of a database cannot be pickled, and is too dear to be opened for each call.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import Any, Generic, TypeVar, overload

from harness_actors.errors import ConfigError
from harness_actors.tools.by_name import standing, travels_by_name

R = TypeVar("R")


class Resource(Generic[R]):
    """A function that opens something; calling it as a function still does."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[[], Any]) -> None:
        update_wrapper(self, function)
        self.function = function

    def __call__(self) -> Any:
        return self.function()

    def __repr__(self) -> str:
        return f"<resource {self.__name__!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if travels_by_name(self):
            return (standing, (self.__module__, self.__qualname__))
        return (Resource, (self.function,))


@overload
def resource(function: Callable[[], AsyncIterator[R]], /) -> Resource[R]: ...
@overload
def resource(function: Callable[[], Iterator[R]], /) -> Resource[R]: ...
@overload
def resource(function: Callable[[], Awaitable[R]], /) -> Resource[R]: ...
@overload
def resource(function: Callable[[], R], /) -> Resource[R]: ...
def resource(function: Callable[[], Any], /) -> Resource[Any]:
    """Make a function a resource: what it returns is opened once per process, at its first use.

    A tool gets it by a parameter annotated ``Annotated[Client, function]``, which the model does
    not see. A function that yields once, instead of returning, closes after its ``yield`` what
    it has opened. It may be ``async``; one that is not runs in a thread.

    Args:
        function: Without parameters.

    Raises:
        ConfigError: It is no such function.
    """
    if not inspect.isroutine(function):
        raise ConfigError("resource", f"must be a function, not {function!r}")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty:
            problem = f"nobody gives it {parameter.name!r}; a resource has no parameters"
            raise ConfigError(f"resource {function.__name__!r}", problem)
    return Resource(function)
