"""The document of an agent file: its sections and fields, and what is said of a faulty one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harness_actors.errors import BadInputError
from harness_actors.given_file import read_given
from harness_actors.messages import MOST_LEVELS, is_too_deep

MOST_BYTES = 4 * 1024 * 1024
"""Of an agent file."""


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _present(cls, given: object) -> object:
        """A field without a value is one that was not given."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None}


class PriceFields(_Fields):
    """What a million tokens cost, in USD."""

    input: float = Field(ge=0, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)


class ModelFields(_Fields):
    """Which model, where, and with which fields of each request."""

    id: str | None = None
    base_url: str | None = None
    key_name: str | None = Field(default=None, min_length=1)
    settings: dict[str, Any] = Field(default_factory=dict)
    structured_output: bool | None = None
    price: PriceFields | None = None
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_retries: int | None = Field(default=None, ge=0)

    @property
    def bounds(self) -> dict[str, Any]:
        """Those that were given of how long and how often it is asked."""
        given = {"timeout_s": self.timeout_s, "max_retries": self.max_retries}
        return {name: value for name, value in given.items() if value is not None}


class SummarizerFields(ModelFields):
    """A model that puts long conversations into few words, and what it is told."""

    instructions: str | None = None


class ShippedAgentFields(_Fields):
    """One of the shipped agents to delegate to, and what may be said of it."""

    use: str
    model: Any = None
    limits: dict[str, Any] | None = None
    background: bool = False


class SubAgentFields(_Fields):
    """An agent to which another one delegates."""

    name: str
    description: str
    instructions: str = ""
    model: Any = None
    tools: list[str] | None = None
    reads_only: bool = False
    background: bool = False
    fork: bool = False
    limits: dict[str, Any] | None = None
    completion: Any = None
    max_words: int | None = None
    contract: Any = None
    output_type: Any = None
    sub_agents: Any = None
    workspace: Any = None


M = TypeVar("M", bound=ModelFields)
P = TypeVar("P", bound=_Fields)


class PersonaFields(_Fields):
    """Who the agent is."""

    instructions: str = ""
    hooks: dict[str, list[str]] | list[str] = Field(default_factory=dict)
    middleware: list[str | dict[str, dict[str, Any]]] = Field(default_factory=list)
    contract: Any = None
    output_type: Any = None
    judges: dict[str, Any] = Field(default_factory=dict)
    summarizer: Any = None
    strategies: list[str] = Field(default_factory=list)
    sub_agents: Any = None
    autonomy: str | None = None
    approvals: dict[str, Any] | None = None


class WorkspaceFields(_Fields):
    """The folder that each run begins with a copy of."""

    from_: str = Field(alias="from", min_length=1)


class EnvironmentFields(_Fields):
    """What the agent works with."""

    tools: list[str] = Field(default_factory=list)
    capabilities: list[str] | None = None
    workspace: WorkspaceFields | None = None


class AgentFields(_Fields):
    """The whole document."""

    model: ModelFields = Field(default_factory=ModelFields)
    models: list[ModelFields] | None = None
    fallback: list[str] | None = None
    persona: PersonaFields = Field(default_factory=PersonaFields)
    environment: EnvironmentFields = Field(default_factory=EnvironmentFields)
    harness: dict[str, Any] = Field(default_factory=dict)

    @field_validator("model", mode="before")
    @classmethod
    def _named(cls, given: object) -> object:
        """``model: local`` is short for ``model: {id: local}``."""
        return {"id": given} if isinstance(given, str) else given

    @field_validator("models", mode="before")
    @classmethod
    def _all_named(cls, given: object) -> object:
        return [cls._named(one) for one in given] if isinstance(given, list) else given

    @model_validator(mode="after")
    def _one_or_several(self) -> "AgentFields":
        if self.models is not None and "model" in self.model_fields_set:
            raise ValueError("there is a model and models; name all in models, the preferred first")
        if self.models is None and self.fallback is not None:
            raise ValueError("fallback is for several models; name them in models")
        return self


