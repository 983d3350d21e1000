"""What is next for a task, by its line and its runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.batch.history import Attempt, Begin, Continue, Done, History, NextStep, Wait
from harness_actors.batch.outcomes import Verdict
from harness_actors.batch.results_file import ResultLine
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.tasks import Task
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult, Reason, Status, Usage
from harness_actors.setups import Setup

TASK = Task(id="t1", task="x", task_hash="hash")
NOW = Setup(agent="ann", model="new", parts={}, hash="new")


def a_line(
    verdict: Verdict = "ok",
    *,
    attempt: int = 1,
    out_of_budget: bool = False,
    setup: str | None = "new",
    task_hash: str = "hash",
) -> ResultLine:
    return ResultLine(
        task_hash=task_hash,
        attempt=attempt,
        verdict=verdict,
        out_of_budget=out_of_budget,
        setup=setup,
    )


def an_end(
    name: str, status: Status = "done", kind: str = "completed", *, cost_usd: float = 1.0
) -> HarnessResult:
    return HarnessResult(
        run_id=name,
        status=status,
        reason=Reason(kind=kind, message=""),
        turn_count=1,
        usage=Usage(cost_usd=cost_usd),
    )


def a_question(name: str, answer: str | None = None) -> dict[str, Any]:
    return {"id": name, "text": f"{name}?", "options": [], "why": "", "answer": answer}


def a_run(
    name: str,
    *,
    end: HarnessResult | None = None,
    attempt: int = 1,
    retries: int = 0,
    setup: str | None = "new",
    task_hash: str = "hash",
    **more: Any,
) -> RunHeading:
    """A run of the task that has cost 1 USD so far."""
    note = {"task_id": "t1", "task_hash": task_hash, "attempt": attempt, "retries": retries}
    given: dict[str, Any] = {
        "metadata": {**note, "setup": setup},
        "usage": Usage(cost_usd=1.0),
        "changed_at": 9.0,
        **more,
    }
    return RunHeading(run_id=name, conversation_id=name, added_at=4.0, end=end, **given)


def next_of(
    *runs: RunHeading, line: ResultLine | None = None, home: Path | None = None, **settings: Any
) -> NextStep:
    lines = {} if line is None else {"t1": line}
    history = History(lines, runs, None if home is None else lambda run_id: home / run_id)
    return history.next_step(TASK, BatchSettings(**settings), NOW)


def attempt_of(step: NextStep) -> Attempt:
    assert isinstance(step, Continue | Wait)
    return step.attempt


def test_what_nobody_has_begun_is_begun() -> None:
    assert next_of() == Begin(1)
    assert next_of(a_run("r", task_hash="of earlier"), line=a_line(task_hash="other")) == Begin(1)


@pytest.mark.parametrize(
    ("line", "settings", "step"),
    [
        (a_line(), {}, Done("ok", False, "new")),
        (a_line(), {"retry_failed": True}, Done("ok", False, "new")),
        (a_line("failed", attempt=3), {}, Done("failed", False, "new")),
        (a_line("failed", attempt=3), {"retry_failed": True}, Begin(4)),
        (a_line("check failed"), {"retry_failed": True}, Begin(2)),
        (a_line("limit"), {}, Done("limit", False, "new")),
        (a_line("limit"), {"budget_usd": 99.0}, Done("limit", False, "new")),
        (a_line(setup="old"), {}, Done("ok", False, "old")),
        (a_line(setup="old"), {"on_change": "accept"}, Done("ok", False, "old")),
        (a_line(setup="old"), {"on_change": "retry"}, Begin(2)),
        (a_line(setup=None), {"on_change": "retry"}, Done("ok", False, None)),
    ],
)
def test_a_line_is_final_unless_it_is_to_be_done_again(
    line: ResultLine, settings: dict[str, Any], step: NextStep
) -> None:
    assert next_of(line=line, **settings) == step


@pytest.mark.parametrize("more", [{}, {"retry_failed": True}, {"on_change": "retry"}])
@pytest.mark.parametrize(
    ("budget_usd", "step"),
    [(1.0, Done("limit", True, "old")), (1.5, Begin(2)), (None, Begin(2))],
)
def test_what_a_budget_has_stopped_is_begun_again_with_a_larger_one_and_not_before(
    budget_usd: float | None, step: NextStep, more: dict[str, Any]
) -> None:
    line = a_line("limit", out_of_budget=True, setup="old")
    run = a_run("r", end=an_end("r", "limit", "budget"))

    assert next_of(run, line=line, budget_usd=budget_usd, **more) == step


@pytest.mark.parametrize(("budget_usd", "again"), [(1.0, False), (1.5, True), (None, True)])
def test_so_is_one_whose_line_is_still_to_be_written(budget_usd: float | None, again: bool) -> None:
    step = next_of(a_run("r", end=an_end("r", "limit", "budget")), budget_usd=budget_usd)

    assert (step == Begin(2)) is again
    assert isinstance(step, Continue) is not again


def test_a_run_that_is_newer_than_its_line_comes_first() -> None:
    newer = a_run("r2", attempt=2, retries=1, setup="old")
    attempt = attempt_of(next_of(a_run("r1"), newer, line=a_line("failed")))

    assert (attempt.run_id, attempt.number, attempt.retries) == ("r2", 2, 1)
    assert (attempt.setup, attempt.end, attempt.waits) == ("old", None, None)
    assert next_of(newer, line=a_line(attempt=2)) == Done("ok", False, "new")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_several_runs_the_newest_counts_wherever_the_journal_has_it(
    order: Sequence[int],
) -> None:
    runs = [a_run(f"r{at}", attempt=at + 1, end=an_end(f"r{at}")) for at in range(3)]

    assert attempt_of(next_of(*(runs[at] for at in order))).run_id == "r2"


def test_a_run_of_another_set_up_goes_on_unless_it_is_to_be_done_again() -> None:
    going, over = a_run("r", setup="old"), a_run("r", setup="old", end=an_end("r"))

    for on_change in ("refuse", "accept"):
        assert isinstance(next_of(going, on_change=on_change), Continue)
    assert next_of(going, on_change="retry") == Begin(2, "r")
    assert next_of(over, on_change="retry") == Begin(2, None), "there is nothing to cancel"


@pytest.mark.parametrize(
    ("turns", "end", "step"),
    [(1, None, Begin(2, "r")), (0, None, "goes on"), (1, an_end("r"), "goes on")],
)
def test_one_whose_folder_is_gone_is_begun_anew_if_it_had_begun_to_work_there(
    turns: int, end: HarnessResult | None, step: object, tmp_path: Path
) -> None:
    run = a_run("r", turns=turns, end=end, workspace=str(tmp_path / "r"))

    found = next_of(run, home=tmp_path)

    assert found == step if step != "goes on" else isinstance(found, Continue)


def test_the_folder_of_a_run_is_its_own_by_whatever_name_it_is_called(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "r").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    run = a_run("r", turns=1, workspace=str(tmp_path / "link" / "r"))

    assert attempt_of(next_of(run, home=home)).elsewhere is None
    elsewhere = attempt_of(next_of(run, home=tmp_path / "copy"))
    assert elsewhere.elsewhere == str(tmp_path / "link" / "r")
    assert not elsewhere.is_lost
    assert next_of(run, home=tmp_path / "copy", on_change="accept") == Begin(2, "r")


def test_a_run_that_waits_comes_to_what_is_open() -> None:
    asked = (a_question("q1"), a_question("q2", "yes"), a_question("q3"))
    step = next_of(a_run("r", questions=asked, turns=2))

    assert isinstance(step, Wait)
    waits = step.waits
    assert [one.id for one in waits.questions] == ["q1", "q3"]
    assert (waits.run_id, waits.status, waits.turn_count) == ("r", "awaiting_input", 2)
    assert (waits.usage.cost_usd, waits.wall_s) == (1.0, 5.0), "people take none of its time"

    answered = a_run("r", questions=(a_question("q1", "yes"),))
    assert isinstance(next_of(answered), Continue)


def test_runs_that_are_over_or_wait_have_spent_what_they_cost() -> None:
    """Those in progress are counted by whoever follows them."""
    runs = [
        a_run("ended", end=an_end("ended")),
        a_run("waits", attempt=2, questions=(a_question("q1"),)),
        a_run("answered", attempt=3, questions=(a_question("q1", "yes"),)),
        a_run("goes on", attempt=4, command="c"),
        a_run("put aside", attempt=5),
        a_run("of no task", end=an_end("of no task"), metadata={"from": "a chat"}),
    ]
    # Lines make no difference to what was spent.
    assert History({"t1": a_line(attempt=9)}, runs).cost_usd == 4.0


@pytest.mark.parametrize(
    ("run", "more_usd"),
    [
        (a_run("r"), 3.0),
        (a_run("r", questions=(a_question("q1"),)), 2.0),
        (a_run("r", end=an_end("r")), 2.0),
    ],
)
def test_an_end_costs_what_was_not_counted_of_it_and_only_once(
    run: RunHeading, more_usd: float
) -> None:
    history = History({}, [run])
    end = an_end("r", cost_usd=3.0)

    assert [history.ended("r", end), history.ended("r", end)] == [more_usd, 0.0]
    step = history.next_step(TASK, BatchSettings())
    assert isinstance(step, Continue)
    assert step.attempt.end == end
    assert history.ended("unheard of", end) == 0.0


def test_answers_that_come_later_leave_what_is_open() -> None:
    asked = tuple(a_question(f"q{at}") for at in range(3))
    history = History({}, [a_run("r", questions=asked)])

    history.answered("r", "q1")
    history.answered("unheard of", "q0")
    step = history.next_step(TASK, BatchSettings())
    assert isinstance(step, Wait)
    assert [one.id for one in step.waits.questions] == ["q0", "q2"]
    assert step.waits.reason.message == "2 questions to answer"

    for question_id in ("q2", "q0", "q0"):
        history.answered("r", question_id)
    assert isinstance(history.next_step(TASK, BatchSettings()), Continue)


def a_child(number: int, *, over: bool) -> RunHeading:
    name = f"r.{number}"
    end = an_end(name) if over else None
    return a_run(name, end=end, root="r", metadata={}, command="" if over else "c")


@pytest.mark.parametrize(
    ("run", "spent_usd", "more_usd"),
    [
        # Whoever goes on with it counts its tree round by round.
        (a_run("r"), 0.0, 5.0),
        (a_run("r", questions=(a_question("q1"),)), 3.0, 2.0),
        (a_run("r", end=an_end("r")), 3.0, 2.0),
    ],
)
def test_a_run_has_spent_what_its_tree_has(
    run: RunHeading, spent_usd: float, more_usd: float
) -> None:
    over = run.end is not None
    history = History({}, [run, a_child(1, over=True), a_child(2, over=over)])
    end = replace(an_end("r", cost_usd=3.0), children=2, children_usage=Usage(cost_usd=2.0))

    assert history.cost_usd == spent_usd
    assert history.ended("r.2", an_end("r.2")) == 0.0, "its parent has it"
    assert [history.ended("r", end), history.ended("r", end)] == [more_usd, 0.0]
