"""Checks of the fields of a contract, wherever they were written."""

import math
import posixpath
from collections.abc import Mapping
from typing import Any

from harness_actors.errors import ConfigError

MOST_CHARS = 10_000
"""Of one text of a contract: a goal, a command, a rubric."""
ID_CHARS = 100


def check_text(field: str, value: object, *, most: int = MOST_CHARS) -> None:
    """Refuse what is no text with something in it.

    Args:
        field: The name of the field, for the error.
        value: What was given.
        most: Characters that it may have.

    Raises:
        ConfigError: It is none, empty, too long, or no valid Unicode.
    """
    if not isinstance(value, str):
        raise ConfigError(field, f"must be a text, not {shown(value)}")
    if not value.strip():
        raise ConfigError(field, "is empty")
    if len(value) > most:
        raise ConfigError(field, f"has {len(value):,} characters, and may have {most:,}")
    if "\0" in value:
        raise ConfigError(field, "holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(field, f"is no valid Unicode at character {error.start}") from None


def check_path(field: str, value: object) -> None:
    """Refuse what is no path below the top folder of a workspace.

    Where its symlinks lead is seen when it is looked at.

    Raises:
        ConfigError: It is no text, absolute, or leads out of the workspace.
    """
    check_text(field, value, most=4_000)
    assert isinstance(value, str)
    if value.startswith("/"):
        problem = f"{shown(value)} is absolute; use a path relative to the top of the workspace"
        raise ConfigError(field, problem)
    if posixpath.normpath(value).split("/")[0] == "..":
        problem = f"{shown(value)} is outside of the workspace; use a path below its top folder"
        raise ConfigError(field, problem)


def check_flag(field: str, value: object) -> None:
    """Refuse what is neither true nor false.

    Raises:
        ConfigError: That is what it is.
    """
    if not isinstance(value, bool):
        raise ConfigError(field, f"must be true or false, not {shown(value)}")


def check_whole(field: str, value: object, *, least: int = 0, most: int = 2**53) -> None:
    """Refuse what is no whole number within bounds.

    Raises:
        ConfigError: That is what it is.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        problem = f"must be a whole number from {least} to {most:,}, not {shown(value)}"
        raise ConfigError(field, problem)


def check_seconds(field: str, value: object, *, most: float) -> None:
    """Refuse what is no time.

    Raises:
        ConfigError: It is no number, not above 0, or above `most`.
    """
    if not _is_number(value) or not 0 < value <= most:  # type: ignore[operator]
        raise ConfigError(
            field, f"must be seconds above 0 and at most {most:g}, not {shown(value)}"
        )


def check_share(field: str, value: object) -> None:
    """Refuse what is no number from 0 to 1.

    Raises:
        ConfigError: That is what it is.
    """
    if not _is_number(value) or not 0 <= value <= 1:  # type: ignore[operator]
        raise ConfigError(field, f"must be a number from 0 to 1, not {shown(value)}")


def texts(field: str, value: object, *, paths: bool = False) -> tuple[str, ...]:
    """The texts of a list.

    Args:
        field: The name of the field, for the error.
        value: What was given.
        paths: They are paths of the workspace.

    Raises:
        ConfigError: It is no list, or what is in it is none.
    """
    if not isinstance(value, list | tuple):
        raise ConfigError(field, f"must be a list of texts, not {shown(value)}")
    for place, each in enumerate(value):
        (check_path if paths else check_text)(f"{field}[{place}]", each)
    return tuple(value)


def is_fields(value: object) -> bool:
    """Whether it maps names to values."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def shown(value: Any, most: int = 60) -> str:
    """A value as errors show it, cut where it is long."""
    # Whole, a large one would take long to be written out.
    if isinstance(value, Mapping):
        return "fields"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"
    text = repr(value[: most + 1] if isinstance(value, str) else value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)