class _OnceLoader(yaml.SafeLoader):
    """Refuses a field that is given twice, of which YAML would take the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names: set[Any] = set()
        for key, _ in node.value:
            # What is merged in by `<<` may be given again.
            if key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    raise yaml.MarkedYAMLError(
                        problem=f"{key.value!r} is given twice", problem_mark=key.start_mark
                    )
                names.add(key.value)
        return super().construct_mapping(node, deep=deep)


def read_document(path: Path) -> AgentFields:
    """The fields of an agent file.

    Raises:
        BadInputError: It cannot be read, or a field is at fault.
    """
    try:
        # A safe loader, which makes no objects but plain values.
        document = yaml.load(read_given(path, MOST_BYTES, "agent").decode("utf-8"), _OnceLoader)
        if is_too_deep(_own_part(document)):
            raise RecursionError
        return AgentFields.model_validate({} if document is None else document)
    except RecursionError:
        problem = f"it is nested more than {MOST_LEVELS} levels deep"
        raise BadInputError(str(path), (problem,)) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInputError(str(path), (_first_line(error),)) from error
    except ValidationError as error:
        faults = tuple(_sentence(fault) for fault in error.errors())
        raise BadInputError(str(path), faults) from error


def without_agents(part: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an agent but for those to which it delegates, who are read one by one."""
    return {name: value for name, value in part.items() if name != "sub_agents"}


def _own_part(document: Any) -> Any:
    persona = document.get("persona") if isinstance(document, dict) else None
    if not isinstance(persona, dict):
        return document
    return {**document, "persona": without_agents(persona)}


def read_judges(given: Mapping[str, Any], path: Path) -> dict[str, ModelFields]:
    """The judges of an agent file, by name; one that is a text is the id of its model.

    Raises:
        BadInputError: A field is at fault.
    """
    read, faults = {}, list[str]()
    for name, fields in given.items():
        try:
            read[name] = read_aside(fields, ModelFields, f"persona.judges.{name}", path)
        except BadInputError as error:
            faults += error.faults
    if faults:
        raise BadInputError(str(path), tuple(faults))
    return read


def read_aside(given: Any, kind: type[M], section: str, path: Path) -> M:
    """A model that is asked for something of its own; a text is its id.

    Args:
        given: What the file says.
        kind: The fields that it may have.
        section: Where that stands.
        path: The file.

    Raises:
        BadInputError: A field is at fault.
    """
    return read_part({"id": given} if isinstance(given, str) else given, kind, section, path)


def read_part(given: Any, kind: type[P], section: str, path: Path) -> P:
    """A part of an agent file that is read by itself.

    Args:
        given: What the file says.
        kind: The fields that it may have.
        section: Where that stands.
        path: The file.

    Raises:
        BadInputError: A field is at fault.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        faults = tuple(_sentence(fault, kind, section) for fault in error.errors())
        raise BadInputError(str(path), faults) from error


def _first_line(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return " ".join(str(error).split())


def _sentence(fault: Any, kind: type[_Fields] | None = None, section: str = "") -> str:
    where = ".".join(filter(None, (section, *map(str, fault["loc"])))) or "the document"
    match fault["type"]:
        case "extra_forbidden":
            known = ", ".join(_fields_of(fault["loc"][:-1], kind))
            return f"{where}: there is no such field; there are {known}"
        case "missing":
            return f"{where}: it must have one"
        case "model_type" | "dict_type":
            fields = _fields_of(fault["loc"], kind)
            such = f" such as {fields[0]}" if fields else ""
            return f"{where}: must have fields{such}, not be {type(fault['input']).__name__}"
        case _:
            return f"{where}: {fault['msg']}"


_SECTIONS: dict[tuple[Any, ...], type[_Fields]] = {
    (): AgentFields,
    ("model",): ModelFields,
    ("model", "price"): PriceFields,
    ("persona",): PersonaFields,
    ("environment",): EnvironmentFields,
    ("environment", "workspace"): WorkspaceFields,
}


def _fields_of(section: tuple[Any, ...], kind: type[_Fields] | None = None) -> list[str]:
    if kind is not None and not section:
        return list(kind.model_fields)
    # Those of a price are the same of every model.
    if kind is not None and section[0] == "price":
        section = ("model", "price")
    # Each of several models has the fields of one.
    if section[:1] == ("models",) and len(section) > 1:
        section = ("model", *section[2:])
    fields = _SECTIONS[section].model_fields if section in _SECTIONS else {}
    return [field.alias or name for name, field in fields.items()]
