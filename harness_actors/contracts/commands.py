"""The commands of contracts, in a workspace."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_actors.ports import CommandEnd, Cover, ToolProcesses
from harness_actors.tools.environment import command_environment
from harness_actors.tools.shell import run_shell

OUTPUT_BYTES = 4_000
"""Of what a command printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCommands:
    """Answers the port `ContractCommands`.

    Attributes:
        folder: The workspace.
        path: Folders with programs that commands may use, before all others.
        variables: Environment variables that they get.
        bare_python: Their `python` has the standard library alone.
        processes: Starts them; None to have them as children of this process.
        run_id: The run that they are for.
        cover: What they are not to see; None for nothing.
    """

    folder: Path
    path: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    bare_python: bool = False
    processes: ToolProcesses | None = None
    run_id: str = ""
    cover: Cover | None = None

    async def run(self, command: str, *, timeout_s: float) -> CommandEnd:
        environment = await asyncio.to_thread(
            command_environment,
            self.folder,
            self.variables,
            path=self.path,
            bare_python=self.bare_python,
        )
        result = await run_shell(
            command,
            folder=self.folder,
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
