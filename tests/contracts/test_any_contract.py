"""Whatever is given as a contract is taken, or refused in words; nothing else is raised."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_actors.contracts import ContractVerifier, Grounds, TaskContract, load_contract
from harness_actors.contracts.plain import KINDS
from harness_actors.errors import BadInputError
from tests.contracts.test_document import YAML

T = TypeVar("T")
NAMES = (
    *("goal", "outputs", "questions", "acceptability", "id", "description", "predicate", "type"),
    *("optional", "command", "path", "pattern", "file", "schema", "$ref", "properties", "<<"),
    *KINDS,
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2**70),
        st.floats(),
        st.sampled_from(["", "a", "../a", "(a+)+", "#", "always_true", "\udc80", "a\0b", "{1}"]),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    ),
    max_leaves=12,
)


def predicates(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What looks like a predicate, with anything in it."""
    fields = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return st.dictionaries(
        st.sampled_from(sorted(KINDS)), st.one_of(inner, fields), min_size=1, max_size=1
    )


CONTRACTS = st.fixed_dictionaries(
    {
        "goal": st.just("x"),
        "outputs": st.lists(
            st.fixed_dictionaries({"description": st.just("y"), "predicate": predicates(VALUES)}),
            min_size=1,
            max_size=2,
        ),
    }
)


def taken(make: Callable[[], T]) -> tuple[T | None, BadInputError | None]:
    """What is made, or the error of bad input; any other error is one of the room."""
    try:
        return make(), None
    except BadInputError as error:
        return None, error


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(VALUES, CONTRACTS))
async def test_plain_values_are_a_contract_or_refused_in_words(plain: Any) -> None:
    contract, error = taken(lambda: TaskContract.from_mapping(plain))
    if contract is None:
        assert error is not None
        assert error.faults
        assert len(str(error)) < 10_000
        return
    assert TaskContract.from_mapping(contract.as_plain()) == contract
    verification = await ContractVerifier(contract).verify(Grounds())
    json.dumps(verification.as_plain())


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
@pytest.mark.parametrize("name", ["contract.yaml", "contract.json"])
def test_a_file_with_something_broken_in_it_is_a_contract_or_refused_in_words(
    name: str, tmp_path: Path, data: st.DataObject
) -> None:
    whole = YAML.encode()
    if name.endswith("json"):
        (tmp_path / "whole.yaml").write_bytes(whole)
        plain = load_contract(tmp_path / "whole.yaml").contract.as_plain()
        whole = json.dumps(plain, indent=1).encode()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 20)))
    put = data.draw(st.one_of(st.binary(max_size=6), st.text("{}[]:&*!|>-\n \"'#,a1", max_size=6)))
    put = put.encode() if isinstance(put, str) else put
    path = tmp_path / name
    path.write_bytes(whole[:start] + put + whole[end:])

    loaded, error = taken(lambda: load_contract(path))
    assert loaded is not None or error is not None
    if error is not None:
        assert error.source == str(path)
        assert error.faults
