"""A seat belt for commands: what would ruin the machine does not run, and nothing else is kept."""

import time
from typing import Any

import pytest

from harness_actors.errors import ConfigError
from harness_actors.policies import CallDeniedError, MiddlewareChain, ShellSafety, ToolInvocation
from harness_actors.policies.dangerous import danger_of
from tests.policies.calls import a_call, ran
from tests.policies.commands import ALLOWED, ALLOWED_DOCUMENTS, DENIED, DENIED_DOCUMENTS


def test_the_tables_hold_what_they_promise() -> None:
    assert len(set(DENIED)) >= 60
    assert len(set(ALLOWED)) >= 60


@pytest.mark.parametrize("command", [*DENIED, *DENIED_DOCUMENTS])
def test_a_command_that_would_ruin_the_machine_is_denied(command: str) -> None:
    assert danger_of(command)


@pytest.mark.parametrize("command", [*ALLOWED, *ALLOWED_DOCUMENTS])
def test_a_command_of_everyday_work_is_not_denied(command: str) -> None:
    assert danger_of(command) == ""


@pytest.mark.parametrize(
    "command",
    [
        *("a" * 500_000, "(" * 50_000, "<<a\n" * 20_000, "$(" * 20_000, "`" * 50_000),
        *("sudo " * 20_000, "a() {" * 20_000, "\\" * 49_999, "x | " * 20_000, "'" * 49_999),
        "bash -c " * 10_000,
    ],
    ids=lambda command: command[:8],
)
def test_a_hostile_command_is_read_in_bounded_time(command: str) -> None:
    began = time.process_time()
    danger_of(command)
    assert time.process_time() - began < 5


async def test_a_denied_command_does_not_run_and_the_model_is_told_why() -> None:
    chain = MiddlewareChain((ShellSafety(),))
    call = a_call("run_command", {"command": "rm -rf /"})

    with pytest.raises(CallDeniedError, match="it removes '/'"):
        await chain.call_tool(call, _must_not_run)


async def test_commands_of_a_form_of_the_users_are_denied_too() -> None:
    chain = MiddlewareChain((ShellSafety(patterns=["git push --force"]),))
    call = a_call("run_command", {"command": "git push --force origin"})

    with pytest.raises(CallDeniedError, match="not allowed here"):
        await chain.call_tool(call, _must_not_run)
    allowed = a_call("run_command", {"command": "git push"})
    assert await chain.call_tool(allowed, ran) == "ran run_command"


async def test_other_tools_and_broken_arguments_are_left_to_whom_they_concern() -> None:
    chain = MiddlewareChain((ShellSafety(),))

    assert await chain.call_tool(a_call("note", {"command": "rm -rf /"}), ran) == "ran note"
    broken = a_call("run_command", raw='{"command": "rm -rf')
    assert await chain.call_tool(broken, ran) == "ran run_command"


def test_a_pattern_that_could_take_for_ever_is_refused() -> None:
    with pytest.raises(ConfigError, match="without an upper bound"):
        ShellSafety(patterns=["(a+)+b"])


@pytest.mark.parametrize("name", ["patterns", "tools"])
def test_one_text_is_not_taken_for_a_list_of_letters(name: str) -> None:
    given: Any = {name: "run_command"}
    with pytest.raises(ConfigError, match=f"ShellSafety.{name}: must be a list of texts"):
        ShellSafety(**given)


async def _must_not_run(call: ToolInvocation) -> str:
    raise AssertionError(f"{call.tool_name} ran")
