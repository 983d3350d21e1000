"""Workspaces are made whole or not at all, and copied without a way back into the source."""

import os
import socket
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from harness_actors.errors import BadInputError
from harness_actors.records import WorkspaceSpec
from harness_actors.tools import copy_workspace, prepare_workspace
from harness_actors.tools.scan import Descent, walk_files
from harness_actors.tools.trees import remove_tree


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    return folder


def prepare(path: Path, source: Path | None = None) -> Path:
    return prepare_workspace(
        WorkspaceSpec(path=str(path), source=None if source is None else str(source))
    )


def test_without_a_source_it_is_empty(tmp_path: Path) -> None:
    made = prepare(tmp_path / "runs" / "w")
    assert made == tmp_path / "runs" / "w"
    assert os.listdir(made) == []
    assert os.listdir(made.parent) == ["w"]


def test_it_begins_as_a_copy_of_its_source(tmp_path: Path, source: Path) -> None:
    made = prepare(tmp_path / "w", source)
    assert (made / "a.txt").read_text() == "a"
    assert stat.S_IMODE((made / "sub" / "run.sh").stat().st_mode) == 0o755
    assert (made / "sub" / "empty").is_dir()
    (made / "a.txt").write_text("changed")
    assert (source / "a.txt").read_text() == "a"


def test_one_that_is_there_is_left_as_it_is(tmp_path: Path, source: Path) -> None:
    made = prepare(tmp_path / "w", source)
    (made / "work.txt").write_text("done")
    (made / "a.txt").unlink()
    assert prepare(tmp_path / "w", source) == made
    assert prepare(tmp_path / "w", tmp_path / "gone") == made
    assert sorted(os.listdir(made)) == ["sub", "work.txt"]


def test_what_a_killed_attempt_left_is_cleared_away(tmp_path: Path, source: Path) -> None:
    (tmp_path / ".w.partial" / "junk").mkdir(parents=True)
    (tmp_path / ".w.partial" / "a.txt").write_text("torn")
    made = prepare(tmp_path / "w", source)
    assert sorted(os.listdir(made)) == ["a.txt", "sub"]
    assert sorted(os.listdir(tmp_path)) == ["source", "w"]


def test_several_at_once_make_one(tmp_path: Path, source: Path) -> None:
    for number in range(200):
        (source / f"{number}.txt").write_text("x")
    made: list[Path] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        made.append(prepare(tmp_path / "w", source))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [tmp_path / "w"] * 4
    assert len(os.listdir(tmp_path / "w")) == 202
    assert sorted(os.listdir(tmp_path)) == ["source", "w"]


