"""Which calls a person must approve: a policy by the tool, by its effect and by the arguments."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

from harness_actors.errors import ConfigError
from harness_actors.policies.approval_rules import (
    ApprovalRule,
    Decide,
    check_choice,
    parsed_arguments,
)
from harness_actors.policies.decisions import Approve, Refuse, decision_text
from harness_actors.ports import Effect, ToolSpec

Autonomy = Literal["low", "medium", "high"]
OnExpiry = Literal["deny", "approve"]

MOST_RULES = 100
GLOB = re.compile(r"[*?\[]")
NOT_ALLOWED = "the approvals of this agent do not allow it"
NO_OBJECT = "its arguments are no JSON object, and nobody can be asked about such a call"
NOT_IN_TIME = "nobody has decided about it in time"


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
        check_choice("approvals.otherwise", self.otherwise, get_args(Decide))
        check_choice("approvals.on_expiry", self.on_expiry, get_args(OnExpiry))
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
        check_choice("autonomy", level, get_args(Autonomy))
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
