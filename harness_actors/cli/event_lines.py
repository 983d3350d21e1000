"""The events of one run as short lines on stderr."""

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import IO, Any

from harness_actors.batch.words import cost_among_others
from harness_actors.cli.child_lines import ChildLines
from harness_actors.cli.live_lines import live_lines
from harness_actors.cli.shown_calls import asked_line, call_lines, decided, until
from harness_actors.events import (
    AgentResponse,
    ContextCompacted,
    ContextPressure,
    ContinuationPrompt,
    ContractVerified,
    Event,
    ExecutorLost,
    InputAwaited,
    ModelFellBack,
    QuestionAnswered,
    Repaired,
    RunEvent,
    RunResumed,
    RunStarted,
    StallFound,
    StrategyFailed,
    SummaryFailed,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from harness_actors.printing.plain import one_line, say
from harness_actors.records import CHILD_MARK
from harness_actors.results import ContractResult, HarnessResult, Usage

WIDTH = 100
MOST_UNMET = 20
"""Requirements of a contract that are shown where they are not met."""
_STATUS = {"partially_met": "partly met"}
_DECIDED = {"approve": "approved", "deny": "denied"}


class EventLines:
    """Shows a run to somebody at a terminal.

    Args:
        quiet: Show nothing but notes.
        debug: Show where code of the user failed.
        out: Where to; stderr by default, so that stdout holds the answer alone. On a terminal each
            run that goes on below the shown one has a line that is kept in place.

    Attributes:
        seen: Whether the run has begun.
        before_line: Called before each line: what is being written to the same terminal ends its
            own. None for nothing.
    """

    def __init__(
        self, *, quiet: bool = False, debug: bool = False, out: IO[str] | None = None
    ) -> None:
        self._quiet = quiet
        self._debug = debug
        self._out = out or sys.stderr
        self._live = None if quiet else live_lines(self._out)
        self._children = ChildLines(self._live)
        self.seen = False
        self.before_line: Callable[[], None] | None = None

    def show(self, event: RunEvent, whose: str = "") -> None:
        """Show an event; `whose` is what its line begins with, where several runs are shown."""
        self.seen = True
        told = event_line(event.event)
        if event.path:
            pass  # told below, as what it is
        elif isinstance(event.event, RunStarted) and not whose:
            self._say(f"run {one_line(event.run_id)}")
        elif told:
            self._say(f"{whose} {told.strip()}" if whose else told)
        for line in self._children.of(event, told):
            self._say(f"{whose} {_short(line)}" if whose else _short(line))
        if isinstance(event.event, ToolReturned):
            self._trace(event.event.traceback)

    def end(self, result: HarnessResult) -> None:
        self.clear(result.run_id)
        usage = result.usage
        why = f"{result.status}({result.reason.kind})"
        if result.status != "done" and result.reason.message:
            why = f"{why} {result.reason.message}"
        self._trace(result.reason.traceback)
        self._say(f"{why}: {used(result.turn_count, usage)}, {result.wall_s:.1f} s")
        if result.children:
            runs = "the run" if result.children == 1 else f"the {result.children} runs"
            self._say(f"  with {runs} that it has begun: {tree_used(result.usage_tree)}")
        for line in unmet_lines(result.contract):
            self._say(line)
        if result.reason.traceback and not self._debug:
            self._say(f"harness ctl run show {result.run_id} says where; --debug at once")

    def tell(self, text: str) -> None:
        """A note for somebody who watches, and not for a script."""
        self._say(text)

    def clear(self, run_id: str = "") -> None:
        """Nothing goes on any more below a run, or below any: no line of it is kept in place."""
        if self._live is not None:
            self._live.clear(run_id + CHILD_MARK if run_id else "")

    def rest(self) -> None:
        """Keep no line in place until the next one is told: another text goes to the terminal."""
        if self._live is not None:
            self._live.rest()

    def note(self, text: str) -> None:
        if self.before_line is not None:
            self.before_line()
        with nullcontext() if self._live is None else self._live.aside():
            say(text, self._out)

    def _trace(self, traceback: str) -> None:
        # Asked for, so it is a note, like whatever a person is to see besides JSON.
        if self._debug and traceback:
            self.note(textwrap.indent(traceback, "    "))

    def _say(self, text: str) -> None:
        if not self._quiet:
            self.note(text)


def unmet_lines(contract: ContractResult | None) -> Iterator[str]:
    """What is missing of the contract of a run, a line each; none where nothing is."""
    if contract is None or contract.satisfied:
        return
    for one in contract.unmet[:MOST_UNMET]:
        yield _short(
            f"  {one.id} {_STATUS.get(one.status, one.status)}: {one.description}: {one.why}"
        )
    if (more := len(contract.unmet) - MOST_UNMET) > 0:
        yield f"  and {more} more"
    for question in contract.open_questions:
        yield _short(f"  not answered: {question}")


def used(turns: int, usage: Usage) -> str:
    """What a run took, in words.

    >>> used(1, Usage(model_calls=2, input_tokens=1000, output_tokens=24))
    '1 turn, 2 model calls, 0 tool calls, 1,024 tokens, cost -'
    """
    return f"{turns} turn{'' if turns == 1 else 's'}, {tree_used(usage)}"


def tree_used(usage: Usage) -> str:
    """What several runs took together, in words: their turns are not added up."""
    counted = ((usage.model_calls, "model call"), (usage.tool_calls, "tool call"))
    counts = [f"{number} {name}{'' if number == 1 else 's'}" for number, name in counted]
    cost = cost_among_others(usage.cost_usd)
    return ", ".join([*counts, f"{usage.tokens:,} tokens", cost])


def event_line(event: Event) -> str | None:
    """An event in one line; None for one that says nothing to a reader."""
    match event:
        case TurnStarted(turn=turn):
            return f"turn {turn}"
        case AgentResponse(text=text) if text.strip():
            return _short(f"  {text}")
        case ToolCalled(tool_name=name, arguments=arguments):
            return _short(f"  → {name} {arguments}")
        case ToolReturned(text=text, is_error=is_error):
            return _short(f"  {'✗' if is_error else '←'} {text}")
        case ContinuationPrompt(count=count, max=most):
            return f"  asked to go on ({count} of {most})"
        case StallFound(text=text):
            return _short(f"  in a circle: {text}")
        case ContractVerified(limit=limit) if limit:
            return "  the time of the run was over before its contract was verified"
        case ContractVerified(satisfied=True, required=required):
            return f"  verified: all {required} required are met"
        case ContractVerified(met=met, required=required, unmet=unmet):
            missing = f", without {', '.join(unmet)}" if unmet else ""
            return _short(f"  verified: {met} of {required} required are met{missing}")
        case ContextCompacted():
            return f"  made room in the conversation: {room_made(event)}"
        case SummaryFailed(problem=problem):
            return _short(f"  the conversation could not be summarized: {problem}")
        case StrategyFailed(strategy=name, problem=problem):
            return _short(f"  the strategy {name} failed: {problem}")
        case ContextPressure(tokens=tokens, max_input_tokens=most):
            return f"  the conversation is long: {tokens:,} of {most:,} tokens"
        case Repaired(tool_name=name):
            return f"  the outcome of a call of {name} is unknown"
        case ExecutorLost(executor=executor, tools=tools):
            during = f" during {', '.join(tools)}" if tools else ""
            return _short(f"  {executor} died{during}; the run goes on in another")
        case ModelFellBack(model=model, failed=failed) if failed:
            return "\n".join(fallback_lines(model, failed))
        case InputAwaited(questions=questions):
            return "\n".join(question_lines(questions))
        case QuestionAnswered(question_id=question_id, decision=decision):
            return f"{question_id} is {_DECIDED.get(decision, 'answered')}"
        case RunResumed():
            return "resumed"
        case _:
            return None


def room_made(event: ContextCompacted) -> str:
    """What became of a conversation that was too long, in words.

    >>> room_made(ContextCompacted(turn=1, version=1, tokens_before=7700, tokens_after=3500,
    ...     window_tokens=8000, cleared=32, externalized=0, dropped=6, summarized=0))
    '7,700 → 3,500 tokens of 8,000; of its messages 32 cleared, 6 dropped'
    """
    named = ("summarized", "cleared", "externalized", "dropped")
    counts = [f"{count} {name}" for name in named if (count := getattr(event, name))]
    sizes = f"{event.tokens_before:,} → {event.tokens_after:,} tokens of {event.window_tokens:,}"
    return f"{sizes}; of its messages {', '.join(counts)}" if counts else sizes


def fallback_lines(model: str, failed: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What became of the models of a chain that were asked in one round."""
    for one in failed:
        yield _short(f"  {one['model']} did not answer: {one['problem']}")
    yield f"  {one_line(model)} answers in its place" if model else "  no model answered"


def question_lines(questions: Iterable[Mapping[str, Any]], *, whole: bool = False) -> Iterator[str]:
    """Questions of a run to its user, each with what is known of it.

    Args:
        questions: As a run tells of them.
        whole: Show all arguments of calls that wait for approval, however long they are.
    """
    for asked in questions:
        yield asked_line(asked["id"], asked.get("path") or "", asked["text"])
        is_approval = asked.get("kind") == "approval"
        if is_approval:
            call = call_lines(asked.get("tool") or "", asked.get("arguments"), whole=whole)
            yield from (f"    {line}" for line in call)
        if asked.get("options"):
            yield f"    one of: {', '.join(map(one_line, asked['options']))}"
        if asked.get("why"):
            yield f"    {one_line(asked['why'])}"
        if asked.get("expires_at") is not None and asked.get("answer") is None:
            yield f"    {until(asked['expires_at'])}"
        if asked.get("answer") is not None:
            answer = asked["answer"]
            yield f"    {decided(answer) if is_approval else f'answered: {one_line(answer)}'}"


def _short(text: str) -> str:
    indent = text[: len(text) - len(text.lstrip())]
    return indent + textwrap.shorten(text, width=WIDTH, placeholder=" …")
