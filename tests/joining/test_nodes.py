"""Whether this machine is a node of a Ray that is joined; a head is made up here."""

from typing import Any

import pytest

from harness_actors.actors.joining import connect
from harness_actors.actors.joining.address import Found
from harness_actors.actors.joining.probe import Answer
from harness_actors.actors.joining.token import Token
from harness_actors.errors import CellError

HERE, ELSEWHERE = bytes([1]), bytes([2])
FOUND = Found(
    address="10.0.0.1:6379",
    source="--address",
    answer=Answer(verdict="ray"),
    token=Token(source="nowhere"),
    is_named=True,
)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The nodes that the head knows; a raylet of another Ray may run on this machine, too."""
    known: list[bytes] = []

    class Head:
        def __init__(self, *, address: str) -> None:
            assert address == FOUND.address

        def get_all_node_info(self, **_: Any) -> dict[bytes, object]:
            return {node: object() for node in known}

    monkeypatch.setattr(connect, "GcsClient", Head)
    monkeypatch.setattr(connect, "find_node_ids", lambda: {HERE.hex()})
    monkeypatch.setattr(connect, "NODE_S", 0.0)
    return known


def test_a_machine_that_is_a_node_of_it_may_join(nodes: list[bytes]) -> None:
    nodes += [ELSEWHERE, HERE]
    connect._check_node(FOUND)


def test_a_machine_that_is_no_node_of_it_is_refused_with_what_to_do(nodes: list[bytes]) -> None:
    nodes.append(ELSEWHERE)
    with pytest.raises(CellError, match=r"this machine is no node of it; .*`ray start --address="):
        connect._check_node(FOUND)
