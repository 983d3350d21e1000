"""A workspace that its own command replaces by a link, and one that is as deep as it goes."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness_actors.batch.checks import Checks
from harness_actors.batch.tasks import Check
from harness_actors.errors import HarnessError, ToolError
from harness_actors.ports import Tool, ToolContext
from harness_actors.tools.command import run_command
from harness_actors.tools.files import create_directory, edit_file, read_file, write_file
from harness_actors.tools.search import find_files, grep_files, list_directory
from harness_actors.tools.standing import watch_workspace
from tests.attack.attacks import Attack, Outcome

CANARY = "canary"
CALLS: tuple[tuple[Tool, dict[str, Any]], ...] = (
    (read_file, {"path": "a.txt"}),
    (write_file, {"path": "new/a.txt", "content": "made"}),
    (edit_file, {"path": "a.txt", "old_text": CANARY, "new_text": "made"}),
    (create_directory, {"path": "made"}),
    (list_directory, {"depth": 10}),
    (find_files, {"pattern": "*"}),
    (grep_files, {"pattern": "."}),
    (run_command, {"command": "cat a.txt; touch made"}),
)
DEEP = {
    "1,500 folders": ["d"] * 1500,
    "3,000 folders, deeper than a path may be": ["d"] * 3000,
    "200 names of 80 CJK characters": ["\u6f22" * 80] * 200,
}

Round = Callable[[Path, int], Coroutine[Any, Any, list[str]]]


async def swap(place: Path, number: int) -> list[str]:
    """Replace a workspace by a command of its run, and use it after that."""
    workspace, outside = place / "workspace", place / "elsewhere"
    for folder in (workspace, outside):
        folder.mkdir()
    (outside / "a.txt").write_text(CANARY)
    context = _context(workspace)
    watched = watch_workspace(workspace)
    context = replace(context, workspace_id=watched.id)
    way = f"ln -s {outside} workspace" if number % 2 else "mv elsewhere workspace"
    await _said(run_command, {"command": f"cd .. && mv workspace moved && {way}"}, context)
    through = [
        f"{tool.spec.name} said {said[:80]!r}"
        for tool, arguments in CALLS
        if CANARY in (said := await _said(tool, arguments, context)) or not said.startswith("!")
    ]
    try:
        watched.check()
        through.append("the run would have gone on")
    except HarnessError:
        pass
    if number % 2:
        check = await Checks(place / "checks").run(Check(command="cat a.txt"), workspace)
        if check.passed or CANARY in check.output:
            through.append(f"a check said {check.output[:80]!r}")
    now = outside if number % 2 else workspace
    through += [f"{found.name} is changed" for found in now.iterdir() if found.name != "a.txt"]
    if (now / "a.txt").read_text() != CANARY:
        through.append("a.txt is changed")
    return through


async def go_deep(place: Path, number: int) -> list[str]:
    """Use and score a workspace in which a folder is very deep."""
    workspace = place / "workspace"
    workspace.mkdir()
    what, names = list(DEEP.items())[number % len(DEEP)]
    dig = "import os, sys\nfor name in sys.argv[1].split('/'): os.mkdir(name); os.chdir(name)"
    digging = await asyncio.create_subprocess_exec(
        "python3", "-c", dig, "/".join(names), cwd=workspace
    )
    await digging.wait()
    through = []
    for tool, arguments in CALLS:
        try:
            await _said(tool, arguments, _context(workspace))
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            through.append(f"{what}: {tool.spec.name} raised {type(error).__name__}")
    try:
        check = await Checks(place / "checks").run(Check(command="true"), workspace)
        if not check.passed:
            through.append(f"{what}: {check.output[:80]}")
        if list((place / "checks").iterdir()):
            through.append(f"{what}: the copy is left")
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        through.append(f"{what}: the check raised {type(error).__name__}")
    await (await asyncio.create_subprocess_exec("rm", "-rf", str(workspace))).wait()
    return through


def _rounds(one: Round) -> Callable[[int], Outcome]:
    def run(tries: int) -> Outcome:
        through: list[str] = []
        for number in range(tries):
            with tempfile.TemporaryDirectory() as place:
                through += asyncio.run(one(Path(place).resolve(), number))
        return Outcome(tries, tuple(through))

    return run


def _context(workspace: Path) -> ToolContext:
    return ToolContext(
        run_id="run", call_id="call", workspace=workspace, in_thread=asyncio.to_thread
    )


async def _said(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> str:
    """What a tool said; after a ! where it was an error."""
    try:
        return await tool.run(json.dumps(arguments), context)
    except ToolError as error:
        return f"!{error}"


ATTACKS = (
    Attack(
        name="workspace_swapped",
        what="a command replaces the workspace by a link or another folder; all tools, the look "
        "before each round and the copy for a check follow",
        run=_rounds(swap),
        tries=400,
        quick=4,
    ),
    Attack(
        name="deep_folders",
        what="a folder of 1,500 and more levels, or of names as long as they can be, is searched, "
        "scored and removed",
        run=_rounds(go_deep),
        tries=30,
        quick=len(DEEP),
    ),
)
