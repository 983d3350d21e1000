"""Which file a driver opens for the cells that it starts, one after the other."""

from pathlib import Path

import pytest

from harness_actors.actors.on_ray.serving import ServedCell
from harness_actors.errors import StoreError
from harness_actors.stores import JournalReader, SqliteJournal


def test_a_driver_makes_a_journal_for_its_first_cell_alone(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    driver = ServedCell(store, "a command")

    first = driver._journal_file()

    assert JournalReader(store).headings() == []
    assert driver._journal_file() == first
    store.rename(tmp_path / "aside.db")
    with pytest.raises(StoreError, match="it was removed or moved away"):
        driver._journal_file()
    assert not store.exists(), "none is made in its place"
    SqliteJournal(store).close()
    with pytest.raises(StoreError, match="another file was put in its place"):
        driver._journal_file()
    store.unlink()
    (tmp_path / "aside.db").rename(store)
    assert driver._journal_file() == first
