"""Who else of this machine can read, lock or change what is kept."""

import fcntl
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_actors.batch.durable_files import append, write_atomically
from harness_actors.errors import StoreError, StoreInUseError
from harness_actors.stores import SqliteJournal
from harness_actors.stores.home import free_journal
from harness_actors.stores.lock import hold, release
from harness_actors.stores.logs import RunLog
from harness_actors.stores.private import make_own_file, make_own_folder, tighten
from tests.joining.other_users import STRANGER, can_be_another

LOCKS = """
import fcntl, os, sys
user, path, *noted = sys.argv[1:]
file = open(path)
if user: os.setuid(int(user))
fcntl.flock(file, fcntl.LOCK_SH)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[0o022, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@contextmanager
def locked_by(user: int | None, path: Path) -> Iterator[int]:
    """A process of a user that holds a lock file; gives its process id."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", LOCKS, str(user or ""), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        yield process.pid
        process.kill()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(mode(path)) for path in sorted(folder.iterdir())}


@pytest.mark.usefixtures("umask")
def test_the_journals_of_home_are_for_their_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "new" / "home"
    monkeypatch.setenv("HARNESS_HOME", str(home))
    store = free_journal()
    journal = SqliteJournal(store)
    RunLog(store, "a").append("printed\n")

    assert (oct(mode(home.parent)), oct(mode(home))) == ("0o700", "0o700")
    assert modes(home) == {
        "logs": "0o700",
        "runs.db": "0o600",
        "runs.db-shm": "0o600",
        "runs.db-wal": "0o600",
        "runs.db.lock": "0o600",
    }
    assert modes(home / "logs") == {"a.log": "0o600"}
    journal.close()
    release(store)


@pytest.mark.usefixtures("umask")
def test_a_journal_of_before_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    SqliteJournal(store).close()
    store.with_name("runs.db.lock").touch()
    for path in tmp_path.iterdir():
        path.chmod(0o666)

    hold(store)
    journal = SqliteJournal(store)

    assert set(modes(tmp_path).values()) == {"0o600"}
    journal.close()
    release(store)


def test_a_journal_behind_a_link_is_closed_too(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "runs.db")
    SqliteJournal(tmp_path / "link.db").close()

    assert mode(tmp_path / "runs.db") == 0o600


@pytest.mark.usefixtures("umask")
def test_results_are_changed_by_their_user_alone(tmp_path: Path) -> None:
    append(tmp_path / "results.jsonl", b"{}\n")
    write_atomically(tmp_path / "summary.json", [b"{}\n"])

    assert set(modes(tmp_path).values()) == {"0o644"}


def test_a_home_of_before_is_closed_and_no_folder_that_is_for_more(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "runs-2.db").touch()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "notes.txt").touch()
    for folder in tmp_path.iterdir():
        folder.chmod(0o777)
        make_own_folder(folder)

    assert modes(tmp_path) == {"home": "0o700", "shared": "0o777"}


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o777, 0o600), (0o640, 0o600), (0o604, 0o600), (0o600, 0o600), (0o400, 0o400)],
)
def test_others_lose_what_they_could_and_their_user_gains_nothing(
    tmp_path: Path, before: int, after: int
) -> None:
    file, beside = tmp_path / "file", tmp_path / "beside"
    for one in (file, beside):
        one.write_text("kept")
        one.chmod(before)

    make_own_file(file, beside, tmp_path / "none")

    assert modes(tmp_path) == {"beside": oct(after), "file": oct(after)}
    assert file.read_text() == "kept"


def test_files_of_others_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    tighten(tmp_path / "file", 0o600)

    assert mode(tmp_path / "file") == 0o644


def test_a_lock_file_that_is_none_of_ours_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "poetry.lock").write_text("[[package]]")
    (tmp_path / "poetry.lock").chmod(0o644)

    with pytest.raises(StoreError, match="none of ours"):
        hold(tmp_path / "poetry")
    assert mode(tmp_path / "poetry.lock") == 0o644


@pytest.mark.parametrize("noted", ["", "1"])
def test_who_holds_a_lock_is_named_and_not_who_noted_it(tmp_path: Path, noted: str) -> None:
    (tmp_path / "runs.db.lock").write_text(noted)

    with (
        locked_by(None, tmp_path / "runs.db.lock") as pid,
        pytest.raises(StoreInUseError, match=f"the process {pid} works on it"),
    ):
        hold(tmp_path / "runs.db")


def test_a_lock_that_another_user_holds_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs.db.lock").write_text("1")
    user = STRANGER if can_be_another() else None

    with locked_by(user, tmp_path / "runs.db.lock") as pid:
        if user is None:
            monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
        with pytest.raises(StoreInUseError, match=rf"process {pid} of .* holds its lock; .*remove"):
            hold(tmp_path / "runs.db")


def test_another_user_cannot_lock_what_we_lock(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    hold(tmp_path / "runs.db")
    release(tmp_path / "runs.db")
    lock = tmp_path / "runs.db.lock"
    if not can_be_another():
        assert mode(lock) == 0o600
        return
    opens = "import os, sys; os.setuid(int(sys.argv[1])); open(sys.argv[2])"
    tried = subprocess.run(
        [sys.executable, "-I", "-c", opens, str(STRANGER), str(lock)], capture_output=True
    )

    assert b"Permission denied" in tried.stderr
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


OPENS = """
import os, sys
from pathlib import Path
from harness_actors.errors import StoreError
from harness_actors.stores import SqliteJournal
user, path = sys.argv[1:]
os.setuid(int(user))
try:
    SqliteJournal(Path(path))
except StoreError as error:
    print(error)
"""


@pytest.mark.skipif(not can_be_another(), reason="only root can be another user")
def test_who_is_refused_a_journal_is_named(tmp_path: Path) -> None:
    """In a Ray of another user it is not who gave the command."""
    path = tmp_path / "runs.db"
    SqliteJournal(path).close()
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)

    tried = subprocess.run(
        [sys.executable, "-c", OPENS, str(STRANGER), str(path)], capture_output=True, text=True
    )

    assert re.search(r"runs\.db': .*\bnobody\b", tried.stdout), tried.stdout + tried.stderr
