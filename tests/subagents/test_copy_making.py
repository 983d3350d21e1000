"""How the copy is made in which a child works, and when it goes."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.errors import BadInputError, ToolError
from harness_actors.ports import ChildCopy
from harness_actors.records import WorkspaceSpec
from harness_actors.stores.copies import copies_of
from harness_actors.stores.expiry import expire
from harness_actors.tools import child_copy, tree_files
from harness_actors.tools.child_copy import make_copy, open_copy
from tests.subagents.copies import fix, ran
from tests.subagents.trees import Files, files_in, make


def a_copy(folder: Path, **given: Any) -> WorkspaceSpec:
    place = folder / "runs.db.copies" / "0" / "fix-1"
    facts = {"path": str(place / "work"), "base": str(place / "base")}
    return WorkspaceSpec(**{**facts, "source": str(folder / "source"), **given})


def test_a_copy_is_private_and_whole(tmp_path: Path) -> None:
    files: Files = {"a": "1", "b/c": ("program", "2"), "l": ("link", "nowhere")}
    make(tmp_path / "source", files)
    (tmp_path / "source/empty").mkdir()
    work = make_copy(a_copy(tmp_path))
    assert files_in(work) == files_in(work.parent / "base") == files
    assert (work / "empty").is_dir()
    for folder in (work.parent, work.parent.parent, work.parent.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_copy_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    make(tmp_path / "source", {"a": "1"})
    spec = a_copy(tmp_path)
    work = make_copy(spec)
    (work / "a").write_text("2")
    (tmp_path / "source/a").write_text("3")
    assert make_copy(spec) == work
    assert (files_in(work), files_in(work.parent / "base")) == ({"a": "2"}, {"a": "1"})


def test_a_half_copy_of_a_killed_process_is_made_again(tmp_path: Path) -> None:
    make(tmp_path / "source", {"a": "1", "b": "1"})
    spec = a_copy(tmp_path)
    program = f"""
import os, signal
from harness_actors.records import WorkspaceSpec
from harness_actors.ports import ChildCopy
from harness_actors.tools import child_copy, tree_files
copy = child_copy._copy
def killed(*given):
    copy(*given)
    os.kill(os.getpid(), signal.SIGKILL)
child_copy._copy = killed
child_copy.make_copy({spec!r})
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -9
    place = Path(spec.path).parent
    assert not place.exists()
    assert list(place.parent.iterdir())
    (tmp_path / "source/b").unlink()
    work = make_copy(spec)
    assert files_in(work) == files_in(work.parent / "base") == {"a": "1"}
    assert [one.name for one in place.parent.iterdir()] == ["fix-1"]


def test_a_store_inside_the_workspace_is_no_part_of_the_copies(tmp_path: Path) -> None:
    # In whatever order they are found, some stand behind it.
    files = dict.fromkeys("abcdefghij", "1")
    make(tmp_path / "source", files)
    inside = a_copy(tmp_path / "source", source=str(tmp_path / "source"))
    work = make_copy(inside)
    assert files_in(work) == files
    second = replace(
        inside,
        path=inside.path.replace("fix-1", "fix-2"),
        base=str(inside.base).replace("fix-1", "fix-2"),
    )
    assert files_in(make_copy(second)) == files


@pytest.mark.parametrize("bound", ["MOST_ENTRIES", "MOST_BYTES"])
def test_what_is_too_large_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(child_copy, bound, 2)
    make(tmp_path / "source", {"a": "12", "b": "12", "c/d": "12"})
    spec = a_copy(tmp_path)
    with pytest.raises(BadInputError, match="too large for a copy; let the agent share it"):
        make_copy(spec)
    assert not list(Path(spec.path).parent.parent.iterdir())


def test_what_just_fits_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file with holes what it takes counts, and of folders and links nothing."""
    make(tmp_path, {"elsewhere": "x" * 9_000})
    files: Files = {"a": "12", "c/d": "3", "l": ("link", str(tmp_path / "elsewhere"))}
    source = make(tmp_path / "source", files)
    monkeypatch.setattr(child_copy, "MOST_BYTES", 3)
    monkeypatch.setattr(child_copy, "MOST_ENTRIES", 4)
    monkeypatch.setattr(child_copy, "MOST_LEVELS", 1)
    assert files_in(make_copy(a_copy(tmp_path))) == files

    with (source / "holes").open("wb") as file:
        file.truncate(1 << 20)
    monkeypatch.setattr(child_copy, "MOST_ENTRIES", 5)
    place = tmp_path / "runs.db.copies" / "0" / "fix-2"
    other = a_copy(tmp_path, path=str(place / "work"), base=str(place / "base"))
    assert (make_copy(other) / "holes").stat().st_size == 1 << 20


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_where_a_copy_is_to_be_is_left_as_it_is(
    kind: str, depth: int, tmp_path: Path
) -> None:
    make(tmp_path / "source", {"a": "1"})
    make(tmp_path / "elsewhere", {"b": "1"})
    spec = a_copy(tmp_path)
    taken = Path(spec.path).parents[depth - 1]
    taken.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        taken.write_text("mine")
    else:
        taken.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInputError) as refused:
        make_copy(spec)
    assert spec.path in str(refused.value)
    assert "the copy cannot be made" in str(refused.value)
    if depth > 1 or kind == "link":
        assert f"{str(taken)!r} is no folder of ours" in str(refused.value)
    assert files_in(tmp_path / "elsewhere") == {"b": "1"}
    assert taken.is_symlink() if kind == "link" else taken.read_text() == "mine"


def test_a_copy_that_is_gone_is_told_so_and_leaves_nothing_open(tmp_path: Path) -> None:
    make(tmp_path / "source", {"a": "1"})
    before = len(os.listdir("/proc/self/fd"))
    spec = a_copy(tmp_path)
    work = make_copy(spec)
    base = work.with_name("base")
    copy = ChildCopy(handle="fix-1", work=work, base=base, record=tmp_path / "r")
    with open_copy(copy) as (_, _, changes):
        assert changes == []
    shutil.rmtree(base)
    gone = pytest.raises(ToolError, match="the copy of fix-1 is gone; do the work anew")
    with gone, open_copy(copy):
        pass
    assert child_copy.changed_files(spec) is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_too_deep_is_refused_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "source", {"a/b/c/d": "1"})
    spec = a_copy(tmp_path)
    monkeypatch.setattr(child_copy, "MOST_LEVELS", 2)
    with pytest.raises(BadInputError, match="too deep for a copy"):
        make_copy(spec)
    monkeypatch.undo()
    work = make_copy(spec)
    monkeypatch.setattr(tree_files, "MOST_LEVELS", 2)
    copy = ChildCopy(handle="fix-1", work=work, base=Path(str(spec.base)), record=tmp_path / "r")
    told = "the copy of fix-1 cannot be read: it has folders in"
    with pytest.raises(ToolError, match=told), open_copy(copy):
        pass
    assert child_copy.changed_files(spec) is None


def test_a_source_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="source"):
        make_copy(a_copy(tmp_path))


async def test_copies_go_with_their_runs(tmp_path: Path) -> None:
    result, journal = await ran(tmp_path, fix({"a": "1"}), files={})
    await ran(tmp_path, fix({"b": "1"}), files={})
    copies = copies_of(journal.path)
    assert len(list(copies.iterdir())) == 2
    expire(journal.path, ended_before=2e10)
    # The newest conversation stays.
    assert len(list(copies.iterdir())) == 1
    assert journal.load_run(result.run_id) is None
