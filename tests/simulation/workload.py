"""What runs are asked to do: plans, chosen by a seed before anything happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Literal

from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.runtime import StopMode
from harness_actors.config import ContinuationConfig, HarnessConfig, Limits
from harness_actors.policies import Approvals
from harness_actors.subagents import SubAgentSpec
from harness_actors.turn.acceptance import LARGE_CALLS
from tests.simulation.workflows import PlannedWorkflow, plan_workflows

if TYPE_CHECKING:
    from tests.simulation.trees import PlannedDelegation

ToolKind = Literal[
    "look",
    "again",
    "effect",
    "thread",
    "command",
    "fail",
    "hang",
    "stubborn",
    "deaf",
    "crash",
    "crash_again",
    "ask",
    "choose",
    "mumble",
    "peek",
    "stow",
    "recall",
    "watch",
    "read",
    "pry",
    "labour",
    "labour_long",
    "labour_crash",
    "labour_mess",
    "flaky",
    "write",
    "delegate",
]
"""`look`: read-only; `again`: idempotent; `effect`: neither; `thread`: the same, in a thread;
`command`: the same, in a process of its own; `fail`: raises; `hang`: ends by its timeout;
`stubborn`: takes its time when it is cancelled; `deaf`: does not notice it; `crash`: kills its
process; `crash_again`: the same, and may run again; `ask`: asks the user; `choose`: the same, with
options; `mumble`: asks what nobody can be asked; `peek`: read-only, alone at its shelf; `stow`:
writes, alone at its shelf or two in all of its tree;
`recall`: read-only, and two at one shelf are the same call; `watch`: the same, and volatile;
`read`: reads on in a long result; `pry`: in one of another conversation;
`labour`: in a worker process; `labour_long`: longer than it may; `labour_crash`: that process dies;
`labour_mess`: something is left running there; `flaky`: fails, and is tried again;
`write`: writes a file of its own into its workspace;
`delegate`: is done by a run of its own."""

COMMON: tuple[ToolKind, ...] = ("look", "again", "effect", "effect", "thread", "command")
SELDOM: tuple[ToolKind, ...] = ("fail", "hang", "stubborn", "deaf", "crash")
SHARED = 0.12
"""Share of the schedules in which several runs go on in one conversation as they like."""
LONG = 0.05
"""Share of the schedules in which each run has a message of many calls, all of one id."""
HOSTED = 0.15
"""Share of the runs of the default workflow that ask the model which their cell hosts."""
JUDGED = 0.25
"""Share of the schedules whose agents have hooks around calls."""
LISTENED = 0.3
"""Share of the runs whose text is read while it is said."""
KEY = "PLANNED_MODEL_KEY"
"""The key that the model of the program `keyed` needs."""


@dataclass(frozen=True, slots=True)
class PlannedTool:
    """A call that a model is to make.

    Attributes:
        kind: What it calls.
        takes_s: How long that takes, in seconds.
        shelf: Of kinds that look at one: which.
        to: Of `delegate`: to whom, and what that one does.
    """

    kind: ToolKind
    takes_s: float
    shelf: str = ""
    to: "PlannedDelegation | None" = None


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """What a model is to answer.

    Attributes:
        calls: The tools that it calls; none for a text.
        latency_s: How long it takes to answer.
        deaf: It does not notice that it is cancelled.
        one_id: All of its calls have one id.
    """

    calls: tuple[PlannedTool, ...]
    latency_s: float
    deaf: bool = False
    one_id: bool = False


@dataclass(frozen=True, slots=True)
class PlannedStop:
    """What a user is to ask of a run.

    Attributes:
        after_s: Seconds after it was submitted, or after the stop before.
        mode: What is asked.
        resume: It is taken up again at once, without waiting until it has parked.
    """

    after_s: float
    mode: StopMode
    resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run with everything that is to happen in it.

    Attributes:
        run_id: Its name.
        conversation_id: Whose log it continues.
        program: Which agent it runs.
        after_s: When it is submitted, after the run before it in its conversation.
        rounds: What its model answers, in order; then it says that it is done.
        stops: What its user asks of it.
        config: Its settings.
        shares: Its conversation has other runs, and whoever is asked for goes on in it.
        real_window: What its provider takes, in tokens; None for any request.
        asks: When its user asks for a summary: seconds after it is submitted, 0 for before.
        guesses: When somebody answers who was asked nothing: seconds after the time before.
        meddles: What people ask of runs of its tree, itself among them.
    """

    run_id: str
    conversation_id: str
    program: str
    after_s: float
    rounds: tuple[PlannedRound, ...]
    stops: tuple[PlannedStop, ...]
    config: HarnessConfig
    shares: bool = False
    real_window: int | None = None
    guesses: tuple[float, ...] = ()
    asks: tuple[float, ...] = ()
    meddles: tuple[PlannedStop, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the secrets that its model needs."""
        return {"keyed": (KEY,), "hosted": (EMBEDDED_MODEL_URL,)}.get(self.program, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Everything that is asked of a cell in one schedule.

    Attributes:
        runs: By run id, in the order of their conversations.
        workflows: Those that are not the default, by program.
        agent_turns: Number of agent turn hosts.
        snapshot_every: Changes of a run after which its state is written whole.
        reused_ids: The model gives the same call ids again and again.
        fickle: It answers otherwise when it is asked the same again.
        judged: Hooks have a say in calls.
        moody: They also fail and hang, and have a say in results.
        limited: Agents may not use all of their tools.
        guarded: Guards have a say in tasks and ends.
        rounds_judged: Hooks have a say in whether rounds come to something.
        passed: Middleware stands around calls.
        approvals: Which calls a person must approve of; None for none.
        contracted: Runs are held to contracts.
        typed: Runs are to come to values.
        pressed: Windows of models are small.
        summarized: They are kept in the background.
        strategic: Agents have a strategy of their own.
        sub_agents: Those to whom agents delegate; empty where they do not.
        soon: Who hears what runs below others ask answers soon.
        shelved: Runs of one tree write to the same shelves.
        copying: Runs have workspaces, and some of those below them copies of these.
        homeless: Runs of the user's that have none.
        copies: Messages go through pickle.
        budget_usd: What all runs may cost together; None for no bound.
        listened: Runs whose text somebody reads while it is said.
        onlooker_after_s: When somebody attaches to each cell who has no keys, in seconds;
            None where nobody does.
    """

    runs: dict[str, PlannedRun] = field(default_factory=dict)
    workflows: Mapping[str, PlannedWorkflow] = field(default_factory=dict)
    agent_turns: int = 1
    snapshot_every: int = 64
    reused_ids: bool = False
    fickle: bool = False
    judged: bool = False
    moody: bool = False
    limited: bool = False
    guarded: bool = False
    rounds_judged: bool = False
    passed: bool = False
    approvals: Approvals | None = None
    contracted: bool = False
    typed: bool = False
    pressed: bool = False
    summarized: bool = False
    strategic: bool = False
    sub_agents: tuple[SubAgentSpec, ...] = ()
    soon: bool = False
    shelved: bool = False
    copying: bool = False
    homeless: frozenset[str] = frozenset()
    copies: bool = False
    budget_usd: float | None = None
    listened: frozenset[str] = frozenset()
    onlooker_after_s: float | None = None

    def conversations(self) -> list[list[PlannedRun]]:
        """The runs by conversation, each in its order."""
        chains: dict[str, list[PlannedRun]] = {}
        for run in self.runs.values():
            chains.setdefault(run.conversation_id, []).append(run)
        return list(chains.values())


def plan_workload(seed: int) -> Workload:
    """The workload of a seed."""
    chance = Random(f"{seed}/workload")
    own = Random(f"{seed}/workflows")
    talks = Random(f"{seed}/talks")
    long = Random(f"{seed}/long")
    beside = Random(f"{seed}/beside")
    workflows = plan_workflows(own)
    runs: dict[str, PlannedRun] = {}
    for conversation in range(chance.choice((1, 1, 2, 2, 3))):
        for place in range(2 if chance.random() < 0.15 else 1):
            run = _plan_run(chance, f"run-{conversation}-{place}", f"talk-{conversation}")
            if run.program == "custom":
                run = _plan_own(own, run, workflows)
            runs[run.run_id] = run
    if talks.random() < SHARED:
        for run in _plan_talk(talks, runs, workflows):
            runs[run.run_id] = run
    if long.random() < LONG:
        runs = {name: _with_long_message(long, run) for name, run in runs.items()}
    runs = {name: _with_hosted_model(beside, run) for name, run in runs.items()}
    used = sorted({run.program for run in runs.values()})
    return Workload(
        runs=runs,
        workflows={name: workflows[name] for name in used if name in workflows},
        agent_turns=chance.choice((1, 2)),
        snapshot_every=chance.choice((2, 3, 5, 64)),
        reused_ids=chance.random() < 0.3,
        fickle=chance.random() < 0.2,
        judged=Random(f"{seed}/judged").random() < JUDGED,
        copies=seed % 8 == 0,
        listened=frozenset(name for name in runs if beside.random() < LISTENED),
        budget_usd=chance.uniform(0.01, 0.1) if chance.random() < 0.2 else None,
        onlooker_after_s=chance.uniform(0.0, 5.0) if chance.random() < 0.2 else None,
    )


def _plan_talk(
    chance: Random, runs: Mapping[str, PlannedRun], workflows: Mapping[str, PlannedWorkflow]
) -> list[PlannedRun]:
    """The first conversation, shared by a run or two more; it has no plan of stops then."""
    first = next(iter(runs.values()))
    talk = [run for run in runs.values() if run.conversation_id == first.conversation_id]
    for place in range(len(talk), chance.choice((2, 3, 3))):
        run = _plan_run(chance, f"run-0-{place}", first.conversation_id)
        talk.append(_plan_own(chance, run, workflows) if run.program == "custom" else run)
    return [replace(run, stops=(), shares=True) for run in talk]


def _plan_run(chance: Random, run_id: str, conversation_id: str) -> PlannedRun:
    rounds = tuple(_plan_round(chance) for _ in range(chance.choice((1, 2, 2, 3, 3, 4, 6))))
    config = _plan_config(chance)
    if chance.random() < 0.04:
        # It asks for more than it may, and its process dies of the first.
        calls = tuple(PlannedTool(kind, 0.01) for kind in ("crash", "effect", "crash"))
        rounds = (*rounds[:1], PlannedRound(calls, 0.05), *rounds[1:])
        spent = sum(len(planned.calls) for planned in rounds[:1])
        config = replace(config, limits=replace(config.limits, tool_calls=spent + 1))
    if chance.random() < 0.06:
        poison = PlannedRound((PlannedTool("crash_again", 0.01),), 0.05)
        rounds = (*rounds[:1], poison, *rounds[1:])
    if chance.random() < 0.05:
        # Its time is over while something does not end.
        hung = (PlannedRound((PlannedTool("deaf", 0.0),), 0.05), PlannedRound((), 5.0, True))
        rounds = (*rounds[:1], chance.choice(hung), *rounds[1:])
        working_s = chance.uniform(0.5, 3.0)
        config = replace(config, limits=replace(config.limits, working_s=working_s))
    return PlannedRun(
        run_id=run_id,
        conversation_id=conversation_id,
        program=chance.choice(("plain", "plain", "plain", "custom", "keyed")),
        after_s=chance.choice((0.0, 0.0, 0.3)),
        rounds=rounds,
        stops=_plan_stops(chance),
        config=config,
    )


def _with_hosted_model(chance: Random, run: PlannedRun) -> PlannedRun:
    """The run, perhaps with the model that its cell hosts."""
    hosted = chance.random() < HOSTED and run.program == "plain"
    return replace(run, program="hosted") if hosted else run


def _with_long_message(chance: Random, run: PlannedRun) -> PlannedRun:
    """The run with a message so large that it is told of before it is taken in."""
    kinds: tuple[ToolKind, ...] = chance.choice((("look", "again"), ("look", "effect")))
    calls = tuple(PlannedTool(chance.choice(kinds), 0.0) for _ in range(LARGE_CALLS + 2))
    place = chance.randrange(len(run.rounds) + 1)
    message = PlannedRound(calls, 0.05, one_id=True)
    return replace(run, rounds=(*run.rounds[:place], message, *run.rounds[place:]))


def _plan_own(
    chance: Random, run: PlannedRun, workflows: Mapping[str, PlannedWorkflow]
) -> PlannedRun:
    """The run with one of the user's own workflows."""
    run = replace(run, program=chance.choice(("custom", "custom", "other")))
    slow = any(executor.kind == "slow" for executor in workflows[run.program])
    if slow and chance.random() < 0.7:
        # Its time is over where no turn looks at the clock.
        limits = replace(run.config.limits, time_s=chance.uniform(0.5, 6.0))
        run = replace(run, config=replace(run.config, limits=limits))
    return run


def _plan_round(chance: Random) -> PlannedRound:
    latency_s = chance.choice((0.0, 0.02, 0.1, 0.1, 0.5))
    if chance.random() < 0.04:
        latency_s = 12.0
    deaf = chance.random() < 0.03
    if deaf:
        latency_s = 5.0
    if chance.random() < 0.12:
        return PlannedRound((), latency_s, deaf)
    calls = tuple(_plan_tool(chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    return PlannedRound(calls, latency_s, deaf)


def _plan_tool(chance: Random) -> PlannedTool:
    kind = chance.choice(SELDOM if chance.random() < 0.08 else COMMON)
    takes_s = chance.choice((0.0, 0.01, 0.05, 0.2, 1.0))
    if chance.random() < 0.03:
        takes_s = 11.0
    return PlannedTool(kind, takes_s)


def _plan_stops(chance: Random) -> tuple[PlannedStop, ...]:
    stops: list[PlannedStop] = []
    while chance.random() < 0.25:
        mode: StopMode = chance.choice(("park", "park", "park_now", "park_now", "cancel"))
        after_s = chance.choice((0.0, 0.1, 0.5, 1.0, 3.0)) * chance.random() * 2
        stops.append(PlannedStop(after_s, mode, chance.random() < 0.3))
    return tuple(stops)


def _plan_config(chance: Random) -> HarnessConfig:
    def seldom(share: float, low: float, high: float) -> float | None:
        return chance.uniform(low, high) if chance.random() < share else None

    tool_calls = seldom(0.15, 1, 8)
    tokens = seldom(0.1, 100, 3000)
    limits = Limits(
        model_calls=chance.randint(1, 8) if chance.random() < 0.15 else 60,
        tool_calls=None if tool_calls is None else int(tool_calls),
        tokens=None if tokens is None else int(tokens),
        cost_usd=seldom(0.08, 0.01, 0.08),
        time_s=seldom(0.08, 0.5, 30.0),
        working_s=seldom(0.08, 0.5, 10.0),
    )
    return HarnessConfig(
        max_turns=chance.choice((50, 50, 50, 3)),
        max_rounds_per_turn=chance.choice((1, 2, 40, 40)),
        completion=chance.choice(("explicit", "explicit", "answer")),
        stop_policy=chance.choice(("interactive", "strict_automation")),
        continuation=chance.choice((None, ContinuationConfig(), ContinuationConfig(max_prompts=1))),
        limits=limits,
    )
