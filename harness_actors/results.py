"""How a run ended, and what it used."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from harness_actors.events import RunEvent
from harness_actors.pickling import pickled_by_position

Status = Literal["done", "stalled", "failed", "limit", "awaiting_input", "cancelled"]

LimitKind = Literal[
    "max_turns",
    "model_calls",
    "tool_calls",
    "time",
    "working_time",
    "tokens",
    "cost",
    "budget",
    "context",
]

REASONS: Mapping[Status, tuple[str, ...]] = {
    "done": ("completed", "answered", "unverified"),
    "stalled": ("repetition", "blocked", "no_completion"),
    "failed": ("model_error", "agent_error", "executor_lost", "node_lost", "store_error"),
    "limit": get_args(LimitKind),
    "awaiting_input": ("question", "approval"),
    "cancelled": ("user", "parent"),
}


def check_reason(status: str, kind: str) -> None:
    """Refuse an ending that the vocabulary does not have.

    Raises:
        ValueError: The status is unknown, or the kind is no reason for it.
    """
    kinds = next((kinds for name, kinds in REASONS.items() if name == status), None)
    if kinds is None:
        raise ValueError(f"{status!r} is no status; there are {', '.join(REASONS)}")
    if kind not in kinds:
        raise ValueError(f"{kind!r} is no reason for {status!r}; there are {', '.join(kinds)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a run ended. `kind` is one of `REASONS[status]`."""

    kind: str
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def error_facts(self) -> Mapping[str, Any]:
        """What is known of the error that a run failed with, such as its `type`."""
        error = self.details.get("error")
        return error if isinstance(error, Mapping) else self.details

    @property
    def traceback(self) -> str:
        """Where it failed in code of a user; empty where none had a part in it."""
        found = self.error_facts.get("traceback")
        return found if isinstance(found, str) else ""

    @property
    def questions(self) -> "tuple[OpenQuestion, ...]":
        """What a run asks that waits for its user; empty of any other."""
        return tuple(
            OpenQuestion(
                id=asked["id"],
                text=asked["text"],
                options=tuple(asked.get("options") or ()),
                why=asked.get("why") or "",
                kind=asked.get("kind") or "question",
                tool=asked.get("tool"),
                arguments=_arguments(asked.get("arguments")),
                expires_at=asked.get("expires_at"),
                path=asked.get("path") or "",
            )
            for asked in self.details.get("questions", ())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run used. All fields are sums over the run, its resumes included."""

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that the provider read from its cache."""
    cost_usd: float = 0.0
    working_s: float = 0.0
    """Seconds that somebody worked on the run, waits on rate limits left out."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def as_mapping(self) -> dict[str, int | float]:
        """The plain values by name."""
        # Not `asdict`, which copies numbers; the slots are the fields.
        return {name: getattr(self, name) for name in self.__slots__}

    def __add__(self, other: "Usage") -> "Usage":
        # Written out: it is added up in every round, and `asdict` takes longer than the rest.
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            working_s=self.working_s + other.working_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliverable:
    """Something the run was to produce."""

    item_id: str
    title: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """What a run asks its user, and goes on when it is answered.

    Attributes:
        id: Unique in its run; an answer names it.
        text: The question.
        options: The answers that may be given; empty where any may.
        why: What the answer is needed for; empty where the model did not say.
        kind: ``"approval"`` where a call waits for it: its answer is an `Approve`, a `Refuse` or a
            `Respond`, or else yes or no.
        tool: What that call is of; None of a question.
        arguments: What it would be made with; None of a question.
        expires_at: When it is decided by itself, in seconds since the epoch; None for never.
        path: Who asks below the run, as names of sub-agents with slashes between them; empty where
            it is the run itself.
    """

    id: str
    text: str
    options: tuple[str, ...] = ()
    why: str = ""
    kind: Literal["question", "approval"] = "question"
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    expires_at: float | None = None
    path: str = ""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One thing that the contract of a run requires, as it was found last.

    Attributes:
        id: Its id in the contract.
        description: What it is; shortened where it is long.
        status: `met`, `partially_met`, `skipped` or `unmet`; `unmet`, too, where nobody has looked.
        why: What is there instead; empty where it is met.
        optional: The run may be over without it.
    """

    id: str
    description: str
    status: str
    why: str = ""
    optional: bool = False


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ContractResult:
    """How the contract of a run stood when it was last verified.

    Attributes:
        satisfied: Nothing was missing then.
        attempts: How often the agent has said that it is done and was looked at; 0 for never, and
            then nothing is known to be met.
        recommendation: `done`; `need_user` where only answers of the user are missing; else
            `continue`.
        requirements: All of them, in the order of the contract.
        open_questions: What its user is to say and has not said.
    """

    satisfied: bool
    attempts: int
    recommendation: str
    requirements: tuple[Requirement, ...]
    open_questions: tuple[str, ...] = ()

    @property
    def unmet(self) -> tuple[Requirement, ...]:
        """Those that are needed and not, or not wholly, there."""
        return tuple(
            one
            for one in self.requirements
            if not one.optional and one.status not in ("met", "skipped")
        )


def decode_contract(plain: Mapping[str, Any] | None) -> ContractResult | None:
    """What `asdict` made of one, or was written of it as JSON."""
    if plain is None:
        return None
    given = dict(plain)
    given["requirements"] = tuple(Requirement(**one) for one in given["requirements"])
    given["open_questions"] = tuple(given["open_questions"])
    return ContractResult(**given)


def _arguments(told: object) -> Mapping[str, Any] | None:
    found = json.loads(told) if isinstance(told, str) else None
    return found if isinstance(found, dict) else None


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessResult:
    """How a run ended, or what it waits for.

    Attributes:
        run_id: The run.
        status: `done` is success; the others say in one word what else. `awaiting_input` is no
            end: the run waits for answers to `questions`.
        reason: Why, in words for programs (`kind`) and for people (`message`).
        turn_count: Turns that were started; where an executor of the user's own stands in the
            place of the agent turn, those that it answered.
        output_text: The summary given with `work_complete`, or else the last answer.
        completion_verified: The run ended by the rule that it was to end by; False
            where the harness gave up asking.
        usage: What it used, without what its children did.
        deliverables: What it produced; empty until work items are built.
        transcript: Its events, oldest first; empty in a batch, where they stay in the
            journal.
        wall_s: Seconds from its first start to its end.
        contract: How its contract stood at the end; None where it had none.
        output: The value that it came to, where it had an `output_type`: of a type an instance of
            that, where whoever gives the result has the type; else plain values. None where it has
            ended without one that fits.
        output_as_given: The same as plain values, as the model gave it, where `output` is an
            instance; see `output_plain`.
        children_usage: What its children used, with all below them; None where it had none.
        children: How many runs it has begun itself.
    """

    run_id: str
    status: Status
    reason: Reason
    turn_count: int = 0
    output_text: str = ""
    completion_verified: bool = False
    usage: Usage = field(default_factory=Usage)
    deliverables: tuple[Deliverable, ...] = ()
    transcript: tuple[RunEvent, ...] = ()
    wall_s: float = 0.0
    contract: ContractResult | None = None
    output: Any = None
    output_as_given: Any = field(default=None, repr=False, compare=False)
    children_usage: Usage | None = None
    children: int = 0

    def __post_init__(self) -> None:
        check_reason(self.status, self.reason.kind)

    @property
    def ok(self) -> bool:
        """It ended `done`, and its contract is met if it had one."""
        return self.status == "done" and (self.contract is None or self.contract.satisfied)

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """What it asks its user; empty unless its status is `awaiting_input`."""
        return self.reason.questions if self.status == "awaiting_input" else ()

    @property
    def usage_tree(self) -> Usage:
        """What it used together with all that it has begun."""
        return self.usage if self.children_usage is None else self.usage + self.children_usage

    @property
    def output_plain(self) -> Any:
        """The value that it came to, as plain values: what journals and files have of it."""
        return self.output if self.output_as_given is None else self.output_as_given

    def with_output(self, instance: Any) -> "HarnessResult":
        """The same with an instance of a type in the place of its plain values."""
        return replace(self, output=instance, output_as_given=self.output_plain)

    def with_transcript(self, events: tuple[RunEvent, ...]) -> "HarnessResult":
        return replace(self, transcript=events)


def encode_result(result: HarnessResult) -> dict[str, Any]:
    """The result as plain values, without its transcript; `decode_result` reads it."""
    # Not an instance, which may be anything.
    plain = asdict(replace(result, transcript=(), output=None, output_as_given=None))
    del plain["transcript"], plain["output_as_given"]
    plain["output"] = result.output_plain
    for name in ("contract", "output", "children_usage"):
        if plain[name] is None:
            del plain[name]
    if not result.children:
        del plain["children"]
    return plain


def decode_result(plain: Mapping[str, Any]) -> HarnessResult:
    """What `encode_result` wrote."""
    given = dict(plain)
    given["reason"] = Reason(**given["reason"])
    given["usage"] = Usage(**given["usage"])
    given["deliverables"] = tuple(Deliverable(**item) for item in given["deliverables"])
    given["contract"] = decode_contract(given.get("contract"))
    if given.get("children_usage") is not None:
        given["children_usage"] = Usage(**given["children_usage"])
    return HarnessResult(**given)
