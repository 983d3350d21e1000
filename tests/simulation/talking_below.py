"""Trees in which much is asked, and answered at once, while some leave service and others go on."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from harness_actors.config import SubAgentConfig
from tests.simulation.sent_out import LONG_S, SCOUT
from tests.simulation.trees import PlannedDelegation, only_reads
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedStop, PlannedTool, Workload

SHARE = 0.25
"""Of the schedules with trees."""


def with_questions_below(workload: Workload, seed: int) -> Workload:
    """The workload, in which perhaps those that are delegated to ask more than elsewhere."""
    chance = Random(f"{seed}/soon")
    if not workload.sub_agents or chance.random() >= SHARE:
        return workload
    has_scouts = any(one.name == SCOUT for one in workload.sub_agents)
    runs = {name: _talking(chance, run, has_scouts) for name, run in workload.runs.items()}
    return replace(workload, runs=runs, soon=True)


def _talking(chance: Random, run: PlannedRun, has_scouts: bool) -> PlannedRun:
    rounds, config = _rounds(chance, run.rounds), replace(run.config, on_question="wait")
    drawn = chance.random()
    if drawn < 0.4:
        asks = _asks_beside_another(chance) if has_scouts and drawn < 0.2 else _two_ask(chance)
        rounds = (_while_one_works(chance, asks), *rounds)
        config = replace(config, sub_agents=SubAgentConfig(max_depth=3, max_parallel=3))
    elif drawn < 0.7 and has_scouts:
        # When the first is answered, the second one has its place, and what it sent out goes on.
        rounds = (_while_one_works(chance, _asks_beside_another(chance)), *rounds)
        config = replace(config, sub_agents=SubAgentConfig(max_depth=3, max_parallel=1))
    meddles = () if run.shares else (*run.meddles, *_puts_aside(chance))
    return replace(run, rounds=rounds, config=config, meddles=meddles)


def _while_one_works(chance: Random, others: PlannedTool) -> PlannedRound:
    works = [PlannedRound((PlannedTool("look", 0.5),), 0.2) for _ in range(chance.randint(1, 5))]
    return PlannedRound((others, _delegate("document", *works)), 0.05)


def _two_ask(chance: Random) -> PlannedTool:
    """One that waits for two that ask."""
    asks = [PlannedRound((PlannedTool("ask", 0.0),), chance.random() / 5) for _ in range(2)]
    below = tuple(_delegate("run_task", one) for one in asks)
    return _delegate("run_task", PlannedRound(below, 0.02))


def _asks_beside_another(chance: Random) -> PlannedTool:
    """One that asks while another works beside it, and that waits for this one afterwards."""
    works = [PlannedRound((PlannedTool("look", 0.3),), 0.1) for _ in range(chance.randint(2, 5))]
    asks = PlannedRound((PlannedTool("ask", 0.0),), chance.random())
    waits = PlannedDelegation("agent_wait", given={"until": "all", "timeout_s": LONG_S})
    return _delegate(
        "run_task",
        PlannedRound((_delegate(SCOUT, *works),), 0.02),
        asks,
        PlannedRound((PlannedTool("delegate", 0.0, to=waits),), 0.0),
    )


def _delegate(agent: str, *rounds: PlannedRound) -> PlannedTool:
    return PlannedTool("delegate", 0.0, to=PlannedDelegation(agent, rounds))


def _rounds(chance: Random, rounds: Sequence[PlannedRound]) -> tuple[PlannedRound, ...]:
    return tuple(_with_questions(chance, one) for one in rounds)


def _with_questions(chance: Random, planned: PlannedRound) -> PlannedRound:
    """The round, and those that it sends out ask, perhaps all at once."""
    at_once = chance.random() < 0.3
    calls = [
        call if call.to is None else replace(call, to=_asking(chance, call.to, at_once=at_once))
        for call in planned.calls
    ]
    return replace(planned, calls=tuple(calls))


def _asking(chance: Random, to: PlannedDelegation, *, at_once: bool) -> PlannedDelegation:
    rounds = list(_rounds(chance, to.rounds))
    if rounds and not only_reads(to.agent):
        for _ in range(1 if at_once else chance.choice((0, 1, 1, 2))):
            asks = PlannedRound((PlannedTool("ask", 0.0),), chance.choice((0.0, 0.05, 0.2)))
            rounds.insert(0 if at_once else chance.randint(0, len(rounds)), asks)
    return replace(to, rounds=tuple(rounds))


def _puts_aside(chance: Random) -> Sequence[PlannedStop]:
    """Somebody puts the tree aside, perhaps, and perhaps after all not."""
    if chance.random() < 0.5:
        return ()
    after_s = chance.choice((0.2, 0.5, 1.0)) * chance.random() * 2
    return (PlannedStop(after_s, "park", chance.random() < 0.4),)
