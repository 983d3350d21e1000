"""What runs used of which no line of the results tells."""

from typing import Any

import pytest

from harness_actors.batch.results_file import ResultLine
from harness_actors.batch.roster import Roster
from harness_actors.batch.spending import MOST, Unlisted, UsageSum, unlisted_usage
from harness_actors.batch.tasks import Task
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult, Reason, Usage


def a_run(
    name: str, *, ended: bool, attempt: int = 1, task_hash: str = "hash", **more: Any
) -> RunHeading:
    """A run of the task `t1` that has used one of everything."""
    usage = Usage(
        model_calls=1,
        tool_calls=1,
        input_tokens=1,
        output_tokens=1,
        cached_tokens=1,
        cost_usd=1.0,
    )
    note = {"task_id": "t1", "task_hash": task_hash, "attempt": attempt}
    done = Reason(kind="completed", message="")
    end = HarnessResult(run_id=name, status="done", reason=done, turn_count=1, usage=usage)
    given = {"metadata": note, "usage": usage, "turns": 1, "end": end if ended else None, **more}
    return RunHeading(run_id=name, conversation_id=name, added_at=0.0, **given)


def a_line(*, attempt: int, task_hash: str = "hash") -> ResultLine:
    return ResultLine(task_hash=task_hash, attempt=attempt, verdict="ok", out_of_budget=False)


def unlisted(
    *runs: RunHeading, line: ResultLine | None = None, whole: bool = True, listed: str = ""
) -> Unlisted:
    roster = Roster()
    roster.add(Task(id="t1", task="x", task_hash="hash"))
    roster.is_whole = whole
    lines = {} if line is None else {"t1": line}
    return unlisted_usage(runs, {listed}, roster, lines)


def test_runs_that_are_over_and_those_that_are_not_are_summed_up_apart() -> None:
    runs = [a_run("one", ended=True), a_run("two", ended=False), a_run("three", ended=False)]

    found = unlisted(*runs, a_run("in a line", ended=True), listed="in a line")

    assert (found.ended.runs, found.unfinished.runs) == (1, 2)
    assert found.ended.as_mapping() == dict.fromkeys(found.ended.as_mapping(), 1)
    assert found.unfinished.as_mapping() == dict.fromkeys(found.ended.as_mapping(), 2)


@pytest.mark.parametrize(
    ("line", "to_be_written"),
    [
        (None, 1),
        (a_line(attempt=1), 1),
        (a_line(attempt=3), 0),
        # Of what the task was before, or is no more.
        (a_line(attempt=3, task_hash="other"), 1),
    ],
)
def test_a_line_is_to_be_written_unless_a_later_attempt_has_one(
    line: ResultLine | None, to_be_written: int
) -> None:
    found = unlisted(a_run("r", ended=True, attempt=2), line=line)

    assert found.as_mapping()["unlisted"]["to_be_written"] == to_be_written


@pytest.mark.parametrize(("whole", "stranded"), [(True, 2), (False, 0)])
def test_unfinished_runs_of_no_task_are_told_apart_where_all_tasks_are_known(
    whole: bool, stranded: int
) -> None:
    runs = [
        a_run("ours", ended=False),
        a_run("of what was changed", ended=False, task_hash="other"),
        a_run("of a chat", ended=False, metadata={"from": "a chat"}),
        a_run("that is over", ended=True, task_hash="other"),
    ]

    found = unlisted(*runs, whole=whole).as_mapping()

    assert found["unfinished"]["of_removed_tasks"] == stranded
    assert (found["unfinished"]["runs"], found["unlisted"]["to_be_written"]) == (3, 0)


def test_what_no_run_can_have_used_spoils_no_sum() -> None:
    used = UsageSum()
    used.add(cost_usd=float("nan"), model_calls=MOST * 2, tool_calls=-1, turns=4)
    used.add(cost_usd=0.5, model_calls=3, tool_calls=2, turns=4)
    other = UsageSum()
    other.include(used)

    assert other.runs == 2
    told = other.as_mapping()
    assert (told["model_calls"], told["tool_calls"], told["turns"]) == (3, 2, 8)
    assert told["cost_usd"] == 0.5


def test_what_a_run_has_begun_is_counted_where_it_is_and_is_no_run_of_its_own() -> None:
    children = [
        a_run(f"{top}.1", ended=over, metadata={}, root=top)
        for top, over in (("in a line", True), ("over", True), ("going", True), ("going", False))
    ]
    tops = [
        a_run("in a line", ended=True),
        a_run("over", ended=True, attempt=2),
        a_run("going", ended=False, attempt=3),
    ]

    found = unlisted(*tops, *children, listed="in a line")

    told = found.as_mapping()
    assert (told["unlisted"]["runs"], told["unfinished"]["runs"]) == (1, 1)
    assert told["unfinished"]["of_removed_tasks"] == 0
    assert (found.ended.as_mapping()["cost_usd"], found.ended.as_mapping()["turns"]) == (2.0, 1)
    assert found.unfinished.as_mapping()["cost_usd"] == 3.0
