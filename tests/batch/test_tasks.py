import json
import tracemalloc
from dataclasses import asdict
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch.agents import Agents
from harness_actors.batch.tasks import BadTask, Check, Task, content_hash, parse_task, with_limits
from harness_actors.config import HarnessConfig
from harness_actors.errors import ConfigError
from harness_actors.testing import ScriptedModel


def parsed(base: Path, **content: object) -> Task:
    task = parse_task({"task": "do it", **content}, base=base)
    assert isinstance(task, Task), task
    return task


def faults_of(base: Path, **content: object) -> str:
    task = parse_task({"task": "do it", **content}, base=base)
    assert isinstance(task, BadTask)
    return "; ".join(task.faults)


def test_only_the_text_of_a_task_is_required(tmp_path: Path) -> None:
    task = parsed(tmp_path)

    assert task.task == "do it"
    assert task.id == task.task_hash


def test_paths_of_a_task_are_relative_to_its_file(tmp_path: Path) -> None:
    for name in ("start", "hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.yaml").touch()

    task = parsed(
        tmp_path, workspace="start", check={"command": "true", "files": "hidden"}, agent="a.yaml"
    )

    assert task.workspace == str(tmp_path / "start")
    assert task.check == Check(command="true", files=str(tmp_path / "hidden"))
    assert task.agent == str(tmp_path / "a.yaml")


def test_every_field_of_a_line_is_in_its_task(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "a.yaml").touch()
    line = {
        "id": "t1",
        "task": "do it",
        "workspace": str(tmp_path / "w"),
        "check": {
            "command": "make",
            "files": str(tmp_path / "w"),
            "timeout_s": 7.5,
            "keep": ["Makefile", "*.cfg"],
        },
        "agent": str(tmp_path / "a.yaml"),
        "limits": {"max_turns": 3},
        "metadata": {"level": 2},
    }

    task = asdict(parsed(tmp_path, **line))

    assert json.loads(json.dumps(task)) == {
        **line,
        "contract": None,
        "beside": None,
        "task_hash": content_hash(line),
    }


def test_a_check_that_keeps_nothing_has_the_hash_that_it_had_without_the_field(
    tmp_path: Path,
) -> None:
    command = {"command": "true"}

    assert parsed(tmp_path, check=command).task_hash == "3a70fa3dad45b03a"
    assert parsed(tmp_path, check={**command, "keep": []}).task_hash == "3a70fa3dad45b03a"
    assert parsed(tmp_path, check={**command, "keep": ["Makefile"]}).task_hash != "3a70fa3dad45b03a"
    assert Task(task="do it", check=Check(command="true")).task_hash == "3a70fa3dad45b03a"


def test_null_lifts_the_contract_of_the_agent(tmp_path: Path) -> None:
    lifted, silent = parsed(tmp_path, contract=None), parsed(tmp_path)
    held = HarnessConfig(contract={"goal": "x", "outputs": ["a"]})
    agents = Agents.of(ChatAgent(model=ScriptedModel([])), held)

    assert (lifted.contract, silent.contract) == ({}, None)
    assert lifted.task_hash == Task(task="do it", contract={}).task_hash != silent.task_hash
    assert agents.for_task(lifted).held_for(lifted).config_for(lifted).contract is None
    assert agents.for_task(silent).config_for(silent).contract == held.contract


