"""The plan by which a log is shown, as a value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Action = Literal["clear", "externalize", "drop"]
"""What becomes of a range of a log, the mildest first. `clear`: results that can be had again are
named in one line. `externalize`: that, and what is longer than some lines shows its beginning and
its end. `drop`: all of it is named in one message. Whatever is not shown can be read by its
position."""

Durability = Literal["replayable", "ephemeral", "anchoring", "non_replayable"]
"""What a tool's result is worth later: it can be had again by the same call; it was true for a
moment; that it was done matters, and some of its fields; it can never be had again."""
DURABILITIES: tuple[Durability, ...] = get_args(Durability)


class UnreadablePlanError(ValueError):
    """Plain values are no plan, or one of a later version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """What may become of the results of a tool.

    Attributes:
        durability: What they are worth later.
        keep: Fields of the arguments or of the result, as JSON objects, that stay in sight.
    """

    durability: Durability = "anchoring"
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A result in a dropped range that can be had by no call: where it is, and what it was."""

    at: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of a log that is shown otherwise.

    Attributes:
        start: Position of its first message.
        end: Position behind its last one.
        action: What becomes of it.
        shown_chars: Of a message that is too long, how much is shown of it, in characters.
        references: Of a dropped range, the results in it that can be had by no call.
    """

    start: int
    end: int
    action: Action
    shown_chars: int = 0
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """How a conversation is shown to its model.

    The log itself never changes. A message that is in no span is shown as it is, and so is every
    one from `upto` on: whatever was added since the plan was made.

    Attributes:
        version: Its number; those of a conversation count up from 1.
        base: Version of the plan that it was made from, 0 for none. It may only follow that one.
        upto: How many messages it knows of.
        spans: In the order of the log, not overlapping. None begins or ends between the calls of
            a message and their results.
        policies: By name, the tools whose results are not just `anchoring`.
    """

    version: int
    base: int
    upto: int
    spans: tuple[Span, ...]
    policies: Mapping[str, ToolPolicy] = field(default_factory=dict)

    def follows(self, plan: "CompactionPlan | None") -> bool:
        """Whether it was made from a plan; None for none."""
        base = 0 if plan is None else plan.version
        return self.base == base and self.version == base + 1

    def as_plain(self) -> dict[str, Any]:
        """The plan as plain values, for the journal."""
        spans = [
            {name: value for name, value in asdict(span).items() if value} for span in self.spans
        ]
        policies = {name: asdict(policy) for name, policy in self.policies.items()}
        return {
            "version": self.version,
            "base": self.base,
            "upto": self.upto,
            "spans": spans,
            "policies": policies,
        }

    @classmethod
    def from_plain(cls, plain: Any) -> "CompactionPlan":
        """What `as_plain` wrote.

        Raises:
            UnreadablePlanError: It is no such thing.
        """
        try:
            plan = cls(
                version=_count(plain["version"]),
                base=_count(plain["base"]),
                upto=_count(plain["upto"]),
                spans=tuple(_span(span) for span in plain["spans"]),
                policies=policies_from(plain["policies"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnreadablePlanError(f"not a plan: {error!r}"[:200]) from error
        at = 0
        for span in plan.spans:
            if not at <= span.start < span.end <= plan.upto:
                raise UnreadablePlanError(f"not a plan: {span!r} is out of order"[:200])
            at = span.end
        return plan


def policies_from(plain: Mapping[str, Any]) -> dict[str, ToolPolicy]:
    """Policies by the names of their tools, from plain values.

    Raises:
        ValueError: A durability is unknown.
    """
    return {name: _policy(one) for name, one in plain.items()}


def _policy(plain: Mapping[str, Any]) -> ToolPolicy:
    if plain["durability"] not in DURABILITIES:
        raise ValueError(f"no such durability: {plain['durability']!r}")
    return ToolPolicy(durability=plain["durability"], keep=tuple(map(str, plain["keep"])))


def _span(plain: Mapping[str, Any]) -> Span:
    if plain["action"] not in get_args(Action):
        raise ValueError(f"no such action: {plain['action']!r}")
    return Span(
        start=_count(plain.get("start", 0)),
        end=_count(plain["end"]),
        action=plain["action"],
        shown_chars=_count(plain.get("shown_chars", 0)),
        references=tuple(
            Reference(at=_count(one["at"]), what=str(one["what"]))
            for one in plain.get("references", ())
        ),
    )


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"must be a count, not {value!r}")
    return value
