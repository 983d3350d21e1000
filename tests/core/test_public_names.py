"""What the package offers at its top, and what importing it costs."""

import subprocess
import sys
from pathlib import Path

import pytest

import harness_actors

PUBLIC = [
    "AgentHarness",
    "Approve",
    "ChatAgent",
    "HarnessConfig",
    "HarnessError",
    "HarnessResult",
    "HarnessWorkflowBuilder",
    "Limits",
    "LocalModel",
    "Message",
    "OpenAIModel",
    "Refuse",
    "Respond",
    "Task",
    "TaskOutcome",
    "ToolError",
    "run_batch",
    "tool",
]


def test_the_public_names_are_these() -> None:
    assert harness_actors.__all__ == PUBLIC
    assert len(PUBLIC) <= 18
    assert dir(harness_actors) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_explained(name: str) -> None:
    thing = getattr(harness_actors, name)
    assert thing.__name__ == name
    assert thing.__doc__
    assert thing.__module__.startswith("harness_actors.")


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        harness_actors.nonsense  # noqa: B018


HEAVY = ("ray", "openai", "pydantic", "tiktoken", "xllamacpp", "aiohttp", "typer", "rich")


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import harness_actors", ()),
        ("from harness_actors import HarnessConfig, Message, ToolError", ()),
        ("import harness_actors.testing, harness_actors.tools, harness_actors.stores", ()),
        ("import harness_actors.models, harness_actors.executors, harness_actors.turn", ()),
        ("import harness_actors.actors, harness_actors.coordination.coordinator", ()),
        ("from harness_actors import AgentHarness, ChatAgent", ()),
    ],
)
def test_importing_is_cheap(statement: str, allowed: tuple[str, ...]) -> None:
    script = f"{statement}\nimport sys\nprint(*[n for n in {HEAVY!r} if n in sys.modules])"
    said = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert set(said.stdout.split()) <= set(allowed)
