"""Regular expressions of contracts: refused where they may never end.

What passes is still searched for in a process that is killed at its deadline, unless it is plain.
"""

import re
from typing import Any

from harness_actors.contracts.fields import check_text, shown
from harness_actors.errors import ConfigError

MOST_CHARS = 2_000
PLAIN_CHARS = 500
"""Of a pattern that is no more than a text: with it, a search takes no longer than its text."""

_parser: Any = re._parser  # type: ignore[attr-defined]
# Private, and the same since 3.11. Nothing public tells how a pattern is made.
_FLAGS = re.compile(r"\(\?([aimsux]+)\)")


def check_pattern(field: str, value: object) -> None:
    """Refuse what is no regular expression, or one that may take forever on some text.

    Refused is a repeat without an upper bound within another one, such as ``(a+)+``: of those
    Python's `re` tries twice as many ways with each character more.

    Args:
        field: The name of the field, for the error.
        value: What was given.

    Raises:
        ConfigError: That is what it is.
    """
    check_text(field, value, most=MOST_CHARS)
    assert isinstance(value, str)
    try:
        re.compile(value)
        parsed = _parser.parse(value)
    except (re.error, OverflowError) as error:
        raise ConfigError(field, f"{shown(value)} is no regular expression: {error}") from None
    except RecursionError:
        raise ConfigError(field, f"{shown(value)} is nested too deeply") from None
    if _repeats_repeats(parsed, within=False):
        problem = (
            f"{shown(value)} may never end: a repeat without an upper bound is within another one; "
            "write {1,200} in place of one + or *, for example"
        )
        raise ConfigError(field, problem)


def is_plain(pattern: str) -> bool:
    """Whether it stands for its own text and nothing else, and is short.

    >>> is_plain("tests passed"), is_plain("[0-9]+ passed")
    (True, False)
    """
    return len(pattern) <= PLAIN_CHARS and not set(pattern) & set(r".^$*+?{}[]\|()")


def with_case(pattern: str, *, ignored: bool) -> str:
    """The pattern with the flag that upper and lower case are the same.

    >>> with_case("(?s)a.b", ignored=True)
    '(?is)a.b'
    """
    if not ignored:
        return pattern
    # Python takes such flags at the very beginning alone.
    flags = _FLAGS.match(pattern)
    own = "" if flags is None else flags[1].replace("i", "")
    return f"(?i{own}){pattern if flags is None else pattern[flags.end() :]}"


def _repeats_repeats(parsed: Any, *, within: bool) -> bool:
    return any(_endless(str(kind), value, within=within) for kind, value in parsed)


def _endless(kind: str, value: Any, *, within: bool) -> bool:
    match kind:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            _, most, body = value
            unbounded = most >= _parser.MAXREPEAT
            if unbounded and within:
                return True
            return _repeats_repeats(body, within=within or unbounded)
        case "SUBPATTERN":
            return _repeats_repeats(value[-1], within=within)
        case "ATOMIC_GROUP":
            return _repeats_repeats(value, within=within)
        case "ASSERT" | "ASSERT_NOT":
            return _repeats_repeats(value[1], within=within)
        case "BRANCH":
            return any(_repeats_repeats(branch, within=within) for branch in value[1])
        case "GROUPREF_EXISTS":
            _, yes, no = value
            branches = (yes,) if no is None else (yes, no)
            return any(_repeats_repeats(branch, within=within) for branch in branches)
        case _:
            return False
