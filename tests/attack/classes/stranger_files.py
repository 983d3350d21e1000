"""Another user at our journals, locks, logs, results and tokens, under any umask."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from harness_actors.actors.joining.token import make_own_token
from harness_actors.batch.durable_files import append
from harness_actors.stores import SqliteJournal
from harness_actors.stores.home import free_journal
from harness_actors.stores.lock import hold, release
from harness_actors.stores.logs import RunLog
from tests.attack.attacks import Attack, NotTriedError, Outcome
from tests.joining.other_users import STRANGER, can_be_another

MODES_BEFORE = (None, 0o644, 0o666)
"""Of files that were there already; None where none was."""
UMASKS = (0o000, 0o002, 0o022)
WAYS = tuple(product(UMASKS, MODES_BEFORE))

_TRIES = """
import fcntl, os, sys
user, *paths = sys.argv[1:]
os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
def attempt(what, path, do):
    try:
        do()
    except OSError:
        return
    print(what, os.path.basename(path))
for path in paths:
    if os.path.isdir(path) or path.endswith("/home"):
        attempt("listed", path, lambda: os.listdir(path))
        attempt("planted in", path, lambda: open(path + "/planted", "w"))
        continue
    attempt("written", path, lambda: open(path, "ab"))
    attempt("removed", path, lambda: os.unlink(path))
    if not path.endswith("results.jsonl"):
        attempt("read", path, lambda: open(path))
        attempt("locked", path, lambda: fcntl.flock(open(path), fcntl.LOCK_EX | fcntl.LOCK_NB))
"""


def reach(tries: int) -> Outcome:
    """Have another user try each file of a user's home and of a run directory."""
    if not can_be_another():
        raise NotTriedError("processes of another user need root")
    through: list[str] = []
    for number in range(tries):
        umask, before = WAYS[number % len(WAYS)]
        said = _said(umask, before)
        through += [f"{line} (umask {umask:03o}, before {before})" for line in said]
    return Outcome(tries, tuple(through))


def _said(umask: int, before: int | None) -> list[str]:
    with a_home() as folder, _masked(umask):
        run, home = folder / "run", folder / "home"
        if before is not None:
            _leave_before(run, home, before)
        stores = [run / "runs.db", free_journal()]
        hold(stores[0])
        journals = [SqliteJournal(store) for store in stores]
        append(run / "results.jsonl", b"{}\n")
        make_own_token()
        for store in stores:
            RunLog(store, "a").append("printed\n")
        found = [path for path in folder.rglob("*") if path.is_file()]
        tried = subprocess.run(
            [sys.executable, "-I", "-c", _TRIES, str(STRANGER), str(home), *map(str, found)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        for journal, store in zip(journals, stores, strict=True):
            journal.close()
            release(store)
    return tried.stdout.splitlines()


def _leave_before(run: Path, home: Path, mode: int) -> None:
    # A folder that others may write into is its owner's choice; our own one is not.
    run.mkdir(0o755)
    home.mkdir(0o777)
    for path in (run / "runs.db", home / "runs.db"):
        SqliteJournal(path).close()
        for one in (path, path.with_name("runs.db.lock")):
            one.touch()
            one.chmod(mode)


@contextmanager
def a_home() -> Iterator[Path]:
    before = os.environ.get("HARNESS_HOME")
    with TemporaryDirectory(prefix="harness-attack-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        os.environ["HARNESS_HOME"] = str(folder / "home")
        try:
            yield folder
        finally:
            os.environ.pop("HARNESS_HOME")
            if before is not None:
                os.environ["HARNESS_HOME"] = before


@contextmanager
def _masked(umask: int) -> Iterator[None]:
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


ATTACKS = (
    Attack(
        name="stranger_files",
        what="Another user reads, changes, removes or locks what we keep.",
        run=reach,
        tries=300,
        quick=len(WAYS),
    ),
)
