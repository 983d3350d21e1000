"""`persona.sub_agents` of an agent file: whom its agent may delegate to."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch.agent_file import load_agent_file
from harness_actors.config import Limits, SubAgentConfig
from harness_actors.errors import BadInputError, ConfigError, HarnessError
from harness_actors.models import LocalModel, OpenAIModel
from harness_actors.subagents import SubAgentSpec, document, explore

BEFORE = """
model: {id: gpt-4.1, base_url: "http://127.0.0.1:1/v1", key_name: OUR_KEY}
environment: {tools: [read_file, grep_files, "billing_of_a_page:refund"]}
harness: {sub_agents: {max_depth: 2, max_parallel: 4}}
persona:
  sub_agents: """


@pytest.fixture(autouse=True)
def _billing(tmp_path: Path) -> Iterator[None]:
    (tmp_path / "billing_of_a_page.py").write_text(
        "from harness_actors.tools import tool\n\n\n"
        '@tool(name="pay_back")\ndef refund(order: int) -> str:\n    "Refund."\n'
    )
    yield
    sys.modules.pop("billing_of_a_page", None)


def sub_agents(folder: Path, text: str) -> tuple[SubAgentSpec, ...]:
    path = folder / "lead.yaml"
    path.write_text(BEFORE + text)
    loaded = load_agent_file(path)
    assert loaded.config.sub_agents == SubAgentConfig(max_depth=2, max_parallel=4)
    assert isinstance(loaded.agent, ChatAgent)
    return tuple(loaded.agent.sub_agents)


def test_shipped_ones_are_named(tmp_path: Path) -> None:
    assert sub_agents(tmp_path, "[explore, document]") == (explore(), document())
    assert sub_agents(tmp_path, "") == ()


def test_a_shipped_one_may_have_a_model_and_bounds_of_its_own(tmp_path: Path) -> None:
    text = "[{use: explore, model: gpt-4.1-nano, limits: {tokens: 9000}}, {use: run_task}]"
    first, second = sub_agents(tmp_path, text)

    assert isinstance(first.model, OpenAIModel)
    # It is where the agent's is, with the same key.
    assert (first.model.name, first.model.base_url) == ("gpt-4.1-nano", "http://127.0.0.1:1/v1")
    assert tuple(first.model.key_names) == ("OUR_KEY",)
    assert first.limits == Limits(model_calls=30, tokens=9000)
    assert (first.instructions, first.pool) == (explore().instructions, "explore")
    assert (second.name, second.model) == ("run_task", None)


def test_one_may_be_a_fork(tmp_path: Path) -> None:
    (spec,) = sub_agents(tmp_path, "[{name: aside, description: Looks., fork: true}]")
    assert spec.fork
    with pytest.raises(BadInputError, match=r"persona.sub_agents.0.instructions: .*a fork has"):
        sub_agents(tmp_path, "[{name: a, description: b, fork: true, instructions: Other.}]")


def test_one_of_your_own_has_fields(tmp_path: Path) -> None:
    (spec,) = sub_agents(
        tmp_path,
        """
    - name: clerk
      description: Pays back what was ordered.
      instructions: You pay back.
      model: {id: local}
      tools: ["billing_of_a_page:refund", read_file]
      reads_only: false
      limits: {cost_usd: 0.5}
      completion: explicit
      max_words: 50
      sub_agents: [{name: reader, description: Reads., tools: [read_file], reads_only: true}]
""",
    )

    assert isinstance(spec.model, LocalModel)
    # Named as the file names it, and known by the name that models know.
    assert spec.tools == ("pay_back", "read_file")
    assert (spec.name, spec.completion, spec.max_words) == ("clerk", "explicit", 50)
    assert spec.limits == Limits(model_calls=100, cost_usd=0.5)
    (below,) = spec.sub_agents
    assert (below.name, below.tools, below.reads_only) == ("reader", ("read_file",), True)
    assert (below.completion, below.max_words, below.limits.model_calls) == ("answer", None, 100)


def test_one_may_be_held_to_a_contract_and_come_to_a_value(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text('{"type": "object", "title": "Verdict"}')
    # Functions and types are found beside the file.
    with (tmp_path / "billing_of_a_page.py").open("a") as code:
        code.write("\n\ndef is_paid(question) -> bool:\n    return True\n")
    first, second = sub_agents(
        tmp_path,
        """
    - name: clerk
      description: Pays back.
      output_type: {type: object, required: [fault]}
      contract:
        goal: a verdict
        outputs:
        - {id: paid, description: It is paid., predicate: {custom: "billing_of_a_page:is_paid"}}
    - {name: critic, description: Looks., output_type: verdict.json}
