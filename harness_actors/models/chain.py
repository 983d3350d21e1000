"""Fallback models: a chain of which the next is asked where one does not answer."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from harness_actors.errors import (
    ConfigError,
    ContextOverflowError,
    ModelError,
    ModelRefusedError,
    ModelsFailedError,
    error_facts,
)
from harness_actors.models.tries import FailedTry, Why, current_tries, sum_of
from harness_actors.models.waits import waiting
from harness_actors.ports import Model, ModelRequest, ModelResponse

FallbackCause = Literal["errors", "refusal", "overflow"]
CAUSES: tuple[FallbackCause, ...] = get_args(FallbackCause)

MOST_MODELS = 10
"""A request that so many models do not answer is hardly answered by one more, and its run waits
for the retries of each."""

_CAUSE_OF: Mapping[Why, FallbackCause] = {
    "error": "errors",
    "refusal": "refusal",
    "overflow": "overflow",
}

Say = Callable[[Model, ModelRequest], Awaitable[Any]]
"""Asks one model."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """When the next model of a chain is asked.

    Attributes:
        on: ``"errors"``: its provider failed and no retry has helped, be it by rate limits,
            errors, cuts, time-outs, an answer that cannot be taken, or a wrong key. ``"refusal"``:
            a content filter stopped the request or the answer. ``"overflow"``: the conversation
            is larger than the model's window.

    Raises:
        ConfigError: It is none of these.
    """

    on: tuple[FallbackCause, ...] = ("errors",)

    def __post_init__(self) -> None:
        known, given = ", ".join(map(repr, CAUSES)), cast("object", self.on)
        if not isinstance(given, list | tuple) or not given:
            raise ConfigError("fallback", f"must list some of {known}, not be {given!r:.80}")
        for cause in given:
            if cause not in CAUSES:
                raise ConfigError("fallback", f"there is no {cause!r:.80}; there are {known}")
        # In one order, so that what says the same is equal.
        object.__setattr__(self, "on", tuple(cause for cause in CAUSES if cause in self.on))


class ModelChain:
    """Models of which the next is asked the same request where one does not answer it.

    It is a model itself, by the name of its first. Each request goes through the retries of one
    model before the next is asked, and to none of them twice.

    Args:
        models: At least one, at most `MOST_MODELS`, the preferred first.
        fallback: When the next is asked; None for `Fallback()`.

    Attributes:
        models: As given.
        fallback: As given.
        name: Of the first, by which also tokens are counted.
        labels: What each is called in what is told of the chain: its name, with its host where
            several have that name.

    Raises:
        ConfigError: There is none, or too many; one is no model, a chain, or there twice.
    """

    def __init__(self, models: Sequence[Model], fallback: Fallback | None = None) -> None:
        self.models = _checked(models)
        if fallback is not None and not isinstance(fallback, Fallback):
            raise ConfigError("fallback", f"must be Fallback(...), not {fallback!r:.80}")
        self.fallback = fallback or Fallback()
        self.name = self.models[0].name
        self.labels = _labels(self.models)

    def __repr__(self) -> str:
        return f"ModelChain({list(self.models)!r}, {self.fallback!r})"

    @property
    def costs_known(self) -> bool:
        """Whether the price of each of them is known."""
        return all(getattr(model, "costs_known", False) for model in self.models)

    @property
    def key_names(self) -> tuple[str, ...]:
        """Names of the keys that a process needs for all of them."""
        names = (name for model in self.models for name in getattr(model, "key_names", ()))
        return tuple(dict.fromkeys(names))

    @property
    def secrets(self) -> Mapping[str, str]:
        """Values of the keys that were given in code, by name.

        Raises:
            ConfigError: Two models have other values under one name.
        """
        found: dict[str, str] = {}
        for label, model in zip(self.labels, self.models, strict=True):
            for name, value in getattr(model, "secrets", {}).items():
                if found.setdefault(name, value) != value:
                    problem = (
                        f"{label} has another key under {name} than a model before it; give one "
                        'of them a name of its own, key_name="…"'
                    )
                    raise ConfigError("models", problem)
        return found

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: None of them did.
        """
        answer, _ = await self.walk(request, whole)
        response: ModelResponse = answer
        return response

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Answer one request in one piece: what was said could not be taken back here."""
        yield await self.complete(request)

    async def walk(self, request: ModelRequest, say: Say, first: int = 0) -> tuple[Any, int]:
        """Ask one after the other until one answers.

        Args:
            request: The request.
            say: Asks one of them.
            first: The place of the one that is asked first; those before it come last.

        Returns:
            The answer, and the place of who gave it.

        Raises:
            ModelError: None answered, or one failed in a way after which no other is asked. Of
                one alone it is its own error.
            NotAskedAgainError: The next was not asked, for the run is to stop.
        """
        tries, errors, count = current_tries(), list[ModelError](), len(self.models)
        order = [(first + step) % count for step in range(count)]
        tries.model, tries.failed = "", ()
        for at in order:
            told = len(tries.told)
            try:
                answer = await say(self.models[at], request)
            except ModelError as error:
                why = why_of(error)
                errors.append(error)
                problem, used = error_facts(error)["message"], sum_of(tries.told[told:])
                failed = FailedTry(self.labels[at], why, problem, used)
                goes_on = at != order[-1] and _CAUSE_OF[why] in self.fallback.on
                if goes_on or len(errors) > 1:
                    tries.failed = (*tries.failed, failed.as_plain())
                if not goes_on:
                    raise self._failure(errors) from None
                # As before a retry: a run that is to stop sends no further request.
                with waiting():
                    pass
            else:
                tries.model = self.labels[at] if at or tries.failed else ""
                return answer, at
        raise AssertionError("the last one has answered or raised")

    def _failure(self, errors: Sequence[ModelError]) -> ModelError:
        """What a call ends in; what all of them say alike is not said in another way."""
        if len(errors) == 1 or all(isinstance(error, ContextOverflowError) for error in errors):
            return errors[-1]
        return ModelsFailedError(self.name, "; ".join(map(str, errors)))

    @cached_property
    def shown(self) -> str:
        """Its models as people are told of them.

        >>> from harness_actors.testing import ScriptedModel
        >>> ModelChain([ScriptedModel([], name="a"), ScriptedModel([], name="b")]).shown
        'a → b'
        """
        return " → ".join(self.labels)


def why_of(error: ModelError) -> Why:
    """How a model failed."""
    match error:
        case ModelRefusedError():
            return "refusal"
        case ContextOverflowError():
            return "overflow"
        case _:
            return "error"


def models_of(model: Model) -> tuple[Model, ...]:
    """The models of a chain; one that is none by itself."""
    return model.models if isinstance(model, ModelChain) else (model,)


def shown_name(model: Model) -> str:
    """What people are told of a model, or of the models of a chain."""
    return model.shown if isinstance(model, ModelChain) else model.name


async def whole(model: Model, request: ModelRequest) -> ModelResponse:
    """Ask one model for its answer in one piece."""
    return await model.complete(request)


def _checked(models: object) -> tuple[Model, ...]:
    if not isinstance(models, list | tuple):
        raise ConfigError("models", f"must be a list of models, not {models!r:.80}")
    if not models:
        raise ConfigError("models", "is empty; name at least one model, the preferred first")
    if len(models) > MOST_MODELS:
        raise ConfigError("models", f"has {len(models)} models; {MOST_MODELS} are allowed")
    for at, model in enumerate(models):
        if not hasattr(model, "complete"):
            problem = f'must be a model such as OpenAIModel("gpt-4.1"), not {model!r:.80}'
            raise ConfigError(f"models[{at}]", problem)
        if isinstance(model, ModelChain):
            raise ConfigError(f"models[{at}]", "is a chain itself; put its models in its place")
        for earlier in range(at):
            if _are_one(models[earlier], model):
                problem = f"is models[{earlier}] again, {model.name!r}, which would fail again"
                raise ConfigError(f"models[{at}]", problem)
    return tuple(models)


def _are_one(model: Any, other: Any) -> bool:
    return model is other or _who(model) == _who(other)


def _who(model: Any) -> tuple[Any, ...]:
    """What is the same for models that fail alike: the one behind a name at an address."""
    names = getattr(model, "key_names", ())
    return (type(model), model.name, getattr(model, "base_url", None), tuple(names))


def _labels(models: Sequence[Model]) -> tuple[str, ...]:
    names = [model.name for model in models]
    labels = [
        model.name if names.count(model.name) == 1 else f"{model.name} ({_place(model)})"
        for model in models
    ]
    # Of those that are still alike, by their numbers.
    return tuple(
        label if labels.count(label) == 1 else f"{label} [{at}]"
        for at, label in enumerate(labels, 1)
    )


def _place(model: Model) -> str:
    url = getattr(model, "base_url", None)
    return type(model).__name__ if url is None else urlsplit(str(url)).netloc.rpartition("@")[2]
