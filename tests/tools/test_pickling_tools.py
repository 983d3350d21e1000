"""Tools travel to other processes: by reference where they can, by value elsewhere."""

import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

from harness_actors.tools import coding_tools, work_complete
from harness_actors.tools.command import CommandRunner
from harness_actors.tools.function import FunctionTool

MODULE = '''
from __future__ import annotations
from pydantic import BaseModel
from harness_actors.ports import ToolContext
from harness_actors.tools import tool

RATE = 3

class Order(BaseModel):
    number: int

@tool(effect="network", idempotent=True, resource_keys=["order:{order}"])
def refund(order: Order, context: ToolContext, note: str = "") -> Order:
    """Give money back.

    Args:
        note: Why.
    """
    return Order(number=order.number * RATE)
'''

READ = """
import asyncio, pickle, sys
from harness_actors.ports import ToolContext
tool = pickle.load(sys.stdin.buffer)
context = ToolContext(run_id="r", call_id="c", workspace=None, in_thread=asyncio.to_thread)
spec = tool.spec
print(spec.name, spec.effect, spec.idempotent, sorted(spec.parameters["properties"]))
print(asyncio.run(tool.run('{"order": {"number": 2}}', context)))
print("orders" in sys.modules)
"""

WRITE = """
import sys
import cloudpickle
refund.spec
sys.stdout.buffer.write(cloudpickle.dumps(refund))
"""

EXPECTED = "refund network True ['note', 'order']\n{\"number\":6}\nFalse\n"


def read_elsewhere(blob: bytes) -> str:
    done = subprocess.run(
        [sys.executable, "-c", READ], input=blob, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_tool_of_a_module_that_is_pickled_by_value_runs_where_the_module_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("orders")
    cloudpickle.register_pickle_by_value(module)
    try:
        assert module.refund.spec.name == "refund"
        blob = cloudpickle.dumps(module.refund)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
        del sys.modules["orders"]

    assert read_elsewhere(blob) == EXPECTED


def test_a_tool_of_a_script_runs_elsewhere() -> None:
    done = subprocess.run([sys.executable, "-c", MODULE + WRITE], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()

    assert read_elsewhere(done.stdout) == EXPECTED


def test_shipped_tools_are_pickled_by_reference() -> None:
    for tool in (*coding_tools(), work_complete):
        if tool.spec.name == "run_command":
            continue
        blob = pickle.dumps(tool)
        assert len(blob) < 200
        assert pickle.loads(blob) is tool


def test_a_command_runner_keeps_its_settings() -> None:
    tool = CommandRunner(path=("/opt/task/bin",), variables={"A": "1"}).as_tool()

    again = cloudpickle.loads(cloudpickle.dumps(tool))

    assert isinstance(again, FunctionTool)
    assert again.spec == tool.spec
    runner = again.function.__self__  # type: ignore[attr-defined]
    assert runner == CommandRunner(path=("/opt/task/bin",), variables={"A": "1"})
