"""How a task ended: one line of `results.jsonl`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, cast

from harness_actors.batch.tasks import BadTask, Task
from harness_actors.records import MadeWith
from harness_actors.results import (
    ContractResult,
    Deliverable,
    HarnessResult,
    OpenQuestion,
    Reason,
    Status,
    Usage,
    decode_contract,
)

Verdict = Literal[
    "ok",
    "failed",
    "check failed",
    "contract unmet",
    "limit",
    "stalled",
    "cancelled",
    "waiting",
]
"""How a task ended, with its check: `check failed` and `contract unmet` only where its run ended
`done`; `waiting` where it has not, and its run waits for its user."""

OUT_OF_BUDGET = ("limit", "budget")
"""Status and reason of what was stopped because the budget of the whole batch was spent."""

RETRYABLE = ("model_error", "agent_error", "executor_lost", "node_lost")
"""Reasons of failed runs for which another attempt may help."""

ASKED = ("QuestionAsked", "ApprovalAsked")
"""Errors of runs that asked their user and must not: nobody answers the second time either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUsage:
    """What the run of a task used itself, in tokens and US dollars."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeUsage(TaskUsage):
    """What the run of a task used together with all that it has begun."""

    model_calls: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a task's check said of its finished run.

    Attributes:
        passed: The command exited with 0 in time.
        exit_code: Its exit status, 128 and the signal where one ended it; None where it
            ran out of time or could not be started.
        seconds: How long it ran.
        output: The beginning and the end of what it printed.
        ran_on: The Python that it had, which was found unchanged since the command began,
            with its standard library; empty where it was not run.
        left_out: What it did not see, or not as a run has left it: files of the workspace
            that would have steered it, and programs and packages that were changed or added.
    """

    passed: bool
    exit_code: int | None
    seconds: float
    output: str
    ran_on: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """How a task ended, or what its run waits for.

    Attributes:
        id: The task.
        task_hash: Hash of its content: a task that was changed is another one.
        run_id: The run that was its last attempt; None for a task that could not be run.
        attempt: How many runs it took; 0 for a task that could not be run.
        status: As of `HarnessResult`.
        reason: As of `HarnessResult`, or `bad_input` for a task that could not be run.
        turns: Turns of the last attempt; as are the other figures.
        wall_s: Seconds from its start to its end.
        working_s: Seconds that somebody worked on it.
        check: What its check said; None where it has none, or the run failed.
        error: Type and message of what failed; None where nothing did.
        metadata: That of the task.
        agent: Name of the agent that its run was made with; None where that is not known.
        model: Name of the model.
        setup: Hash of both with the settings: equal set-ups have equal ones.
        contract: How what its run was held to stood at the end; None where it was held to nothing.
        output: The value that its run came to, as plain values, where it was to come to one.
        children: How many runs its run has begun.
        usage_tree: What it used together with all of these; None where it has begun none.
    """

    id: str
    task_hash: str
    run_id: str | None
    attempt: int
    status: Status
    reason: Reason
    turns: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    usage: TaskUsage = field(default_factory=TaskUsage)
    wall_s: float = 0.0
    working_s: float = 0.0
    output_text: str = ""
    deliverables: tuple[Deliverable, ...] = ()
    completion_verified: bool = False
    check: CheckResult | None = None
    error: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent: str | None = None
    model: str | None = None
    setup: str | None = None
    contract: ContractResult | None = None
    output: Any = None
    children: int = 0
    usage_tree: TreeUsage | None = None

    @property
    def ok(self) -> bool:
        """The run ended `done`, its contract is met and its check passed, if it has them."""
        return self.verdict == "ok"

    @property
    def verdict(self) -> Verdict:
        """How it ended, with its contract and its check."""
        if self.status == "awaiting_input":
            return "waiting"
        if self.status != "done":
            return cast("Verdict", self.status)
        if self.contract is not None and not self.contract.satisfied:
            return "contract unmet"
        return "ok" if self.check is None or self.check.passed else "check failed"

    @property
    def used(self) -> TreeUsage:
        """What its run used, with all that it has begun."""
        if self.usage_tree is not None:
            return self.usage_tree
        return TreeUsage(
            model_calls=self.model_calls, tool_calls=self.tool_calls, **asdict(self.usage)
        )

    @property
    def is_final(self) -> bool:
        """It is the end of the task, and a line of the results; else its run goes on when it
        is answered."""
        return self.status != "awaiting_input"

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """What its run asks its user; empty where it is final."""
        return () if self.is_final else self.reason.questions

    @property
    def out_of_budget(self) -> bool:
        """It was stopped because the budget of the whole batch was spent."""
        return (self.status, self.reason.kind) == OUT_OF_BUDGET


