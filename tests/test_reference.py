"""docs/reference.md, and what docs/batch.md says of Python, are true of the code."""

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from typer.main import get_command

from harness_actors import events
from harness_actors.batch import run_batch
from harness_actors.batch.agent_document import AgentFields, PersonaFields
from harness_actors.batch.agent_file import load_agent_file
from harness_actors.batch.outcomes import CheckResult, TaskOutcome, TreeUsage
from harness_actors.batch.tasks import Check, Task
from harness_actors.cli.app import app
from harness_actors.config import LEAVE_IT_OUT as REFUSED
from harness_actors.config import (
    NOT_BUILT,
    ArtifactsConfig,
    CompactionConfig,
    ContinuationConfig,
    HarnessConfig,
    Limits,
    StallConfig,
    SubAgentConfig,
    TurnLimits,
)
from harness_actors.errors import BadInputError, ConfigError
from harness_actors.events import EVENT_TYPES, TextDelta, TextGap
from harness_actors.harness import AgentHarness
from harness_actors.ports import Effect, ToolContext
from harness_actors.results import REASONS, HarnessResult, Reason, Usage
from harness_actors.tools import tool
from tests.pages import run_python, text_of

REFERENCE = text_of("docs/reference.md")
BATCH = text_of("docs/batch.md")
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\nIt prints `(.*?)`\.$", REFERENCE + BATCH, re.DOTALL | re.MULTILINE
)


