"""Agents of the recorded trees: whom they delegate to, what these say, and who holds them."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_actors import Limits
from harness_actors.agents import ChatAgent, Program
from harness_actors.contracts import ContainsText, RequiredOutput, TaskContract
from harness_actors.errors import ModelRefusedError
from harness_actors.messages import Message
from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import ask_user
from tests.data.corpus.agents import peek
from tests.replay.recorded_runs import CountingModel, done, read, write

TASK = "the task"
"""Of whoever is at the top; who has another one was sent out."""

WAIT: tuple[str, Mapping[str, Any]] = ("agent_wait", {})
COLOUR = ("ask_user", {"question": "Which colour?"})
WRITE = ("write", {"text": "w"})


@dataclass
class Doors:
    """Where the recorder holds agents, and lets them go on one after the other.

    A door is a task and how often its agent has answered, as in ``look a/1``. All are open that
    nobody has closed. Recorder and agents share one process.
    """

    closed: dict[str, asyncio.Event] = field(default_factory=dict)
    reached: dict[str, asyncio.Event] = field(default_factory=dict)

    def clear(self) -> None:
        self.closed, self.reached = {}, {}

    def close(self, *doors: str) -> None:
        for door in doors:
            self.closed[door], self.reached[door] = asyncio.Event(), asyncio.Event()

    def open(self, *doors: str) -> None:
        for door in doors:
            self.closed[door].set()

    async def stood_at(self, *doors: str) -> None:
        """Return when somebody stands at each of them."""
        for door in doors:
            await self.reached[door].wait()

    async def walk_through(self, door: str) -> None:
        if door in self.closed:
            self.reached[door].set()
            await self.closed[door].wait()


DOORS = Doors()


class TreeModel(CountingModel):
    """Answers the run at the top as its replies say, and those below as their tasks say.

    Args:
        replies: Those of the run at the top, in their order.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        def script(conversation: Sequence[Message]) -> Reply:
            task, answers = said_in(conversation)
            if task == TASK:
                return replies[len(answers)]
            return below(task, len(answers), conversation)

        super().__init__(script)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        from tests.data.corpus.trees import DOORS, said_in

        task, answers = said_in(request.messages)
        await DOORS.walk_through(f"{task}/{len(answers)}")
        return await super().complete(request)


def said_in(conversation: Sequence[Message]) -> tuple[str, list[Message]]:
    """What an agent was told to do last, and what it has answered since."""
    told = [at for at, one in enumerate(conversation) if one.role == "user" and not one.by_harness]
    since = conversation[told[-1] :]
    return since[0].text, [one for one in since if one.role == "assistant"]


def below(task: str, said: int, conversation: Sequence[Message]) -> Reply:
    """What an agent says next that was sent out, by the verb of its task."""
    verb, _, what = task.partition(" ")
    seen = [one.text for one in conversation if one.role == "tool"]
    heard = [one.text for one in conversation if one.role == "user" and one.by_harness]
    match verb:
        case "ask" if not said:
            return scouts(*what.split(" and "))
        case "send" if not said:
            return Reply.call("research", {"prompt": what})
        case "send" if said == 1:
            return Reply.calls([WAIT])
        case "wonder" if not said:
            return Reply.calls([COLOUR])
        case "idle":
            return Reply.call("read", {"text": str(said)})
        case "talk":
            return Reply.text(" ".join(["word"] * int(what.split()[min(said, 1)])))
        case "value" | "sign":
            return Reply.text(_signed(verb, what) if said else "not that")
        case "say":
            return Reply.call("work_complete", {"summary": f"{task}, and saw: {seen[0]}"})
        case "fork":
            return done(seen[-1]) if said else Reply.call("aside", {"prompt": "say too deep"})
        case "peek" | "write" if not said:
            return Reply.call(verb, {"text": what} if what else {})
        case "listen" if said < 2:
            return Reply.call("read", {"text": str(said)})
        case "look" if not said:
            return Reply.call("read", {"text": what})
    return Reply.text(f"[{task}] {' / '.join(seen)}{' | '.join(['', *heard])}")


