"""Errors travel between processes, and say what they are about."""

import inspect
import pickle
import re
from collections.abc import Iterator
from typing import Any

import pytest

from harness_actors import errors
from harness_actors.errors import BadInputError, HarnessError, ModelBusyError, error_facts

# Those that are not in their room: they are found below, whichever tests ran before.
from harness_actors.tools.way import MissingPathError as MissingPathError
from harness_actors.tools.workers.failure import WorkerToolError as WorkerToolError


def tree(root: type[HarnessError] = HarnessError) -> Iterator[type[HarnessError]]:
    yield root
    for kind in root.__subclasses__():
        yield from tree(kind)


# A stand-in that a module makes for itself is raised to nobody.
OURS = [
    kind
    for kind in tree()
    if kind.__module__.startswith("harness_actors.") and not kind.__name__.startswith("_")
]
EACH = pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)


def an_error(kind: type[HarnessError]) -> HarnessError:
    """One with a distinct argument for each parameter."""
    samples: dict[str, Any] = {"int": 7, "float": 1.5, "tuple": ("one", "two"), "str": "some text"}
    if kind is HarnessError:
        return kind("some text")
    arguments = [
        next(value for name, value in samples.items() if name in str(parameter.annotation))
        for parameter in inspect.signature(kind).parameters.values()
    ]
    return kind(*arguments)


@EACH
def test_every_error_comes_through_a_pickle_as_it_was(kind: type[HarnessError]) -> None:
    error = an_error(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.args == error.args


@EACH
def test_every_error_takes_its_facts_by_position(kind: type[HarnessError]) -> None:
    parameters = inspect.signature(kind.__init__).parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    assert inspect.Parameter.KEYWORD_ONLY not in kinds


@EACH
def test_every_error_is_in_the_drawing_under_its_parent(kind: type[HarnessError]) -> None:
    drawing = (errors.__doc__ or "").splitlines()
    depths = {
        match.group(2): len(match.group(1))
        for line in drawing
        if (match := re.match(r"([│├└─ ]*)(\w+Error)\b", line))
    }
    assert kind.__name__ in depths
    if kind is not HarnessError:
        parent = kind.__bases__[0].__name__
        assert depths[kind.__name__] == depths[parent] + 4
        names = list(depths)
        assert names.index(kind.__name__) > names.index(parent)


def test_the_drawing_shows_nothing_that_is_not_there() -> None:
    drawn = re.findall(r"\b(\w+Error)\b", errors.__doc__ or "")
    assert sorted(drawn) == sorted(kind.__name__ for kind in OURS)


@EACH
def test_every_error_says_what_it_is_about(kind: type[HarnessError]) -> None:
    error = an_error(kind)
    assert "some text" in str(error) or "one" in str(error)
    assert kind.__doc__


def test_an_error_raised_again_elsewhere_keeps_its_facts() -> None:
    busy = pickle.loads(pickle.dumps(ModelBusyError("m", "slow down", 429, 2.5)))
    assert (busy.retry_after_s, busy.status, busy.retryable) == (2.5, 429, True)


def test_faults_of_an_input_are_listed() -> None:
    assert str(BadInputError("tasks.jsonl", ("line 3: no task",))) == "tasks.jsonl: line 3: no task"
    several = BadInputError("tasks.jsonl", ("line 3: no task", "line 9: not JSON"))
    assert str(several).splitlines() == [
        "tasks.jsonl: 2 faults",
        "line 3: no task",
        "line 9: not JSON",
    ]


def test_facts_are_short_and_never_empty() -> None:
    assert error_facts(ValueError()) == {"type": "ValueError", "message": "ValueError"}
    assert len(error_facts(ValueError("x" * 10_000))["message"]) == 2000
