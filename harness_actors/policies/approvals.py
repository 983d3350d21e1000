"""Which calls a person must approve: a policy by the tool, by its effect and by the arguments."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal, Self, get_args

from harness_actors.errors import ConfigError
from harness_actors.policies.decisions import Approve, Refuse, decision_text
from harness_actors.policies.pattern_bounds import checked_pattern
from harness_actors.ports import Effect, ToolSpec

Decide = Literal["auto", "ask", "deny"]
Autonomy = Literal["low", "medium", "high"]
OnExpiry = Literal["deny", "approve"]

MOST_RULES = 100
WHY_CHARS = 500
"""Length of the reason of a rule, at most."""
SEARCHED_CHARS = 100_000
"""Length of an argument up to which patterns look at it; a longer one is taken for the worse."""
GLOB = re.compile(r"[*?\[]")
NOT_ALLOWED = "the approvals of this agent do not allow it"
NO_OBJECT = "its arguments are no JSON object, and nobody can be asked about such a call"
NOT_IN_TIME = "nobody has decided about it in time"


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
        _check_choice("decide", self.decide, get_args(Decide))
        object.__setattr__(self, "tools", _names("tools", self.tools))
        object.__setattr__(self, "effects", _names("effects", self.effects))
        for effect in self.effects:
            _check_choice("effects", effect, get_args(Effect))
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


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a policy says of one call.

    Attributes:
        decide: What becomes of it.
        why: For whoever is asked, or for the model; empty where it is made.
    """

    decide: Decide
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalNeed:
    """A person must approve of a call.

    Attributes:
        why: What for.
        expires_at: Until when, in seconds since the epoch; None for no end.
        default: The answer that counts from then on; None where it does not expire.
    """

    why: str
    expires_at: float | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """Which calls of an agent are made, asked about, or denied.

    `work_complete` and calls that ask the user themselves are always made.

    Attributes:
        rules: The first one that holds of a call decides; at most 100.
        otherwise: What is decided where none does.
        expires_s: For how many seconds an approval is waited for, above 0; None without end.
        on_expiry: What follows then.

    Raises:
        ConfigError: Something else is given.
    """

    rules: Sequence[ApprovalRule] = ()
    otherwise: Decide = "auto"
    expires_s: float | None = None
    on_expiry: OnExpiry = "deny"

    def __post_init__(self) -> None:
        given: object = self.rules
        if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
            problem = f"must be a list of ApprovalRule(...), not {given!r}"
            raise ConfigError("approvals.rules", problem)
        rules = tuple(_as_rule(at, rule) for at, rule in enumerate(given, start=1))
        if len(rules) > MOST_RULES:
            problem = f"there are {len(rules)} rules; {MOST_RULES} are allowed"
            raise ConfigError("approvals.rules", problem)
        object.__setattr__(self, "rules", rules)
        _check_choice("approvals.otherwise", self.otherwise, get_args(Decide))
        _check_choice("approvals.on_expiry", self.on_expiry, get_args(OnExpiry))
        expires: object = self.expires_s
        if expires is not None and (
            isinstance(expires, bool)
            or not isinstance(expires, int | float)
            or not math.isfinite(expires)
            or expires <= 0
        ):
            problem = f"must be a number of seconds above 0, not {expires!r}"
            raise ConfigError("approvals.expires_s", problem)

    @classmethod
    def of_autonomy(cls, level: Autonomy) -> Self:
        """The policy of an agent that may do so much by itself.

        Args:
            level: ``"low"``: a person is asked about whatever is not declared `read_only`.
                ``"medium"``: about what is `destructive` or reaches the `network`. ``"high"``:
                about nothing.

        Raises:
            ConfigError: There is no such level.
        """
        _check_choice("autonomy", level, get_args(Autonomy))
        effects = _ASKED_ABOUT[level]
        why = f"the autonomy of this agent is {level}"
        rules = (ApprovalRule(decide="ask", effects=effects, why=why),) if effects else ()
        return cls(rules=rules)

    @classmethod
    def from_mapping(cls, given: object) -> Self:
        """A policy of plain values, as an agent file has it.

        Raises:
            ConfigError: A field is unknown or at fault.
        """
        return cls(**_checked_fields("approvals", given, cls))

    @property
    def may_ask(self) -> bool:
        """Whether there are calls that a person is asked about."""
        return "ask" in (self.otherwise, *(rule.decide for rule in self.rules))

    def before(self, others: "Approvals") -> "Approvals":
        """These rules first, and then those of others."""
        return replace(self, rules=(*self.rules, *others.rules))

    def check_tools(self, names: Collection[str]) -> None:
        """Refuse a policy that names tools which an agent does not have.

        Args:
            names: Those that it has.

        Raises:
            ConfigError: A rule names another one; patterns may match none.
        """
        for at, rule in enumerate(self.rules, start=1):
            for name in rule.tools:
                if name not in names and not GLOB.search(name):
                    known = ", ".join(sorted(names)) or "none"
                    problem = f"there is no tool {name!r}; the agent has {known}"
                    raise ConfigError(f"approvals.rules[{at}].tools", problem)

    def ruled(self, tool: ToolSpec, arguments: str) -> Ruled:
        """What is decided of a call.

        Args:
            tool: What it calls.
            arguments: Those that it is made with, as JSON.
        """
        values = parsed_arguments(arguments)
        found = next((rule for rule in self.rules if rule.holds_of(tool, values)), None)
        decide, why = (self.otherwise, "") if found is None else (found.decide, found.why)
        match decide:
            case "ask" if values is None:
                return Ruled("deny", NO_OBJECT)
            case "deny":
                return Ruled("deny", why or NOT_ALLOWED)
            case "ask":
                return Ruled("ask", why)
            case "auto":
                return Ruled("auto")

    @property
    def default(self) -> str:
        """The answer that counts of what nobody has decided in time."""
        approves = self.on_expiry == "approve"
        return decision_text(Approve(note=NOT_IN_TIME) if approves else Refuse(NOT_IN_TIME))


