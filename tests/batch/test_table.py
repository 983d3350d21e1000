"""The sums of results and the table that is made of a summary, every line of it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from harness_actors.batch.outcomes import CheckResult, TaskOutcome, TaskUsage
from harness_actors.batch.table import final_rows
from harness_actors.batch.totals import SHOWN_IDS, Totals
from harness_actors.results import Reason

NO_USAGE = {
    "model_calls": 0,
    "tool_calls": 0,
    "turns": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "cached_tokens": 0,
    "cost_usd": 0.0,
}
WHOLE: dict[str, Any] = {
    "ending": "budget",
    "tasks": 9,
    "without_result": 2,
    "verdicts": {"ok": 1, "check failed": 2, "failed": 5, "limit": 1},
    "reasons": {"limit(budget)": 1, "failed(model_error)": 5, "done(completed)": 3},
    "causes": [
        {"ending": "failed(model_error)", "cause": "refused", "tasks": 2},
        *[{"ending": "failed(model_error)", "cause": f"no {at}", "tasks": 1} for at in "abc"],
        {"ending": "check failed", "cause": "exit 7", "tasks": 2},
        {"ending": "limit(budget)", "cause": "", "tasks": 1},
    ],
    "checks": {"passed": 1, "failed": 2},
    "setups": [
        {"setup": "0123456789abcdef", "agent": "ann", "model": "m", "tasks": 5},
        {"setup": "fedcba9876543210", "agent": None, "model": None, "tasks": 3},
        {"setup": None, "agent": None, "model": None, "tasks": 1},
    ],
    "removed": {"tasks": 5, "ids": ["a", "b", "c", "d", "e"]},
    "usage": {
        **NO_USAGE,
        "input_tokens": 12_000,
        "output_tokens": 345,
        "cached_tokens": 6_000,
        "cost_usd": 1.5,
    },
    "unfinished": {
        "runs": 3,
        "usage": {**NO_USAGE, "input_tokens": 1_000, "output_tokens": 50, "cost_usd": 0.25},
        "of_removed_tasks": 1,
    },
    "unlisted": {
        "runs": 2,
        "usage": {**NO_USAGE, "input_tokens": 7, "cost_usd": 0.0},
        "to_be_written": 1,
    },
    "waiting": {"tasks": 0, "answered": 0, "runs": []},
    "command": {"wall_s": 65.0},
}


def test_the_table_tells_all_that_is_in_a_summary() -> None:
    assert final_rows(WHOLE, "DIR/results.jsonl") == [
        ("ending", "the budget is spent; the same command with a larger one goes on"),
        ("ok", "1 of 11 tasks"),
        ("done(completed)", "3"),
        ("failed(model_error)", "5"),
        ("", "2 × refused"),
        ("", "1 × no a"),
        ("", "1 × no b"),
        ("", "and 1 more cause, see summary.json"),
        ("limit(budget)", "1"),
        ("checks", "1 passed, 2 failed: exit 7"),
        ("not ended", "2 tasks without a result"),
        ("made with", "3 set-ups, of which these results are a mixture"),
        ("", "5 × ann on m (01234567)"),
        ("", "3 × fedcba98"),
        ("", "1 × one that an earlier version did not note"),
        (
            "removed",
            "5 results of tasks that this command does not have, not counted above: a, b, c, …",
        ),
        ("tokens", "12,000 in, 345 out, 6,000 cached"),
        ("cost", "$1.5000"),
        (
            "unfinished",
            "3 runs, 1 of them of removed tasks: 1,050 of the tokens and $0.2500 of the cost",
        ),
        ("to be told", "1 run ended, the same command writes the results"),
        ("earlier", "2 runs that no result tells of: 7 of the tokens"),
        ("time", "1 min 5 s"),
        ("results", "DIR/results.jsonl"),
    ]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({}, ["not ended", "made with", "removed", "unfinished", "to be told", "earlier"]),
        ({"without_result": 0}, ["made with", "removed", "unfinished", "to be told", "earlier"]),
        ({"without_result": None}, ["made with", "removed", "unfinished", "to be told", "earlier"]),
        (
            {"removed": None, "setups": WHOLE["setups"][2:]},
            ["not ended", "unfinished", "to be told", "earlier"],
        ),
        ({"unfinished": None, "unlisted": None}, ["not ended", "made with", "removed"]),
        (
            {"removed": {"tasks": 0, "ids": []}, "unlisted": {**WHOLE["unlisted"], "runs": 0}},
            ["not ended", "made with", "unfinished", "to be told", "earlier"],
        ),
        (
            {"unlisted": {"runs": 2, "usage": NO_USAGE, "to_be_written": 0}},
            ["not ended", "made with", "removed", "unfinished"],
        ),
        (
            {"unfinished": {"runs": 0, "usage": NO_USAGE, "of_removed_tasks": 0}},
            ["not ended", "made with", "removed", "to be told", "earlier"],
        ),
    ],
)
def test_of_what_there_is_none_the_table_has_no_line(
    changed: dict[str, Any], names: list[str]
) -> None:
    may_be = ("not ended", "made with", "removed", "unfinished", "to be told", "earlier")
    rows = final_rows({**WHOLE, **changed}, None)
    known = [name for name, value in rows if "not counted in these" not in value]

    assert [name for name in known if name in may_be] == names
    assert rows[-1] == ("time", "1 min 5 s")


APPROVAL = {
    "text": "May refund be called?",
    "kind": "approval",
    "tool": "refund",
    "arguments": '{"order": 17}',
}


def waiting(*counts: int, answered: int = 0, approval: bool = False) -> dict[str, Any]:
    """That part of a summary, with a run of so many questions for each number.

    Args:
        counts: The numbers.
        answered: Runs beside them that have their answers.
        approval: The first question of each is to approve of a call.
    """
    runs: list[dict[str, Any]] = [
        {
            "id": f"t{at}",
            "run_id": f"r{at}",
            "questions": [{"id": f"q{number}", "text": "Which\ncolor?"} for number in range(count)],
        }
        for at, count in enumerate(counts)
    ]
    for run in runs if approval else ():
        run["questions"][0] |= APPROVAL
    told = {"tasks": len(runs) + answered, "answered": answered, "runs": runs}
    return {**WHOLE, "ending": "waiting", "waiting": told}


HOW = "to answer: harness ctl run answer RUN_ID …, then the same command again"
DECIDE = "to decide: harness ctl run approve RUN_ID …, or deny, then the same command again"


@pytest.mark.parametrize(
    ("summary", "ending", "told"),
    [
        (
            waiting(1),
            "1 run waits for answers; answered, the same command goes on",
            ["t0, run r0: Which color?", HOW],
        ),
        (
            waiting(2, 3),
            "2 runs wait for answers; answered, the same command goes on",
            [
                "t0, run r0: Which color? (and 1 more question)",
                "t1, run r1: Which color? (and 2 more questions)",
                HOW,
            ],
        ),
        (
            waiting(1, approval=True),
            "1 run waits for answers; answered, the same command goes on",
            ['t0, run r0: May refund be called? {"order": 17}', DECIDE],
        ),
        (
            waiting(2, approval=True),
            "1 run waits for answers; answered, the same command goes on",
            [
                't0, run r0: May refund be called? {"order": 17} (and 1 more question)',
                DECIDE.replace(", then", f"; {HOW.partition(',')[0]}, then"),
            ],
        ),
        (
            waiting(*[1] * 5, answered=1),
            "5 runs wait for answers; answered, the same command goes on",
            [
                *(f"t{at}, run r{at}: Which color?" for at in range(3)),
                "and 2 more, see `harness ctl run list`",
                HOW,
                "1 run answered: the same command goes on",
            ],
        ),
        (
            waiting(answered=2),
            "answers have come; the same command goes on with their runs",
            ["2 runs answered: the same command goes on"],
        ),
        (
            {**WHOLE, "ending": "waiting", "waiting": None},
            "runs wait for answers; answered, the same command goes on with them",
            [],
        ),
    ],
)
def test_the_table_says_who_waits_and_how_to_answer(
    summary: dict[str, Any], ending: str, told: list[str]
) -> None:
    rows = final_rows(summary, None)
    at = next((at for at, (name, _) in enumerate(rows) if name == "waiting"), len(rows))

    assert rows[0] == ("ending", ending)
    assert [value for _, value in rows[at : at + len(told)]] == told
    assert not any(name for name, _ in rows[at + 1 : at + len(told)])


def test_three_of_a_kind_are_all_shown() -> None:
    rows = final_rows(
        {
            **WHOLE,
            "causes": WHOLE["causes"][:3],
            "removed": {"tasks": 3, "ids": ["a", "b", "c"]},
            "checks": {"passed": 0, "failed": 0},
        },
        None,
    )

    assert not [value for _, value in rows if "more cause" in value]
    assert dict(rows)["removed"].endswith(": a, b, c")
    assert "checks" not in dict(rows)


def test_a_cost_without_tokens_is_told() -> None:
    unlisted = {"runs": 1, "usage": {**NO_USAGE, "cost_usd": 0.5}, "to_be_written": 0}
    rows = dict(final_rows({**WHOLE, "unlisted": unlisted}, None))

    told = "1 attempt that another one followed: 0 of the tokens and $0.5000 of the cost"
    assert rows["earlier"] == told


def test_one_cause_of_some_tasks_is_counted_and_of_all_is_not() -> None:
    (refused, *_) = WHOLE["causes"]
    some = final_rows({**WHOLE, "causes": [refused]}, None)
    every = final_rows({**WHOLE, "causes": [{**refused, "tasks": 5}]}, None)

    at = some.index(("failed(model_error)", "5"))
    assert some[at + 1] == ("", "2 × refused")
    assert ("failed(model_error)", "5: refused") in every


ONE = TaskOutcome(
    id="t",
    task_hash="h",
    run_id="r",
    attempt=1,
    status="done",
    reason=Reason(kind="completed"),
    turns=2,
    model_calls=3,
    tool_calls=4,
    usage=TaskUsage(input_tokens=50, output_tokens=6, cached_tokens=7, cost_usd=0.125),
    agent="ann",
    model="m",
    setup="s",
)


def test_the_sums_have_all_that_the_results_say() -> None:
    passed = CheckResult(passed=True, exit_code=0, seconds=0.0, output="")
    failed = replace(passed, passed=False, exit_code=1)
    totals = Totals(
        [
            ONE,
            replace(ONE, run_id="r2", check=passed),
            replace(ONE, run_id="r3", check=failed, setup="other"),
            replace(ONE, run_id=None, status="failed", reason=Reason(kind="bad_input")),
        ]
    )

    assert json.loads(json.dumps(totals.as_mapping())) == {
        "tasks": 4,
        "verdicts": {"ok": 2, "check failed": 1, "failed": 1},
        "statuses": {"done": 3, "failed": 1},
        "reasons": {"done(completed)": 3, "failed(bad_input)": 1},
        "causes": [
            {"ending": "check failed", "cause": "exit 1", "tasks": 1},
            {"ending": "failed(bad_input)", "cause": "", "tasks": 1},
        ],
        "checks": {"passed": 1, "failed": 1},
        # What could not be run was made with nothing.
        "setups": [
            {"setup": "s", "agent": "ann", "model": "m", "tasks": 2},
            {"setup": "other", "agent": "ann", "model": "m", "tasks": 1},
        ],
        "usage": {
            "model_calls": 9,
            "tool_calls": 12,
            "turns": 6,
            "input_tokens": 150,
            "output_tokens": 18,
            "cached_tokens": 21,
            "cost_usd": 0.375,
        },
    }
    assert totals.run_ids == {"r", "r2", "r3"}
    assert Totals().as_mapping()["checks"] == {"passed": 0, "failed": 0}


def test_of_removed_tasks_the_first_are_named() -> None:
    outcomes = [replace(ONE, id=f"t{at}") for at in range(SHOWN_IDS + 1)]

    assert Totals(outcomes[:SHOWN_IDS]).as_removed()["ids"] == [
        one.id for one in outcomes[:SHOWN_IDS]
    ]
    removed = Totals(outcomes).as_removed()
    assert (removed["tasks"], len(removed["ids"])) == (SHOWN_IDS + 1, SHOWN_IDS)
    assert removed["statuses"] == {"done": SHOWN_IDS + 1}
    assert removed["usage"]["turns"] == 2 * (SHOWN_IDS + 1)


def test_the_commands_that_the_table_names_find_the_runs() -> None:
    told = " ".join(value for _, value in final_rows(waiting(*[1] * 5), None, "my runs/one"))

    assert "see `harness ctl run list --run-dir 'my runs/one'`" in told
    assert "harness ctl run answer RUN_ID … --run-dir 'my runs/one', then" in told
