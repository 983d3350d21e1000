"""`persona.output_type` of an agent file: a schema, a file with one, or a type beside the file."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness_actors.agents import ChatAgent
from harness_actors.batch.agent_file import load_agent_file
from harness_actors.errors import BadInputError
from harness_actors.models import OpenAIModel

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MODULE = """
from dataclasses import dataclass

@dataclass
class Verdict:
    guilty: bool

verdict = Verdict(True)
"""


def write(folder: Path, output_type: Any, **model: Any) -> Path:
    path = folder / "agent.yaml"
    persona = {} if output_type is None else {"output_type": output_type}
    path.write_text(yaml.safe_dump({"model": {"id": "m", **model}, "persona": persona}))
    return path


def loaded(path: Path) -> ChatAgent:
    agent = load_agent_file(path).agent
    assert isinstance(agent, ChatAgent)
    return agent


def test_a_schema_may_stand_in_the_file(tmp_path: Path) -> None:
    assert loaded(write(tmp_path, SCHEMA)).output_type.schema == SCHEMA


def test_a_schema_may_be_in_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "forms").mkdir()
    (tmp_path / "forms" / "n.json").write_text(json.dumps(SCHEMA))
    assert loaded(write(tmp_path, "forms/n.json")).output_type.schema == SCHEMA


def test_a_type_may_be_in_a_module_beside_it(tmp_path: Path) -> None:
    (tmp_path / "verdicts_of_a_test.py").write_text(MODULE)
    output = loaded(write(tmp_path, "verdicts_of_a_test:Verdict")).output_type
    assert output.given.__name__ == "Verdict"
    assert output.instance({"guilty": False}).guilty is False


def test_who_says_nothing_of_it_has_none(tmp_path: Path) -> None:
    assert loaded(write(tmp_path, None)).output_type is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (5, "persona.output_type: must be a JSON schema, a .json file, or module:Name"),
        (["a"], "persona.output_type: must be a JSON schema"),
        ("Verdict", "persona.output_type: 'Verdict' must be a JSON schema"),
        ("gone.json", "gone.json': No such file"),
        ("words.json", "words.json' is not JSON"),
        ("list.json", "list.json' has no JSON schema"),
        ("bad.json", "persona.output_type: bad.json.properties.n.type: is no JSON schema"),
        ("no_such_module_x:Verdict", "persona.output_type: "),
        ("more_verdicts_of_a_test:Sentence", "its module has no such type"),
        ("third_verdicts_of_a_test:verdict", "must be a pydantic model, a dataclass"),
        ({"type": "objekt"}, "persona.output_type.type: is no JSON schema"),
        ({"$ref": "https://example.com/x"}, "persona.output_type.$ref: "),
        ({"x": 1}, "persona.output_type: says nothing of a value"),
    ],
)
def test_what_is_at_fault_is_told_with_file_and_field(
    tmp_path: Path, given: Any, told: str
) -> None:
    (tmp_path / "more_verdicts_of_a_test.py").write_text(MODULE)
    (tmp_path / "third_verdicts_of_a_test.py").write_text(MODULE)
    (tmp_path / "words.json").write_text("words")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "bad.json").write_text('{"properties": {"n": {"type": 5}}}')
    path = write(tmp_path, given)
    with pytest.raises(BadInputError) as refused:
        load_agent_file(path)
    assert str(path) in str(refused.value)
    assert told in str(refused.value)


def test_who_has_a_strict_mode_is_a_field_of_the_model(tmp_path: Path) -> None:
    for given in (True, False):
        model = loaded(write(tmp_path, None, base_url="http://x/v1", structured_output=given)).model
        assert isinstance(model, OpenAIModel)
        assert model.structured_output is given
