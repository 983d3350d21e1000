"""The hooks, the middleware and the approvals that an agent file names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_actors.agents import ARTIFACT_READER
from harness_actors.compaction.strategies import check_own
from harness_actors.errors import BadInputError, ConfigError
from harness_actors.policies import Approvals, Hooks, Redact, ShellSafety, ToolUsage
from harness_actors.policies.hooks import KINDS
from harness_actors.ports import Tool
from harness_actors.subagents import SubAgentSpec, tools_of
from harness_actors.tools import find_object

SHIPPED: Mapping[str, Callable[..., Any]] = {
    "redact": Redact,
    "shell_safety": ShellSafety,
    "tool_usage": ToolUsage,
}


def hooks_of(given: Mapping[str, list[str]] | list[str], beside: Path, path: Path) -> Hooks:
    """The hooks of an agent file.

    Args:
        given: ``module:function`` by kind, or ``module:object`` of objects with such methods.
        beside: A folder whose modules are found as well, before all others.
        path: The file, for errors.

    Raises:
        BadInputError: One cannot be found, or is no hook.
    """
    try:
        if isinstance(given, list):
            return Hooks.given([_found(name, beside) for name in given])
        if unknown := [kind for kind in given if kind not in KINDS]:
            problem = f"there is no hook {unknown[0]!r}; there are {', '.join(KINDS)}"
            raise ConfigError("hooks", problem)
        named = {kind: [_found(name, beside) for name in names] for kind, names in given.items()}
        return Hooks(**named)
    except ConfigError as error:
        raise BadInputError(str(path), (f"persona.hooks: {error.problem}",)) from error


def middleware_of(
    given: list[str | dict[str, dict[str, Any]]], beside: Path, path: Path
) -> list[Any]:
    """The middleware of an agent file, the outermost first.

    Args:
        given: Shipped ones by name, such as ``redact``, alone or with their settings as in
            ``{redact: {patterns: [...]}}``; and ``module:name`` of one's own.
        beside: As of `hooks_of`.
        path: As of `hooks_of`.

    Raises:
        BadInputError: One cannot be found, or does not take a setting.
    """
    try:
        return [_middleware(one, beside) for one in given]
    except ConfigError as error:
        raise BadInputError(str(path), (f"persona.middleware: {error.problem}",)) from error


def strategies_of(given: Sequence[str], beside: Path, path: Path) -> list[Any]:
    """The strategies of an agent file.

    Args:
        given: ``module:Class``, which is made without arguments, or ``module:object``.
        beside: As of `hooks_of`.
        path: As of `hooks_of`.

    Raises:
        BadInputError: One cannot be found, or is no strategy.
    """
    try:
        found = [_found(name, beside) for name in given]
        made = [_made(one) if isinstance(one, type) else one for one in found]
        return list(check_own(made))
    except ConfigError as error:
        raise BadInputError(str(path), (f"persona.strategies: {error.problem}",)) from error


def _made(kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        problem = f"{kind.__name__} cannot be made without arguments: {error}"
        raise ConfigError("strategies", problem) from error


def approvals_of(
    given: Mapping[str, Any] | None,
    autonomy: Any,
    tools: Sequence[Tool],
    delegates: Sequence[SubAgentSpec] = (),
) -> Approvals | None:
    """The approvals of an agent file.

    Args:
        given: Their fields; None where it has none.
        autonomy: A level, whose rules come after those; None for none.
        tools: Those of the agent.
        delegates: To whom it delegates.

    Returns:
        None where no call is decided about.

    Raises:
        ConfigError: A field is at fault.
    """
    level = None if autonomy is None else Approvals.of_autonomy(autonomy)
    if given is None:
        return level if level is not None and level.rules else None
    named = Approvals.from_mapping(given)
    own = (tool.spec.name for tool in tools)
    named.check_tools({*own, *tools_of(delegates), ARTIFACT_READER})
    return named if level is None else named.before(level)


def _middleware(given: str | dict[str, dict[str, Any]], beside: Path) -> Any:
    named = {given: {}} if isinstance(given, str) else given
    if len(named) != 1:
        raise ConfigError("middleware", f"{given!r} must be given by one name each")
    ((name, settings),) = named.items()
    if name not in SHIPPED:
        if ":" not in name:
            known = ", ".join(sorted(SHIPPED))
            problem = f"no middleware {name!r}; there are {known}, and your own as module:name"
            raise ConfigError("middleware", problem)
        found = _found(name, beside)
        return found(**settings) if isinstance(found, type) else found
    try:
        return SHIPPED[name](**settings)
    except TypeError as error:
        raise ConfigError("middleware", f"{name} does not take that: {error}") from error


def _found(name: str, beside: Path) -> Any:
    found = find_object(name, beside=beside)
    if found is None:
        raise ConfigError("name", f"{name!r} has no such function or object")
    return found
