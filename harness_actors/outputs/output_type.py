"""`OutputType`: the form that a run's value must have, given as a type or as a JSON schema."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.models.chain import models_of
from harness_actors.outputs.reading import value_of
from harness_actors.outputs.words import ASKED, OUTPUT, PROMPT_CHARS, shown_schema
from harness_actors.ports import Model, Tool

FIELD = "output_type"
CHECK_S = 10.0
"""How long it may take to look at one value, in seconds."""

InThread = Callable[..., Awaitable[Any]]


class OutputCodeError(Exception):
    """Code of a user that looks at a value has failed, or did not end; its cause says how."""


class OutputType(ABC):
    """The form that a run's value must have.

    Attributes:
        given: What it was made of.
    """

    given: Any

    @property
    def name(self) -> str:
        """What providers call it."""
        return OUTPUT

    @classmethod
    def of(cls, given: Any, field: str = FIELD) -> "OutputType | None":
        """The form that a user names.

        Args:
            given: A pydantic model, a dataclass, or another type of which JSON has values; a JSON
                schema; one of these; or None for none.
            field: Where it stands, for the error.

        Raises:
            ConfigError: It is none of these, or nothing can be held to it.
        """
        # Here, for they load what reads types and schemas, which most agents do not need.
        if given is None or isinstance(given, OutputType):
            return given
        if isinstance(given, Mapping):
            from harness_actors.outputs.schema_output import SchemaOutput

            return SchemaOutput.checked(given, field)
        from harness_actors.outputs.class_output import ClassOutput

        return ClassOutput.checked(given, field)

    @property
    @abstractmethod
    def schema(self) -> Mapping[str, Any]:
        """Its JSON schema, alone."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments of a `work_complete` that takes it."""

    def completion(self, *, checked: bool) -> Tool:
        """The `work_complete` that takes a value of it.

        Args:
            checked: Others have a say in whether the run is over.
        """
        from harness_actors.outputs.completion import TypedCompletion

        return TypedCompletion(self, checked=checked)

    def prompt(self, model: Model) -> str:
        """What a model is told where its answer is to be the value; empty where its provider is."""
        if all(getattr(one, "structured_output", False) for one in models_of(model)):
            return ""
        return ASKED.format(schema=shown_schema(self.schema, PROMPT_CHARS))

    @abstractmethod
    async def read_arguments(self, arguments: str, in_thread: InThread) -> str:
        """Look at the arguments of such a call.

        Returns:
            The summary.

        Raises:
            ToolError: They do not fit; says in what.
            OutputCodeError: Code of a user failed.
        """

    @abstractmethod
    async def problem(self, text: str, in_thread: InThread) -> str:
        """In what a JSON text does not fit; empty where it does.

        Raises:
            OutputCodeError: Code of a user failed.
        """

    def instance(self, value: Any) -> Any:
        """What the user has of a value that fits: of a type an instance of that.

        Raises:
            Exception: It does not fit, here and now.
        """
        return value


async def held(begin: Callable[[], Awaitable[Any]]) -> Any:
    """Let code of a user look at a value.

    Raises:
        ToolError: The value does not fit.
        OutputCodeError: The code failed, or took longer than `CHECK_S`.
    """
    limit = asyncio.timeout(CHECK_S)
    try:
        async with limit:
            return await begin()
    except ToolError:
        raise
    except TimeoutError as error:
        if not limit.expired():
            raise OutputCodeError from error
        words = f"it took longer than {CHECK_S:g} s to see whether the output fits its type"
        raise OutputCodeError from TimeoutError(words)
    except Exception as error:
        raise OutputCodeError from error


def read_or_problem(text: str) -> tuple[Any, str]:
    """The value of a JSON text, and why it is none; empty where it is one."""
    try:
        return value_of(text), ""
    except ToolError as error:
        return None, error.text
