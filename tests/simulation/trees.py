"""Trees of runs in a schedule: who delegates, to whom, and what those do; chosen by its seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import orjson

from harness_actors.actors.runtime import StopMode
from harness_actors.config import Limits, SubAgentConfig
from harness_actors.messages import ToolCall
from harness_actors.subagents import SubAgentSpec, document, explore, run_task
from tests.simulation.workload import (
    COMMON,
    SELDOM,
    PlannedRound,
    PlannedRun,
    PlannedStop,
    PlannedTool,
    ToolKind,
    Workload,
)

TREES = 0.17
"""Share of the schedules whose agents delegate, where their windows are not small."""
FORKS = 0.4
"""Share of those whose helper goes on with the conversation of whoever sends it out."""
MOST_DEPTH = 3
AGENTS = ("explore", "run_task", "document", "helper")
KNOWN = (*AGENTS, "scout")
"""With the one that works beside whoever sends it out."""
NOBODY = "nobody"
"""An agent that there is not."""
FLAWS = ("empty", "none", "broken", "wrong", "nobody")
"""How a call that delegates may be malformed: a prompt of spaces, none, no JSON, no text, and an
agent that there is not."""
FLAWED = 0.08
BEYOND = 0.1
"""Share of the calls that would go deeper than they may."""
MOST_CHILDREN = 12
"""Of one run of the user's, with all below it."""
READS: tuple[ToolKind, ...] = ("look", "look", "peek", "recall", "watch")
POISON: tuple[ToolKind, ...] = ("crash", "crash_again", "ask")


def only_reads(path: str) -> bool:
    """Whether an agent has no tool that asks its user, by the way to it."""
    return "explore" in path.split("/")


@dataclass(frozen=True, slots=True)
class PlannedDelegation:
    """What a call delegates.

    Attributes:
        agent: To whom.
        rounds: What that one's model is to answer; then it reports.
        flaw: How the call is malformed; empty where it is not.
        words: How many the report has beside its heading.
        fails: Its provider refuses the request for the report.
        given: Of a tool that asks something of those beside, its arguments.
    """

    agent: str
    rounds: tuple[PlannedRound, ...] = ()
    flaw: str = ""
    words: int = 2
    fails: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)


def plan_trees(workload: Workload, seed: int) -> Workload:
    """The workload of a seed, perhaps with agents that delegate."""
    chance = Random(f"{seed}/trees")
    if chance.random() >= TREES or workload.pressed:
        # Of small windows models are told otherwise how far they are.
        return workload
    depth = chance.choice((1, 2, 2, 3))
    runs = {name: Drawn(chance, depth).delegating(run) for name, run in workload.runs.items()}
    specs = _specs(chance, MOST_DEPTH)
    if Random(f"{seed}/forks").random() < FORKS:
        specs = _forked(specs)
    # What children come to is text.
    return replace(workload, runs=runs, sub_agents=specs, typed=False)