def table(page: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column has this name, as the texts of their cells."""
    _, found, below = page.partition(f"\n| {first} |")
    assert found, f"there is no table of {first!r}"
    rows = below.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def named(text: str) -> set[str]:
    """What stands in it as code."""
    return set(re.findall(r"`([^`\n]+)`", text))


def names_of(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("code", "said"), EXAMPLES)
def test_an_example_prints_what_is_said_of_it(code: str, said: str, tmp_path: Path) -> None:
    ended = run_python(code, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{said}\n"


def test_every_example_says_what_it_prints() -> None:
    assert len(EXAMPLES) == (REFERENCE + BATCH).count("```python") > 0


# Settings

SETTINGS = {row[0].strip("`"): row for row in table(REFERENCE, "agent file")}


def settings() -> Iterator[tuple[str, str, Any]]:
    """All that are built: where a file has them, where Python does, and their defaults."""
    whole = HarnessConfig()
    for name in sorted(names_of(HarnessConfig) - {*NOT_BUILT, "limits"}):
        yield f"harness.{name}", f"HarnessConfig.{name}", getattr(whole, name)
    for name in sorted(names_of(ContinuationConfig)):
        path = f"harness.continuation.{name}"
        yield path, f"ContinuationConfig.{name}", getattr(whole.continuation, name)
    for name in sorted(names_of(TurnLimits)):
        yield f"harness.turn_limits.{name}", f"TurnLimits.{name}", getattr(TurnLimits(), name)
    for name in sorted(names_of(ArtifactsConfig)):
        yield (
            f"harness.artifacts.{name}",
            f"ArtifactsConfig.{name}",
            getattr(ArtifactsConfig(), name),
        )
    for name in sorted(names_of(CompactionConfig)):
        path = f"harness.compaction.{name}"
        yield path, f"CompactionConfig.{name}", getattr(whole.compaction, name)
    for name in sorted(names_of(StallConfig)):
        yield f"harness.stall.{name}", f"StallConfig.{name}", getattr(whole.stall, name)
    for name in sorted(names_of(SubAgentConfig)):
        path = f"harness.sub_agents.{name}"
        yield path, f"SubAgentConfig.{name}", getattr(whole.sub_agents, name)
    for name in sorted(names_of(Limits)):
        yield f"harness.limits.{name}", f"Limits.{name}", getattr(whole.limits, name)


def shown(default: object) -> str:
    match default:
        case None:
            return "none"
        case ContinuationConfig() | StallConfig() | CompactionConfig() | SubAgentConfig():
            return "on"
        case bool():
            return "on" if default else "off"
        case ():
            return "none"
        case _:
            return str(default)


def test_every_setting_of_a_run_is_there_with_its_default_and_no_other_one() -> None:
    told = {path: (row[1].strip("`"), row[3]) for path, row in SETTINGS.items()}

    assert told == {path: (python, shown(default)) for path, python, default in settings()}


def config_with(path: str, value: object) -> HarnessConfig:
    """The settings with one of them, by its path in an agent file."""
    given: Any = value
    for name in reversed(path.split(".")[1:]):
        given = {name: given}
    return HarnessConfig.from_mapping(given)


@pytest.mark.parametrize("path", SETTINGS)
def test_a_setting_takes_what_is_said_and_nothing_beyond(path: str) -> None:
    taken: dict[str, list[Any]] = {
        "1 or more": [1, 10**6],
        "above 0": [0.1, 10**6],
        "2000 to 100000": [2000, 100000],
        "0 to 8": [0, 8],
        "a share of the window": [0.5, 0.79],
        "a share above `low_water`": [0.5, 0.95],
        "a share from `soft` on": [0.8, 1],
        "a list of names, each once": [["drop"], ["clear", "of_my_own"]],
    }
    refused: dict[str, list[Any]] = {
        "1 or more": [0, -1, 1.5],
        "above 0": [0, -1, float("inf")],
        "2000 to 100000": [1999, 100001, 2000.5],
        "0 to 8": [-1, 9, True, "1"],
        "a share of the window": [0, 1.1, "half", 0.8],
        "a share above `low_water`": [0, 1.1, "half", 0.45],
        "a share from `soft` on": [0, 1.1, "half", 0.79],
        "a list of names, each once": ["drop", [], ["drop", "drop"], [1]],
    }
    said = SETTINGS[path][4]
    choices = [None] if "null" in said else sorted(named(said))

    for value in taken.get(said, choices):
        config_with(path, value)
    for value in refused.get(said, ["another"]):
        with pytest.raises(ConfigError):
            config_with(path, value)


@pytest.mark.parametrize("command", ["run", "batch"])
def test_every_flag_of_the_tables_is_one_of_the_commands(command: str) -> None:
    # A group of commands, whatever class of it the installed version has.
    options: Any = get_command(app)
    known = {name for option in options.commands[command].params for name in option.opts}
    files = table(REFERENCE, "field")
    told = [row[1].strip("`").split()[0] for row in files if row[1].startswith("`")]
    told += [row[2].strip("`") for row in SETTINGS.values() if row[2] != "–"]

    assert len(told) > 5
    assert set(told) <= known


# The agent file


def file_fields(section: type[BaseModel], path: str = "") -> Iterator[str]:
    """The fields of a section, and of those in it."""
    for name, field in section.model_fields.items():
        here = f"{path}{field.alias or name}"
        kinds = (field.annotation, *get_args(field.annotation))
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            yield here
        for kind in inner:
            yield from file_fields(kind, f"{here}.")


def test_every_field_of_an_agent_file_is_there_and_no_other_one(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    refused = set()
    for name in PersonaFields.model_fields:
        path.write_text(f"model: local\npersona: {{{name}: text}}")
        try:
            load_agent_file(path)
        except ConfigError as error:
            if error.problem == REFUSED:
                refused.add(f"persona.{name}")
        except BadInputError:
            continue  # it takes something else than a text

    told = {row[0].strip("`") for row in table(REFERENCE, "field")}

    assert told == set(file_fields(AgentFields)) - refused


BILLING = """
def refund(order: int) -> str:
    "Refund."


async def check(event): ...


class SpareOrders:
    name, action = "spare_orders", "drop"

    def choose(self, candidates):
        return [one for one in candidates if "refund" not in one.tools]
"""


def test_the_agent_file_has_every_field_and_is_taken(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", REFERENCE, re.DOTALL)
    (tmp_path / "template").mkdir()
    (tmp_path / "billing.py").write_text(BILLING)
    path = tmp_path / "agent.yaml"
    path.write_text(text)

    loaded = load_agent_file(path)

    sys.modules.pop("billing")
    assert [tool.spec.name for tool in loaded.innermost.tools][-1] == "refund"
    assert loaded.config.limits.cost_usd == 0.5
    for row in table(REFERENCE, "field"):
        assert re.search(rf"\b{row[0].strip('`').rpartition('.')[2]}:", text), row[0]


# Tools


def test_every_argument_of_a_tool_is_there() -> None:
    told = {row[0].strip("`"): named(row[2]) for row in table(REFERENCE, "`@tool`")}

    assert told.keys() == inspect.signature(tool).parameters.keys() - {"function"}
    assert {f'"{effect}"' for effect in get_args(Effect)} <= told["effect"]


def test_all_that_a_tool_is_told_is_there() -> None:
    _, found, about = REFERENCE.partition("A parameter annotated `ToolContext`")
    assert found
    assert names_of(ToolContext) <= {
        re.split(r"[.(]", name.removeprefix("await context."))[0]
        for name in named(about.partition("\n\n")[0].replace("\n", " "))
    }


# Python


def test_every_argument_and_method_of_a_harness_is_there() -> None:
    arguments = inspect.signature(AgentHarness.__init__).parameters.keys()
    public = {name for name in vars(AgentHarness) if not name.startswith("_")}
    methods = [row[0] for row in table(REFERENCE, "of a harness")]
    told = {re.sub(r"^await |\(.*", "", name) for row in methods for name in named(row)}

    assert {row[0].strip("`") for row in table(REFERENCE, "`AgentHarness(agent, …)`")} == (
        arguments - {"self", "config_fields"}
    )
    assert told == public | {"config"}


@pytest.mark.parametrize("kind", [HarnessResult, Reason, Usage])
def test_every_field_of_a_result_is_there(kind: type) -> None:
    _, found, about = REFERENCE.partition("A `HarnessResult` has")
    assert found
    assert names_of(kind) <= named(about.partition("\n\n")[0])


def test_every_status_and_reason_is_there_and_no_other_one() -> None:
    told: dict[str, set[str]] = {}
    status = ""
    for row in table(REFERENCE, "status"):
        status = row[0].strip("`") or status
        told.setdefault(status, set()).update(named(row[1]))

    # Of an outcome in a batch, not of a run.
    told["failed"].remove("bad_input")
    assert told == {status: set(kinds) for status, kinds in REASONS.items()}


def test_every_event_is_there_with_its_fields_and_no_other_one() -> None:
    kinds = {kind.type: kind for kind in vars(events).values() if hasattr(kind, "type")}
    known = {name: names_of(kinds[name]) for name in (*EVENT_TYPES, TextDelta.type, TextGap.type)}

    told = {row[0].strip("`"): named(row[2]) for row in table(REFERENCE, "name")}

    assert told == known


# A batch


def test_every_argument_of_a_batch_is_there_with_its_flags() -> None:
    options: Any = get_command(app)
    known = {name for option in options.commands["batch"].params for name in option.opts}
    rows = table(BATCH, "`run_batch(tasks, agent, …)`")

    told = {name for row in rows for name in named(row[0])}
    flags = {name for row in rows for name in named(row[1]) if name.startswith("-")}

    assert told == inspect.signature(run_batch).parameters.keys()
    assert len(flags) > 5
    assert flags <= known


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        (Task, "A task has"),
        (Check, "A task has"),
        (TaskOutcome, "A `TaskOutcome`"),
        (CheckResult, "A `TaskOutcome`"),
        (TreeUsage, "A `TaskOutcome`"),
    ],
)
def test_every_field_of_a_task_and_its_outcome_is_there(kind: type, begins: str) -> None:
    _, found, about = BATCH.partition(f"\n{begins}")
    assert found
    # The last one is where a task was read from.
    computed = {"task_hash", "beside"} if kind is Task else set()
    told = named(about.partition("\n\n")[0])
    assert names_of(kind) - computed <= told
