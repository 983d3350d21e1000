"""What a run that waits for its user comes to for now, and who may answer it at once."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_actors.actors.runtime import Runtime
from harness_actors.errors import AnswerError, ConfigError
from harness_actors.events import (
    ChildrenStarted,
    InputAwaited,
    RoundCompleted,
    RunStarted,
    ToolCalled,
    ToolReturned,
)
from harness_actors.messages import Failure
from harness_actors.policies.decisions import Decision, decision_text
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult, OpenQuestion, Reason, Usage
from harness_actors.tools.completion import work_complete

Answer = str | Decision
"""What a user answers: a text, or what is to become of a call that waits for approval."""
Answerer = Callable[[OpenQuestion], "Answer | Awaitable[Answer | None] | None"]
"""Answers a question at once; None leaves the run waiting."""


NOT_MADE: tuple[Failure, ...] = ("refused", "unknown")
"""What became of calls that count in no limit."""


async def result_of_waiting(runtime: Runtime, run_id: str, asked: InputAwaited) -> HarnessResult:
    """The result of a run that is no end of it: nothing of it is in the journal.

    Its usage is that of its rounds, of which calls count that have a result, and without how long
    anybody worked; with children it is what its journal has, of them as well.
    """
    told = await runtime.events(run_id)
    usage, began, newest, children = Usage(), 0.0, 0.0, 0
    no_work: set[str] = set()
    for one in told:
        newest = one.at
        match one.event:
            case RunStarted():
                began = one.at
            case ToolCalled(call_id=call_id, tool_name=name) if name == work_complete.spec.name:
                no_work.add(call_id)
            case ToolReturned(call_id=call_id, failure=failure):
                usage += Usage(tool_calls=call_id not in no_work and failure not in NOT_MADE)
                no_work.discard(call_id)
            case ChildrenStarted(children=begun):
                children += len(begun)
            case RoundCompleted() as done:
                usage += Usage(
                    model_calls=1,
                    input_tokens=done.input_tokens,
                    output_tokens=done.output_tokens,
                    cached_tokens=done.cached_tokens,
                    cost_usd=done.cost_usd,
                )
    below: Usage | None = None
    if children:
        tree = await runtime.headings(run_id)
        usage = sum((one.usage for one in tree if one.run_id == run_id), Usage())
        below = sum((one.usage for one in tree if one.root == run_id), Usage())
    return HarnessResult(
        run_id=run_id,
        status="awaiting_input",
        reason=reason_to_wait(asked.questions),
        turn_count=asked.turn,
        usage=usage,
        transcript=told,
        wall_s=newest - began,
        children=children,
        children_usage=below,
    )


def still_waiting(heading: RunHeading) -> HarnessResult:
    """What a run waits for, by what its journal says of it: as long as nobody takes it up."""
    return HarnessResult(
        run_id=heading.run_id,
        status="awaiting_input",
        reason=reason_to_wait(heading.open_questions),
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
    approvals = sum(question.get("kind") == "approval" for question in questions)
    number = len(questions) - approvals
    parts = []
    if approvals:
        parts.append(f"{approvals} call{'' if approvals == 1 else 's'} to approve")
    if number or not approvals:
        parts.append(f"{number} question{'' if number == 1 else 's'} to answer")
    details = {"questions": [dict(question) for question in questions]}
    kind = "approval" if approvals else "question"
    return Reason(kind=kind, message=" and ".join(parts), details=details)


async def answer_from(answerer: Answerer, question: OpenQuestion) -> str | None:
    """What a program of the user answers to a question; None where it leaves it open.

    Raises:
        ConfigError: It answers something that is neither a text nor a decision nor None.
    """
    # In a thread where it may block: other runs of this process go on.
    answer: Any = (
        answerer(question)
        if inspect.iscoroutinefunction(answerer)
        else await asyncio.to_thread(answerer, question)
    )
    if inspect.isawaitable(answer):
        answer = await answer
    if answer is not None and not isinstance(answer, str | Decision):
        problem = f"must answer a text, a decision or None, not {type(answer).__name__}"
        raise ConfigError("on_question", problem)
    return decision_text(answer) if isinstance(answer, Decision) else answer


async def answer_in_time(
    runtime: Runtime, run_id: str, question: OpenQuestion, answer: str
) -> None:
    """Give an answer. Of an approval that has expired meanwhile another one counts by now.

    Raises:
        AnswerError: It is not taken.
    """
    try:
        await runtime.answer(run_id, {question.id: answer})
    except AnswerError:
        if question.expires_at is None or time.time() < question.expires_at:
            raise


def answer_texts(run_id: str, answers: Mapping[str, Answer] | None) -> dict[str, str]:
    """Answers to the questions of a run as they are kept, by the ids of these.

    Raises:
        AnswerError: They are no answers by id; or one is neither a text nor a decision, or one
            that no call is made with.
    """
    given: object = answers
    if not isinstance(given, Mapping | None):
        problem = (
            f"answers must be given by the ids of its questions, not as {type(given).__name__}"
        )
        raise AnswerError(run_id, problem)
    return {number: _text_of(run_id, number, answer) for number, answer in (given or {}).items()}


def _text_of(run_id: str, question_id: str, answer: object) -> str:
    if isinstance(answer, str):
        return answer
    if not isinstance(answer, Decision):
        problem = f"must be a text or a decision, not {type(answer).__name__}"
        raise AnswerError(run_id, f"the answer to {question_id!r} {problem}")
    try:
        return decision_text(answer)
    except ValueError as error:
        raise AnswerError(
            run_id, f"the answer to {question_id!r} cannot be taken: {error}"
        ) from None