def test_the_hash_is_that_of_the_content_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for base in (tmp_path, elsewhere):
        (base / "w").mkdir(parents=True)
    one = parsed(tmp_path, id="a", workspace="w", metadata={"x": 1, "y": 2})

    assert parsed(elsewhere, id="b", workspace="w", metadata={"y": 2, "x": 1}).task_hash == (
        one.task_hash
    )
    assert parsed(tmp_path, id="a", workspace="w").task_hash != one.task_hash


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"task": 7}, "task: should be a valid string, not 7"),
        ({"task": ""}, "task: String should have at least 1 character"),
        ({"id": 7}, "id: should be a valid string"),
        ({"chek": {}}, "chek: there is no such field"),
        ({"workspace": "nowhere"}, "workspace: there is no folder"),
        ({"check": "true"}, "check: must be an object with fields"),
        ({"check": {}}, "check.command: this field is required"),
        ({"check": {"command": "x", "files": "no"}}, "check.files: there is no folder"),
        ({"check": {"command": "x", "timeout_s": -1}}, "check.timeout_s: should be greater than 0"),
        ({"agent": "no.yaml"}, "agent: there is no file"),
        ({"contract": {}}, "contract: is empty; say null to hold this task to nothing"),
        ({"contract": {"goal": "x"}}, "contract.outputs: is missing"),
        ({"limits": {"tokens": -5}}, "limits.tokens: must be a whole number of at least 1"),
        ({"limits": {"max_turns": 0}}, "max_turns: must be a whole number of at least 1"),
        ({"limits": {"tokns": 5}}, "limits.tokns: no such limit; there are max_turns, model_calls"),
    ],
)
def test_a_fault_names_the_field_and_what_was_expected(
    tmp_path: Path, content: dict[str, object], fault: str
) -> None:
    assert fault in faults_of(tmp_path, **content)


@pytest.mark.parametrize("content", [[], "text", 3, None])
def test_what_is_no_object_is_a_bad_task(tmp_path: Path, content: object) -> None:
    task = parse_task(content, base=tmp_path)

    assert isinstance(task, BadTask)
    assert task.faults == (f"the task: must be an object with fields, not {content!r}",)


def test_metadata_that_is_no_json_is_a_fault(tmp_path: Path) -> None:
    assert "metadata: must hold plain JSON values" in faults_of(tmp_path, metadata={"x": object()})


def test_what_is_nested_without_end_is_a_fault_and_keeps_its_id(tmp_path: Path) -> None:
    nested: list[object] = []
    for _ in range(900):
        nested = [nested]
    task = parse_task({"id": "deep", "task": "do it", "metadata": {"x": nested}}, base=tmp_path)
    assert isinstance(task, BadTask)
    assert (task.id, task.faults) == ("deep", ("it is nested more than 100 levels deep",))
    nameless = parse_task(nested, base=tmp_path)
    assert isinstance(nameless, BadTask)
    assert nameless.id == nameless.task_hash


def test_a_bad_task_keeps_the_id_that_it_gives_itself(tmp_path: Path) -> None:
    task = parse_task({"id": "t9", "tsk": "x"}, base=tmp_path)

    assert isinstance(task, BadTask)
    assert task.id == "t9"


@pytest.mark.parametrize("name", [7, "", None, ["t9"]])
def test_a_bad_task_whose_id_is_no_name_is_named_by_its_hash(tmp_path: Path, name: object) -> None:
    task = parse_task({"id": name, "tsk": "x"}, base=tmp_path)

    assert isinstance(task, BadTask)
    assert task.id == task.task_hash


def test_limits_of_a_task_replace_those_of_the_batch_one_by_one() -> None:
    config = HarnessConfig.from_mapping({"max_turns": 9, "limits": {"tokens": 5, "time_s": 3}})

    bounded = with_limits(config, {"max_turns": 2, "tokens": 7})

    assert (bounded.max_turns, bounded.limits.tokens, bounded.limits.time_s) == (2, 7, 3)


def test_an_unknown_limit_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"limits\.tokns"):
        with_limits(HarnessConfig(), {"tokns": 1})


def test_the_hash_of_a_content_is_that_of_earlier_versions() -> None:
    # Results on disk name their tasks by it.
    plain = {"task": "é", "metadata": {"b": [1, {"z": None, "a": 2.5}], "a": "\ud800"}}
    assert content_hash({**plain, "big": 2**70, "x": {3: 1, "1": b"y"}}) == "f4d29812abba8f8d"
    mixed = [b"y", 2**70, 7, {3: [4, None]}, (True, 2.5)]
    assert content_hash({"task": "x", "metadata": {"list": mixed}}) == "d747f2481a2adc44"


def test_many_small_values_are_hashed_in_little_memory() -> None:
    content = {"task": "x", "metadata": {"a": [1] * 300_000}}
    tracemalloc.start()
    content_hash(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Bytes for each value took 1,250 MB.
    assert peak < 200_000_000
