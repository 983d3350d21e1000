"""What settings may be: each check refuses what is none, and names the setting."""

import math
from pathlib import Path

from harness_actors.errors import ConfigError

MOST_FACT_CHARS = 500
"""Of a sentence that every summary repeats."""


def sentences(name: str, value: object) -> tuple[str, ...]:
    """Sentences of a setting, as a tuple.

    Raises:
        ConfigError: It is something else.
    """
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise ConfigError(name, f"must be a list of sentences, not {value!r:.80}")
    for one in value:
        if not isinstance(one, str) or not one.strip() or len(one) > MOST_FACT_CHARS:
            most = f"a sentence of at most {MOST_FACT_CHARS} characters"
            raise ConfigError(name, f"must each be {most}, not {one!r:.80}")
    return tuple(value)


def names(name: str, value: object) -> tuple[str, ...]:
    """Names of a setting, each once, as a tuple.

    Raises:
        ConfigError: It is something else.
    """
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise ConfigError(name, f"must be a list of names, not {value!r:.80}")
    for one in value:
        if not isinstance(one, str) or list(value).count(one) > 1:
            raise ConfigError(name, f"must be names, each once, not {value!r:.80}")
    return tuple(value)


def folder(name: str, value: str | Path | None) -> Path | None:
    """A folder that is made if there is none; None for none.

    Raises:
        ConfigError: There is a file of this name.
    """
    path = None if value is None else Path(value).resolve()
    if path is not None and path.exists() and not path.is_dir():
        raise ConfigError(name, f"must be a folder, and {str(value)!r} is a file")
    return path


def check_count(name: str, value: object, *, optional: bool = False) -> None:
    """It must be a whole number of at least 1.

    Raises:
        ConfigError: It is something else.
    """
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(name, f"must be a whole number of at least 1, not {value!r}")


def check_flag(name: str, value: object) -> None:
    """It must be true or false.

    Raises:
        ConfigError: It is something else.
    """
    if not isinstance(value, bool):
        raise ConfigError(name, f"must be true or false, not {value!r}")


def check_amount(name: str, value: object) -> None:
    """It must be a number above 0, or None.

    Raises:
        ConfigError: It is something else.
    """
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type, operator]
        raise ConfigError(name, f"must be a number above 0, not {value!r}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """It must be one of these.

    Raises:
        ConfigError: It is something else.
    """
    if value not in choices:
        raise ConfigError(name, f"must be one of {', '.join(choices)}, not {value!r}")
