"""Locks of resource keys as files: shared or alone, freed by every death, and none stays behind."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.errors import ToolError
from harness_actors.stores.key_files import HeldFile, KeyFiles, key_files_of
from tests.stores.open_files import open_files

HOLDER = """
import sys
from pathlib import Path
from harness_actors.stores.key_files import KeyFiles

held = KeyFiles(Path(sys.argv[1])).take("tree", "key", reads=sys.argv[2] == "reads")
print("held" if held else "refused", flush=True)
sys.stdin.readline()
held.release()
print("released", flush=True)
sys.stdin.readline()
"""


def files_in(store: Path) -> Sequence[Path]:
    return sorted(key_files_of(store).iterdir())


def holder(store: Path, how: str = "writes") -> "subprocess.Popen[str]":
    """Another process, that tells whether it holds the key."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def told(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_who_writes_has_a_key_alone_and_who_reads_shares_it(tmp_path: Path) -> None:
    here, there = KeyFiles(tmp_path / "runs.db"), KeyFiles(tmp_path / "runs.db")
    first = here.take("tree", "key", reads=False)
    assert first is not None
    assert here.take("tree", "key", reads=False) is None
    assert there.take("tree", "key", reads=True) is None
    first.release()
    readers = [one.take("tree", "key", reads=True) for one in (here, there, here)]
    assert None not in readers
    assert there.take("tree", "key", reads=False) is None
    for reader in readers:
        assert reader is not None
        reader.release()
    assert there.take("tree", "key", reads=False) is not None


def test_no_file_stays_open_behind_what_was_held_or_refused(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    keys = KeyFiles(store)
    for reads in (True, False):
        held = keys.take("tree", "key", reads=reads)
        assert held is not None
        assert keys.take("tree", "key", reads=False) is None
        held.release()
        assert open_files(tmp_path) == [key_files_of(store)]
    held = None
    del keys
    assert open_files(tmp_path) == []


def test_other_keys_and_other_trees_have_nothing_in_common(tmp_path: Path) -> None:
    keys = KeyFiles(tmp_path / "runs.db")
    pairs = [("tree", "key"), ("tree", "other"), ("other", "key"), ("tre", "ekey"), ("", "\ud800")]
    assert None not in [keys.take(root, key, reads=False) for root, key in pairs]


def test_nothing_is_left_when_nobody_holds_anything(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    keys = KeyFiles(store)
    held = [keys.take("tree", f"key-{n // 2}", reads=True) for n in range(6)]
    assert len(files_in(store)) == 3
    for one in held:
        assert one is not None
        one.release()
    assert files_in(store) == []


def test_folder_and_files_are_their_users_alone(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    key_files_of(store).mkdir(0o755)
    held = KeyFiles(store).take("tree", "key", reads=True)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (key_files_of(store), *files_in(store))]
    assert held is not None
    assert modes == [0o700, 0o600]


@pytest.mark.parametrize("how", ["reads", "writes"])
def test_a_key_is_free_when_its_process_was_killed(tmp_path: Path, how: str) -> None:
    store = tmp_path / "runs.db"
    keys = KeyFiles(store)
    with holder(store, how) as process:
        assert told(process) == "held"
        assert keys.take("tree", "key", reads=False) is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    held = keys.take("tree", "key", reads=False)
    assert held is not None
    held.release()
    assert files_in(store) == []


def test_a_key_is_free_when_another_process_lets_go_of_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with holder(store) as process:
        assert told(process) == "held"
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert told(process) == "released"
        assert KeyFiles(store).take("tree", "key", reads=False) is not None
        process.kill()


def test_what_a_process_has_forked_keeps_no_key_that_was_let_go_of(tmp_path: Path) -> None:
    keys = KeyFiles(tmp_path / "runs.db")
    readers = [keys.take("tree", "key", reads=True) for _ in range(2)]
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        for reader in readers:
            assert reader is not None
            reader.release()
        assert keys.take("tree", "key", reads=False) is not None
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_what_the_dead_have_left_is_removed_by_the_next_to_come(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    for _ in range(2):
        with holder(store) as process:
            assert told(process) == "held"
            process.kill()
    (key_files_of(store) / "notes").touch()
    keys = KeyFiles(store)
    mine = keys.take("tree", "mine", reads=False)
    assert mine is not None
    # What somebody holds, or is none of ours, stays.
    assert KeyFiles(store).take("tree", "mine", reads=True) is None
    mine.release()
    assert [path.name for path in files_in(store)] == ["notes"]


def test_a_file_that_was_made_anew_is_not_removed_by_who_had_the_old_one(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    keys = KeyFiles(store)
    readers = [keys.take("tree", "key", reads=True) for _ in range(2)]
    # As if in the moment in which the last reader shares the key no more, and has it not alone yet.
    (old,) = files_in(store)
    old.unlink()
    writer = keys.take("tree", "key", reads=False)
    assert writer is not None
    for reader in readers:
        assert reader is not None
        reader.release()
    assert keys.take("tree", "key", reads=False) is None
    writer.release()
    assert files_in(store) == []


def test_a_file_that_was_removed_before_it_is_locked_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.db"
    keys, flock = KeyFiles(store), fcntl.flock

    def removed_before(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        files_in(store)[0].unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", removed_before)
    held = keys.take("tree", "key", reads=False)
    assert held is not None
    assert keys.take("tree", "key", reads=True) is None
    held.release()
    assert files_in(store) == []


def test_a_folder_that_is_removed_or_moved_is_made_anew_and_its_parents_are_not(
    tmp_path: Path,
) -> None:
    store = tmp_path / "there" / "runs.db"
    store.parent.mkdir()
    keys = KeyFiles(store)
    before = keys.take("tree", "key", reads=False)
    assert before is not None
    key_files_of(store).rename(tmp_path / "aside")
    again = keys.take("tree", "key", reads=False)
    assert again is not None
    before.release()
    assert len(files_in(store)) == 1
    assert list((tmp_path / "aside").iterdir()) == []
    store.parent.rename(tmp_path / "gone")
    with pytest.raises(
        ToolError, match=r"No such file or directory in the folder 'runs\.db\.locks'"
    ):
        keys.take("tree", "key", reads=False)


def test_a_link_in_the_place_of_the_folder_is_followed_by_nobody(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    (tmp_path / "victim").mkdir()
    key_files_of(store).symlink_to(tmp_path / "victim")
    with pytest.raises(ToolError, match=r"runs\.db\.locks.* beside the journal\. Make it a folder"):
        KeyFiles(store).take("tree", "key", reads=False)
    assert list((tmp_path / "victim").iterdir()) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("take", "take", "let go")),
            st.integers(0, 2),
            st.sampled_from("ab"),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_whatever_comes_when_a_key_has_many_who_read_or_one_who_writes(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, int, str, bool]]
) -> None:
    store = tmp_path_factory.mktemp("keys") / "runs.db"
    places = [KeyFiles(store) for _ in range(3)]
    held: dict[str, list[tuple[bool, HeldFile]]] = {"a": [], "b": []}
    for what, place, key, reads in steps:
        there = held[key]
        if what == "take":
            free = not there or (reads and all(others for others, _ in there))
            one = places[place].take("tree", key, reads=reads)
            assert (one is not None) == free
            if one is not None:
                there.append((reads, one))
        elif there:
            there.pop(place % len(there))[1].release()
        folder = key_files_of(store)
        files = list(folder.iterdir()) if folder.exists() else []
        assert len(files) == sum(bool(those) for those in held.values())
    for those in held.values():
        for _, one in those:
            one.release()
