import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch.agent_file import (
    AgentOverrides,
    LoadedAgent,
    load_agent_file,
    merged_config,
)
from harness_actors.config import HarnessConfig
from harness_actors.errors import BadInputError, ConfigError, HarnessError
from harness_actors.harness import AgentHarness
from harness_actors.models import Fallback, LocalModel, ModelChain, OpenAIModel
from harness_actors.policies import offered_tools

README = Path(__file__).parents[2] / "README.md"
WHOLE = """
model: {id: gpt-4.1, base_url: "http://127.0.0.1:1/v1", settings: {temperature: 0.2}}
persona:
  instructions: You repair Python programs.
environment:
  tools: [read_file, run_command, "billing_of_a_test:refund"]
  workspace: {from: ./template}
harness: {max_turns: 20, limits: {time_s: 600, tokens: 9}}
"""


def load(
    folder: Path, text: str, overrides: AgentOverrides | None = None
) -> tuple[LoadedAgent, ChatAgent]:
    path = folder / "fixer.yaml"
    path.write_text(text)
    loaded = load_agent_file(path, overrides)
    assert isinstance(loaded.agent, ChatAgent)
    return loaded, loaded.agent


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "template").mkdir()
    (tmp_path / "billing_of_a_test.py").write_text(
        'def refund(order: int) -> str:\n    "Refund."\n'
    )
    yield tmp_path
    sys.modules.pop("billing_of_a_test", None)


def test_a_file_describes_model_persona_environment_and_settings(folder: Path) -> None:
    loaded, agent = load(folder, WHOLE)

    assert isinstance(agent.model, OpenAIModel)
    assert (agent.model.name, agent.model.base_url) == ("gpt-4.1", "http://127.0.0.1:1/v1")
    assert agent.model.settings == {"temperature": 0.2}
    assert agent.instructions == "You repair Python programs."
    assert [tool.spec.name for tool in agent.tools] == ["read_file", "run_command", "refund"]
    assert agent.name == "fixer"
    assert loaded.workspace == str(folder / "template")
    assert (loaded.config.max_turns, loaded.config.limits.time_s) == (20, 600)


def test_the_name_alone_is_short_for_a_model_without_settings(folder: Path) -> None:
    _, agent = load(folder, "model: gpt-4.1")

    assert agent.model.name == "gpt-4.1"


def test_the_agent_file_of_the_readme_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "template").mkdir()
    (tmp_path / "billing.py").write_text('def refund(order: int) -> str:\n    "Refund."\n')

    loaded, agent = load(tmp_path, text)

    sys.modules.pop("billing")
    assert agent.model.name == "gpt-4.1-mini"
    assert [tool.spec.name for tool in agent.tools] == ["read_file", "edit_file", "refund"]
    assert loaded.workspace is not None
    assert loaded.config.limits.model_calls == 30


def test_a_command_line_takes_precedence_setting_by_setting(folder: Path) -> None:
    overrides = AgentOverrides(
        model="gpt-4.1-mini",
        base_url="http://127.0.0.1:2/v1",
        model_settings={"seed": 1},
        harness={"max_turns": 3, "limits": {"tokens": 7}},
    )

    loaded, agent = load(folder, WHOLE, overrides)

    assert isinstance(agent.model, OpenAIModel)
    assert agent.model.name == "gpt-4.1-mini"
    assert agent.model.base_url == "http://127.0.0.1:2/v1"
    assert agent.model.settings == {"temperature": 0.2, "seed": 1}
    assert loaded.config.max_turns == 3
    assert (loaded.config.limits.tokens, loaded.config.limits.time_s) == (7, 600)


@pytest.mark.parametrize("name", ["local", "local/smollm2-135m"])
def test_the_embedded_model_has_a_name_of_its_own(folder: Path, name: str) -> None:
    _, agent = load(folder, f"model: {{id: {name}}}")

    assert isinstance(agent.model, LocalModel)


