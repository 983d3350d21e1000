"""The line of a task: all that its run and its check have said is in it."""

import json
from dataclasses import asdict, replace

import pytest

from harness_actors.batch.causes import cause_of
from harness_actors.batch.outcomes import (
    RETRYABLE,
    CheckResult,
    decode_outcome,
    encode_outcome,
    may_help_again,
    outcome_of,
    outcome_of_bad,
)
from harness_actors.batch.tasks import BadTask, Task
from harness_actors.records import MadeWith
from harness_actors.results import (
    ContractResult,
    Deliverable,
    HarnessResult,
    Reason,
    Requirement,
    Status,
    Usage,
)

RESULT = HarnessResult(
    run_id="r",
    status="failed",
    reason=Reason(kind="agent_error", message="why", details={"type": "KeyError"}),
    turn_count=2,
    output_text="text",
    completion_verified=True,
    usage=Usage(
        model_calls=3,
        tool_calls=4,
        input_tokens=50,
        output_tokens=6,
        cached_tokens=7,
        cost_usd=0.125,
        working_s=1.23456,
    ),
    deliverables=(Deliverable(item_id="i", title="t", content="c"),),
    wall_s=9.87654,
)
CHECK = CheckResult(
    passed=True, exit_code=0, seconds=0.5, output="fine", ran_on="CPython", left_out=("a",)
)


def test_a_line_has_all_that_is_known_of_its_task() -> None:
    task = Task(id="t1", task="x", metadata={"level": 3})
    made_with = MadeWith(agent="ann", model="m", setup="s")

    outcome = outcome_of(task, RESULT, attempt=2, check=CHECK, setup="s", made_with=made_with)

    line = json.loads(json.dumps(encode_outcome(outcome)))
    assert line == {
        "id": "t1",
        "task_hash": task.task_hash,
        "run_id": "r",
        "attempt": 2,
        "status": "failed",
        "reason": {"kind": "agent_error", "message": "why", "details": {"type": "KeyError"}},
        "turns": 2,
        "model_calls": 3,
        "tool_calls": 4,
        "usage": {"input_tokens": 50, "output_tokens": 6, "cached_tokens": 7, "cost_usd": 0.125},
        "wall_s": 9.877,
        "working_s": 1.235,
        "output_text": "text",
        "deliverables": [{"item_id": "i", "title": "t", "content": "c"}],
        "completion_verified": True,
        "check": {**asdict(CHECK), "left_out": ["a"]},
        "error": {"type": "KeyError", "message": "why"},
        "metadata": {"level": 3},
        "agent": "ann",
        "model": "m",
        "setup": "s",
    }
    assert decode_outcome(line) == outcome


@pytest.mark.parametrize(
    ("satisfied", "passed", "verdict"),
    [
        (True, None, "ok"),
        (True, False, "check failed"),
        (False, None, "contract unmet"),
        (False, True, "contract unmet"),
    ],
)
def test_who_is_let_through_without_what_its_contract_wants_is_no_success(
    satisfied: bool, passed: bool | None, verdict: str
) -> None:
    missing = Requirement(
        id="R1", description="a report", optional=False, status="unmet", why="not there"
    )
    contract = ContractResult(
        satisfied=satisfied, attempts=6, recommendation="continue", requirements=(missing,)
    )
    reason = Reason(kind="unverified", message="after 5 nudges")
    result = replace(RESULT, status="done", reason=reason, contract=contract)
    check = None if passed is None else replace(CHECK, passed=passed)

    outcome = outcome_of(Task(id="t1", task="x"), result, attempt=1, check=check)

    assert (result.ok, outcome.verdict) == (satisfied, verdict)
    assert outcome.ok == (verdict == "ok")
    if not satisfied:
        assert cause_of(outcome) == "R1: a report: not there"


def test_a_task_that_cannot_be_run_says_all_that_is_wrong_with_it() -> None:
    bad = outcome_of_bad(BadTask(id="t1", task_hash="h", faults=("one", "two")))

    assert (bad.id, bad.task_hash, bad.run_id, bad.attempt) == ("t1", "h", None, 0)
    assert (bad.status, bad.reason) == ("failed", Reason(kind="bad_input", message="one; two"))
    assert bad.error == {"type": "BadInputError", "message": "one; two"}


@pytest.mark.parametrize("kind", ["QuestionAsked", "ApprovalAsked"])
def test_no_other_attempt_finds_somebody_to_answer(kind: str) -> None:
    error = {"reason": "agent_error", "type": kind, "message": "it asked"}
    reason = Reason(kind="agent_error", details={"turn": 1, "error": error})
    assert not may_help_again(HarnessResult(run_id="r", status="failed", reason=reason))


@pytest.mark.parametrize(
    ("status", "kind", "may"),
    [
        *(("failed", kind, True) for kind in RETRYABLE),
        ("failed", "store_error", False),
        ("limit", "budget", False),
        ("done", "completed", False),
    ],
)
def test_another_attempt_may_help_where_the_failure_may_go_away(
    status: Status, kind: str, may: bool
) -> None:
    result = HarnessResult(run_id="r", status=status, reason=Reason(kind=kind))

    assert may_help_again(result) is may


def test_a_line_of_a_run_that_has_begun_others_tells_of_their_tree_as_well() -> None:
    below = Usage(model_calls=5, tool_calls=1, input_tokens=10, output_tokens=4, cost_usd=0.5)
    result = replace(RESULT, children=2, children_usage=below)

    outcome = outcome_of(Task(id="t1", task="x"), result, attempt=1, check=None)
    line = json.loads(json.dumps(encode_outcome(outcome)))

    assert (line["children"], line["usage"]["cost_usd"], line["model_calls"]) == (2, 0.125, 3)
    assert line["usage_tree"] == {
        "input_tokens": 60,
        "output_tokens": 10,
        "cached_tokens": 7,
        "cost_usd": 0.625,
        "model_calls": 8,
        "tool_calls": 5,
    }
    assert decode_outcome(line) == outcome
    assert outcome.used == outcome.usage_tree


def test_what_a_run_used_that_has_begun_none_is_what_its_tree_has() -> None:
    outcome = outcome_of(Task(id="t1", task="x"), RESULT, attempt=1, check=None)

    assert outcome.usage_tree is None
    assert (outcome.used.model_calls, outcome.used.cost_usd) == (3, 0.125)
