"""What a run that waits for its user comes to for now, and who may answer it at once."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_actors.actors.runtime import Runtime
from harness_actors.errors import ConfigError
from harness_actors.events import InputAwaited, RoundCompleted, RunStarted
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult, OpenQuestion, Reason, Usage

Answerer = Callable[[OpenQuestion], "str | Awaitable[str | None] | None"]
"""Answers a question at once; None leaves the run waiting."""


async def result_of_waiting(runtime: Runtime, run_id: str, asked: InputAwaited) -> HarnessResult:
    """The result of a run that is no end of it: nothing of it is in the journal.

    Its usage is that of its rounds; how long anybody worked is told when it is over.
    """
    told = await runtime.events(run_id)
    usage, began, newest = Usage(), 0.0, 0.0
    for one in told:
        newest = one.at
        match one.event:
            case RunStarted():
                began = one.at
            case RoundCompleted() as done:
                usage += Usage(
                    model_calls=1,
                    tool_calls=done.tool_calls,
                    input_tokens=done.input_tokens,
                    output_tokens=done.output_tokens,
                    cached_tokens=done.cached_tokens,
                    cost_usd=done.cost_usd,
                )
    return HarnessResult(
        run_id=run_id,
        status="awaiting_input",
        reason=reason_to_wait(asked.questions),
        turn_count=asked.turn,
        usage=usage,
        transcript=told,
        wall_s=newest - began,
    )


def still_waiting(heading: RunHeading) -> HarnessResult:
    """What a run waits for, by what its journal says of it: as long as nobody takes it up."""
    asked = [
        {name: value for name, value in question.items() if name != "answer"}
        for question in heading.questions
        if question["answer"] is None
    ]
    return HarnessResult(
        run_id=heading.run_id,
        status="awaiting_input",
        reason=reason_to_wait(asked),
        turn_count=heading.turns,
        usage=heading.usage,
    )


def without_answered(waiting: HarnessResult, answered: Collection[str]) -> HarnessResult:
    """What a run still waits for, when some of its questions were answered."""
    if not answered:
        return waiting
    left = [q for q in waiting.reason.details["questions"] if q["id"] not in answered]
    return replace(waiting, reason=reason_to_wait(left))


def reason_to_wait(questions: Sequence[Mapping[str, Any]]) -> Reason:
    """Why a run waits that asks its user.

    Args:
        questions: Those that are open, as `InputAwaited` has them.
    """
    number = len(questions)
    message = f"{number} question{'' if number == 1 else 's'} to answer"
    details = {"questions": [dict(question) for question in questions]}
    return Reason(kind="question", message=message, details=details)


async def answer_from(answerer: Answerer, question: OpenQuestion) -> str | None:
    """What a program of the user answers to a question; None where it leaves it open.

    Raises:
        ConfigError: It answers something that is neither a text nor None.
    """
    # In a thread where it may block: other runs of this process go on.
    answer: Any = (
        answerer(question)
        if inspect.iscoroutinefunction(answerer)
        else await asyncio.to_thread(answerer, question)
    )
    if inspect.isawaitable(answer):
        answer = await answer
    if answer is not None and not isinstance(answer, str):
        problem = f"must answer a text or None, not {type(answer).__name__}"
        raise ConfigError("on_question", problem)
    return answer
