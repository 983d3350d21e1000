"""What `@tool` is told besides the function, checked where it is written."""

import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from harness_actors.errors import ConfigError
from harness_actors.pickling import unpickled_with_defaults
from harness_actors.plan import DURABILITIES, Durability
from harness_actors.ports import Effect

MOST_RETRIES = 10

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@unpickled_with_defaults
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """What `@tool` is told besides the function; see there."""

    name: str
    effect: Effect = "local_write"
    idempotent: bool = False
    resource_keys: tuple[str, ...] = ()
    timeout_s: float | None = None
    volatile: bool = False
    worker: bool = False
    retries: int = 0
    retry_on: tuple[type[Exception], ...] = ()
    needs: tuple[str, ...] = ()
    polled: bool | None = None
    durability: Durability | None = None
    keep: tuple[str, ...] = ()


def checked_options(
    name: str,
    parameters: Sequence[str],
    *,
    effect: Effect,
    idempotent: bool | None,
    resource_keys: Sequence[str],
    timeout_s: float | None,
    volatile: bool,
    needs: Sequence[str],
    worker: bool,
    retries: int,
    retry_on: Sequence[type[Exception]],
    polled: bool | None,
    durability: Durability | None,
    keep: Sequence[str],
) -> ToolOptions:
    """The options, checked.

    Args:
        name: The tool's name.
        parameters: Names of the function's parameters.

    Raises:
        ConfigError: One of them cannot be used; the others are those of `@tool`.
    """
    field = f"tool {name!r}"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            field, "its name must be 1 to 64 letters, digits, '_' and '-'; give name="
        )
    if effect not in get_args(Effect):
        known = ", ".join(get_args(Effect))
        raise ConfigError(field, f"effect must be one of {known}, not {effect!r}")
    if idempotent is False and effect == "read_only":
        raise ConfigError(field, "a read_only tool is idempotent; leave idempotent out")
    if timeout_s is not None and not (math.isfinite(timeout_s) and timeout_s > 0):
        raise ConfigError(field, f"timeout_s must be a number above 0, not {timeout_s!r}")
    _check_keys(field, parameters, resource_keys)
    idempotent = effect == "read_only" if idempotent is None else idempotent
    _check_retries(field, retries, retry_on, idempotent=idempotent)
    return ToolOptions(
        name=name,
        effect=effect,
        idempotent=idempotent,
        resource_keys=tuple(resource_keys),
        timeout_s=timeout_s,
        volatile=volatile,
        needs=_checked_needs(field, needs),
        worker=worker,
        retries=retries,
        retry_on=tuple(retry_on),
        polled=polled,
        durability=_checked_durability(field, durability),
        keep=_checked_fields(field, keep),
    )


def _checked_durability(field: str, durability: Any) -> Durability | None:
    if durability is not None and durability not in DURABILITIES:
        known = ", ".join(DURABILITIES)
        raise ConfigError(field, f"durability must be one of {known}, not {durability!r}")
    return durability  # type: ignore[no-any-return]


def _checked_fields(field: str, keep: Any) -> tuple[str, ...]:
    if isinstance(keep, str) or not all(isinstance(name, str) and name for name in keep):
        raise ConfigError(field, f"keep must be a list of names of fields, not {keep!r}")
    return tuple(keep)


def _check_retries(
    field: str, retries: int, retry_on: Sequence[type[Exception]], *, idempotent: bool
) -> None:
    if isinstance(retries, bool) or not isinstance(retries, int):
        raise ConfigError(field, f"retries must be a whole number, not {retries!r}")
    if not 0 <= retries <= MOST_RETRIES:
        raise ConfigError(field, f"retries must be 0 to {MOST_RETRIES}, not {retries}")
    if retries and not idempotent:
        raise ConfigError(
            field,
            "only an idempotent tool may be tried again; say idempotent=True if a second call "
            "changes nothing more, or leave retries out",
        )
    kinds = retry_on if isinstance(retry_on, tuple | list) else (retry_on,)
    if kinds is not retry_on or not all(_is_exception(kind) for kind in kinds):
        raise ConfigError(field, f"retry_on must be a list of exceptions, not {retry_on!r}")


def _is_exception(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Exception)


def _checked_needs(field: str, needs: Any) -> tuple[str, ...]:
    if isinstance(needs, str) or not all(
        isinstance(name, str) and _NAME.fullmatch(name) for name in needs
    ):
        raise ConfigError(field, f"needs must be a list of names of capabilities, not {needs!r}")
    return tuple(needs)


def _check_keys(field: str, parameters: Sequence[str], keys: Sequence[str]) -> None:
    if isinstance(keys, str):
        raise ConfigError(field, f"resource_keys must be a list of texts, not {keys!r}")
    for key in keys:
        try:
            names = [part[1] for part in string.Formatter().parse(key) if part[1] is not None]
        except ValueError as error:
            raise ConfigError(field, f"resource key {key!r} is no template: {error}") from None
        for name in names:
            if re.split(r"[.\[]", name)[0] not in parameters:
                raise ConfigError(field, f"resource key {key!r} names no parameter {name!r}")
