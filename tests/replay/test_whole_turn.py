"""A run with all that a turn has comes out the same, in a process that has none of its code."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from harness_actors import AgentHarness, ChatAgent, HarnessConfig, tool
from harness_actors.contracts import RequiredOutput, TaskContract, ToolResultSuccess
from harness_actors.messages import Message
from harness_actors.policies import (
    AfterTool,
    AgentStop,
    ApprovalRule,
    Approvals,
    BeforeTool,
    Change,
    Deny,
    Redact,
    Replace,
    ShellSafety,
    ToolUsage,
)
from harness_actors.policies.decisions import Approve, Decision, Refuse
from harness_actors.ports import ToolContext
from harness_actors.results import HarnessResult, OpenQuestion
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import ask_user, resource

KEY = "sk-abcdefghijklmnop1234"


@resource
def shop() -> Iterator[dict[int, float]]:
    yield {17: 120.0, 18: 80.5}


class Price(BaseModel):
    order: int
    usd: float


@tool(effect="read_only", resource_keys=["order/{order}"])
async def price(order: int, known: Annotated[dict[int, float], shop]) -> Price:
    """What an order costs."""
    return Price(order=order, usd=known[order])


@tool(worker=True, effect="read_only", timeout_s=30)
def squares(n: int) -> int:
    """The sum of squares, far from the event loop."""
    return sum(i * i for i in range(n))


@tool(effect="read_only")
def report(context: ToolContext) -> Iterator[str]:
    """Tell how it goes, then all of it."""
    context.emit(f"begun with {KEY}")
    yield "half"
    yield f"{KEY} " + "a long report\n" * 2_000


TRIES = iter([ConnectionError("refused")])


@tool(effect="read_only", retries=1)
def flaky() -> str:
    """Fails once."""
    for error in TRIES:
        raise error
    return "there after all"


@tool
def refund(order: int) -> str:
    """Give it back."""
    return f"refunded {order}"


async def before(event: BeforeTool) -> Deny | Change | None:
    match event.tool_name, event.arguments:
        case "price", {"order": 18}:
            return Deny("not that one")
        case "squares", _:
            return Change({"n": 4})
    return None


async def after(event: AfterTool) -> Replace | None:
    return Replace(event.text.upper()) if event.disposition == "denied" else None


async def stop(event: AgentStop) -> Deny | None:
    return Deny("refund one more") if event.text == "early" else None


async def around(call: Any, next: Any) -> str:
    result: str = await next(call)
    return f"<{result}>" if call.tool_name == "flaky" else result


def script(log: Sequence[Message]) -> Reply:
    artifact = next((m.text for m in log if "kept whole as artifact" in m.text), "")
    place = artifact.find("artifact a")
    rounds = [
        Reply.calls(
            [("price", {"order": 17}), ("price", {"order": 18}), ("squares", {"n": 9})],
            said="looking",
        ),
        Reply.calls([("report", {}), ("flaky", {}), ("price", {"order": 17})]),
        Reply.call(
            "read_artifact", {"id": artifact[place + 9 : place + 20], "start": 0, "end": 40}
        ),
        Reply.calls(
            [("refund", {"order": 1}), ("refund", {"order": 2}), ("ask_user", {"question": "?"})]
        ),
        Reply.call("work_complete", {"summary": "early"}),
        Reply.calls([("refund", {"order": 3}), ("refund", "no json")]),
        Reply.call("work_complete", {"summary": "all refunded"}),
    ]
    return rounds[sum(message.role == "assistant" for message in log)]


def decide(question: OpenQuestion) -> Decision | str:
    match question.arguments:
        case None:
            return "go on"
        case {"order": 1}:
            return Approve({"order": 10})
        case {"order": 2}:
            return Refuse("too late")
    return Approve(standing="tool")


SAID = (
    '"usd":120.0',
    "NOT THAT ONE",
    "14",
    "<there after all>",
    "[redacted]",
    "kept whole as artifact",
    "refunded 10",
    "TOO LATE",
    "refunded 3",
    "refund one more",
)
"""Of each part something that only it has said."""
AGAIN = """
import asyncio, json, sys
from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
replayed = asyncio.run(replay(load_recording(JournalReader(sys.argv[1]), sys.argv[2])))
assert not [name for name in sys.modules if name.startswith("tests")]
print(json.dumps([replayed.same, [str(one) for one in replayed.differences]]))
"""


def replayed_elsewhere(store: Path, run_id: str) -> list[Any]:
    """The same in a process of its own, from a copy of the journal alone."""
    elsewhere = store.parent / "elsewhere"
    elsewhere.mkdir()
    for path in store.parent.glob(f"{store.name}*"):
        if path.is_file():
            shutil.copy(path, elsewhere)
    ran = subprocess.run(
        [sys.executable, "-c", AGAIN, str(elsewhere / store.name), run_id],
        capture_output=True,
        text=True,
        check=True,
        cwd=elsewhere,
    )
    answer: list[Any] = json.loads(ran.stdout)
    return answer


@pytest.mark.timeout(120)
async def test_a_run_with_all_of_a_turn_in_it_comes_out_the_same(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    done = RequiredOutput(
        id="done", description="It is there.", predicate=ToolResultSuccess(tool_name="flaky")
    )
    contract = TaskContract(goal="refund", outputs=(done,))
    agent = ChatAgent(
        model=ScriptedModel(script),
        tools=[price, squares, report, flaky, refund, ask_user],
        hooks={"pre_tool": before, "post_tool": after, "agent_stop": stop},
        middleware=[ToolUsage(), ShellSafety(), Redact(), around],
        approvals=Approvals(rules=[ApprovalRule(decide="ask", tools=["refund"])]),
    )
    config = HarnessConfig.from_mapping(
        {
            "contract": contract,
            "turn_limits": {"tool_calls": 40},
            "max_parallel_calls": 2,
            "artifacts": {},
        }
    )
    result: HarnessResult | None = None
    harness = AgentHarness(agent, runtime="local", store=store, on_question=decide, config=config)
    async with harness:
        result = await harness.run("refund what is to be refunded")
        log = await harness.conversation(result.run_id)

    assert (result.status, result.output_text) == ("done", "all refunded"), result.reason
    told = "\n".join(str(message.get("content")) for message in log)
    for said in SAID:
        assert said in told, said
    assert KEY not in told
    assert replayed_elsewhere(store, result.run_id) == [True, []]
