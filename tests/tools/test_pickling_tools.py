"""Tools travel to other processes: by reference where they can, by value elsewhere."""

import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.testing import ScriptedModel
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


TYPES = """
import enum, typing
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from typing import Annotated, NamedTuple, NotRequired, Optional
from pydantic import BaseModel, Field
from typing_extensions import TypedDict
from harness_actors.tools import tool

class Colour(enum.Enum):
    RED = "red"

@dataclass
class Point:
    x: int
    tags: list[str] = field(default_factory=list)

@dataclass(frozen=True, slots=True)
class Tree:
    at: Point
    _: KW_ONLY
    since: Optional[date] = None
    parts: "tuple[Tree, ...]" = ()

class Options(typing.TypedDict):
    point: Point
    inner: "NotRequired[Options]"

class Extended(TypedDict, total=False):
    tree: Tree

class Pair(NamedTuple):
    left: Colour
    right: "Pair | None" = None

class Order(BaseModel):
    point: Point
    lines: list[Tree] = Field(default_factory=list)

@tool
def take(
    point: Point,
    tree: Tree,
    options: Options,
    extended: Extended,
    pair: Pair,
    order: Order,
    again: Annotated[Point, Field(description="Again.")] = Point(3),
) -> list[object]:
    return [point, tree, options, extended, pair, order, again]
"""

SAID = {
    "point": {"x": 1},
    "tree": {"at": {"x": 2}, "since": "2026-01-02", "parts": [{"at": {"x": 3}}]},
    "options": {"point": {"x": 4}, "inner": {"point": {"x": 5}}},
    "extended": {"tree": {"at": {"x": 6}}},
    "pair": ["red", ["red"]],
    "order": {"point": {"x": 7}, "lines": [{"at": {"x": 8}}]},
}

TAKE = """
import asyncio, sys
from harness_actors.actors.packing import unpack
from harness_actors.ports import ToolContext
(take,) = unpack(sys.stdin.buffer.read()).agent.tools
context = ToolContext(run_id="r", call_id="c", workspace=None, in_thread=asyncio.to_thread)
print(asyncio.run(take.run(sys.argv[1], context)))
"""


@pytest.mark.parametrize("texts", [False, True], ids=["resolved", "annotations as texts"])
def test_types_of_a_users_module_are_built_where_the_module_is_not(
    texts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    future = "from __future__ import annotations\n" if texts else ""
    (tmp_path / "usertypes.py").write_text(future + TYPES)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("usertypes")
    try:
        agent = ChatAgent(model=ScriptedModel([]), tools=[module.take])
        blob = Program.of(agent).blob
    finally:
        del sys.modules["usertypes"]
        monkeypatch.undo()

    done = subprocess.run(
        [sys.executable, "-c", TAKE, json.dumps(SAID)], input=blob, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr.decode()
    point, tree, options, _, pair, order, again = json.loads(done.stdout)
    assert point == {"x": 1, "tags": []}
    assert tree["since"] == "2026-01-02"
    assert tree["parts"] == [{"at": {"x": 3, "tags": []}, "since": None, "parts": []}]
    assert options["inner"] == {"point": {"x": 5, "tags": []}}
    assert pair == ["red", ["red", None]]
    assert order["lines"][0]["at"] == {"x": 8, "tags": []}
    assert again == {"x": 3, "tags": []}
