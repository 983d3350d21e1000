"""What models cost."""

import logging
import pickle
from pathlib import Path

import pytest

from harness_actors.errors import ConfigError
from harness_actors.models import LocalModel, OpenAIModel
from harness_actors.models.prices import (
    FREE,
    PRICES,
    Price,
    check_cost_bounds,
    note_unknown,
    price_of,
)
from harness_actors.testing import RecordedModel, ScriptedModel


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("gpt-4.1", "gpt-4.1"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("o3-mini-2025-01-31", "o3-mini"),
        ("gpt-5-nano", "gpt-5-nano"),
    ],
)
def test_a_dated_model_costs_what_its_model_does(name: str, listed: str) -> None:
    assert price_of(name) == PRICES[listed]


@pytest.mark.parametrize("name", ["gpt-4.1-ultra", "gpt-4.12", "o33", "llama", "gpt-4o-audio"])
def test_another_model_with_a_similar_name_is_not_billed_as_it(name: str) -> None:
    assert price_of(name) is None


def test_an_unknown_model_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="harness_actors.models.prices"):
        note_unknown("some-unheard-of-model")
        note_unknown("some-unheard-of-model")

    assert [
        r.getMessage() for r in caplog.records if "some-unheard-of-model" in r.getMessage()
    ] == ["no price is known for model 'some-unheard-of-model': its calls count as free of charge"]


def test_a_model_without_a_price_is_noted_when_it_is_made(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="harness_actors.models.prices"):
        OpenAIModel("priced-by-its-user", base_url=HERE, price=FREE)
        OpenAIModel("gpt-4.1", base_url=HERE)
        assert not caplog.records
        OpenAIModel("unheard-of-until-now", base_url=HERE)

    assert "'unheard-of-until-now'" in caplog.text


def test_prices_of_ones_own_come_first() -> None:
    mine = Price(1.0, None, 2.0)

    assert price_of("gpt-4.1-2025-04-14", {"gpt-4.1": mine}) == mine


class OwnModel:
    name = "own"


class OwnPricedModel(OwnModel):
    costs_known = True


HERE = "http://127.0.0.1:9/v1"
BOUNDS = {"limits.cost_usd": None, "budget_usd": 5.0}


@pytest.mark.parametrize(
    "model",
    [
        OpenAIModel("gpt-4.1-mini-2025-04-14", base_url=HERE),
        OpenAIModel("llama", base_url=HERE, price=FREE),
        OpenAIModel("llama", base_url=HERE, prices={"llama": Price(1.0, None, 2.0)}),
        pickle.loads(pickle.dumps(OpenAIModel("llama", base_url=HERE, price=FREE))),
        LocalModel(),
        ScriptedModel([]),
        OwnPricedModel(),
    ],
    ids=repr,
)
def test_a_bound_on_cost_is_taken_where_the_cost_is_known(model: object) -> None:
    check_cost_bounds(model, BOUNDS)


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (OpenAIModel("llama", base_url=HERE), r"price=Price\(input, cached_input, output\)"),
        (OwnModel(), r"usage\.cost_usd.*costs_known = True"),
    ],
    ids=["openai", "own"],
)
def test_a_bound_on_cost_that_would_bound_nothing_is_refused(model: object, remedy: str) -> None:
    with pytest.raises(ConfigError, match=f"no price is known.*{remedy}.*limits.tokens") as caught:
        check_cost_bounds(model, BOUNDS)

    assert caught.value.field == "budget_usd"
    check_cost_bounds(model, {"limits.cost_usd": None, "budget_usd": None})


def test_a_recorded_model_costs_what_was_recorded_or_its_model_does(tmp_path: Path) -> None:
    path, unpriced = tmp_path / "answers.jsonl", OpenAIModel("llama", base_url=HERE)

    check_cost_bounds(RecordedModel(path, unpriced), BOUNDS)
    with pytest.raises(ConfigError, match="no price is known for 'llama'"):
        check_cost_bounds(RecordedModel(path, unpriced, record="missing"), BOUNDS)


def test_cached_tokens_cost_as_others_where_no_price_is_given() -> None:
    price = Price(2.0, None, 0.0)

    assert price.cost_usd(input_tokens=10, cached_tokens=10, output_tokens=0) == pytest.approx(
        20e-6
    )


@pytest.mark.parametrize("wrong", [-0.01, float("nan"), float("inf"), "1"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_price_that_is_none_is_refused(wrong: float, place: int) -> None:
    given = [1.0, 1.0, 1.0]
    given[place] = wrong
    with pytest.raises(
        ConfigError, match=r"price\.(input|cached_input|output): must be US dollars"
    ):
        Price(*given)
