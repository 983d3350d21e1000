"""One rule about calls: which it is of, and what is decided of these."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal, get_args

from harness_actors.errors import ConfigError
from harness_actors.exact_json import once
from harness_actors.policies.pattern_bounds import checked_pattern
from harness_actors.ports import Effect, ToolSpec

Decide = Literal["auto", "ask", "deny"]

WHY_CHARS = 500
"""Length of the reason of a rule, at most."""
SEARCHED_CHARS = 100_000
"""Length of an argument up to which patterns look at it; a longer one is taken for the worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """What is decided of some calls.

    A call is one of these where all that is given here holds of it.

    Attributes:
        decide: ``"auto"``: it is made; ``"ask"``: a person is asked first; ``"deny"``: it is not
            made, and the model is told so.
        tools: Names of tools, or patterns such as ``"crm_*"``; empty for all.
        effects: What they may change, as tools declare it; empty for whatever.
        arguments: Regular expressions by the name of an argument, found anywhere in it; of what is
            no text, in its JSON. One that the call does not have is not matched. Where nobody can
            look, because the arguments are no JSON object or one has more than 100,000
            characters, ``ask`` and ``deny`` hold, and ``auto`` does not.
        why: For whoever is asked, or for the model that is denied it; at most 500 characters.

    Raises:
        ConfigError: Something else is given.
    """

    decide: Decide
    tools: Sequence[str] = ()
    effects: Sequence[Effect] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    why: str = ""

    def __post_init__(self) -> None:
        check_choice("decide", self.decide, get_args(Decide))
        object.__setattr__(self, "tools", _names("tools", self.tools))
        object.__setattr__(self, "effects", _names("effects", self.effects))
        for effect in self.effects:
            check_choice("effects", effect, get_args(Effect))
        patterns: object = self.arguments
        if not isinstance(patterns, Mapping):
            problem = f"must be regular expressions by argument, not {patterns!r:.80}"
            raise ConfigError("arguments", problem)
        for name, pattern in patterns.items():
            if not isinstance(name, str):
                raise ConfigError("arguments", f"{name!r} is no name of an argument")
            checked_pattern(f"arguments.{name}", pattern)
        object.__setattr__(self, "arguments", dict(patterns))
        why: object = self.why
        if not isinstance(why, str) or len(why) > WHY_CHARS:
            problem = f"must be a text of at most {WHY_CHARS} characters, not {why!r:.80}"
            raise ConfigError("why", problem)

    def holds_of(self, tool: ToolSpec, arguments: Any) -> bool:
        """Whether a call is one of these.

        Args:
            tool: What it calls.
            arguments: Those that it is made with, as JSON values; None where they are no JSON.
        """
        if self.tools and not any(fnmatchcase(tool.name, name) for name in self.tools):
            return False
        if self.effects and tool.effect not in self.effects:
            return False
        return not self.arguments or self._matches(arguments)

    def _matches(self, arguments: Any) -> bool:
        if not isinstance(arguments, dict):
            return self.decide != "auto"
        for name, pattern in self.arguments.items():
            if name not in arguments:
                return False
            value = arguments[name]
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if len(text) > SEARCHED_CHARS:
                if self.decide == "auto":
                    return False
            elif _compiled(pattern).search(text) is None:
                return False
        return True


def parsed_arguments(text: str) -> dict[str, Any] | None:
    """The arguments of a call by name; None where they are no JSON object.

    As for tools, a blank text is no arguments, and one name that is given twice is no JSON: what
    is decided about must be what is called with.
    """
    if not text.strip():
        return {}
    try:
        values = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _names(name: str, given: object) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence | frozenset | set):
        raise ConfigError(name, f"must be a list of names, not {given!r:.80}")
    if strange := [one for one in given if not isinstance(one, str) or not one]:
        raise ConfigError(name, f"must be a list of names, not with {strange[0]!r:.80}")
    return tuple(given) if isinstance(given, Sequence) else tuple(sorted(given))


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is none of these.

    Raises:
        ConfigError: It is another one.
    """
    if value not in choices:
        raise ConfigError(name, f"must be one of {', '.join(choices)}, not {value!r:.80}")
