from typing import get_args

import pytest

from harness_actors.messages import FAILURES, Failure
from harness_actors.turn.outcomes import (
    ToolArtifactReference,
    ToolExecutionResult,
    ToolOutcome,
    outcome_of,
)


@pytest.mark.parametrize("failure", [None, *FAILURES])
def test_what_a_result_message_tells_is_the_outcome_that_made_it(failure: Failure | None) -> None:
    outcome = outcome_of("so it went", failure)
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.text, outcome.failure) == ("so it went", failure)
    assert outcome.is_error == (failure is not None)


@pytest.mark.parametrize("failure", ["timed_out", "refused"])
def test_a_bound_of_the_run_is_told_with_the_call_that_it_stopped(failure: Failure) -> None:
    outcome = outcome_of("time is up", failure, "time")
    assert outcome.limit == "time"
    assert outcome.facts.limit == "time"


def test_only_what_was_not_made_or_is_unknown_takes_none_of_a_runs_calls() -> None:
    free = {failure for failure in FAILURES if not outcome_of("", failure).ran}
    assert free == {"refused", "unknown"}
    assert ToolExecutionResult(text="").ran


def test_there_are_five_kinds_and_each_is_a_frozen_value() -> None:
    assert len(get_args(ToolOutcome)) == 5
    kept = ToolArtifactReference(text="head … tail", artifact_id="a", size_chars=1)
    assert not kept.is_error
    with pytest.raises(AttributeError):
        kept.text = "other"  # type: ignore[misc]
