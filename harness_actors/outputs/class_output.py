"""Outputs that are instances of a type: a pydantic model, a dataclass, a list of them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, get_origin

from harness_actors.errors import ConfigError, ToolError
from harness_actors.outputs.output_type import InThread, OutputType, held, read_or_problem
from harness_actors.outputs.reading import problem_of
from harness_actors.outputs.words import OUTPUT, SUMMARY, SUMMARY_IS
from harness_actors.tools.annotations import names_in
from harness_actors.tools.argument_model import Argument
from harness_actors.tools.arguments import Arguments

NAME_CHARS = 64


@dataclass(frozen=True)
class ClassOutput(OutputType):
    """A value is an instance of a type.

    Attributes:
        given: The type.
        names: What the classes among its parts name in annotations that are texts.
    """

    given: Any
    names: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def checked(cls, given: Any, field: str) -> "ClassOutput":
        """The form of a type that a user has given.

        Raises:
            ConfigError: It is no type, or JSON has no values of it.
        """
        if not _is_type(given):
            problem = (
                "must be a pydantic model, a dataclass, another type of which JSON has values, or "
                f"a JSON schema; not {given!r:.80}"
            )
            raise ConfigError(field, problem)
        if given is str:
            raise ConfigError(field, "is str, as which any answer counts without it; leave it out")
        made = cls(given, names_in([given]))
        try:
            _ = made.schema
        except ConfigError as error:
            _, _, fault = error.problem.partition("has no JSON schema: ")
            raise ConfigError(field, f"{given!r:.80} has no JSON schema: {fault}") from error
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        # What is made of it is made again where it is needed.
        return (ClassOutput, (self.given, self.names))

    @property
    def name(self) -> str:
        named = re.sub(r"[^a-zA-Z0-9_-]", "_", getattr(self.given, "__name__", OUTPUT))
        return named[:NAME_CHARS] or OUTPUT

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        whole = self._alone.schema
        part, kinds = dict(whole["properties"][OUTPUT]), dict(whole.get("$defs", {}))
        named = part.get("$ref", "").removeprefix("#/$defs/")
        if len(part) == 1 and named in kinds:
            part = dict(kinds[named])
            if not _is_named(named, kinds):
                del kinds[named]
        return {**part, "$defs": kinds} if kinds else part

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        return self._both.schema

    async def read_arguments(self, arguments: str, in_thread: InThread) -> str:
        given = await held(partial(in_thread, self._read_both, arguments))
        return str(given)

    async def problem(self, text: str, in_thread: InThread) -> str:
        return str(await held(partial(in_thread, self._problem, text)))

    def instance(self, value: Any) -> Any:
        return self._alone.parse(json.dumps({OUTPUT: value}))[OUTPUT]

    def _read_both(self, arguments: str) -> str:
        given = self._both.parse(arguments)
        # As the model gave it, for that is what is kept.
        if fault := problem_of(json.loads(arguments)[OUTPUT]):
            raise ToolError(f"the arguments of {self._both.tool!r} cannot be taken: {fault}")
        return str(given[SUMMARY])

    def _problem(self, text: str) -> str:
        _, fault = read_or_problem(text)
        return fault or "; ".join(self._alone.faults_in(f'{{"{OUTPUT}":{text}}}'))

    @cached_property
    def _alone(self) -> Arguments:
        return Arguments(OUTPUT, (Argument(name=OUTPUT, type=self.given),), self.names)

    @cached_property
    def _both(self) -> Arguments:
        summary = Argument(name=SUMMARY, type=str, description=SUMMARY_IS)
        return Arguments(
            "work_complete", (summary, Argument(name=OUTPUT, type=self.given)), self.names
        )


def _is_type(given: Any) -> bool:
    # A union, and what stands for a type under another name, is none and yet names one.
    named = type(given).__name__ in ("UnionType", "TypeAliasType", "NewType")
    return isinstance(given, type) or get_origin(given) is not None or named


def _is_named(name: str, part: Any) -> bool:
    """Whether a definition is referred to, be it by itself."""
    if isinstance(part, dict):
        return part.get("$ref") == f"#/$defs/{name}" or any(
            _is_named(name, one) for one in part.values()
        )
    return isinstance(part, list) and any(_is_named(name, one) for one in part)
