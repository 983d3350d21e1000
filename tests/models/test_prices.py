"""What models cost."""

import logging

import pytest

from harness_actors.models.prices import FREE, PRICES, Price, price_of


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
    assert price_of(name) == FREE


def test_an_unknown_model_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="harness_actors.models.prices"):
        price_of("some-unheard-of-model")
        price_of("some-unheard-of-model")

    assert [
        r.getMessage() for r in caplog.records if "some-unheard-of-model" in r.getMessage()
    ] == ["no price is known for model 'some-unheard-of-model': its calls count as free of charge"]


def test_prices_of_ones_own_come_first() -> None:
    mine = Price(1.0, None, 2.0)

    assert price_of("gpt-4.1-2025-04-14", {"gpt-4.1": mine}) == mine


def test_cached_tokens_cost_as_others_where_no_price_is_given() -> None:
    price = Price(2.0, None, 0.0)

    assert price.cost_usd(input_tokens=10, cached_tokens=10, output_tokens=0) == pytest.approx(
        20e-6
    )