def outcome_of(
    task: Task,
    result: HarnessResult,
    *,
    attempt: int,
    check: CheckResult | None,
    setup: str | None = None,
    made_with: MadeWith | None = None,
) -> TaskOutcome:
    """The outcome of a task whose run ended, or waits.

    Args:
        task: The task.
        result: How its run ended, or what it waits for.
        attempt: How many runs it took.
        check: What its check said; None where it was not scored.
        setup: Hash of what the run was made with; None where that is not known.
        made_with: The names of that; None where they are not on record.
    """
    usage = result.usage
    return TaskOutcome(
        id=task.id,
        task_hash=task.task_hash,
        run_id=result.run_id,
        attempt=attempt,
        status=result.status,
        reason=result.reason,
        turns=result.turn_count,
        model_calls=usage.model_calls,
        tool_calls=usage.tool_calls,
        usage=TaskUsage(**_amounts(TaskUsage, usage)),
        wall_s=round(result.wall_s, 3),
        working_s=round(usage.working_s, 3),
        output_text=result.output_text,
        deliverables=result.deliverables,
        completion_verified=result.completion_verified,
        check=check,
        error=_error_of(result),
        metadata=task.metadata,
        agent=None if made_with is None else made_with.agent,
        model=None if made_with is None else made_with.model,
        setup=setup,
        contract=result.contract,
        output=result.output_plain,
        children=result.children,
        usage_tree=TreeUsage(**_amounts(TreeUsage, result.usage_tree)) if result.children else None,
    )


def _amounts(kind: type[TaskUsage], usage: Usage) -> dict[str, Any]:
    return {one.name: getattr(usage, one.name) for one in fields(kind)}


def outcome_of_bad(task: BadTask) -> TaskOutcome:
    """The outcome of a task that cannot be run."""
    message = "; ".join(task.faults)
    return TaskOutcome(
        id=task.id,
        task_hash=task.task_hash,
        run_id=None,
        attempt=0,
        status="failed",
        reason=Reason(kind="bad_input", message=message),
        error={"type": "BadInputError", "message": message},
    )


def may_help_again(result: HarnessResult) -> bool:
    """Whether another attempt could end otherwise."""
    if result.status != "failed" or result.reason.kind not in RETRYABLE:
        return False
    return result.reason.error_facts.get("type") not in ASKED


def encode_outcome(outcome: TaskOutcome) -> dict[str, Any]:
    """The outcome as plain values, in the order of the results file."""
    plain = asdict(outcome)
    for name in ("contract", "output", "usage_tree"):
        if plain[name] is None:
            del plain[name]
    if not outcome.children:
        del plain["children"]
    return plain


def decode_outcome(plain: Mapping[str, Any]) -> TaskOutcome:
    """What `encode_outcome` wrote.

    Raises:
        KeyError: A part is missing.
        TypeError: A part is not what it should be.
    """
    given = dict(plain)
    given["reason"] = Reason(**given["reason"])
    given["usage"] = TaskUsage(**given["usage"])
    if given.get("usage_tree") is not None:
        given["usage_tree"] = TreeUsage(**given["usage_tree"])
    given["deliverables"] = tuple(Deliverable(**item) for item in given["deliverables"])
    if given["check"] is not None:
        check = CheckResult(**given["check"])
        given["check"] = replace(check, left_out=tuple(check.left_out))
    given["contract"] = decode_contract(given.get("contract"))
    return TaskOutcome(**given)


def _error_of(result: HarnessResult) -> dict[str, Any] | None:
    if result.status != "failed":
        return None
    kind = result.reason.error_facts.get("type", result.reason.kind)
    return {"type": kind, "message": result.reason.message}
