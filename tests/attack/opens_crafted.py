"""A process that opens crafted journals in every way, and tells what came of each.

``python -m tests.attack.opens_crafted FOLDER [few]``; a JSON object a line.
"""

import gc
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from harness_actors.cli.app import app
from harness_actors.errors import StoreError
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.expiry import compact
from harness_actors.stores.readable import ReadableJournal
from tests.attack import crafts

COMMANDS = [
    ["ctl", "run", "list"],
    ["ctl", "run", "list", "--json"],
    ["ctl", "run", "show", "run-1", "--full"],
    ["ctl", "run", "show", "run-2", "--json"],
    ["ctl", "run", "events", "run-1"],
    ["ctl", "run", "export"],
    ["ctl", "run", "cancel", "run-2"],
    ["ctl", "store", "expire", "--days", "0"],
    ["replay", "run-1"],
]
READS: list[Callable[[ReadableJournal], object]] = [
    lambda journal: journal.headings(),
    lambda journal: journal.load_run("run-1"),
    lambda journal: journal.load_run("run-2"),
    lambda journal: journal.load_result("run-1"),
    lambda journal: journal.load_events(0, limit=10**9),
    lambda journal: journal.load_changes("run-1", limit=10**9),
    lambda journal: [message.body for message in journal.load_own_messages("run-1")],
    lambda journal: journal.load_processes(),
]


FEW = ("reader", "ctl run cancel run-2")


def main(folder: Path, *, few: bool) -> None:
    for kind, some in (
        ("refused", crafts.REFUSED),
        ("broken", crafts.BROKEN),
        ("harmless", crafts.HARMLESS),
    ):
        for name, craft in some.items():
            print(
                json.dumps({"kind": kind, "name": name, **tried(craft, folder, few=few)}),
                flush=True,
            )


def tried(craft: crafts.Craft, folder: Path, *, few: bool) -> dict[str, object]:
    """What each way to open a crafted journal came to: its error, or nothing; and the cost."""
    path = folder / "crafted" / "runs.db"
    told: dict[str, str] = {}
    slowest = 0.0
    place(path.parent, None)
    craft(path)
    path.parent.rename(crafted := folder / "as-crafted")
    grown = 0.0
    for way, work in ways(path).items():
        if few and way not in FEW:
            continue
        place(path.parent, crafted)
        gc.collect()
        before = begin_peak_mb()
        begun = time.perf_counter()
        try:
            told[way] = work()
        except StoreError as error:
            told[way] = str(error)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
            told[way] = f"NOT TOLD: {type(error).__name__}: {error}"
        slowest = max(slowest, time.perf_counter() - begun)
        grown = max(grown, peak_mb() - before)
        victim = crafts.victim_of(path)
        if victim.exists() and victim.read_bytes() != b"precious":
            told[way] = "NOT TOLD: another file was changed"
        if craft in (crafts.names_another_file, crafts.linked_log) and not victim.exists():
            told[way] = "NOT TOLD: another file was removed"
    shutil.rmtree(crafted)
    return {"told": told, "slowest_s": slowest, "grown_mb": grown}


def place(folder: Path, crafted: Path | None) -> None:
    """Put a folder as it was crafted, holes, links and pipes included, or an empty one."""
    shutil.rmtree(folder, ignore_errors=True)
    if crafted is None:
        folder.mkdir()
    else:
        subprocess.run(["cp", "-a", str(crafted), str(folder)], check=True)


def ways(path: Path) -> dict[str, Callable[[], str]]:
    return {
        "reader": lambda: read_all(JournalReader(path, busy_s=1.0)),
        "writer": lambda: write(path),
        "compact": lambda: str(compact(path))[:0],
        **{
            " ".join(words): lambda words=words: command([*words, "--store", str(path)])  # type: ignore[misc]
            for words in COMMANDS
        },
    }


def read_all(journal: ReadableJournal) -> str:
    """All errors of all that can be read."""
    errors = []
    for read in READS:
        try:
            read(journal)
        except StoreError as error:
            errors.append(str(error))
        except ValueError as error:
            # A body is read when it is asked for, by whoever does.
            errors.append(f"ValueError {error}")
    return "; ".join(errors)


def write(path: Path) -> str:
    journal = SqliteJournal(path, busy_s=1.0)
    try:
        journal.forget_processes(journal.begin_term())
        return read_all(journal)
    finally:
        journal.close()


def command(words: list[str]) -> str:
    """The end of what a command says that fails. A file takes it, as a shell's would."""
    with tempfile.TemporaryFile("w+") as output:
        try:
            with redirect_stdout(output), redirect_stderr(output):
                app(words)
        except SystemExit as ended:
            if ended.code in (0, None):
                return ""
        output.seek(0)
        return output.read().strip()[-300:]


def begin_peak_mb() -> float:
    """What this process takes now; its peak is measured from here on."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


def peak_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), few=sys.argv[2:] == ["few"])
