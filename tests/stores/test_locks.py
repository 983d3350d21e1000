"""One process at a time works on a store, and knows whether that is still so."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from harness_actors.errors import StoreError, StoreInUseError
from harness_actors.stores.lock import check_held, hold, holder_of_lock, is_held, lock_of, release
from tests.stores.open_files import open_files
from tests.stores.test_expiry import ROOT, held_by_another_process

NOTED = [b"", b"1", b"9" * 20]
NONE_OF_OURS = [b"x", b"12\n", b"1 2", b"-1", b"\xff", b"9" * 21, b"9" * 32, b"9" * 31 + b"x" * 9]


@pytest.mark.parametrize("noted", NOTED)
def test_a_lock_file_of_an_earlier_command_is_locked_again(path: Path, noted: bytes) -> None:
    lock_of(path).write_bytes(noted)

    hold(path)

    assert lock_of(path).read_text() == str(os.getpid())
    release(path)


@pytest.mark.parametrize("content", NONE_OF_OURS)
def test_a_file_that_is_no_lock_of_ours_is_left_as_it_is(path: Path, content: bytes) -> None:
    lock_of(path).write_bytes(content)

    with pytest.raises(StoreError, match=r"'runs\.db\.lock', but that file is none of ours") as no:
        hold(path)

    assert not isinstance(no.value, StoreInUseError)
    assert lock_of(path).read_bytes() == content
    assert not is_held(path)


def test_whoever_is_refused_or_gives_back_has_nothing_open(tmp_path: Path) -> None:
    mine, theirs, foreign = (tmp_path / name for name in ("mine", "theirs", "foreign"))
    lock_of(foreign).write_text("a file of somebody else")
    with held_by_another_process(theirs):
        for path in (theirs, foreign):
            with pytest.raises(StoreError):
                hold(path)
        assert open_files(tmp_path) == []
    hold(mine)
    hold(mine)
    assert open_files(tmp_path) == [lock_of(mine)]
    release(mine)
    release(mine)
    assert open_files(tmp_path) == []


def test_a_lock_that_is_given_back_is_free_for_others_and_for_oneself(path: Path) -> None:
    for _ in range(2):
        hold(path)
        hold(path)
        release(path)
        assert not is_held(path)
        with held_by_another_process(path) as pid:
            assert lock_of(path).read_text() == str(pid)
            with pytest.raises(StoreInUseError):
                hold(path)
            assert not is_held(path)


def test_a_store_behind_a_link_has_one_lock(tmp_path: Path, path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    hold(tmp_path / "link.db")

    assert is_held(path)
    check_held(tmp_path / "link.db")
    assert [file.name for file in open_files(tmp_path)] == ["runs.db.lock"]
    release(path)
    assert not is_held(tmp_path / "link.db")


def test_threads_of_one_process_share_a_lock(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(50)]
    start, refused = threading.Barrier(4), list[Exception]()

    def hold_all() -> None:
        start.wait()
        try:
            for path in paths:
                hold(path)
        except StoreError as error:
            refused.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=hold_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)

    assert refused == []
    assert len(open_files(tmp_path)) == len(paths)
    for path in paths:
        release(path)


def removed(folder: Path) -> None:
    lock_of(folder / "runs.db").unlink()


def replaced(folder: Path) -> None:
    (folder / "other").touch()
    (folder / "other").replace(lock_of(folder / "runs.db"))


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def a_file_in_its_place(folder: Path) -> None:
    moved(folder)
    folder.touch()


@pytest.mark.parametrize(
    ("take_away", "lost"),
    [
        (removed, "work/runs.db.lock"),
        (replaced, "work/runs.db.lock"),
        (moved, "work"),
        (a_file_in_its_place, "work/runs.db.lock"),
    ],
)
def test_a_lock_that_keeps_nobody_out_any_more_is_told(
    tmp_path: Path, take_away: Callable[[Path], None], lost: str
) -> None:
    folder = tmp_path / "work"
    path = folder / "runs.db"
    hold(path)
    check_held(path)

    take_away(folder)

    with pytest.raises(StoreError, match=f"'{tmp_path}/{lost}' was removed or moved away") as told:
        check_held(path)
    assert told.value.path == str(path)
    release(path)


def test_a_lock_whose_folder_is_back_keeps_others_out_again(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    hold(folder / "runs.db")
    moved(folder)
    with suppress(StoreError):
        check_held(folder / "runs.db")

    folder.with_name("elsewhere").rename(folder)

    check_held(folder / "runs.db")
    release(folder / "runs.db")


def test_the_folder_of_a_lock_is_made_for_all_to_read(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "runs.db"
    before = os.umask(0)
    hold(path)
    os.umask(before)

    assert path.parent.stat().st_mode & 0o777 == 0o755
    release(path)


@pytest.mark.parametrize("noted", ["", "4711"])
def test_where_the_kernel_does_not_tell_who_holds_a_lock_it_is_whoever_noted_it(
    path: Path, noted: str
) -> None:
    hides = 'mount -t tmpfs tmpfs /proc && exec "$@"'
    hold(path)
    assert holder_of_lock(lock_of(path)) == os.getpid()
    lock_of(path).write_text(noted)

    refused = subprocess.run(
        [
            *("unshare", "--map-root-user", "--mount", "sh", "-c", hides, "sh"),
            *(sys.executable, "-m", "tests.stores.children", "hold_the_store", str(path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    release(path)
    assert f"the process {noted or 'unknown'} works on it; wait for it" in refused.stderr
