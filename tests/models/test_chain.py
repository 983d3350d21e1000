"""Chains of models: what may be in one, and what is known of it before it is asked."""

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.errors import (
    ConfigError,
    ContextOverflowError,
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelsFailedError,
)
from harness_actors.models import (
    Fallback,
    LocalModel,
    ModelChain,
    OpenAIModel,
    Price,
    tell_spent,
)
from harness_actors.models.tries import TriesTold
from harness_actors.results import Usage
from harness_actors.testing import Reply, ScriptedModel
from tests.models.requests import a_request

PRICE = Price(1.0, None, 1.0)
HERE = "http://127.0.0.1:1/v1"


def says(text: str, name: str = "says") -> ScriptedModel:
    return ScriptedModel(lambda _: Reply.text(text), name=name)


def fails(error: ModelError, name: str = "fails") -> ScriptedModel:
    return ScriptedModel(lambda _: Reply.error(error), name=name)


BAD: Mapping[str, tuple[Callable[[], Any], str, str]] = {
    "none": (lambda: ModelChain([]), "models", "is empty"),
    "no list": (lambda: ModelChain(says("a")), "models", "must be a list"),  # type: ignore[arg-type]
    "a hundred": (
        lambda: ModelChain([says("a", name=f"m{n}") for n in range(100)]),
        "models",
        "has 100 models; 10 are allowed",
    ),
    "a name": (lambda: ModelChain([says("a"), "gpt-4.1"]), "models[1]", "must be a model"),  # type: ignore[list-item]
    "a chain": (
        lambda: ModelChain([says("a"), ModelChain([says("b")])]),
        "models[1]",
        "is a chain itself",
    ),
    "one twice": (lambda: ModelChain([says("a"), says("b")]), "models[1]", "is models[0] again"),
    "no fallback": (
        lambda: ModelChain([says("a")], "errors"),  # type: ignore[arg-type]
        "fallback",
        "must be Fallback",
    ),
    "on a word": (lambda: Fallback(on="errors"), "fallback", "must list some of"),  # type: ignore[arg-type]
    "on nothing": (lambda: Fallback(on=()), "fallback", "must list some of"),
    "on what is not": (
        lambda: Fallback(on=("errors", "rain")),  # type: ignore[arg-type]
        "fallback",
        "there is no 'rain'",
    ),
    "model and models": (
        lambda: ChatAgent(model=says("a"), models=[says("b", "b")]),
        "models",
        "a model or models",
    ),
    "neither": (lambda: ChatAgent(), "model", "must be a model"),
    "fallback of one": (
        lambda: ChatAgent(model=says("a"), fallback=Fallback()),
        "fallback",
        "is for several models",
    ),
}