""",
    )

    assert first.output_type.schema == {"type": "object", "required": ["fault"]}
    assert second.output_type.schema["title"] == "Verdict"
    assert first.contract["outputs"][0]["id"] == "paid"
    loaded = load_agent_file(tmp_path / "lead.yaml")
    assert isinstance(loaded.agent, ChatAgent)
    assert list(loaded.agent.predicates) == ["billing_of_a_page:is_paid"]
    # It is the child's alone.
    assert (loaded.config.contract, loaded.agent.output_type) == (None, None)


def test_a_fault_of_its_contract_has_its_line(tmp_path: Path) -> None:
    text = """
    - name: clerk
      description: Pays back.
      contract:
        goal: a verdict
        outputs: []
"""
    with pytest.raises(BadInputError) as error:
        sub_agents(tmp_path, text)
    (fault,) = error.value.faults
    line = (BEFORE + text).splitlines().index("        outputs: []") + 1
    assert fault.startswith(f"line {line}: persona.sub_agents.0.contract.outputs: ")


NAMED = "name: a, description: d"


@pytest.mark.parametrize(
    ("text", "kind", "fault"),
    [
        ("explore", BadInputError, "persona.sub_agents: must be a list, such as [explore]"),
        ("{explore: {}}", BadInputError, "persona.sub_agents: must be a list"),
        (
            "[explore, explorer]",
            BadInputError,
            "persona.sub_agents.1: no shipped agent 'explorer'; there are explore, run_task, "
            "document; one of your own has",
        ),
        ("[7]", BadInputError, "persona.sub_agents.0: must have fields such as name, not be int"),
        (
            "[{use: explore, tools: [read_file]}]",
            BadInputError,
            "persona.sub_agents.0.tools: there is no such field; there are use, model, limits",
        ),
        ("[{use: [explore]}]", BadInputError, "persona.sub_agents.0.use: "),
        ("[{name: a}]", BadInputError, "persona.sub_agents.0.description: it must have one"),
        (
            f"[{{{NAMED}, tool: [x]}}]",
            BadInputError,
            "persona.sub_agents.0.tool: there is no such field; there are name, description",
        ),
        (f"[{{{NAMED}, tools: read_file}}]", BadInputError, "persona.sub_agents.0.tools: "),
        (
            f"[{{{NAMED}, reads_only: 'yes'}}]",
            BadInputError,
            "persona.sub_agents.0.reads_only: ",
        ),
        (f"[{{{NAMED}, max_words: 1.5}}]", BadInputError, "persona.sub_agents.0.max_words: "),
        (
            f"[{{{NAMED}, max_words: 0}}]",
            BadInputError,
            "persona.sub_agents.0.max_words: must be a whole number of at least 1",
        ),
        (
            f"[{{{NAMED}, completion: soon}}]",
            BadInputError,
            "persona.sub_agents.0.completion: must be 'answer' or 'explicit'",
        ),
        (
            "[{name: a b, description: d}]",
            BadInputError,
            "persona.sub_agents.0.name: must be named by letters",
        ),
        (
            f"[{{{NAMED}, limits: {{token: 9}}}}]",
            BadInputError,
            "persona.sub_agents.0.limits.token: no such setting",
        ),
        (
            "[{use: explore, limits: {tokens: -1}}]",
            BadInputError,
            "persona.sub_agents.0.limits.tokens: must be a whole number of at least 1",
        ),
        (
            "[{use: explore, model: {temperature: 0}}]",
            BadInputError,
            "persona.sub_agents.0.model.temperature: there is no such field; there are id",
        ),
        (
            "[{use: explore, model: {base_url: 'http://x'}}]",
            BadInputError,
            "persona.sub_agents.0.model: must have the id of a model",
        ),
        (
            "[{use: explore, model: {id: m, price: {in: 2}}}]",
            BadInputError,
            "persona.sub_agents.0.model.price.in: there is no such field; there are input",
        ),
        (
            "[{use: explore, model: {id: m, base_url: not a url}}]",
            ConfigError,
            "persona.sub_agents.0.model.base_url: must be like http://127.0.0.1:8000/v1",
        ),
        (
            f"[{{{NAMED}, output_type: [1]}}]",
            BadInputError,
            "persona.sub_agents.0.output_type: must be a JSON schema, a .json file, or module:Name",
        ),
        (
            f"[{{{NAMED}, output_type: nothing.json}}]",
            BadInputError,
            "persona.sub_agents.0.output_type: '",
        ),
        (
            f"[{{{NAMED}, output_type: {{type: object}}, max_words: 3}}]",
            BadInputError,
            "persona.sub_agents.0.max_words: is for words",
        ),
        (
            f"[{{{NAMED}, contract: {{goal: g, outputs: [{{id: i, description: d, predicate: "
            "{tool_result_success: paint}}]}}]",
            ConfigError,
            "persona.sub_agents.a.contract: outputs[0].predicate: the agent has no tool 'paint'",
        ),
        (
            f"[{{{NAMED}, sub_agents: [{{name: b}}]}}]",
            BadInputError,
            "persona.sub_agents.0.sub_agents.0.description: it must have one",
        ),
        (
            f"[{{{NAMED}, tools: [], sub_agents: [{{name: b, description: d, tools: [x]}}]}}]",
            BadInputError,
            "persona.sub_agents.0.sub_agents.b.tools: 'x' is no tool",
        ),
        # What the agent as a whole does not take.
        (
            f"[{{{NAMED}, tools: [paint]}}]",
            ConfigError,
            "persona.sub_agents.a.tools: 'paint' is no tool of the agent that delegates; that has "
            "grep_files, pay_back, read_file",
        ),
        (
            "[{name: read_file, description: d}]",
            ConfigError,
            "persona.sub_agents: 'read_file' has the name of a tool of its agent",
        ),
        ("[explore, explore]", ConfigError, "persona.sub_agents: two are named 'explore'"),
        # What aliases can do.
        (
            f"&all [{{{NAMED}, sub_agents: *all}}]",
            BadInputError,
            "persona.sub_agents.0.sub_agents: is a part of itself",
        ),
        (
            f"[{{{NAMED}, model: &m {{id: any, settings: {{x: *m}}}}}}]",
            BadInputError,
            "persona.sub_agents.0: is nested more than 100 levels deep",
        ),
        (
            f"[&a {{{NAMED}, sub_agents: [*a]}}]",
            BadInputError,
            "persona.sub_agents.0.sub_agents.0.sub_agents: is a part of itself",
        ),
    ],
)
def test_what_is_none_is_told_with_its_file_and_field(
    text: str, kind: type[HarnessError], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(kind) as error:
        sub_agents(tmp_path, text)

    assert fault in str(error.value)
    assert str(tmp_path / "lead.yaml") in str(error.value)


def an_entry(name: str, below: str) -> str:
    return f"{{name: {name}, description: d, sub_agents: {below}}}"


def test_few_lines_do_not_make_many_agents(tmp_path: Path) -> None:
    layers, below = [], "[]"
    for depth in range(7):
        agents = [an_entry(f"a{depth}{number}", below) for number in range(9)]
        layers.append(an_entry(f"layer{depth}", f"&l{depth} [{', '.join(agents)}]"))
        below = f"*l{depth}"

    with pytest.raises(BadInputError, match=r"persona\.sub_agents: there are more than 100 agents"):
        sub_agents(tmp_path, f"[{', '.join(layers)}]")


def test_agents_are_not_nested_deeper_than_runs_may_be(tmp_path: Path) -> None:
    deep = "[]"
    for depth in range(10):
        deep = f"[{an_entry(f'd{depth}', deep)}]"

    with pytest.raises(BadInputError, match="is nested deeper than 8 times"):
        sub_agents(tmp_path, deep)


def test_settings_of_delegating_are_told_with_their_file(tmp_path: Path) -> None:
    path = tmp_path / "lead.yaml"
    path.write_text("model: local\nharness: {sub_agents: {max_depth: -1}}\n")

    with pytest.raises(ConfigError) as error:
        load_agent_file(path)

    assert error.value.field == f"{path}: harness.sub_agents.max_depth"
