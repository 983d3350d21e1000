"""Settings: checked once at the edge, and every refusal names the field."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from harness_actors.config import (
    NOT_BUILT,
    ArtifactsConfig,
    ContinuationConfig,
    HarnessConfig,
    Limits,
)
from harness_actors.errors import ConfigError


def refused(field: str, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        HarnessConfig.from_mapping(settings)
    assert caught.value.field == field
    return str(caught.value)


def test_the_defaults_are_those_of_the_interface() -> None:
    config = HarnessConfig()
    assert (config.max_turns, config.max_rounds_per_turn) == (50, 40)
    assert config.max_input_tokens is None
    assert config.window_tokens == 128_000
    assert (config.completion, config.stop_policy) == ("explicit", "interactive")
    assert config.continuation == ContinuationConfig(max_prompts=5)
    assert config.limits == Limits(model_calls=1000)


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True])
@pytest.mark.parametrize("field", ["max_turns", "max_rounds_per_turn", "max_input_tokens"])
def test_counts_are_whole_numbers_of_at_least_one(field: str, value: object) -> None:
    assert repr(value) in refused(field, **{field: value})


def test_a_window_may_be_that_of_the_model_and_a_count_of_turns_not() -> None:
    assert HarnessConfig(max_input_tokens=None).window_tokens == 128_000
    assert HarnessConfig(max_input_tokens=9_000).window_tokens == 9_000
    assert "None" in refused("max_turns", max_turns=None)


@pytest.mark.parametrize("value", [0, -1, 2.5, True])
@pytest.mark.parametrize("field", ["model_calls", "tool_calls", "tokens"])
def test_limits_that_count_are_whole_numbers_of_at_least_one(field: str, value: object) -> None:
    refused(f"limits.{field}", limits={field: value})


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "5", True])
@pytest.mark.parametrize("field", ["cost_usd", "time_s", "working_s"])
def test_limits_that_measure_are_above_zero_and_finite(field: str, value: object) -> None:
    refused(f"limits.{field}", limits={field: value})


def test_limits_may_be_absent_but_not_that_of_model_calls() -> None:
    assert Limits(tool_calls=None, tokens=None, cost_usd=None).time_s is None
    refused("limits.model_calls", limits={"model_calls": None})


def test_choices_are_named() -> None:
    assert "explicit, answer" in refused("completion", completion="maybe")
    assert "strict_automation" in refused("stop_policy", stop_policy="lenient")
    refused("completion", completion=["explicit"])


def test_a_setting_that_does_not_exist_is_told_with_those_that_do() -> None:
    assert "max_turns" in refused("max_turn", max_turn=3)
    assert "tool_calls" in refused("limits.calls", limits={"calls": 3})
    assert "max_prompts" in refused("continuation.prompts", continuation={"prompts": 1})


def test_parts_that_are_not_built_are_not_offered() -> None:
    told = refused("foo", foo=1)
    assert told.endswith(
        "there are max_turns, max_rounds_per_turn, max_input_tokens, completion, "
        "stop_policy, continuation, limits, on_question, max_parallel_calls, turn_limits, "
        "artifacts, stall, contract, compaction, sub_agents"
    )


@pytest.mark.parametrize("field", NOT_BUILT)
def test_a_part_that_is_not_built_is_refused_by_name(field: str) -> None:
    assert "not built" in refused(field, **{field: {}})
    assert getattr(HarnessConfig.from_mapping({field: None}), field) is None


def test_parts_have_their_own_type() -> None:
    refused("limits", limits=3)
    refused("limits", limits=None)
    refused("continuation", continuation=True)
    refused("continuation.max_prompts", continuation={"max_prompts": 0})
    refused("artifacts", artifacts=True)
    refused("artifacts.inline_chars", artifacts={"inline_chars": 1_999})
    refused("artifacts.inline_chars", artifacts={"inline_chars": 100_001})
    refused("artifacts.inline_chars", artifacts={"inline_chars": 5_000.5})
    refused("artifacts.cap_bytes", artifacts={"cap_bytes": 0})
    refused("artifacts.expires", artifacts={"expires": 30})
    assert HarnessConfig(continuation=None).continuation is None


def test_runs_without_artifacts_are_stored_as_before_there_were_any() -> None:
    assert "artifacts" not in HarnessConfig().as_mapping()
    given = HarnessConfig.from_mapping({"artifacts": {}})
    assert given.as_mapping()["artifacts"] == {"inline_chars": 12_000, "cap_bytes": 256 << 20}
    assert HarnessConfig.from_mapping(given.as_mapping()) == given


def test_parts_may_be_mappings_or_objects() -> None:
    by_mapping = HarnessConfig.from_mapping({"limits": {"tokens": 5}, "continuation": None})
    assert by_mapping == HarnessConfig(limits=Limits(tokens=5), continuation=None)
    assert HarnessConfig.from_mapping({"limits": Limits(tokens=5)}).limits.tokens == 5


def test_what_was_given_is_not_changed() -> None:
    given_settings = {"limits": {"tokens": 5}, "max_turns": 2}
    HarnessConfig.from_mapping(given_settings)
    assert given_settings == {"limits": {"tokens": 5}, "max_turns": 2}


COUNTS = st.integers(1, 10**9)
AMOUNTS = st.none() | st.floats(min_value=0.001, max_value=1e9)


@given(
    st.builds(
        HarnessConfig,
        max_turns=COUNTS,
        max_rounds_per_turn=COUNTS,
        completion=st.sampled_from(["explicit", "answer"]),
        stop_policy=st.sampled_from(["interactive", "strict_automation"]),
        continuation=st.none() | st.builds(ContinuationConfig, max_prompts=COUNTS),
        artifacts=st.none()
        | st.builds(ArtifactsConfig, inline_chars=st.integers(2_000, 100_000), cap_bytes=COUNTS),
        limits=st.builds(
            Limits, model_calls=COUNTS, tokens=st.none() | COUNTS, cost_usd=AMOUNTS, time_s=AMOUNTS
        ),
    )
)
def test_settings_come_back_from_their_plain_form(config: HarnessConfig) -> None:
    assert HarnessConfig.from_mapping(config.as_mapping()) == config