@pytest.mark.parametrize(("make", "field", "problem"), BAD.values(), ids=BAD)
def test_what_is_no_chain_is_refused_with_its_place(
    make: Callable[[], Any], field: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        make()

    assert refused.value.field == field
    assert problem in refused.value.problem


def test_one_model_needs_no_chain() -> None:
    one = says("a")

    assert ChatAgent(models=[one]).model is one


def test_models_of_one_name_are_told_apart_by_where_they_are() -> None:
    chain = ModelChain(
        [
            OpenAIModel("gpt-4.1", base_url="https://one.example/v1"),
            OpenAIModel("gpt-4.1", base_url="https://two.example/v1"),
            OpenAIModel("o3"),
        ]
    )

    assert chain.name == "gpt-4.1"
    assert chain.shown == "gpt-4.1 (one.example) → gpt-4.1 (two.example) → o3"


async def test_the_next_is_asked_for_what_a_fallback_names_and_for_nothing_else() -> None:
    busy, refused = ModelBusyError("m", "busy"), ModelRefusedError("m", "no")
    overflow = ContextOverflowError("m", "too long")
    for error, cause in ((busy, "errors"), (refused, "refusal"), (overflow, "overflow")):
        for on in ("errors", "refusal", "overflow"):
            chain = ModelChain([fails(error), says("hello")], Fallback(on=(on,)))
            if on == cause:
                assert (await chain.complete(a_request())).text == "hello"
            else:
                with pytest.raises(type(error)):
                    await chain.complete(a_request())


async def test_a_fault_of_a_users_own_code_is_no_reason_to_ask_another() -> None:
    def broken(_messages: object) -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ModelChain([ScriptedModel(broken), says("hello")]).complete(a_request())


async def test_if_all_fail_alike_by_overflow_it_is_an_overflow() -> None:
    over = ContextOverflowError("m", "too long")
    chain = ModelChain([fails(over, "a"), fails(over, "b")], Fallback(on=("overflow",)))

    with pytest.raises(ContextOverflowError):
        await chain.complete(a_request())

    mixed = ModelChain([fails(ModelBusyError("a", "busy"), "a"), fails(over, "b")])
    with pytest.raises(ModelsFailedError, match=r"busy.*too long") as failed:
        await mixed.complete(a_request())
    assert str(pickle.loads(pickle.dumps(failed.value))) == str(failed.value)


async def test_a_model_of_ones_own_tells_what_a_failed_try_has_used() -> None:
    class Paid:
        name = "paid"

        async def complete(self, request: object) -> object:
            tell_spent(Usage(input_tokens=7, cost_usd=0.5))
            raise ModelBusyError("paid", "busy")

    with TriesTold() as tries:
        await ModelChain([Paid(), says("hello")]).complete(a_request())  # type: ignore[list-item]

    assert tries.model == "says"
    assert tries.spent == Usage(input_tokens=7, cost_usd=0.5)
    assert [(one["model"], one["input_tokens"], one["cost_usd"]) for one in tries.failed] == [
        ("paid", 7, 0.5)
    ]


@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
def test_no_call_has_used_what_is_no_number_of_dollars(number: float) -> None:
    with pytest.raises(ValueError, match="not what a model call uses"):
        tell_spent(Usage(cost_usd=number))


def test_keys_of_all_models_are_asked_for_when_a_run_is_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FIRST_API_KEY", "one")
    monkeypatch.setenv("SECOND_API_KEY", "two")
    agent = ChatAgent(
        models=[
            OpenAIModel("a", base_url=HERE, key_name="FIRST_API_KEY"),
            OpenAIModel("b", base_url=HERE, key_name="SECOND_API_KEY"),
            LocalModel(),
        ]
    )
    program = Program.of(agent)

    spec = program.spec("work", HarnessConfig())

    assert spec.keys == ("FIRST_API_KEY", "SECOND_API_KEY", EMBEDDED_MODEL_URL)
    assert program.secrets == {"FIRST_API_KEY": "one", "SECOND_API_KEY": "two"}
    assert b"two" not in program.blob


def test_a_bound_on_cost_is_refused_where_one_model_has_no_price() -> None:
    priced, unpriced = (OpenAIModel(name, base_url=HERE, price=PRICE) for name in "ab"), None
    unpriced = OpenAIModel("unheard-of", base_url=HERE)
    config = HarnessConfig(limits=Limits(cost_usd=1.0))

    Program.of(ChatAgent(models=list(priced))).check_bounds(config)
    program = Program.of(ChatAgent(models=[OpenAIModel("gpt-4.1"), unpriced]))
    with pytest.raises(ConfigError, match=r"no price is known for 'unheard-of'"):
        program.check_bounds(config)


def test_a_set_up_has_all_models_and_when_they_are_asked() -> None:
    def setup(*models: OpenAIModel, **fallback: Any) -> Any:
        return Program.of(ChatAgent(models=models, **fallback)).setup

    a, b = OpenAIModel("a", base_url=HERE), OpenAIModel("b", base_url=HERE)
    both = setup(a, b)

    assert both.model == "a → b"
    assert both.parts["models.2.model"] == "b"
    assert setup(a).model == "a"
    assert "fallback" not in setup(a).parts
    hashes = {both.hash, setup(b, a).hash, setup(a).hash}
    assert len({*hashes, setup(a, b, fallback=Fallback(on=("refusal",))).hash}) == 4
