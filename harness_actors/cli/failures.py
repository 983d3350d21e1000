"""How a command ends: its exit status, and one clear line where it could not do its work."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from harness_actors.errors import (
    AgentCodeError,
    AnswerError,
    BadInputError,
    ConfigError,
    ConversationMovedOnError,
    HarnessError,
    ModelSetupError,
    RunNotFoundError,
    StoreInUseError,
    WorkflowError,
    error_facts,
)
from harness_actors.printing.plain import json_line, say

ALL_DONE, NOT_ALL_DONE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

_INPUT_ERRORS = (
    AgentCodeError,
    AnswerError,
    BadInputError,
    ConfigError,
    ConversationMovedOnError,
    ModelSetupError,
    RunNotFoundError,
    StoreInUseError,
    WorkflowError,
)
"""What the user must change before the same command can work; nothing was run."""
_FLAGS = {
    "base_url": "--model-base-url",
    "budget_usd": "--budget",
    "concurrency": "--concurrency",
    "epochs": "--epochs",
    "fail_on_error": "--fail-on-error",
    "limits.cost_usd": "--cost-limit",
    "limits.time_s": "--time-limit",
    "limits.tokens": "--token-limit",
    "limits.working_s": "--working-limit",
    "max_turns": "--max-turns",
    "message": "TASK",
    "retry_on_error": "--retry-on-error",
}
"""What gives a setting on a command line; what a file gives is named by file and section."""


@contextmanager
def failures_told(*, as_json: bool) -> Iterator[None]:
    """Turn errors of the harness and of the system into a line and an exit status.

    The terminal is the command's: what code of users prints in this process goes elsewhere.
    """
    from harness_actors.actors.output import terminal_taken

    try:
        with terminal_taken():
            yield
    except HarnessError as error:
        tell(_as_given(error), as_json=as_json)
        raise typer.Exit(exit_status(error)) from None
    except BrokenPipeError:
        # Whoever read our output has gone, as `head -1` does: there is nobody to tell.
        raise typer.Exit(NOT_ALL_DONE) from None
    except OSError as error:
        tell(error, as_json=as_json)
        raise typer.Exit(NOT_ALL_DONE) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(INTERRUPTED) from None


def _as_given(error: HarnessError) -> HarnessError:
    """The error by the name that a command line has for what is at fault."""
    match error:
        case ConfigError() if error.field in _FLAGS:
            return ConfigError(_FLAGS[error.field], error.problem)
        case BadInputError() if error.source in _FLAGS:
            return BadInputError(_FLAGS[error.source], error.faults)
        case _:
            return error


def exit_status(error: HarnessError) -> int:
    """2 where the input is at fault, and 1 where the same command may well go on."""
    return BAD_INPUT if isinstance(error, _INPUT_ERRORS) else NOT_ALL_DONE


def tell(error: HarnessError | OSError, *, as_json: bool) -> None:
    """Say on stderr what went wrong."""
    if as_json:
        say(json_line({"error": error_facts(error)}), sys.stderr)
    else:
        say(f"error: {error}", sys.stderr)
