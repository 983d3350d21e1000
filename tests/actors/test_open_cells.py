"""The cells that a process has open, and the stores that it keeps for them."""

from pathlib import Path

import pytest

from harness_actors.actors.open_cells import close_cell, open_cell
from harness_actors.errors import StoreError
from harness_actors.stores.lock import is_held


async def test_a_cell_that_does_not_start_leaves_its_store_to_others(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    store.write_text("none of ours" * 100)
    with pytest.raises(StoreError):
        await open_cell(store, "local", None)
    assert not is_held(store)

    store.unlink()
    await open_cell(store, "local", None)
    assert is_held(store)
    await close_cell(store, "local")
    assert not is_held(store)
