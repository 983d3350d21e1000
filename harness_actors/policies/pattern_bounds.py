"""Whether a pattern of a user's is certain to end soon, and how much text one match may take.

Python's `re` tries one way after another, and some patterns have more ways than there is time
for. So the ways of a pattern are counted before it is taken: each repeat must have an upper bound,
and the ways that one place of a text can be tried in must be few.
"""

import re
from typing import Any

from harness_actors.errors import ConfigError

MOST_WAYS = 2_000
"""Ways to try one place of a text in, at most: a second or so for the longest result of a tool."""
MOST_CHARS = 4_096
"""Characters of one match, at most."""

_parser: Any = re._parser  # type: ignore[attr-defined]
# Private, and the same since 3.11. Nothing public tells how a pattern is made.


def checked_pattern(field: str, text: object) -> str:
    """A pattern of a user's, in a group of its own.

    Args:
        field: Where it was given, for the error.
        text: The pattern.

    Raises:
        ConfigError: It is none; or it may try more than `MOST_WAYS` ways, match more than
            `MOST_CHARS` characters or nothing at all, or refers to a group.
    """
    if not isinstance(text, str):
        raise ConfigError(field, f"must be regular expressions as texts, not {text!r}")
    grouped = f"(?:{text})"
    try:
        re.compile(text)
        parsed = _parser.parse(grouped)
    except re.error as error:
        raise ConfigError(field, f"{text!r} is no regular expression: {error}") from None
    except RecursionError:
        raise ConfigError(field, f"{text[:60]!r}… is nested too deeply") from None
    least, _ = parsed.getwidth()
    if least == 0:
        raise ConfigError(field, f"{text!r} matches an empty text, which is everywhere")
    ways, chars = _ways(field, text, parsed), longest_match(grouped)
    if ways > MOST_WAYS:
        problem = (
            f"{text!r} can be tried in too many ways at one place of a text, and would hang on "
            "some; give repeats smaller bounds, and put none into another"
        )
        raise ConfigError(field, problem)
    if chars > MOST_CHARS:
        problem = f"{text!r} may match {chars:,} characters; {MOST_CHARS:,} are allowed"
        raise ConfigError(field, problem)
    return grouped


def longest_match(pattern: str) -> int:
    """Characters that a pattern looks at from where it begins, at most."""
    return int(_reach(_parser.parse(pattern)))


def _ways(field: str, text: str, parsed: Any) -> int:
    """In how many ways a sequence can be tried, counted up to just above `MOST_WAYS`."""
    ways = 1
    for kind, value in parsed:
        ways = min(ways * _ways_of(field, text, str(kind), value), MOST_WAYS + 1)
    return ways


def _ways_of(field: str, text: str, kind: str, value: Any) -> int:
    match kind:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, body = value
            if most >= _parser.MAXREPEAT:
                problem = (
                    f"{text!r} has a repeat without an upper bound; write {{1,200}} in place of +, "
                    "for example"
                )
                raise ConfigError(field, problem)
            within, total = _ways(field, text, body), 0
            for times in range(least, most + 1):
                total += min(within**times, MOST_WAYS + 1)
                if total > MOST_WAYS:
                    break
            return total
        case "SUBPATTERN":
            return _ways(field, text, value[-1])
        case "ATOMIC_GROUP":
            return _ways(field, text, value)
        case "ASSERT" | "ASSERT_NOT":
            return _ways(field, text, value[1])
        case "BRANCH":
            return sum(_ways(field, text, branch) for branch in value[1])
        case "GROUPREF" | "GROUPREF_EXISTS":
            raise ConfigError(field, f"{text!r} refers to a group, which is not taken here")
        case _:
            return 1


def _reach(parsed: Any) -> int:
    """As `getwidth`, with what is only looked at ahead."""
    ahead = 0
    for kind, value in parsed:
        match str(kind):
            case "ASSERT" | "ASSERT_NOT":
                ahead += _reach(value[1])
            case "SUBPATTERN":
                ahead += _reach(value[-1]) - value[-1].getwidth()[1]
            case "BRANCH":
                widest = max(branch.getwidth()[1] for branch in value[1])
                ahead += max(0, max(_reach(branch) for branch in value[1]) - widest)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                ahead += _reach(value[2]) - value[2].getwidth()[1]
    return int(parsed.getwidth()[1]) + ahead + 1  # one more, at which `\b` and `$` look
