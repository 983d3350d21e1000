"""How a command ends that could not do its work."""

import asyncio
import json

import pytest
import typer

from harness_actors.cli.failures import failures_told
from harness_actors.errors import (
    ActorLostError,
    BadInputError,
    ConfigError,
    RunNotFoundError,
    StoreError,
    StoreInUseError,
)

AT_FAULT = [
    BadInputError("tasks.jsonl", ("line 1 is no task",)),
    ConfigError("runtime", "there is none"),
    RunNotFoundError("run", "the journals"),
    StoreInUseError("runs.db", "another process works on it"),
]
MAY_GO_ON = [
    ActorLostError("the coordinator", "killed"),
    StoreError("runs.db", "the disk is full"),
    OSError(28, "No space left on device"),
]
Out = pytest.CaptureFixture[str]


def status_of(error: BaseException, *, as_json: bool = False) -> int:
    with pytest.raises(typer.Exit) as left, failures_told(as_json=as_json):
        raise error
    return left.value.exit_code


@pytest.mark.parametrize(
    ("error", "status"),
    [*((error, 2) for error in AT_FAULT), *((error, 1) for error in MAY_GO_ON)],
    ids=str,
)
def test_the_exit_status_tells_who_is_to_do_something_and_a_line_what(
    capsys: Out, error: Exception, status: int
) -> None:
    assert status_of(error) == status
    assert capsys.readouterr() == ("", f"error: {error}\n")


@pytest.mark.parametrize("error", [AT_FAULT[0], MAY_GO_ON[0], MAY_GO_ON[2]], ids=str)
def test_scripts_read_the_same_as_json(capsys: Out, error: Exception) -> None:
    status_of(error, as_json=True)

    out, told = capsys.readouterr()
    assert out == ""
    assert json.loads(told)["error"]["type"] == type(error).__name__


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (ConfigError("limits.cost_usd", "must be above 0"), "--cost-limit"),
        (BadInputError("message", ("it is empty",)), "TASK"),
    ],
    ids=str,
)
def test_a_setting_is_named_as_the_command_line_has_it(
    capsys: Out, error: Exception, named: str
) -> None:
    assert status_of(error) == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [(BrokenPipeError(), 1), (KeyboardInterrupt(), 130), (asyncio.CancelledError(), 130)],
    ids=repr,
)
def test_whoever_left_or_said_stop_is_told_nothing(
    capsys: Out, error: BaseException, status: int
) -> None:
    assert status_of(error) == status
    assert capsys.readouterr() == ("", "")


def test_what_is_no_failure_of_ours_to_tell_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), failures_told(as_json=False):
        raise ZeroDivisionError