@pytest.mark.parametrize(
    ("text", "kind", "fault"),
    [
        (
            "model: {id: m, temprature: 1}",
            BadInputError,
            "model.temprature: there is no such field; there are id, base_url, key_name, settings",
        ),
        (
            "model: {id: m}\nenvironment: {workspace: {form: x}}",
            BadInputError,
            "environment.workspace.form: there is no such field; there are from",
        ),
        ("model: m\npersona: be kind", BadInputError, "persona: must have fields such as instr"),
        ("model: m\nharness: [max_turns]", BadInputError, "harness: must have fields, not be list"),
        ("model: m\npersona: {}\nmodel: n", BadInputError, "'model' is given twice"),
        ("model: " + 20_000 * "[", BadInputError, "nested more than 100 levels deep"),
        ("model: {settings: {x: " + 200 * "[" + 200 * "]" + "}}", BadInputError, "100 levels deep"),
        ("model: &m {id: any, settings: {x: *m}}", BadInputError, "100 levels deep"),
        ("# " + 5_000_000 * "x", BadInputError, "more than 4,194,304 bytes"),
        ("model: {id: m, id: n}", BadInputError, "'id' is given twice"),
        ("modle: {}", BadInputError, "modle: there is no such field"),
        ("- a list", BadInputError, "the document: must have fields such as model, not be list"),
        ("model: {id: [", BadInputError, "fixer.yaml"),
        ("persona: {instructions: x}", BadInputError, "fixer.yaml: no model is named"),
        ("", BadInputError, "no model is named"),
        ("model: {id: 7}", BadInputError, "model.id: Input should be a valid string"),
        ("models: []", ConfigError, "fixer.yaml: models: is empty"),
        ("models: gpt-4.1", BadInputError, "models: Input should be a valid list"),
        (
            "models: [{id: m}, {idd: n}]",
            BadInputError,
            "models.1.idd: there is no such field",
        ),
        (
            "models: [{id: m}, 7]",
            BadInputError,
            "models.1: must have fields such as id, not",
        ),
        (
            "models: [{id: m}, {price: {input: 1, output: 1}}]",
            BadInputError,
            "models.1: no model is named",
        ),
        ("models: [m, m]", ConfigError, "fixer.yaml: models[1]: is models[0] again"),
        (f"models: {[f'm{n}' for n in range(100)]}", ConfigError, "models: has 100 models; 10 are"),
        ("models: [{id: m}, {id: n, base_url: ftp://x}]", ConfigError, "models.1.base_url: "),
        ("model: m\nmodels: [n]", BadInputError, "there is a model and models"),
        ("model: m\nfallback: [errors]", BadInputError, "fallback is for several models"),
        ("models: [m, n]\nfallback: [rain]", ConfigError, "yaml: fallback: there is no 'rain'"),
        ("models: [m, n]\nfallback: []", ConfigError, "fallback: must list some of 'errors'"),
        ("models: [m, n]\nfallback: errors", BadInputError, "fallback: Input should be a valid"),
        ("model: {id: local/other}", BadInputError, "no embedded model 'local/other'"),
        (
            "model: {id: m}\nharness: {max_tuns: 1}",
            ConfigError,
            "yaml: harness.max_tuns: no such setting",
        ),
        (
            "model: {id: m}\nharness: {max_turns: 0}",
            ConfigError,
            "yaml: harness.max_turns: must be",
        ),
        (
            "model: {id: m}\nharness: {stall: {threshold: 1}}",
            ConfigError,
            "harness.stall.threshold: must be 2 to 1000 rounds, not 1",
        ),
        (
            "model: {id: m}\npersona: {contract: {goal: x}}",
            BadInputError,
            "line 2: persona.contract.outputs",
        ),
        ("model: {id: m}\npersona: {autonomy: some}", ConfigError, "persona.autonomy: must be one"),
        (
            "model: {id: m}\npersona: {autonomy: 3}",
            BadInputError,
            "persona.autonomy: Input should be a valid string",
        ),
        (
            "model: {id: m}\npersona: {approvals: {rules: [{decide: ask, tools: [read]}]}}",
            ConfigError,
            "yaml: persona.approvals.rules[1].tools: there is no tool 'read'; the agent has",
        ),
        (
            "model: {id: m}\npersona: {approvals: {rules: [{decide: ask, tool: x}]}}",
            ConfigError,
            "persona.approvals.rules[1].tool: no such field; there are decide, tools",
        ),
        ("model: {id: m}\npersona: {approvals: [x]}", BadInputError, "persona.approvals: "),
        ("model: {id: m}\nenvironment: {tools: [fly]}", BadInputError, "no tool 'fly'"),
        (
            "model: {id: m}\nenvironment: {workspace: {from: nowhere}}",
            BadInputError,
            "there is no folder",
        ),
        ("model: {id: m, base_url: ftp://x}", ConfigError, "fixer.yaml: model.base_url: "),
    ],
)
def test_a_fault_names_the_file_or_the_setting(
    folder: Path, text: str, kind: type[HarnessError], fault: str
) -> None:
    with pytest.raises(kind) as caught:
        load(folder, text)
    assert fault in str(caught.value)


