"""What can be asked of a finished task by itself: each a value, checked where it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import orjson

from harness_actors.contracts.fields import (
    check_flag,
    check_path,
    check_seconds,
    check_text,
    check_whole,
    is_fields,
    shown,
    texts,
)
from harness_actors.contracts.patterns import check_pattern
from harness_actors.contracts.schemas import check_schema
from harness_actors.errors import ConfigError
from harness_actors.messages import MOST_BITS, MOST_LEVELS, encode_json, is_too_deep

COMMAND_S, MOST_COMMAND_S = 60.0, 600.0
CUSTOM_S = 10.0
JUDGE_S = 60.0
MOST_ARGUMENT_BYTES = 48_000
MOST_JUDGED_FILES = 20


class PredicateKind(StrEnum):
    """The kinds of predicates; their values are their names in files."""

    FILE_EXISTS = "file_exists"
    CONTAINS_TEXT = "contains_text"
    TOOL_RESULT_SUCCESS = "tool_result_success"
    JSON_SCHEMA_VALID = "json_schema_valid"
    COMMAND_SUCCEEDS = "command_succeeds"
    CUSTOM = "custom"
    MODEL_JUDGED = "model_judged"
    ALWAYS_TRUE = "always_true"
    ALL = "all"
    ANY = "any"
    NOT = "not"


@dataclass(frozen=True, slots=True)
class FileExists:
    """A file, or a folder, is there.

    Attributes:
        path: Relative to the top folder of the workspace.
        folder: A folder is meant, and not a file.
        min_bytes: What the file has at least.
    """

    kind: ClassVar = PredicateKind.FILE_EXISTS
    path: str
    folder: bool = field(default=False, kw_only=True)
    min_bytes: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        check_path("path", self.path)
        check_flag("folder", self.folder)
        check_whole("min_bytes", self.min_bytes)
        if self.folder and self.min_bytes:
            raise ConfigError("min_bytes", "is of files; a folder has none, so leave one out")

    def __str__(self) -> str:
        more = f" of at least {self.min_bytes:,} bytes" if self.min_bytes else ""
        return f"there is a {'folder' if self.folder else 'file'} {shown(self.path, 200)}{more}"


@dataclass(frozen=True, slots=True)
class ContainsText:
    """A file, or the agent's last answer, has a text that a regular expression matches.

    Attributes:
        pattern: For Python's `re`; ``^`` and ``$`` are those of lines.
        file: Relative to the top folder of the workspace; None for the answer.
        ignore_case: Upper and lower case are the same.
    """

    kind: ClassVar = PredicateKind.CONTAINS_TEXT
    pattern: str
    file: str | None = field(default=None, kw_only=True)
    ignore_case: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        check_pattern("pattern", self.pattern)
        if self.file is not None:
            check_path("file", self.file)
        check_flag("ignore_case", self.ignore_case)

    def __str__(self) -> str:
        return f"{place_of(self.file)} contains {shown(self.pattern, 200)}"


@dataclass(frozen=True, slots=True)
class ToolResultSuccess:
    """The newest result of a tool is a success.

    Attributes:
        tool_name: The tool.
    """

    kind: ClassVar = PredicateKind.TOOL_RESULT_SUCCESS
    tool_name: str

    def __post_init__(self) -> None:
        check_text("tool_name", self.tool_name, most=200)

    def __str__(self) -> str:
        return f"the last call of the tool {self.tool_name!r} succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchemaValid:
    """A file, or the agent's last answer, is JSON that a schema allows.

    Attributes:
        schema: The schema; draft 2020-12 unless it names another dialect.
        file: Relative to the top folder of the workspace; None for the answer.
    """

    kind: ClassVar = PredicateKind.JSON_SCHEMA_VALID
    schema: Mapping[str, Any]
    file: str | None = None

    def __post_init__(self) -> None:
        check_schema("schema", self.schema)
        # Its own: the caller's may change.
        object.__setattr__(self, "schema", orjson.loads(encode_json(self.schema)))
        if self.file is not None:
            check_path("file", self.file)

    def __str__(self) -> str:
        return f"{place_of(self.file)} is JSON as its schema has it"


@dataclass(frozen=True, slots=True)
class CommandSucceeds:
    """A shell command in the workspace exits with 0.

    Attributes:
        command: For bash (sh where there is none); it has no input.
        timeout_s: When it is killed with all that it started, in seconds.
    """

    kind: ClassVar = PredicateKind.COMMAND_SUCCEEDS
    command: str
    timeout_s: float = field(default=COMMAND_S, kw_only=True)

    def __post_init__(self) -> None:
        check_text("command", self.command)
        check_seconds("timeout_s", self.timeout_s, most=MOST_COMMAND_S)

    def __str__(self) -> str:
        return f"the command {shown(self.command, 200)} succeeds"


@dataclass(frozen=True, slots=True)
class Custom:
    """A function of yours says so.

    Attributes:
        name: Under which it is registered, or ``module:function``.
        arguments: What it is told besides; plain values.
        timeout_s: How long it may take, in seconds.
    """

    kind: ClassVar = PredicateKind.CUSTOM
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    timeout_s: float = field(default=CUSTOM_S, kw_only=True)

    def __post_init__(self) -> None:
        check_text("name", self.name, most=300)
        check_seconds("timeout_s", self.timeout_s, most=MOST_COMMAND_S)
        if not is_fields(self.arguments):
            raise ConfigError("arguments", f"must have fields, not be {shown(self.arguments)}")
        if is_too_deep(self.arguments) or not _is_plain(self.arguments):
            problem = f"must be plain values of JSON, at most {MOST_LEVELS} levels deep"
            raise ConfigError("arguments", problem)
        encoded = encode_json(self.arguments)
        if len(encoded) > MOST_ARGUMENT_BYTES:
            problem = f"have {len(encoded):,} bytes as JSON, and may have {MOST_ARGUMENT_BYTES:,}"
            raise ConfigError("arguments", problem)
        object.__setattr__(self, "arguments", orjson.loads(encoded))

    def __str__(self) -> str:
        return f"{self.name!r} holds"


@dataclass(frozen=True, slots=True)
class ModelJudged:
    """Another model, which is told a rubric and what was made, says so.

    Attributes:
        rubric: What must be so, for the judge.
        files: What it is shown besides the answer, relative to the top of the workspace.
        model: Which model; None leaves that to the run.
        timeout_s: How long it may take, in seconds.
    """

    kind: ClassVar = PredicateKind.MODEL_JUDGED
    rubric: str
    files: tuple[str, ...] = field(default=(), kw_only=True)
    model: str | None = field(default=None, kw_only=True)
    timeout_s: float = field(default=JUDGE_S, kw_only=True)

    def __post_init__(self) -> None:
        check_text("rubric", self.rubric)
        object.__setattr__(self, "files", texts("files", self.files, paths=True))
        if len(self.files) > MOST_JUDGED_FILES:
            raise ConfigError("files", f"are {len(self.files)}; {MOST_JUDGED_FILES} are allowed")
        if self.model is not None:
            check_text("model", self.model, most=200)
        check_seconds("timeout_s", self.timeout_s, most=MOST_COMMAND_S)

    def __str__(self) -> str:
        return f"a judge finds: {shown(self.rubric, 200)}"


@dataclass(frozen=True, slots=True)
class AlwaysTrue:
    """Nothing is looked at: that it is done is left to the model."""

    kind: ClassVar = PredicateKind.ALWAYS_TRUE

    def __str__(self) -> str:
        return "the model says so"


Leaf = (
    FileExists
    | ContainsText
    | ToolResultSuccess
    | JsonSchemaValid
    | CommandSucceeds
    | Custom
    | ModelJudged
    | AlwaysTrue
)
LEAVES: tuple[type[Any], ...] = Leaf.__args__


def place_of(file: str | None) -> str:
    """A file, or the answer, as sentences have it."""
    return "the last answer" if file is None else shown(file, 200)


def _is_plain(value: object) -> bool:
    match value:
        case None | bool() | str():
            return True
        case int():
            return value.bit_length() <= MOST_BITS
        case float():
            return value == value and abs(value) != float("inf")
        case list() | tuple():
            return all(map(_is_plain, value))
        case _:
            return is_fields(value) and all(map(_is_plain, value.values()))  # type: ignore[attr-defined]
