"""Contracts in files: both notations, and what is said of a faulty one, with its line."""

import json
import os
import time
from pathlib import Path

import pytest

from harness_actors.contracts import AllOf, CommandSucceeds, FileExists, TaskContract, load_contract
from harness_actors.contracts.document import MOST_BYTES
from harness_actors.errors import BadInputError

YAML = """\
goal: the tests pass
outputs:
  - id: R1
    description: tests pass
    predicate: {command: "python -m pytest -q"}
  - id: R2
    type: artifact
    description: a report
    predicate:
      all:
        - file_exists: report.md
        - contains_text: {file: report.md, pattern: "^total: [0-9]+$"}
  - a summary of what was done
questions:
  - Which version is meant?
acceptability: {min_confidence: 0.8}
"""


def refused(folder: Path, text: str, name: str = "contract.yaml") -> tuple[str, ...]:
    path = folder / name
    path.write_text(text)
    with pytest.raises(BadInputError) as caught:
        load_contract(path)
    assert caught.value.source == str(path)
    return caught.value.faults


def test_a_file_of_yaml_and_one_of_json_hold_the_same_contract(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(YAML)
    from_yaml = load_contract(tmp_path / "a.yaml").contract
    (tmp_path / "a.json").write_text(json.dumps(from_yaml.as_plain(), indent="\t"))

    assert load_contract(tmp_path / "a.json").contract == from_yaml
    assert from_yaml.outputs[0].predicate == CommandSucceeds("python -m pytest -q")
    assert isinstance(from_yaml.outputs[1].predicate, AllOf)
    assert from_yaml.outputs[1].predicate.parts[0] == FileExists("report.md")
    assert [each.id for each in from_yaml.outputs] == ["R1", "R2", "R3"]
    assert from_yaml.questions[0].question == "Which version is meant?"


def test_a_value_that_is_named_once_may_be_used_again(tmp_path: Path) -> None:
    text = "goal: x\noutputs:\n  - predicate: &p {file_exists: a}\n  - predicate: *p\n"
    (tmp_path / "a.yaml").write_text(text)

    one, two = load_contract(tmp_path / "a.yaml").contract.outputs

    assert one.predicate == two.predicate == FileExists("a")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (YAML.replace("file_exists", "file_exits"), "line 11: outputs[1].predicate.all[0]: there"),
        (YAML.replace("report.md, pat", "/x, pat"), "line 12: outputs[1].predicate.all[1].contain"),
        (YAML.replace("^total: [0-9]+$", "(.*)*"), "line 12: outputs[1].predicate.all[1].contain"),
        (YAML.replace("artifact", "7"), "line 7: outputs[1].type: must be one of artifact"),
        (YAML.replace("id: R2", "id: R1"), "line 6: outputs[1].id: 'R1' is the id of outputs[0]"),
        (YAML.replace("0.8", "high"), "line 16: acceptability.min_confidence: must be a number"),
        (YAML.replace("goal:", "gaol:"), "line 1: gaol: there is no such field; there are goal"),
        (YAML + "goal: another\n", "line 17: 'goal' is given twice, in line 1 before"),
        ("goal: x\noutputs: [\n", "line 3: no YAML: while parsing a flow node"),
        ("goal: x\noutputs: []\n", "line 2: outputs: is empty"),
        ("goal: 2020-13-45", "line 1: month must be in 1..12"),
        ("a: &a [*a]", "line 1: it is nested more than 100 levels deep"),
        ("goal: x\n<<: {outputs: [a]}", "line 2: merging by << is not taken"),
        ("goal: x\n? [a]\n: b", "line 2: the name of a field must be a text"),
        ("goal: x\n--- \ngoal: y", "line 2: no YAML: expected a single document"),
        ("goal: !!python/name:os.system", "line 1: no YAML: could not determine a constructor"),
        (f"goal: {'9' * 5_000}", "line 1: Exceeds the limit"),
        ("", "line 0"),
    ],
)
def test_a_fault_is_told_with_its_line_and_its_field(tmp_path: Path, text: str, fault: str) -> None:
    found = refused(tmp_path, text)

    assert found[0].startswith(fault if text else "it must have fields such as 'goal'")


def test_a_fault_deep_in_a_schema_is_told_with_its_line(tmp_path: Path) -> None:
    text = """\
goal: x
outputs:
  - predicate:
      json_schema_valid:
        file: a.json
        schema:
          properties:
            b.c:
              items:
                $ref: https://example.org/schema.json
"""
    (fault,) = refused(tmp_path, text)

    assert fault.startswith("line 10: outputs[0].predicate.json_schema_valid.schema.properties.b.c")
    assert "refers to another document" in fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"goal": "x",\n"outputs": [}', "line 2: no JSON: Expecting value"),
        (
            '{"goal": "x",\n\t"outputs":\n\t\t[{"predicate": {"file_exists": 7}}]}',
            "line 3: outputs",
        ),
        ('{"goal": "x", "goal": "y"}', "line 1: 'goal' is given twice, in line 1 before"),
        ('{"goal": "x\\ud83d\\ude00",\n "goal":\n 1}', "line 2: 'goal' is given twice"),
        (f"[{'1, ' * 60_000} 1]", "line 1: it has more than 50,000 values"),
        ('{"goal": NaN}', "NaN is no number of JSON"),
        ("[" * 100_000, "line 1: it is nested more than 100 levels deep"),
    ],
)
def test_a_fault_of_json_is_told_alike(tmp_path: Path, text: str, fault: str) -> None:
    assert refused(tmp_path, text, "a.json")[0].startswith(fault)


@pytest.mark.parametrize(
    "text",
    [
        "x: " + "a" * 10_000_000,
        "[" * MOST_BYTES,
        "- " * (MOST_BYTES // 2),
        "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 1}]\n" for n in range(20)),
        "- a\n" * (MOST_BYTES // 4),
    ],
    ids=["10 MB", "brackets", "dashes", "aliases", "items"],
)
def test_a_file_that_would_take_long_is_refused_at_once(tmp_path: Path, text: str) -> None:
    began = time.process_time()

    refused(tmp_path, text)

    # Most of it is the parser's; it takes a second, or nothing, and not minutes.
    assert time.process_time() - began < 10


@pytest.mark.timeout(20)
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "pipe", "no file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "none", "No such file"),
        (Path("/dev/zero"), "no file"),
    ):
        with pytest.raises(BadInputError, match=said):
            load_contract(path)
    (tmp_path / "latin").write_bytes(b"goal: x\noutputs: \xe9")
    with pytest.raises(BadInputError, match="line 2: it is not UTF-8"):
        load_contract(tmp_path / "latin")


def test_a_contract_of_many_outputs_is_read(tmp_path: Path) -> None:
    lines = "".join(f"  - predicate: {{file_exists: f{n}}}\n" for n in range(1_000))
    (tmp_path / "a.yaml").write_text(f"goal: x\noutputs:\n{lines}")

    contract = load_contract(tmp_path / "a.yaml").contract

    assert len(contract.outputs) == 1_000
    assert TaskContract.from_mapping(contract.as_plain()) == contract
