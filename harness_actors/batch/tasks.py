"""A task: what is to be done, in which folder, by whom, and how its outcome is checked."""

import hashlib
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness_actors.config import HarnessConfig, Limits
from harness_actors.errors import ConfigError
from harness_actors.messages import MOST_LEVELS, encode_json, is_too_deep

CHECK_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How a finished run is scored: a command in a fresh copy of its workspace.

    Attributes:
        command: A shell command; the check is passed when it exits with 0.
        files: A folder whose content is laid over the copy, such as hidden tests; None
            for none.
        timeout_s: Seconds after which the command is killed and the check failed.
        keep: Patterns of files that steer tests, such as `conftest.py` or `Makefile`, which
            the check is to see as the run has left them.
    """

    command: str
    files: str | None = None
    timeout_s: float = CHECK_TIMEOUT_S
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a batch.

    Attributes:
        task: What is to be done: the text of a user message.
        id: Its name, unique in the batch; empty: made of the hash.
        workspace: The folder that its run begins with a copy of; None for none.
        check: How its outcome is scored; None leaves it unscored.
        contract: What its run must have come to before it is over, in place of what its agent is
            held to: a `TaskContract`, or its plain values, as which it is kept; None leaves it at
            that, and ``{}`` holds the run to nothing. A line of a tasks file says so by `null`.
        agent: An agent file to run it with; None takes the agent of the batch.
        limits: Bounds of its run, `max_turns` and the fields of `Limits`; they take
            precedence over those of the batch.
        metadata: Plain values to find again in its outcome.
        task_hash: Hash of the content, `id` left out; computed where it is empty.
        beside: A folder in which the functions that its contract names are looked for, too; None
            for none.
    """

    task: str
    id: str = ""
    workspace: str | None = None
    check: Check | None = None
    contract: Mapping[str, Any] | None = None
    agent: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    task_hash: str = ""
    beside: str | None = None

    def __post_init__(self) -> None:
        given: Any = self.contract
        if hasattr(given, "as_plain"):
            object.__setattr__(self, "contract", given.as_plain())
        task_hash = self.task_hash or content_hash(asdict(self))
        object.__setattr__(self, "task_hash", task_hash)
        object.__setattr__(self, "id", self.id or task_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadTask:
    """A task that cannot be run: its outcome is that it says why.

    Attributes:
        id: The id that it gives itself, or one made of its content.
        task_hash: Hash of its content.
        faults: What is wrong with it, one sentence each.
    """

    id: str
    task_hash: str
    faults: tuple[str, ...]


class _CheckFields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    command: str = Field(min_length=1)
    files: str | None = None
    timeout_s: float = Field(default=CHECK_TIMEOUT_S, gt=0, allow_inf_nan=False)
    keep: list[str] = Field(default_factory=list)


class _TaskFields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: str | None = Field(default=None, min_length=1)
    task: str = Field(min_length=1)
    workspace: str | None = None
    check: _CheckFields | None = None
    contract: dict[str, Any] | None = None
    agent: str | None = None
    limits: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)


def parse_task(content: Mapping[str, Any] | object, *, base: Path) -> Task | BadTask:
    """The task that plain values describe, checked in full.

    Args:
        content: The fields of a task, as a line of a tasks file gives them.
        base: The folder that its paths are relative to.
    """
    if is_too_deep(content):
        shallow = {"id": content.get("id")} if isinstance(content, Mapping) else {}
        return bad_task(shallow, (f"it is nested more than {MOST_LEVELS} levels deep",))
    try:
        given = _TaskFields.model_validate(content)
    except ValidationError as error:
        return bad_task(
            content,
            tuple(
                _sentence(fault) for fault in error.errors(include_url=False, include_context=False)
            ),
        )
    if given.contract == {}:
        return bad_task(content, ("contract: is empty; say null to hold this task to nothing",))
    lifted = given.contract is None and "contract" in given.model_fields_set
    contract = {} if lifted else given.contract
    workspace, check = _folder(base, given.workspace), None
    if given.check is not None:
        check = Check(
            command=given.check.command,
            files=_folder(base, given.check.files),
            timeout_s=given.check.timeout_s,
            keep=tuple(given.check.keep),
        )
    task = Task(
        id=given.id or "",
        task=given.task,
        workspace=workspace,
        check=check,
        agent=None if given.agent is None else str((base / given.agent).resolve()),
        limits=given.limits,
        metadata=given.metadata,
        contract=contract,
        beside=None if given.contract is None else str(base.resolve()),
        # Of the paths as they are written: a folder that is moved holds the same tasks.
        task_hash=content_hash({**given.model_dump(), "contract": contract}),
    )
    faults = find_faults(task)
    return bad_task(content, faults) if faults else task


