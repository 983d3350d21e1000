from dataclasses import replace

import pytest

from harness_actors.batch.causes import CAUSE_CHARS, Causes, cause_of, normalised
from harness_actors.batch.outcomes import CheckResult, TaskOutcome
from harness_actors.results import Reason, Status

GONE = "cannot connect to http://127.0.0.1:9/v1 after 3 attempts (Connection refused)"


def an_outcome(
    message: str = "",
    *,
    status: Status = "failed",
    kind: str = "model_error",
    check: CheckResult | None = None,
) -> TaskOutcome:
    return TaskOutcome(
        id="t",
        task_hash="h",
        run_id="r",
        attempt=1,
        status=status,
        reason=Reason(kind=kind, message=message),
        check=check,
    )


def checked(exit_code: int | None, output: str) -> TaskOutcome:
    check = CheckResult(passed=False, exit_code=exit_code, seconds=0.1, output=output)
    return an_outcome(status="done", kind="completed", check=check)


def test_equal_causes_are_counted_together_and_the_most_frequent_come_first() -> None:
    outcomes = [an_outcome("HTTP 401: wrong key"), *[an_outcome(f"{GONE}\nand more")] * 4]

    assert Causes(outcomes).as_list() == [
        {"ending": "failed(model_error)", "cause": GONE, "tasks": 4},
        {"ending": "failed(model_error)", "cause": "HTTP 401: wrong key", "tasks": 1},
    ]


def test_causes_that_differ_in_ids_and_amounts_are_one_and_said_without_them() -> None:
    outcomes = [
        an_outcome(f"HTTP 429: retry in {number}.5s (request req_{number}ab{number}cdef)")
        for number in range(3)
    ]

    (cause,) = Causes(outcomes).as_list()

    assert (cause["cause"], cause["tasks"]) == ("HTTP 429: retry in …s (request …)", 3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP 401: no", "HTTP 500: no"),
        ("connect to 127.0.0.1:9", "connect to 127.0.0.1:18080"),
        ("model 'gpt-4.1' is unknown", "model 'gpt-5' is unknown"),
        ("KeyError: 'a'", "KeyError: 'b'"),
    ],
)
def test_what_tells_causes_apart_is_kept(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


def test_one_text_of_two_endings_is_two_causes() -> None:
    causes = Causes([an_outcome("long"), an_outcome("long", status="limit", kind="context")])

    assert [cause["ending"] for cause in causes.as_list()] == [
        "failed(model_error)",
        "limit(context)",
    ]


def test_a_check_says_how_it_ended_and_the_last_that_it_printed() -> None:
    assert cause_of(checked(1, "..F\n\nFAILED (failures=1)\n")) == "exit 1: FAILED (failures=1)"
    assert cause_of(checked(7, "")) == "exit 7"
    assert cause_of(checked(None, "[killed after 3 s]")) == "not finished: [killed after 3 s]"
    both = replace(checked(1, "FAILED"), status="limit", reason=Reason(kind="budget", message="$"))
    assert cause_of(both) == "$", "its run did not end well, whatever its check says"


def test_a_long_cause_is_cut() -> None:
    assert cause_of(an_outcome("x" * 10_000)) == (CAUSE_CHARS - 1) * "x" + "…"
    assert cause_of(an_outcome("x" * CAUSE_CHARS)) == CAUSE_CHARS * "x"


@pytest.mark.parametrize("end", ["; ", ". "])
def test_a_long_cause_is_cut_in_front_of_what_would_only_begin(end: str) -> None:
    said, advice = "no way " * 23 + "on", "do it again in a batch with --retry-failed, if you like"
    told = cause_of(an_outcome(f"{said}{end}{advice}"))

    assert told == f"{said}…"


def test_a_long_cause_is_cut_between_words() -> None:
    assert cause_of(an_outcome("x" * 190 + " --retry-failed")) == "x" * 190 + "…"


def test_what_is_ok_has_no_cause() -> None:
    assert Causes([an_outcome("fine", status="done", kind="answered")]).as_list() == []
