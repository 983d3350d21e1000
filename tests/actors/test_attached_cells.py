"""Which cell of a journal is attached to, where a Ray has several."""

from pathlib import Path
from typing import Any, cast

import pytest

from harness_actors.actors.on_ray import attach
from harness_actors.actors.on_ray.known_cells import KnownCell


def a_cell(name: str, store: Path) -> KnownCell:
    return KnownCell(name, store.resolve(), cast(Any, None), 1)


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "of another version"])
def test_a_cell_like_this_process_comes_before_one_of_another_version_and_that_before_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    store, link = tmp_path / "runs.db", tmp_path / "link.db"
    store.touch()
    link.symlink_to(store)
    ours, older = a_cell("ours", store), a_cell("older", store)
    elsewhere = a_cell("elsewhere", tmp_path / "other.db")
    monkeypatch.setattr(attach, "_connect_to", lambda *_: None)
    monkeypatch.setattr(attach, "list_cells", lambda: [elsewhere, older, ours])
    monkeypatch.setattr(attach, "find_cell", lambda _: ours if is_ours else None)

    for path in (store, link):
        assert attach._find(path, "127.0.0.1:6379", False) == (ours if is_ours else older)
    if not is_ours:
        assert attach._find(tmp_path / "third.db", "127.0.0.1:6379", False) is None
