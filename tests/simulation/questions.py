"""What agents ask their users in a schedule: chosen by its seed, and put into the plans of runs."""

from dataclasses import replace
from random import Random
from typing import Any

from harness_actors.config import OnQuestion
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, ToolKind, Workload

ASKS: tuple[ToolKind, ...] = ("ask", "ask", "ask", "choose", "choose", "mumble")
"""Kinds of calls that ask the user, each as often as it is chosen."""
ASKING = 0.25
"""Share of the schedules in which runs ask."""
ON_QUESTION: tuple[OnQuestion, ...] = (*("wait",) * 14, "deny", "fail")
FIRST_WORDS = "answer to "
"""With which every answer of a user begins."""


def plan_questions(workload: Workload, seed: int) -> Workload:
    """The workload of a seed with the questions of its runs."""
    chance = Random(f"{seed}/questions")
    if chance.random() >= ASKING:
        return workload
    return replace(
        workload, runs={name: _asking(chance, run) for name, run in workload.runs.items()}
    )


def question_of(kind: ToolKind, key: str) -> dict[str, Any]:
    """The arguments of a call that asks.

    Args:
        kind: One of `ASKS`; `mumble` asks what nobody can be asked.
        key: Which call it is, by run, message and place.
    """
    match kind:
        case "choose":
            options = [f"{FIRST_WORDS}{key}: {side}" for side in ("left", "right")]
            return {"question": f"{key}: where to?", "options": options}
        case "mumble":
            return {"question": " "}
        case _:
            return {"question": f"{key}: what now?", "why": "to go on"}


def key_of(text: str) -> str:
    """Which call asked a question, by its text."""
    return text.partition(":")[0]


def _asking(chance: Random, run: PlannedRun) -> PlannedRun:
    rounds = [_with_questions(chance, one) if chance.random() < 0.5 else one for one in run.rounds]
    guesses = [chance.uniform(0.0, 20.0) for _ in range(chance.choice((0, 0, 0, 1, 3)))]
    on_question = chance.choice(ON_QUESTION)
    return replace(
        run,
        rounds=tuple(rounds),
        guesses=tuple(guesses),
        config=replace(run.config, on_question=on_question),
    )


def _with_questions(chance: Random, planned: PlannedRound) -> PlannedRound:
    """The round with one question or more, before, between and behind its other calls."""
    calls = list(planned.calls)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        place = chance.randint(0, len(calls))
        calls.insert(place, PlannedTool(chance.choice(ASKS), 0.0))
    return replace(planned, calls=tuple(calls))
