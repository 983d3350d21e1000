"""Programs as blobs: the user's own code travels, everybody else's is looked up."""

import hashlib
import importlib
import pickletools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import pydantic
import pytest

import harness_actors.testing.scripted
from harness_actors.actors.packing import is_own_module, pack, unpack
from harness_actors.coordination.graph import HarnessWorkflowBuilder, Workflow
from harness_actors.errors import AgentCodeError
from harness_actors.testing import ScriptedModel, an_agent
from harness_actors.tools import tool
from tests.coordination.test_graph import PassesOn

SOURCE = '''
from harness_actors.tools import tool

PREFIX = "{prefix}"

def shout(text):
    return PREFIX + text.upper()

@tool
def refund(order: str) -> str:
    """Refund an order."""
    return shout(order)
'''

Writes = Callable[..., ModuleType]


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writes]:
    """Writes and imports a module of the user's, `billing`; once more after an edit."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(source: str = SOURCE, prefix: str = "1:") -> ModuleType:
        (tmp_path / "billing.py").write_text(source.replace("{prefix}", prefix))
        sys.modules.pop("billing", None)
        importlib.invalidate_caches()
        return importlib.import_module("billing")

    yield write
    sys.modules.pop("billing", None)


def names_in(blob: bytes) -> set[str]:
    """Every text in a pickle: the modules and names that it looks up are among them."""
    return {arg for _, arg, _ in pickletools.genops(blob) if isinstance(arg, str)}


def call(workflow: Workflow, text: str) -> str:
    """Call the plain function behind the first tool."""
    first: Any = workflow.agent.tools[0]
    function = next(
        value
        for value in vars(first).values()
        if callable(value) and getattr(value, "__name__", "") == "refund"
    )
    answer: str = function(text)
    return answer


def test_the_users_module_travels_in_the_blob(user_module: Writes, tmp_path: Path) -> None:
    billing = user_module()
    _, blob = pack(Workflow(an_agent(tools=[billing.refund])))
    (tmp_path / "blob").write_bytes(blob)
    # Another process, which could not import it.
    script = (
        "import pathlib, sys; from harness_actors.actors.packing import unpack; "
        "w = unpack(pathlib.Path(sys.argv[1]).read_bytes()); "
        "print(w.agent.tools[0].spec.name, 'billing' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "blob")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["refund", "False"]


def test_an_edited_tool_is_not_yesterdays_import(user_module: Writes) -> None:
    first = user_module(prefix="1:")
    old_hash, old = pack(Workflow(an_agent(tools=[first.refund])))
    second = user_module(prefix="2:")
    new_hash, new = pack(Workflow(an_agent(tools=[second.refund])))
    assert old_hash != new_hash
    # Whatever `billing` is by now, each blob has its own.
    assert (call(unpack(old), "x"), call(unpack(new), "x")) == ("1:X", "2:X")


def test_a_blob_is_known_by_its_content() -> None:
    workflow = Workflow(an_agent())
    code, blob = pack(workflow)
    assert code == hashlib.sha256(blob).hexdigest()
    assert unpack(blob).edges == workflow.edges


def test_our_own_modules_go_by_name_wherever_they_are_installed() -> None:
    _, blob = pack(Workflow(an_agent()))
    assert "harness_actors.testing.scripted" in names_in(blob)
    assert len(blob) < 3_000
    assert not is_own_module("harness_actors.testing.scripted", harness_actors.testing.scripted)


def test_installed_packages_and_the_standard_library_go_by_name() -> None:
    assert not is_own_module("pydantic", pydantic)
    assert not is_own_module("pydantic.main", sys.modules["pydantic.main"])
    assert not is_own_module("json", sys.modules["json"])
    assert not is_own_module("os.path", sys.modules["os.path"])


def test_a_users_folder_is_the_users_also_beside_an_environment(user_module: Writes) -> None:
    assert is_own_module("billing", user_module())
    assert is_own_module("tests.coordination.test_graph", sys.modules[PassesOn.__module__])


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_packages_of_a_user_or_of_the_system_count_as_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    place = tmp_path / folder
    place.mkdir()
    (place / "installed_billing.py").write_text("")
    monkeypatch.syspath_prepend(place)
    module = importlib.import_module("installed_billing")
    try:
        assert not is_own_module("installed_billing", module)
    finally:
        del sys.modules["installed_billing"]


class Lazy(ModuleType):
    """A module that loads something, and fails, when anything is read of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"loading {name} failed")


def test_odd_modules_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    relative = ModuleType("relative")
    relative.__file__ = "relative.py"
    odd: dict[str, Any] = {"lazy": Lazy("lazy"), "relative": relative, "thing": object()}
    for name, module in odd.items():
        monkeypatch.setitem(sys.modules, name, module)
        assert not is_own_module(name, module)
    pack(Workflow(an_agent()))


def test_packing_leaves_the_picklers_list_as_it_was(user_module: Writes) -> None:
    billing = user_module()
    cloudpickle.register_pickle_by_value(sys.modules["tests.coordination.test_graph"])
    try:
        before = set(cloudpickle.list_registry_pickle_by_value())
        pack(Workflow(an_agent(tools=[billing.refund])))
        assert set(cloudpickle.list_registry_pickle_by_value()) == before
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules["tests.coordination.test_graph"])


def test_packing_in_several_threads_at_once_sends_the_users_code(user_module: Writes) -> None:
    billing = user_module()
    blobs: list[bytes] = []

    def pack_often() -> None:
        for _ in range(10):
            blobs.append(pack(Workflow(an_agent(tools=[billing.refund])))[1])

    threads = [threading.Thread(target=pack_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(blobs) == 40
    assert all("shout" in names_in(blob) for blob in blobs)


# ---- what cannot travel is named ----------------------------------------------------------------


def test_a_tool_that_cannot_be_pickled_is_named() -> None:
    lock = threading.Lock()

    @tool
    def refund(order: str) -> str:
        """Refund an order."""
        with lock:
            return order

    with pytest.raises(AgentCodeError) as caught:
        pack(Workflow(an_agent(tools=[refund])))
    assert caught.value.part == "tool 'refund'"
    assert "lock" in caught.value.reason
    assert "inside the tool" in str(caught.value)


def test_a_model_that_cannot_be_pickled_is_named() -> None:
    model: Any = ScriptedModel([])
    model.lock = threading.Lock()
    with pytest.raises(AgentCodeError) as caught:
        pack(Workflow(an_agent(model)))
    assert caught.value.part == "the model"


def test_an_executor_that_cannot_be_pickled_is_named() -> None:
    executor: Any = PassesOn("mine")
    executor.lock = threading.Lock()
    workflow = HarnessWorkflowBuilder(an_agent()).insert_after("repair", executor).build()
    with pytest.raises(AgentCodeError) as caught:
        pack(workflow)
    assert caught.value.part == "executor 'mine'"


def test_an_agent_that_cannot_be_pickled_for_another_reason_is_told() -> None:
    agent = an_agent()
    object.__setattr__(agent, "name", threading.Lock())
    with pytest.raises(AgentCodeError) as caught:
        pack(Workflow(agent))
    assert caught.value.part == "the agent"


@pytest.mark.parametrize("blob", [b"", b"no pickle", b"\x80"])
def test_a_damaged_blob_is_told(blob: bytes) -> None:
    with pytest.raises(AgentCodeError, match="the stored agent"):
        unpack(blob)


def test_a_blob_that_needs_a_module_which_is_not_here_names_it() -> None:
    blob = b"cno_such_module_anywhere\nthing\n."
    with pytest.raises(AgentCodeError, match="no_such_module_anywhere"):
        unpack(blob)