def test_runs_that_begin_together_in_one_new_folder_all_work_in_it(tmp_path: Path) -> None:
    rounds, runs = 200, 6
    together = threading.Barrier(runs)
    failures: list[Exception] = []

    def begin(run: int) -> None:
        for number in range(rounds):
            together.wait(timeout=60)
            try:
                (prepare(tmp_path / f"w{number}") / f"of-run-{run}").touch()
            except Exception as error:  # noqa: BLE001 - the others wait for this one
                failures.append(error)

    threads = [threading.Thread(target=begin, args=(run,)) for run in range(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    mine = [f"of-run-{run}" for run in range(runs)]
    assert all(sorted(os.listdir(tmp_path / f"w{number}")) == mine for number in range(rounds))
    assert len(os.listdir(tmp_path)) == rounds, "nothing half made is left"


def test_a_read_only_source_gives_a_workspace_that_can_be_worked_in(
    tmp_path: Path, source: Path
) -> None:
    (source / "sub").chmod(0o555)
    made = prepare(tmp_path / "w", source)
    (source / "sub").chmod(0o755)
    assert stat.S_IMODE((made / "sub").stat().st_mode) == 0o755


def test_symlinks_stay_links_and_stay_inside_the_copy(tmp_path: Path, source: Path) -> None:
    (source / "sub" / "relative").symlink_to("../a.txt")
    (source / "sub" / "absolute").symlink_to(source / "a.txt")
    (source / "sub" / "around").symlink_to("../../source/a.txt")
    (source / "folder").symlink_to("sub")
    (source / "dangling").symlink_to("not-yet")
    made = prepare(tmp_path / "w", source)
    for name in ("relative", "absolute", "around"):
        link = made / "sub" / name
        assert os.readlink(link) == "../a.txt"
        assert link.resolve() == made / "a.txt"
    assert (made / "folder").resolve() == made / "sub"
    assert os.readlink(made / "dangling") == "not-yet"


def test_symlinks_that_lead_out_are_all_named_and_nothing_is_made(
    tmp_path: Path, source: Path
) -> None:
    (source / "out").symlink_to("/etc/passwd")
    (source / "sub" / "up").symlink_to("../../elsewhere")
    with pytest.raises(BadInputError) as raised:
        prepare(tmp_path / "w", source)
    assert raised.value.faults == (
        "the symlink 'out' leads out of the folder, to '/etc/passwd'",
        "the symlink 'sub/up' leads out of the folder, to '../../elsewhere'",
    )
    assert not (tmp_path / "w").exists()


def test_what_is_no_file_is_left_out(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source)
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        made = prepare(tmp_path / "w", source)
    assert sorted(os.listdir(made)) == ["a.txt", "sub"]


def test_a_source_that_cannot_be_copied_is_bad_input(tmp_path: Path, source: Path) -> None:
    with pytest.raises(BadInputError, match="does not exist"):
        prepare(tmp_path / "w", tmp_path / "gone")
    with pytest.raises(BadInputError, match="is a file"):
        prepare(tmp_path / "w", source / "a.txt")
    with pytest.raises(BadInputError, match="would lie inside"):
        prepare(source / "sub" / "w", source)
    with pytest.raises(BadInputError, match="there is a file of this name"):
        prepare(source / "a.txt")
    with pytest.raises(BadInputError, match="cannot be made"):
        prepare(source / "a.txt" / "below")


def test_a_copy_for_a_check_takes_a_workspace_as_the_run_left_it(tmp_path: Path) -> None:
    work = prepare(tmp_path / "w")
    (work / "solution.py").write_text("x = 1")
    (work / "python").symlink_to("/usr/bin/python3")
    (work / "own").symlink_to(work / "solution.py")
    copy_workspace(work, tmp_path / "checks" / "w")
    copy = tmp_path / "checks" / "w"
    assert os.readlink(copy / "python") == "/usr/bin/python3"
    assert os.readlink(copy / "own") == "solution.py"
    (copy / "solution.py").write_text("x = 2")
    assert (work / "solution.py").read_text() == "x = 1"
    with pytest.raises(BadInputError):
        copy_workspace(tmp_path / "gone", tmp_path / "again")
    with pytest.raises(BadInputError, match="File exists"):
        copy_workspace(work, copy)


def test_a_copy_is_of_any_depth_and_is_removed_again(tmp_path: Path) -> None:
    work = prepare(tmp_path / "w")
    handle = os.open(work, os.O_RDONLY)
    with closing(Descent(handle)) as descent:
        for _ in range(1500):
            os.mkdir("d", dir_fd=descent.folder)
            descent.enter("d")
        os.close(os.open("deepest", os.O_CREAT | os.O_WRONLY, dir_fd=descent.folder))
    os.close(handle)

    copy_workspace(work, tmp_path / "copy")

    copy = os.open(tmp_path / "copy", os.O_RDONLY)
    names = [path for path, _ in walk_files(copy)]
    os.close(copy)
    assert names == ["d/" * 1500 + "deepest"]
    remove_tree(tmp_path / "copy")
    remove_tree(work)
    assert os.listdir(tmp_path) == []


def test_a_hole_is_copied_as_a_hole(tmp_path: Path) -> None:
    """A command makes a file of terabytes in no time."""
    work = prepare(tmp_path / "w")
    sizes = {"all of it": 1 << 42, "between": 1 << 42, "before": (1 << 42) + 4, "none": 1 << 20}
    for name, size in sizes.items():
        with (work / name).open("wb") as file:
            file.truncate(size)
            if name == "none":
                file.write(b"x" * size)
            elif name != "all of it":
                file.seek(1 << 41 if name == "between" else 1 << 42)
                file.write(b"data")

    copy_workspace(work, copy := tmp_path / "copy")

    for name, size in sizes.items():
        made = (copy / name).stat()
        assert (made.st_size, made.st_blocks * 512 <= 2 << 20) == (size, True), name
    with (copy / "between").open("rb") as file:
        file.seek(1 << 41)
        assert file.read(5) == b"data\0"
    with (copy / "before").open("rb") as file:
        file.seek(1 << 42)
        assert file.read() == b"data"
    assert (copy / "none").read_bytes() == b"x" * (1 << 20)


def test_what_is_removed_may_be_read_only_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.txt").touch()
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "a.txt").touch()
    (tmp_path / "tree" / "sub" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "tree" / "sub").chmod(0o555)
    remove_tree(tmp_path / "tree")
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == ["a.txt"]


def test_a_thousand_links_to_one_another_are_copied_as_they_are(tmp_path: Path) -> None:
    work = prepare(tmp_path / "w")
    for number in range(1500):
        (work / f"{number}").symlink_to(f"{number + 1}")
    copy_workspace(work, tmp_path / "copy")
    assert os.readlink(tmp_path / "copy" / "0") == "1"


@pytest.mark.parametrize("parent", [False, True])
def test_what_a_symlink_was_put_in_the_place_of_is_not_copied(tmp_path: Path, parent: bool) -> None:
    work = prepare(tmp_path / "runs" / "w")
    swapped = work.parent if parent else work
    swapped.rename(tmp_path / "moved")
    swapped.symlink_to(tmp_path / "moved")
    with pytest.raises(BadInputError, match="symlink"):
        copy_workspace(work, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="a file of another user is needed; see test_paths")
def test_a_copy_holds_no_hard_link_to_a_file_of_another_user(tmp_path: Path) -> None:
    work = prepare(tmp_path / "w")
    (tmp_path / "theirs").write_text("x")
    os.chown(tmp_path / "theirs", 65534, 65534)
    os.link(tmp_path / "theirs", work / "a.txt")
    with pytest.raises(BadInputError, match="hard link to a file of another user"):
        copy_workspace(work, tmp_path / "copy")