def bad_task(content: object, faults: tuple[str, ...]) -> BadTask:
    """A task of which only its faults can be told."""
    plain = content if isinstance(content, Mapping) else {"content": repr(content)}
    task_hash = content_hash(plain)
    name = plain.get("id")
    return BadTask(
        id=name if isinstance(name, str) and name else task_hash,
        task_hash=task_hash,
        faults=faults,
    )


def find_faults(task: Task) -> tuple[str, ...]:
    """What keeps a task from being run: folders that are missing, limits out of range."""
    faults = []
    files = None if task.check is None else task.check.files
    for name, path in (("workspace", task.workspace), ("check.files", files)):
        if path is not None and not Path(path).is_dir():
            faults.append(f"{name}: there is no folder {path!r}")
    faults += _contract_faults(task.contract)
    if not _is_plain(task.metadata):
        faults.append("metadata: must hold plain JSON values only")
    if task.agent is not None and not Path(task.agent).is_file():
        faults.append(f"agent: there is no file {task.agent!r}")
    try:
        with_limits(HarnessConfig(), task.limits)
    except ConfigError as error:
        faults.append(str(error))
    return tuple(faults)


def _contract_faults(given: object) -> list[str]:
    if given is None or given == {}:
        return []
    # Here, for it loads what checks schemas, which most batches do not need.
    from harness_actors.contracts.plain import read_contract

    _, faults = read_contract(given)
    return list(faults.below("contract").sentences())


def with_limits(config: HarnessConfig, limits: Mapping[str, Any]) -> HarnessConfig:
    """The settings with bounds replaced: `max_turns` and the fields of `Limits`.

    Raises:
        ConfigError: A bound is unknown or out of range.

    >>> with_limits(HarnessConfig(), {"max_turns": 3, "tokens": 900}).limits.tokens
    900
    """
    if not limits:
        return config
    known = ("max_turns", *(f.name for f in fields(Limits)))
    for name in limits:
        if name not in known:
            raise ConfigError(f"limits.{name}", f"no such limit; there are {', '.join(known)}")
    bounds = {name: value for name, value in limits.items() if name != "max_turns"}
    max_turns = limits.get("max_turns", config.max_turns)
    return replace(config, max_turns=max_turns, limits=replace(config.limits, **bounds))


def content_hash(content: Mapping[str, Any]) -> str:
    """Hash of a task's content, 16 hex digits.

    Neither the id, nor the order of fields, nor a field that is empty changes it.
    """
    named = {
        name: value
        for name, value in content.items()
        if name not in ("id", "task_hash", "beside")
        and (value not in (None, {}, "") or (name == "contract" and value == {}))
    }
    check = named.get("check")
    if isinstance(check, Mapping) and check.get("keep") in ([], ()):
        # As if there was no such field: the hashes of earlier versions stand.
        named["check"] = {name: value for name, value in check.items() if name != "keep"}
    hashed = hashlib.sha256()
    for piece in _canonical(named):
        hashed.update(piece)
    return hashed.hexdigest()[:16]


def _canonical(value: Any) -> Iterator[bytes]:
    """The value as JSON in pieces, fields in the order of their names."""
    with suppress(TypeError):
        yield orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS)
        return
    # What is no JSON, or only nearly, occurs seldom: the same, part by part.
    if isinstance(value, Mapping):
        yield b"{"
        for place, name in enumerate(sorted(value, key=str)):
            yield (b"," if place else b"") + encode_json(str(name)) + b":"
            yield from _canonical(value[name])
        yield b"}"
    elif isinstance(value, list | tuple):
        yield b"["
        for place, item in enumerate(value):
            yield b"," if place else b""
            yield from _canonical(item)
        yield b"]"
    else:
        yield encode_json(value if _is_plain(value) else repr(value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        # Rounded where it is written, but a hash is of what was given.
        return False
    try:
        encode_json(value)
    except (TypeError, ValueError):
        return False
    return True


def _folder(base: Path, path: str | None) -> str | None:
    return None if path is None else str((base / path).resolve())


def _sentence(fault: Any) -> str:
    """One fault as pydantic tells it, in words for whoever wrote the file."""
    where = ".".join(str(part) for part in fault["loc"])
    match fault["type"]:
        case "extra_forbidden":
            return f"{where}: there is no such field"
        case "missing":
            return f"{where}: this field is required"
        case "model_type":
            return f"{where or 'the task'}: must be an object with fields, not {_shown(fault)}"
        case _:
            problem = str(fault["msg"]).removeprefix("Input ")
            return f"{where}: {problem}, not {_shown(fault)}"


def _shown(fault: Any) -> str:
    return textwrap.shorten(repr(fault["input"]), width=80, placeholder=" …")
