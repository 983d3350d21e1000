"""The window of a model is found by its name, and a run has that of its models."""

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.models import OpenAIModel
from harness_actors.models.prices import PRICES
from harness_actors.models.windows import window_of


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("gpt-4.1-mini-2025-04-14", 1_014_808),
        ("gpt-4o", 112_000),
        ("openai/gpt-4o-mini", 112_000),
        ("gpt-4", 7_168),
        ("gpt-4-32k-0613", 28_672),
        ("claude-2.1", 87_500),
        ("anthropic/claude-sonnet-4-5", 175_000),
        ("gemini-2.5-pro", 1_015_808),
        ("gpt-4.1-imaginary", 128_000),
        ("local", 128_000),
    ],
)
def test_a_window_is_found_by_the_name(name: str, tokens: int) -> None:
    assert window_of(name) == tokens


@pytest.mark.parametrize("name", PRICES)
def test_every_model_with_a_price_has_a_window(name: str) -> None:
    assert window_of(name) != 128_000


def a_model(name: str) -> OpenAIModel:
    return OpenAIModel(name, api_key="none")


def window_in(config: HarnessConfig, *names: str) -> int | None:
    agent = ChatAgent(models=[a_model(name) for name in names])
    return Program.of(agent).spec("the task", config).config.max_input_tokens


def test_a_run_has_the_window_that_all_of_its_models_have() -> None:
    assert window_in(HarnessConfig(), "gpt-4.1") == 1_014_808
    assert window_in(HarnessConfig(), "gpt-4.1", "gpt-4o") == 112_000
    assert window_in(HarnessConfig(max_input_tokens=500), "gpt-4.1") == 500
