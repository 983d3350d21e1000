"""`run_command`: a shell command in the workspace."""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness_actors.errors import ToolError
from harness_actors.ports import LargeResult, Tool, ToolContext
from harness_actors.tools.environment import command_environment
from harness_actors.tools.function import FunctionTool, tool
from harness_actors.tools.paths import workspace_of
from harness_actors.tools.shell import CommandResult, run_shell
from harness_actors.tools.supervision.client import KEEPER_KILLED, SUPERVISOR_KILLED

MAX_TIMEOUT_S = 600
STILL_OPEN = "[Something was left running in the background; what it prints from here on is lost.]"


@dataclass(frozen=True, kw_only=True)
class CommandRunner:
    """Runs commands for a model; what they find besides the system is said here.

    Attributes:
        path: Folders with programs that commands may use, before all others; for
            example the ``bin`` folder of a virtual environment for the task.
        variables: Environment variables that commands get. They are part of the agent
            and stored with it, so no place for keys.
        bare_python: Their `python` has the standard library alone. Else it has what is
            installed in the interpreter that the harness's virtual environment was made
            of, and never what is installed beside the harness.
    """

    path: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    bare_python: bool = False

    def as_tool(self) -> FunctionTool[..., object]:
        """The tool `run_command` with these settings."""
        return tool(effect="destructive", needs=["shell"])(self.run_command)

    async def run_command(self, command: str, context: ToolContext, timeout_s: float = 60) -> str:
        """Run a shell command in the top folder of the workspace.

        It has no input. When the time is up, it is killed with all that it started. What
        it leaves in the background goes on until the run ends; send its output to a file.

        Args:
            command: For bash (sh where there is none).
            timeout_s: Longest time in seconds, at most 600.
        """
        if not command.strip():
            raise ToolError("command is empty")
        if not timeout_s > 0:
            raise ToolError(f"timeout_s must be above 0, not {timeout_s:g}")
        limit_s = min(timeout_s, MAX_TIMEOUT_S)
        folder = workspace_of(context)
        environment = command_environment(
            folder,
            {**self.variables, **context.environment},
            path=self.path,
            bare_python=self.bare_python,
        )
        try:
            result = await run_shell(
                command,
                folder=folder,
                environment=environment,
                timeout_s=limit_s,
                leave_background=True,
                processes=context.processes,
                run_id=context.run_id,
                cover=context.cover,
                artifacts=context.artifacts,
            )
        except OSError as error:
            raise ToolError(f"the command could not be started: {error}") from None
        if result.timed_out:
            raise ToolError(_with_output(_late_text(result, limit_s), result))
        if result.stopped:
            raise ToolError(_with_output(_stopped_text(result), result))
        text = _with_output(f"exit code: {_named(result.exit_code)}\n", result)
        if result.not_kept:
            raise ToolError(text)
        return text


run_command = CommandRunner().as_tool()


def runner_among(tools: Iterable[Tool]) -> CommandRunner:
    """How the commands of an agent find their programs: as its `run_command` has it.

    Args:
        tools: Those of the agent.

    Returns:
        One without settings where none of them runs commands.
    """
    for one in tools:
        # The method that the tool was made of knows whose it is.
        runner = getattr(getattr(one, "function", None), "__self__", None)
        if isinstance(runner, CommandRunner):
            return runner
    return CommandRunner()


def _with_output(words: str, result: CommandResult) -> str:
    """What a command came to, with its output, whole where it was kept."""
    if result.not_kept:
        words = f"the output of the command could not be kept whole: {result.not_kept}; {words}"
    ended = not (result.timed_out or result.stopped)
    after = f"\n{STILL_OPEN}" if result.output_open and ended else ""
    text = words + (result.output.removesuffix("\n") or "(no output)") + after
    if result.whole is None:
        return text
    return LargeResult(text, result.whole, before=words, after=after)


def _late_text(result: CommandResult, limit_s: float) -> str:
    return (
        f"the command ran past {limit_s:g} s and was killed with {_extent(result)}; "
        "what it printed:\n"
    )


def _stopped_text(result: CommandResult) -> str:
    return f"the command was killed with {_extent(result)}: {result.stopped}; what it printed:\n"


def _extent(result: CommandResult) -> str:
    if result.stopped in (KEEPER_KILLED, SUPERVISOR_KILLED):
        # With both of them a command can kill those that know what is below it.
        return "what could be found of all that it started"
    return "all that it started"


def _named(exit_code: int | None) -> str:
    if exit_code is None or exit_code <= 128:
        return str(exit_code)
    try:
        return f"{exit_code} ({signal.Signals(exit_code - 128).name})"
    except ValueError:
        return str(exit_code)
