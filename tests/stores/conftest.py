from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.stores import SqliteJournal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    """An empty journal, closed after the test."""
    opened = SqliteJournal(path)
    yield opened
    opened.close()
