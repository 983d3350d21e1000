"""The commands of contracts, in a workspace."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_actors.ports import CommandEnd, Cover, ToolProcesses
from harness_actors.records import FolderId
from harness_actors.tools.environment import command_environment
from harness_actors.tools.paths import open_workspace
from harness_actors.tools.shell import run_shell
from harness_actors.tools.way import real_path

OUTPUT_BYTES = 4_000
"""Of what a command printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCommands:
    """Answers the port `ContractCommands`.

    Attributes:
        folder: The workspace.
        id: What it is known by; None where nobody knows, and whatever is there is taken.
        path: Folders with programs that commands may use, before all others.
        variables: Environment variables that they get.
        bare_python: Their `python` has the standard library alone.
        processes: Starts them; None to have them as children of this process.
        run_id: The run that they are for.
        cover: What they are not to see; None for nothing.
    """

    folder: Path
    id: FolderId | None = None
    path: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    bare_python: bool = False
    processes: ToolProcesses | None = None
    run_id: str = ""
    cover: Cover | None = None

    async def run(self, command: str, *, timeout_s: float) -> CommandEnd:
        folder, environment = await asyncio.to_thread(self._surroundings)
        result = await run_shell(
            command,
            folder=folder,
            environment=environment,
            timeout_s=timeout_s,
            output_bytes=OUTPUT_BYTES,
            processes=self.processes,
            run_id=self.run_id,
            cover=self.cover,
        )
        return CommandEnd(
            exit_code=result.exit_code, output=result.output.strip(), stopped=result.stopped
        )

    def _surroundings(self) -> tuple[Path, dict[str, str]]:
        """Where a command runs, without symlinks, and all its variables."""
        with open_workspace(self.folder, self.id) as root:
            folder = Path(real_path(root))
        environment = command_environment(
            folder, self.variables, path=self.path, bare_python=self.bare_python
        )
        return folder, environment