def _signed(verb: str, what: str) -> str:
    if what == "never":
        return "not that either"
    return "signed" if verb == "sign" else json.dumps({"fault": what, "line": 7})


# ---- whom they send out -----------------------------------------------------------------


def scouts(*tasks: str) -> Reply:
    return Reply.calls([scout(task) for task in tasks])


def scout(task: str) -> tuple[str, dict[str, str]]:
    return "scout", {"prompt": task}


def researches(*tasks: str) -> Reply:
    return Reply.calls([("research", {"prompt": task}) for task in tasks])


def _agent(name: str, **given: Any) -> SubAgentSpec:
    given = {"instructions": f"You are sent out as {name}.", **given}
    return SubAgentSpec(name=name, description=f"Is sent out as {name}.", **given)


RESEARCH = _agent("research", background=True)
SCOUT = _agent("scout", sub_agents=[_agent("scout", sub_agents=[_agent("scout")]), RESEARCH])
VERDICT = {
    "type": "object",
    "properties": {"fault": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["fault", "line"],
}
SIGNED = TaskContract(
    goal="an answer",
    outputs=(RequiredOutput(id="it", description="a signature", predicate=ContainsText("signed")),),
)
REFUSED = ModelRefusedError("scripted", "filtered – ß", 400)
SPECS = (
    SCOUT,
    RESEARCH,
    _agent("talker", max_words=5, reads_only=True),
    _agent("idler", limits=Limits(model_calls=3)),
    _agent("critic", output_type=VERDICT),
    _agent("signer", contract=SIGNED),
    # What a class of ours raises would be told with the folder in which that is.
    _agent("faller", model=ScriptedModel([Reply.error(REFUSED)])),
    SubAgentSpec(name="aside", description="Does one thing on the side.", fork=True),
)
ASKS_TO_WRITE = Approvals(rules=[ApprovalRule(decide="ask", tools=["write"])])


def tree(*replies: Reply, **more: Any) -> Program:
    """An agent that delegates, and is done after its replies."""
    model, tools = TreeModel([*replies, done()]), (read, write, peek, ask_user)
    return Program.of(
        ChatAgent(model=model, tools=tools, instructions="Be brief.", sub_agents=SPECS, **more)
    )


# ---- those that are left unfinished -----------------------------------------------------


@dataclass(frozen=True)
class Left:
    """A tree that is not over in its journal.

    Attributes:
        program: Makes what it runs.
        below: What each of those below it came to or is to come to, by their numbers.
        answers: What its user says first.
    """

    program: Callable[[], Program]
    below: Mapping[str, str]
    answers: Mapping[str, str] = field(default_factory=dict)


LEFT = {
    "left-parked-in-children": Left(
        lambda: tree(
            Reply.calls([WRITE, scout("look a"), scout("look b"), WRITE, scout("look c")])
        ),
        {".1": "[look a] read a", ".2": "[look b] read b", ".3": "[look c] read c"},
    ),
    "left-parked-in-a-wait": Left(
        lambda: tree(researches("look a", "look b"), Reply.calls([WAIT])),
        {".1": "[look a] read a", ".2": "[look b] read b"},
    ),
    "left-parked-when-nested": Left(
        lambda: tree(scouts("ask look a and look b")),
        {".1": "[ask look a and look b] ", ".1.1": "[look a] read a", ".1.2": "[look b] read b"},
    ),
    "left-asking": Left(
        lambda: tree(researches("look a", "look b"), Reply.calls([COLOUR]), Reply.calls([WAIT])),
        {".1": "[look a] read a", ".2": "[look b] read b"},
        answers={"q1": "blue"},
    ),
    "left-in-flight": Left(
        lambda: tree(scouts("look a", "look b")),
        {".1": "[look a] read a", ".2": "[look b] read b"},
    ),
}
"""By their names; what they send out goes on by itself once it is taken up."""
