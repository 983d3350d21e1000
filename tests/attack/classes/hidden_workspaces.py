"""A command looks for the workspaces of other runs, for the journal and for the results."""

import asyncio
import json
import tempfile
from pathlib import Path

from harness_actors.errors import ToolError
from harness_actors.ports import Cover, ToolContext
from harness_actors.tools.command import run_command
from harness_actors.tools.supervision.client import SupervisedProcesses
from harness_actors.tools.supervision.trial import hides_workspaces
from tests.attack.attacks import Attack, NotTriedError, Outcome

CANARY = "canary-of-a-neighbour"
WAYS = {
    "lists": "ls -laR ..; ls -laR ../..",
    "guesses a path": "cat {other}/notes.txt; cat ../other/notes.txt",
    "opens the journal": "cat {run}/runs.db {run}/results.jsonl",
    "searches all files": "find / -name {name} -not -path '/proc/*' 2>&1 | xargs cat",
    "searches the run directory": "grep -r canary {run}",
    "links": "ln -s {other} link; ln -s ../../runs.db journal; cat link/* journal; ls link/",
    "links hard": "ln {other}/notes.txt hard; ln ../../runs.db hard; cat hard",
    "goes through its own root": "cat /proc/self/root{other}/notes.txt /proc/self/cwd/../other/*",
    "goes through its parents": "cat /proc/$PPID/root{other}/notes.txt; ls /proc/$PPID/cwd{run}",
    "moves its own folder": "mv ../own ../moved; mv ../own /tmp/moved-$$; rmdir ../own; ls ..",
    "moves the folder above": "mv ../../workspaces ../../w; mv {run} {run}-moved; cat {run}*/*.db",
    "writes to a neighbour": "echo planted > {other}/notes.txt; rm -rf {other} {run}/runs.db",
    "makes a folder there": "mkdir -p {other}; echo planted > {other}/notes.txt",
    "asks in the background": "(setsid env -i sh -c 'cat {other}/notes.txt' > late 2>&1); cat late",
    "in a namespace of its own": "unshare -m cat {other}/notes.txt; unshare -Urm ls ..",
}
"""What a command does; how a process as root takes the cover off is on the page on security."""


async def look_for(place: Path, way: str, *, covered: bool) -> list[str]:
    """Try one way, in a workspace of a run directory; what it came to see or change."""
    run = place / "run"
    own, other = (run / "workspaces" / name for name in ("own", "other"))
    for folder in (own, other):
        folder.mkdir(parents=True)
    name = f"notes-{place.name}.txt"
    kept = [other / "notes.txt", other / name, run / "runs.db", run / "results.jsonl"]
    for file in kept:
        file.write_text(CANARY)
    command = WAYS[way].format(run=run, other=other, name=name)
    cover = Cover(folder=run, spared=own, required=True)
    said = await _said(command, own, cover if covered else None)
    through = [f"{way}: {line[:80]!r}" for line in said.splitlines() if _tells(line)]
    changed = [file.name for file in kept if not file.exists() or file.read_text() != CANARY]
    return through + [f"{way}: {name} is changed" for name in changed]


def _tells(line: str) -> bool:
    # An error names the path that was guessed.
    return CANARY in line or line.strip().endswith(("other", "runs.db", "results.jsonl", ":other"))


async def _said(command: str, workspace: Path, cover: Cover | None) -> str:
    processes = SupervisedProcesses()
    context = ToolContext(
        run_id="run",
        call_id="call",
        workspace=workspace,
        in_thread=asyncio.to_thread,
        processes=processes,
        cover=cover,
    )
    try:
        return await run_command.run(json.dumps({"command": command}), context)
    except ToolError as error:
        return str(error)
    finally:
        processes.close()


def try_way(way: str, *, covered: bool) -> list[str]:
    """Try one way in a run directory that is removed after that."""
    with tempfile.TemporaryDirectory() as place:
        return asyncio.run(look_for(Path(place).resolve(), way, covered=covered))


def look(tries: int) -> Outcome:
    """Try the ways in turn."""
    try:
        asyncio.run(hides_workspaces(required=True))
    except OSError as error:
        raise NotTriedError(f"workspaces cannot be hidden here: {error.strerror}") from None
    through: list[str] = []
    for number in range(tries):
        through += try_way(list(WAYS)[number % len(WAYS)], covered=True)
    return Outcome(tries, tuple(through))


ATTACKS = (
    Attack(
        name="hidden_workspaces",
        what="a command lists, searches, guesses, links and moves to get at the workspaces of "
        "other runs, the journal and the results",
        run=look,
        tries=15 * len(WAYS),
        quick=len(WAYS),
    ),
)