_ASKED_ABOUT: Mapping[Autonomy, tuple[Effect, ...]] = {
    "low": tuple(effect for effect in get_args(Effect) if effect != "read_only"),
    "medium": ("network", "destructive"),
    "high": (),
}


def parsed_arguments(text: str) -> dict[str, Any] | None:
    """The arguments of a call by name; None where they are no JSON object.

    As for tools, a blank text is no arguments, and one name that is given twice is no JSON: what
    is decided about must be what is called with.
    """
    if not text.strip():
        return {}
    try:
        values = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name is given twice")
    return values


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _as_rule(at: int, given: object) -> ApprovalRule:
    if isinstance(given, ApprovalRule):
        return given
    field_name = f"approvals.rules[{at}]"
    values = _checked_fields(field_name, given, ApprovalRule)
    if "decide" not in values:
        problem = f"says nothing of decide, one of {', '.join(get_args(Decide))}"
        raise ConfigError(field_name, problem)
    try:
        return ApprovalRule(**values)
    except ConfigError as error:
        raise ConfigError(f"{field_name}.{error.field}", error.problem) from None


def _checked_fields(name: str, given: object, owner: type) -> dict[str, Any]:
    known = [part.name for part in fields(owner)]
    if not isinstance(given, Mapping):
        raise ConfigError(name, f"must have fields such as {known[0]}, not be {given!r:.80}")
    if unknown := [one for one in given if one not in known]:
        raise ConfigError(f"{name}.{unknown[0]}", f"no such field; there are {', '.join(known)}")
    return dict(given)


def _names(name: str, given: object) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence | frozenset | set):
        raise ConfigError(name, f"must be a list of names, not {given!r:.80}")
    if strange := [one for one in given if not isinstance(one, str) or not one]:
        raise ConfigError(name, f"must be a list of names, not with {strange[0]!r:.80}")
    return tuple(given) if isinstance(given, Sequence) else tuple(sorted(given))


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(name, f"must be one of {', '.join(choices)}, not {value!r:.80}")