@pytest.mark.parametrize("section", ["persona", "environment", "harness"])
def test_a_section_that_is_left_empty_is_as_if_it_was_not_there(folder: Path, section: str) -> None:
    loaded, agent = load(folder, f"model: m\n{section}:\n")

    assert (agent.instructions, agent.tools, loaded.config) == ("", (), HarnessConfig())


def test_what_is_merged_into_a_section_may_be_given_again(folder: Path) -> None:
    text = "model: {settings: {<<: &usual {seed: 1, top_p: 0.5}, seed: 2}, id: m}"
    _, agent = load(folder, text)

    assert isinstance(agent.model, OpenAIModel)
    assert agent.model.settings == {"seed": 2, "top_p": 0.5}


def test_what_is_no_group_of_settings_is_refused_whatever_it_is_laid_over() -> None:
    with pytest.raises(ConfigError, match="limits"):
        merged_config({"limits": {"tokens": 7}}, {"limits": 5})


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        load_agent_file(tmp_path / "no.yaml")


PRICED = """
model: {id: own-1, price: {input: 2.0, cached_input: 0.5, output: 8.0}}
harness: {limits: {cost_usd: 0.5}}
"""


def test_a_price_lets_a_model_of_no_list_have_a_bound_on_its_cost(folder: Path) -> None:
    loaded, agent = load(folder, PRICED)

    assert isinstance(agent.model, OpenAIModel)
    assert agent.model.costs_known
    AgentHarness(agent, config=loaded.config)


def test_a_file_names_several_models_and_when_the_next_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    other = "{id: n, base_url: http://127.0.0.1:1/v1, key_name: N_API_KEY, settings: {seed: 1}}"
    text = f"models: [m, {other}]\nfallback: [overflow, errors]"

    _, agent = load(folder, text, AgentOverrides(model_settings={"top_p": 1}))
    _, by_flag = load(folder, text, AgentOverrides(model="gpt-4.1"))

    assert isinstance(agent.model, ModelChain)
    assert agent.model.shown == "m → n"
    assert agent.model.fallback == Fallback(on=("errors", "overflow"))
    first, second = agent.model.models
    assert isinstance(first, OpenAIModel)
    assert isinstance(second, OpenAIModel)
    assert (first.settings, second.settings) == ({"top_p": 1}, {"seed": 1, "top_p": 1})
    assert agent.model.key_names == ("OPENAI_API_KEY", "N_API_KEY")
    assert isinstance(by_flag.model, OpenAIModel)
    assert by_flag.model.name == "gpt-4.1"
    with pytest.raises(BadInputError, match="has 2 models; name the one that is there by --model"):
        load(folder, text, AgentOverrides(base_url="http://127.0.0.1:2/v1"))


def test_one_of_several_models_may_be_alone(folder: Path) -> None:
    _, agent = load(folder, "models: [gpt-4.1]")

    assert isinstance(agent.model, OpenAIModel)


def test_the_price_of_a_file_is_not_that_of_another_model(folder: Path) -> None:
    _, other = load(folder, PRICED, AgentOverrides(model="own-2"))
    _, same = load(folder, PRICED, AgentOverrides(model="own-1"))

    assert isinstance(other.model, OpenAIModel)
    assert isinstance(same.model, OpenAIModel)
    assert (other.model.costs_known, same.model.costs_known) == (False, True)


@pytest.mark.parametrize(
    ("price", "fault"),
    [
        ("{input: -1, output: 8}", "model.price.input"),
        ("{input: 1}", "model.price.output"),
        ("{input: 1, output: .inf}", "model.price.output"),
        ("{input: 1, output: 2, cached: 3}", "model.price.cached: there is no such field"),
    ],
)
def test_a_price_that_is_none_is_told_by_its_field(folder: Path, price: str, fault: str) -> None:
    with pytest.raises(BadInputError, match=re.escape(fault)):
        load(folder, f"model: {{id: own-1, price: {price}}}")


GATES = """
model: {id: m}
persona:
  hooks: {pre_tool: ["billing_of_a_test:check"], session_end: ["billing_of_a_test:check"]}
  middleware: [tool_usage, {redact: {patterns: ["cust-[0-9]{6}"]}}, "billing_of_a_test:around"]
environment:
  tools: [read_file, run_command]
  capabilities: [filesystem]
"""
CODE = """
async def check(event): ...

async def around(call, next):
    return await next(call)

class Auditor:
    async def post_tool(self, event): ...

auditor = Auditor()
"""


