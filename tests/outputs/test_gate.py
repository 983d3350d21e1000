"""What is announced and kept on record of values that are looked at in a turn."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness_actors.outputs import OutputType
from harness_actors.outputs.output_type import InThread
from harness_actors.ports import Model
from harness_actors.signals import RunEnd
from harness_actors.state import AGENT_TURN, observed_by
from harness_actors.testing import Reply
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, calls
from tests.outputs.forms import SCHEMA


@dataclass(frozen=True)
class TypedAgent(SimpleAgent):
    output_type: Any = None


@dataclass
class Watching(OutputType):
    """Takes all values, and knows what was announced when it looked."""

    given: Any = None
    seen: list[tuple[int, str]] = field(default_factory=list)
    driver: Driver | None = None

    @property
    def schema(self) -> Mapping[str, Any]:
        return SCHEMA

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"type": "object"}

    def prompt(self, model: Model) -> str:
        return ""

    async def read_arguments(self, arguments: str, in_thread: InThread) -> str:
        self._see(arguments)
        return "done"

    async def problem(self, text: str, in_thread: InThread) -> str:
        self._see(text)
        return ""

    def _see(self, text: str) -> None:
        assert self.driver is not None
        self.seen.append((self.driver.tool_notices, text))


def watched(script: list[Reply], **settings: Any) -> tuple[Watching, Driver]:
    output = Watching()
    output.driver = Driver(TypedAgent(RecordingModel(script), [], output_type=output), **settings)
    return output, output.driver


def done(value: Any) -> Reply:
    return calls(("w", "work_complete", json.dumps({"summary": "done", "output": value})))


async def test_a_value_in_a_call_is_announced_before_it_is_looked_at() -> None:
    output, driver = watched([done({"total": 1})])
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.output == {"total": 1}
    ((announced, _),) = output.seen
    assert announced > 0


async def test_an_answer_is_announced_before_it_is_looked_at() -> None:
    output, driver = watched([Reply.text('{"total": 1}')], completion="answer")
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.output == {"total": 1}
    assert output.seen == [(1, '{"total": 1}')]


async def test_a_run_without_a_type_announces_and_records_nothing_of_it() -> None:
    for script, completion in (
        ([calls(("w", "work_complete", '{"summary": "done"}'))], "explicit"),
        ([Reply.text("done")], "answer"),
    ):
        driver = Driver(SimpleAgent(RecordingModel(script), []), completion=completion)
        end = await driver.run()
        assert isinstance(end, RunEnd)
        assert driver.tool_notices == 0
        entry = observed_by(AGENT_TURN)
        assert not [w for d in driver.deltas for w in d.writes if w.key == entry]


@pytest.mark.parametrize("fits", [True, False])
async def test_of_an_answer_it_is_on_record_whether_it_fits_and_not_what_it_says(
    fits: bool,
) -> None:
    text = json.dumps({"total": 1 if fits else -1, "note": "long " * 20_000})
    script = [Reply.text(text)] * 2
    agent = TypedAgent(RecordingModel(script), [], output_type=SCHEMA)
    driver = Driver(agent, completion="answer", continuation=None)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.output is not None) == fits
    entry = observed_by(AGENT_TURN)
    (write,) = (
        w for d in driver.deltas for w in d.writes if w.key == entry and w.change == "append"
    )
    assert ("cause" in write.value["answer"]) == (not fits)
    assert len(json.dumps(write.value)) < 3_000


async def test_the_spec_of_the_tool_is_made_once_for_all_runs() -> None:
    model = RecordingModel([done({"total": "x"}), done({"total": 1})])
    driver = Driver(TypedAgent(model, [], output_type=SCHEMA))
    await driver.run()
    first, second = model.requests
    assert first.tools is second.tools
    assert first.strict is None
