"""Real processes that change one file by turns, and are killed in the middle of it."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness_actors.stores.key_files import key_files_of

CHANGES = 25
PROCESSES = 4
KILLS = 6
WORKER = """
import asyncio, os, sys
from pathlib import Path
from harness_actors.stores.key_files import KeyFiles
from harness_actors.stores.key_locks import KeyLocks

folder, name, changes = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
locks, file, made = KeyLocks(KeyFiles(folder / "runs.db")), folder / "file", folder / name

async def change(n):
    async with locks.held("tree", ["file", f"own-{n % 2}"], reads=False):
        lines = file.read_text()
        await asyncio.sleep(0.002)
        new = folder / f"{name}.new"
        new.write_text(f"{lines}{name}-{n}\\n")
        os.replace(new, file)
    with made.open("a") as done:
        done.write(f"{name}-{n}\\n")

async def look():
    async with locks.held("tree", ["file"], reads=True):
        before = file.read_text()
        await asyncio.sleep(0.002)
        assert file.read_text() == before, "it was changed while it was read"

async def main():
    for n in range(0, changes, 5):
        await asyncio.gather(*(change(n + m) for m in range(5)), look())

asyncio.run(main())
"""


def test_whoever_is_killed_no_change_is_lost_and_nobody_waits_for_the_dead(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    chance = random.Random(7)
    names = [f"worker-{n}" for n in range(PROCESSES + KILLS)]
    workers = [begun(tmp_path, name) for name in names[:PROCESSES]]
    for name in names[PROCESSES:]:
        time.sleep(0.1 + 0.2 * chance.random())
        victim = workers.pop(0)
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        workers.append(begun(tmp_path, name))
    for worker in workers:
        assert worker.wait(timeout=60) == 0
    lines = (tmp_path / "file").read_text().split()
    assert len(lines) == len(set(lines))
    told = {line for name in names for line in made_by(tmp_path / name)}
    # Of a change that was made, and not told of any more, nothing is known.
    assert told <= set(lines)
    assert len(set(lines) - told) <= KILLS
    lived = [line for name in names[-PROCESSES:] for line in made_by(tmp_path / name)]
    assert len(lived) == PROCESSES * CHANGES
    assert list(key_files_of(tmp_path / "runs.db").iterdir()) == []


def begun(folder: Path, name: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", WORKER, str(folder), name, str(CHANGES)])


def made_by(told: Path) -> list[str]:
    return told.read_text().split() if told.exists() else []
