"""The plan by which a log is shown, as a value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from harness_actors.plan.reference import Reference as Reference
from harness_actors.plan.reference import UnreadablePlanError as UnreadablePlanError
from harness_actors.plan.reference import count_in
from harness_actors.plan.summary import Summary

Action = Literal["clear", "externalize", "drop", "summarize"]
"""What becomes of a range of a log, the mildest first. `clear`: results that can be had again are
named in one line. `externalize`: that, and what is longer than some lines shows its beginning and
its end. `drop`: all of it is named in one message. `summarize`: of all such ranges together, one
message says what was in them. Whatever is not shown can be read by its position."""

Durability = Literal["replayable", "ephemeral", "anchoring", "non_replayable"]
"""What a tool's result is worth later: it can be had again by the same call; it was true for a
moment; that it was done matters, and some of its fields; it can never be had again."""
DURABILITIES: tuple[Durability, ...] = get_args(Durability)


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
        summary: Of the ranges that are summarized; None where none is.
        summary_chars: How long the message with it may be, in characters.
        made_of: Keys of the summaries that are in it, and in no plan before.
    """

    version: int
    base: int
    upto: int
    spans: tuple[Span, ...]
    policies: Mapping[str, ToolPolicy] = field(default_factory=dict)
    summary: Summary | None = None
    summary_chars: int = 0
    made_of: tuple[str, ...] = ()

    @property
    def summarized(self) -> tuple[Span, ...]:
        """The ranges of which its summary tells."""
        return tuple(span for span in self.spans if span.action == "summarize")

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
        plain: dict[str, Any] = {
            "version": self.version,
            "base": self.base,
            "upto": self.upto,
            "spans": spans,
            "policies": policies,
        }
        if self.summary is not None:
            plain["summary"] = self.summary.as_plain()
            plain["summary_chars"] = self.summary_chars
        if self.made_of:
            plain["made_of"] = list(self.made_of)
        return plain

    @classmethod
    def from_plain(cls, plain: Any) -> "CompactionPlan":
        """What `as_plain` wrote.

        Raises:
            UnreadablePlanError: It is no such thing.
        """
        try:
            summary = plain.get("summary")
            plan = cls(
                version=count_in(plain["version"]),
                base=count_in(plain["base"]),
                upto=count_in(plain["upto"]),
                spans=tuple(_span(span) for span in plain["spans"]),
                policies=policies_from(plain["policies"]),
                summary=None if summary is None else Summary.from_plain(summary),
                summary_chars=count_in(plain.get("summary_chars", 0)),
                made_of=tuple(map(str, plain.get("made_of", ()))),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnreadablePlanError(f"not a plan: {error!r}"[:200]) from error
        at = 0
        for span in plan.spans:
            if not at <= span.start < span.end <= plan.upto:
                raise UnreadablePlanError(f"not a plan: {span!r} is out of order"[:200])
            at = span.end
        if (plan.summary is None) == bool(plan.summarized):
            raise UnreadablePlanError("not a plan: its summary and its ranges do not agree")
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
        start=count_in(plain.get("start", 0)),
        end=count_in(plain["end"]),
        action=plain["action"],
        shown_chars=count_in(plain.get("shown_chars", 0)),
        references=tuple(map(Reference.from_plain, plain.get("references", ()))),
    )
