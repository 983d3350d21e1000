"""Bodies of requests: the same bytes, whole and in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.models.body import PIECE_BYTES, RequestBody


@given(st.binary(max_size=3), st.lists(st.binary(max_size=5)), st.binary(max_size=3))
def test_items_stand_between_head_and_tail_with_commas(
    head: bytes, items: list[bytes], tail: bytes
) -> None:
    body = RequestBody(head, items, tail)

    assert bytes(body) == head + b",".join(items) + tail
    assert len(body) == len(bytes(body))
    assert list(body.pieces()) == [bytes(body)]


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([], 1),
        ([10], 1),
        ([3 * PIECE_BYTES], 1),
        ([PIECE_BYTES, PIECE_BYTES], 2),
        ([10, 3 * PIECE_BYTES, 10], 3),
        ([1000] * 1000, 8),
        ([1000, 0] * 500, 4),
    ],
    ids=str,
)
def test_pieces_add_up_to_the_whole(sizes: list[int], pieces: int) -> None:
    items = [bytes([65 + number % 26]) * size for number, size in enumerate(sizes)]
    body = RequestBody(b"[", items, b"]")
    parts = list(body.pieces())

    assert b"".join(parts) == bytes(body)
    assert len(parts) == pieces