def test_hooks_middleware_and_capabilities_are_found_by_name(folder: Path) -> None:
    (folder / "billing_of_a_test.py").write_text(CODE)

    _, agent = load(folder, GATES)

    assert [hook.name for hook in agent.hooks.of("pre_tool")] == ["check"]
    kinds = [type(member).__name__ for member in agent.middleware]
    assert kinds == ["ToolUsage", "Redact", "function"]
    assert agent.middleware[1].patterns == ("cust-[0-9]{6}",)
    assert [tool.spec.name for tool in offered_tools(agent)] == ["read_file"]


GATES_PAGE = Path(__file__).parents[2] / "docs" / "gates.md"


def test_the_approvals_of_the_page_of_gates_are_taken_in_their_order(folder: Path) -> None:
    (persona,) = re.findall(r"```yaml\n(persona:.*?)```", GATES_PAGE.read_text(), re.DOTALL)
    tools = "environment: {tools: [edit_file, run_command, read_file, delete_of_a_test:delete]}"
    (folder / "delete_of_a_test.py").write_text('def delete() -> str:\n    "Delete."\n')

    _, agent = load(folder, f"model: m\n{persona}\n{tools}")

    assert agent.approvals is not None
    said = {
        tool.spec.name: agent.approvals.ruled(tool.spec, '{"command": "git push -f"}').decide
        for tool in agent.tools
    }
    assert said == {
        "edit_file": "auto",
        "run_command": "deny",
        "read_file": "auto",
        "delete": "ask",
    }
    assert agent.approvals.expires_s == 86400


@pytest.mark.parametrize("persona", ["{}", "{autonomy: high}", "{approvals: null}"])
def test_an_agent_that_may_do_all_by_itself_has_no_approvals(folder: Path, persona: str) -> None:
    _, agent = load(folder, f"model: m\npersona: {persona}")

    assert agent.approvals is None


def test_an_object_with_methods_of_hooks_is_one(folder: Path) -> None:
    (folder / "billing_of_a_test.py").write_text(CODE)

    _, agent = load(folder, "model: m\npersona: {hooks: ['billing_of_a_test:auditor']}")

    assert [hook.name for hook in agent.hooks.of("post_tool")] == ["Auditor.post_tool"]


@pytest.mark.parametrize(
    ("persona", "fault"),
    [
        ("hooks: {pre_tols: ['billing_of_a_test:check']}", "there is no hook 'pre_tols'"),
        ("hooks: {pre_tool: ['billing_of_a_test:chek']}", "has no such function"),
        ("hooks: {pre_tool: [check]}", "module:name"),
        ("hooks: ['nowhere_of_a_test:check']", "cannot be imported"),
        ("middleware: [redakt]", "no middleware 'redakt'; there are redact"),
        ("middleware: [{redact: {pattern: [x]}}]", "redact does not take that"),
        ("middleware: [{redact: {patterns: ['a+']}}]", "without an upper bound"),
        ("middleware: [{redact: {}, tool_usage: {}}]", "one name each"),
        ("middleware: [{}]", "one name each"),
    ],
)
def test_gates_that_cannot_be_are_refused_by_name(folder: Path, persona: str, fault: str) -> None:
    (folder / "billing_of_a_test.py").write_text(CODE)

    with pytest.raises(BadInputError, match=re.escape(fault)):
        load(folder, f"model: m\npersona:\n  {persona}")


def test_a_capability_that_nobody_knows_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no capability 'shel'"):
        load(folder, "model: m\nenvironment: {capabilities: [shel]}")


CONTRACT = """\
model: {id: gpt-4.1, base_url: "http://127.0.0.1:1/v1"}
persona:
  judges: {critic: {id: gpt-4.1-mini}, other: gpt-4.1-nano}
  contract:
    goal: it is done
    outputs:
      - id: R1
        predicate: {PREDICATE}
"""


def with_predicate(folder: Path, predicate: str) -> Path:
    (folder / "checks_beside.py").write_text("def signed(question):\n    return True\n")
    path = folder / "agent.yaml"
    path.write_text(CONTRACT.replace("{PREDICATE}", predicate))
    return path


