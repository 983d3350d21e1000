"""Tools by name: the shipped ones, and the user's own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.errors import ConfigError, ToolError
from harness_actors.tools import coding_tools, find_tool, work_complete
from tests.tools.conftest import Call

MODULE = """
from harness_actors.tools import tool
from . import rates

@tool(effect="network")
def refund(order: int) -> int:
    return order * rates.RATE

def plain(a: str) -> str:
    return a

class Desk:
    @staticmethod
    def close() -> str:
        return "closed"

limit = 3
"""


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Path]:
    package = tmp_path / "agents" / "billing_desk"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "rates.py").write_text("RATE = 2")
    (package / "tools.py").write_text(MODULE)
    (tmp_path / "agents" / "broken_desk.py").write_text("1 / 0")
    (tmp_path / "agents" / "needy_desk.py").write_text("import no_such_library")
    (tmp_path / "agents" / "json.py").write_text("def loads(): ...")
    yield tmp_path / "agents"
    for name in [name for name in sys.modules if "_desk" in name]:
        del sys.modules[name]


def test_the_coding_tools_are_complete() -> None:
    assert [tool.spec.name for tool in coding_tools()] == [
        "read_file", "write_file", "edit_file", "list_directory", "grep_files", "find_files",
        "create_directory", "run_command",
    ]  # fmt: skip


def test_only_what_can_run_twice_is_idempotent() -> None:
    assert [tool.spec.name for tool in coding_tools() if not tool.spec.idempotent] == [
        "edit_file", "run_command",
    ]  # fmt: skip


@pytest.mark.parametrize("tool", [*coding_tools(), work_complete], ids=lambda tool: tool.spec.name)
def test_every_shipped_tool_is_found_and_described(tool: object) -> None:
    assert hasattr(tool, "spec")
    assert find_tool(tool.spec.name) is tool
    assert tool.spec.description
    for facts in tool.spec.parameters["properties"].values():
        assert facts["description"]


async def test_a_tool_of_a_module_beside_the_agent_is_found(beside: Path, call: Call) -> None:
    path = list(sys.path)
    refund = find_tool("billing_desk.tools:refund", beside)
    assert sys.path == path
    assert refund.spec.effect == "network"
    assert await call(refund, order=4) == "8"
    assert find_tool("billing_desk.tools:refund", beside) is refund


async def test_a_plain_function_becomes_a_tool(beside: Path, call: Call) -> None:
    assert await call(find_tool("billing_desk.tools:plain", beside), a="x") == "x"
    assert await call(find_tool("billing_desk.tools:Desk.close", beside)) == "closed"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reed_file", "no tool 'reed_file'; there are .*read_file.*module:function"),
        ("billing_desk.tools:refnud", "has no such function; its tools are refund"),
        ("billing_desk.tools:limit", "is no function"),
        ("billing_desk.rates:", "has no function made by @tool"),
        ("no_such_desk:refund", "no module 'no_such_desk' on the Python path or in"),
        ("needy_desk:refund", "no module 'no_such_library'"),
        ("broken_desk:refund", "ZeroDivisionError: division by zero"),
        ("json:loads", "another module 'json'.*is loaded already; rename"),
        (":refund", "cannot be imported"),
    ],
)
def test_a_tool_that_is_not_there_is_an_error_that_says_what_is(
    name: str, message: str, beside: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        find_tool(name, beside)


async def test_work_complete_records_the_summary(call: Call) -> None:
    assert (work_complete.spec.effect, work_complete.spec.idempotent) == ("read_only", True)
    assert work_complete.spec.parameters["required"] == ["summary"]
    said = await call(work_complete, summary="All done.")
    assert said == "Work recorded as complete: All done."
    with pytest.raises(ToolError, match="summary is empty"):
        await call(work_complete, summary=" ")


def test_importing_the_room_loads_nothing_heavy() -> None:
    program = (
        "import sys, harness_actors.tools; "
        "print([m for m in ('pydantic', 'ray', 'openai', 'cloudpickle') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