class Drawn:
    """Draws the tree of one run.

    Args:
        chance: The schedule's own.
        depth: How deep it may be.
    """

    def __init__(self, chance: Random, depth: int) -> None:
        self._chance = chance
        self._depth = depth
        self._left = chance.choice((3, 6, MOST_CHILDREN))

    def delegating(self, run: PlannedRun) -> PlannedRun:
        """The run with calls that delegate, and with people who meddle with its tree."""
        chance = self._chance
        rounds = [self._with_calls(one, 1) if chance.random() < 0.5 else one for one in run.rounds]
        calls = tuple(PlannedTool("look", 0.01) for _ in range(chance.choice((0, 0, 1))))
        place = chance.randint(0, len(rounds))
        rounds.insert(place, self._with_calls(PlannedRound(calls, 0.05), 1))
        settings = SubAgentConfig(
            max_depth=0 if chance.random() < 0.04 else self._depth,
            max_parallel=chance.choice((1, 1, 2, 3)),
        )
        limits = _bounded(chance, run.config.limits)
        config = replace(run.config, sub_agents=settings, limits=limits)
        meddles = () if run.shares else tuple(_meddles(chance))
        return replace(run, rounds=tuple(rounds), config=config, meddles=meddles)

    def _with_calls(self, planned: PlannedRound, depth: int) -> PlannedRound:
        """The round with one call that delegates or more, among its others."""
        chance, calls = self._chance, list(planned.calls)
        place = chance.randint(0, len(calls))
        for _ in range(chance.choice((1, 1, 2, 2, 3, 4))):
            if self._left <= 0:
                break
            self._left -= 1
            calls.insert(place, PlannedTool("delegate", 0.0, to=self._delegation(depth)))
            if chance.random() < 0.3:
                place = chance.randint(0, len(calls))
        return replace(planned, calls=tuple(calls))

    def _delegation(self, depth: int) -> PlannedDelegation:
        chance, agent = self._chance, self._chance.choice(AGENTS)
        if chance.random() < FLAWED:
            return PlannedDelegation(agent, flaw=chance.choice(FLAWS))
        rounds = [self._round(agent) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
        goes_on = depth < self._depth or chance.random() < BEYOND
        if goes_on and chance.random() < 0.6:
            place = chance.randint(0, len(rounds))
            rounds.insert(place, self._with_calls(PlannedRound((), 0.02), depth + 1))
        words, fails = chance.choice((0, 2, 2, 9)), chance.random() < 0.04
        return PlannedDelegation(agent, tuple(rounds), words=words, fails=fails)

    def _round(self, agent: str) -> PlannedRound:
        chance = self._chance
        latency_s = 4.0 if chance.random() < 0.03 else chance.choice((0.0, 0.05, 0.2))
        if chance.random() < 0.05:
            return PlannedRound((), latency_s)
        calls = tuple(self._tool(agent) for _ in range(chance.choice((1, 1, 2, 3))))
        return PlannedRound(calls, latency_s)

    def _tool(self, agent: str) -> PlannedTool:
        chance = self._chance
        kinds: Sequence[ToolKind] = READS if agent == "explore" else COMMON
        drawn = chance.random()
        if drawn < 0.09:
            kinds = SELDOM if drawn < 0.05 else POISON
        takes_s = chance.choice((0.0, 0.01, 0.1, 0.5))
        return PlannedTool(chance.choice(kinds), takes_s, shelf=chance.choice("ab"))


def _bounded(chance: Random, limits: Limits) -> Limits:
    """The bounds of a run, some of which its tree may reach."""
    drawn = chance.random()
    if drawn < 0.12:
        return replace(limits, model_calls=chance.randint(3, 14))
    if drawn < 0.18:
        return replace(limits, tool_calls=chance.randint(2, 14))
    if drawn < 0.24:
        return replace(limits, tokens=chance.randint(100, 1_500))
    if drawn < 0.3:
        return replace(limits, cost_usd=chance.uniform(0.03, 0.14))
    if drawn < 0.36:
        return replace(limits, time_s=chance.uniform(1.0, 12.0))
    return limits


def _meddles(chance: Random) -> Sequence[PlannedStop]:
    """What people ask of runs of a tree, whichever these are then."""
    stops: list[PlannedStop] = []
    while chance.random() < 0.4:
        mode: StopMode = chance.choice(("park", "park_now", "cancel", "cancel"))
        after_s = chance.choice((0.1, 0.3, 1.0, 3.0)) * chance.random() * 2
        stops.append(PlannedStop(after_s, mode, chance.random() < 0.4))
    return stops


def _specs(chance: Random, depth: int) -> tuple[SubAgentSpec, ...]:
    """The agents to which one delegates: the shipped ones, and one of the user's own."""
    below = _specs(chance, depth - 1) if depth > 1 else ()
    shipped = (explore(), run_task(), document())
    helper = SubAgentSpec(
        name="helper",
        description="Helps.",
        instructions="Help.",
        limits=Limits(
            model_calls=chance.choice((2, 5, 100, 100)),
            tool_calls=chance.choice((None, None, 2)),
            time_s=chance.choice((None, None, 3.0)),
        ),
        completion=chance.choice(("answer", "explicit")),
        max_words=chance.choice((None, 6)),
        sub_agents=below,
    )
    return (*(replace(one, sub_agents=below) for one in shipped), helper)


def _forked(specs: Sequence[SubAgentSpec]) -> tuple[SubAgentSpec, ...]:
    """The same, at each depth, with a helper that is a fork."""
    return tuple(
        replace(one, fork=True, instructions="", completion="answer", max_words=None, sub_agents=())
        if one.name == "helper"
        else replace(one, sub_agents=_forked(one.sub_agents))
        for one in specs
    )


# ---- as models make and see it --------------------------------------------------------


def delegating_call(planned: PlannedDelegation, call_id: str, key: str) -> ToolCall:
    """A call that delegates, as a model makes it; what is to be done names the call."""
    if planned.agent.startswith("agent_"):
        said = {"message": f"steer:{key}"} if planned.agent == "agent_send" else {}
        return ToolCall(call_id, planned.agent, orjson.dumps({**planned.given, **said}).decode())
    given: dict[str, Any] = {"prompt": f"[{key}] the task"}
    match planned.flaw:
        case "empty":
            given = {"prompt": "  "}
        case "none":
            given = {}
        case "wrong":
            given = {"prompt": {"of": key}}
        case "broken":
            return ToolCall(call_id, planned.agent, '{"prompt": "[')
        case "nobody":
            return ToolCall(call_id, NOBODY, orjson.dumps(given).decode())
    return ToolCall(call_id, planned.agent, orjson.dumps(given).decode())


def delegated_in(call: ToolCall) -> str:
    """Which call it is, by run, message and place, of one that delegates; else empty."""
    if call.name not in KNOWN:
        return ""
    try:
        given = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return ""
    prompt = given.get("prompt")
    return named_in(prompt) if isinstance(prompt, str) else ""


def named_in(task: str) -> str:
    """The call that a task was given by; empty of what is none."""
    return task[1 : task.index("]")] if task.startswith("[run-") else ""


def report_of(run_id: str, planned: PlannedDelegation) -> str:
    """What a child says in the end."""
    return " ".join((f"report of {run_id}:", *("word" for _ in range(planned.words))))