def test_the_contract_of_a_file_is_that_of_its_runs_with_its_judges_and_functions(
    tmp_path: Path,
) -> None:
    path = with_predicate(
        tmp_path,
        '{all: [{custom: "checks_beside:signed"}, {model_judged: {rubric: x, model: critic}}]}',
    )

    loaded = load_agent_file(path)

    agent = loaded.innermost
    assert isinstance(agent, ChatAgent)
    assert loaded.config.contract is not None
    assert loaded.config.contract["goal"] == "it is done"
    assert {name: judge.name for name, judge in agent.judges.items()} == {
        "critic": "gpt-4.1-mini",
        "other": "gpt-4.1-nano",
    }
    assert list(agent.predicates) == ["checks_beside:signed"]


@pytest.mark.parametrize(
    ("predicate", "told"),
    [
        ("{file_there: a}", "line 8: persona.contract.outputs[0].predicate: there is no predicate"),
        ("{file_exists: ../a}", "line 8: persona.contract.outputs[0].predicate.file_exists"),
        ("{model_judged: {rubric: x, model: nobody}}", "no judge is named 'nobody'"),
        ('{custom: "checks_beside:none"}', "line 8: persona.contract.outputs[0].predicate"),
    ],
)
def test_a_faulty_contract_of_a_file_is_told_with_its_line(
    tmp_path: Path, predicate: str, told: str
) -> None:
    path = with_predicate(tmp_path, predicate)
    with pytest.raises(BadInputError) as caught:
        load_agent_file(path)
    assert caught.value.source == str(path)
    assert told in caught.value.faults[0]


def test_models_of_a_chain_and_judges_take_time_and_retries(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(
        "models: [{id: a, timeout_s: 3, max_retries: 0}, {id: b, timeout_s: 7.5}]\n"
        "persona: {judges: {strict: {id: j, timeout_s: 9, max_retries: 2}}}\n"
    )
    agent: Any = load_agent_file(path).agent
    models = [*agent.model.models, agent.judges["strict"]]
    assert [model._max_retries for model in models] == [0, 5, 2]
    assert [model._connection._timeout_s for model in models] == [3, 7.5, 9]


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("{id: a, timeout_s: 0}", "model.timeout_s"),
        ("{id: a, max_retries: -1}", "model.max_retries"),
        ("{id: local, max_retries: 1}", "max_retries: the embedded model has none"),
    ],
)
def test_time_and_retries_that_no_model_takes_are_refused(
    tmp_path: Path, model: str, told: str
) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(f"model: {model}\n")
    with pytest.raises(BadInputError, match=told):
        load_agent_file(path)


STRATEGY = """
class SpareTests:
    name = "spare_tests"
    action = "drop"

    def choose(self, candidates):
        return [one for one in candidates if "run_tests" not in one.tools]


class Told:
    name, action = "told", "drop"

    def __init__(self, which):
        self.which = which

    def choose(self, candidates):
        return candidates


class Unnamed:
    action = "drop"

    def choose(self, candidates):
        return candidates


spares = SpareTests()
"""


@pytest.mark.parametrize("name", ["SpareTests", "spares"])
def test_strategies_are_found_by_name_and_named_in_the_settings(folder: Path, name: str) -> None:
    (folder / "billing_of_a_test.py").write_text(STRATEGY)
    harness = "harness: {compaction: {strategies: [clear, spare_tests]}}"

    loaded, agent = load(
        folder, f"model: m\npersona: {{strategies: ['billing_of_a_test:{name}']}}\n{harness}"
    )

    assert [one.name for one in agent.strategies] == ["spare_tests"]
    assert loaded.config.compaction is not None
    assert loaded.config.compaction.strategies == ("clear", "spare_tests")


@pytest.mark.parametrize(
    ("rest", "fault"),
    [
        ("persona: {strategies: ['billing_of_a_test:SpareTsts']}", "has no such function"),
        (
            "persona: {strategies: ['billing_of_a_test:Unnamed']}",
            "must each have a name of its own",
        ),
        ("persona: {strategies: ['billing_of_a_test:Told']}", "cannot be made without arguments"),
        ("persona: {strategies: [SpareTests]}", "module:name"),
        ("harness: {compaction: {strategies: [dorp]}}", "there is no strategy 'dorp'"),
        ("harness: {compaction: {strategies: drop}}", "must be a list of names"),
    ],
)
def test_strategies_that_cannot_be_are_refused_by_name(folder: Path, rest: str, fault: str) -> None:
    (folder / "billing_of_a_test.py").write_text(STRATEGY)

    with pytest.raises((BadInputError, ConfigError), match=re.escape(fault)):
        load(folder, f"model: m\n{rest}")
