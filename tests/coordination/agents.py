"""What the executors do in these tests: as ours, but with a plan in place of a model."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Literal

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.messages import Message, ToolCall
from harness_actors.records import RunSpec
from harness_actors.results import Reason
from harness_actors.signals import (
    ChildStart,
    CompactionComplete,
    Parked,
    RepairComplete,
    RepairTrigger,
    RunEnd,
    Signal,
    TurnComplete,
    Waiting,
)
from harness_actors.state import (
    AGENT_TURN,
    ANSWERS,
    BUDGET,
    CHILD_RESULTS,
    COMPACTION,
    OPEN_CALLS,
    QUESTIONS,
    REPAIR,
    STOP_DECISION,
    TURN,
    TURN_COUNT,
    USAGE,
    StateDelta,
    Write,
)
from tests.coordination.world import TOOLS, Handler, Served, WaitFor, Work

Round = Literal["effect", "lookup", "turn", "ask", "delegate"]
"""A tool that must not run twice; one that may; the turn ends here and another begins;
two questions to the user; two runs of its own."""

Plans = Mapping[str, Sequence[Round]]

ROUND_USD = 1.0
"""What a round costs where runs share a budget."""

DONE = RunEnd(
    status="done", reason=Reason(kind="completed"), output_text="ok", completion_verified=True
)


class Team:
    """The four executors. The next round follows from the log alone, as with a model."""

    def __init__(
        self,
        plans: Plans | None = None,
        plan: Sequence[Round] = ("effect",),
        below: Sequence[Sequence[Round]] = (),
    ) -> None:
        self._plans = plans or {}
        self._plan = plan
        self._below = below
        """What children do that no plan is for, by how deep they are."""
        self.children = 2
        self.beside = False
        """Whether these are in the background, and a run goes on without their results."""
        self.call: Mapping[str, str] | None = None
        """The call that a run asks about; None where it asks for words."""
        self.asked: Callable[[str], None] = lambda _: None
        """Called with the run of each round that begins."""
        self.effects: Counter[tuple[str, int]] = Counter()
        """How often the effect of a call happened: by run and position of its message."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {
            REPAIR: self.repair,
            COMPACTION: self.compaction,
            AGENT_TURN: self.agent_turn,
            STOP_DECISION: self.stop_decision,
        }

    def repair(self, run: Served, signal: Signal) -> Work:
        yield from ()
        calls = run.values.get(OPEN_CALLS.name) or []
        held = (run.values.get(QUESTIONS.name) or {}).get("held", ())
        lost = [c for c in calls if not c["idempotent"] and c["call_id"] not in held]
        results = tuple(
            Message.tool_result(call["call_id"], UNKNOWN_OUTCOME, is_error=True) for call in lost
        )
        writes = (_open(call for call in calls if call not in lost),) if lost else ()
        return _answer(RepairComplete(repairs_made=len(lost)), *writes, messages=results)

    def compaction(self, run: Served, signal: Signal) -> Work:
        yield from ()
        return _answer(CompactionComplete())

    def stop_decision(self, run: Served, signal: Signal) -> Work:
        yield from ()
        assert isinstance(signal, TurnComplete)
        return _answer(DONE if signal.ending == "completed" else RepairTrigger())

    def agent_turn(self, run: Served, signal: Signal) -> Work:
        assert isinstance(signal, CompactionComplete)
        if run.values.get(TURN.name) is None:
            begun = [Write(TURN_COUNT.name, "increment", 1), Write(TURN.name, "set", {"rounds": 0})]
            first = run.values.get(TURN_COUNT.name, 0) == 0
            # What an earlier run of the conversation has left open is nobody's any more.
            left = [
                Message.tool_result(call.id, UNKNOWN_OUTCOME, is_error=True)
                for call in run.log.open_calls()
            ]
            task = run.add(*left, *run.spec.task) if first else ()
            yield StateDelta(tuple(begun), task)
        if run.log.open_calls():
            yield TOOLS
            for call in run.values.get(OPEN_CALLS.name) or []:
                if not call["idempotent"]:
                    self.effects[run.spec.run_id, len(run.log) - 1] += 1
            writes = (_open(()), *_nothing_asked(run), *_taken(run))
            yield StateDelta(writes, run.add(*self._results(run)))
        plan = self._plan_of(run.spec)
        while not run.parking:
            done = sum(message.role == "assistant" for message in run.log)
            if done >= len(plan):
                return _answer(TurnComplete(ending="completed"), Write(TURN.name, "set", None))
            self.asked(run.spec.run_id)
            match plan[done]:
                case "turn":
                    ended = run.add(Message.assistant("that is it for now"))
                    yield StateDelta(_cost(run), ended)
                    return _answer(TurnComplete(ending="rounds"), Write(TURN.name, "set", None))
                case "ask":
                    return _asks(run, done, self.call)
                case "delegate":
                    return _delegates(run, done, self.children, beside=self.beside)
                case kind:
                    yield from self._round(run, done, idempotent=kind == "lookup")
        return _answer(Parked())

    def _plan_of(self, spec: RunSpec) -> Sequence[Round]:
        planned = self._plans.get(spec.run_id)
        if planned is None and spec.parent is not None and spec.parent.depth <= len(self._below):
            planned = self._below[spec.parent.depth - 1]
        return self._plan if planned is None else planned

    def _round(self, run: Served, number: int, *, idempotent: bool) -> Generator[Any, Any, None]:
        # Real models use an id again later, so these do.
        call = ToolCall(f"call_{number % 2}", "tool", "{}")
        message = run.add(Message.assistant(None, [call]))
        if idempotent:
            yield TOOLS
            answered = (*message, *run.add(*self._results(run)))
            change = yield StateDelta(_cost(run), answered)
            if _shares(run):
                # As turns do that share a budget: what the round cost must be known.
                yield WaitFor(change)
            return
        listed = {"call_id": call.id, "tool_name": "tool", "idempotent": False, "turn": 1}
        change = yield StateDelta((*_cost(run), _open([listed])), message)
        yield WaitFor(change)
        self.effects[run.spec.run_id, len(run.log) - 1] += 1
        change = yield StateDelta((_open(()),), run.add(*self._results(run)))
        if _shares(run):
            yield WaitFor(change)

    def _results(self, run: Served) -> list[Message]:
        asked = (run.values.get(QUESTIONS.name) or {}).get("asked", ())
        answers = {one["call_id"]: run.values[ANSWERS.name][one["id"]] for one in asked}
        ended = run.values.get(CHILD_RESULTS.name) or ()
        answers |= {one["call_id"]: f"{one['status']}: {one['text']}" for one in ended}
        return [
            Message.tool_result(call.id, answers.get(call.id, "done"))
            for call in run.log.open_calls()
        ]


def _shares(run: Served) -> bool:
    """Whether it has a budget with others."""
    return run.values.get(BUDGET.name) is not None


def _cost(run: Served) -> tuple[Write, ...]:
    """What a round costs, where that matters."""
    used = {"model_calls": 1, "cost_usd": ROUND_USD}
    return (Write(USAGE.name, "increment", used),) if _shares(run) else ()


def _asks(run: Served, number: int, call: Mapping[str, str] | None) -> Any:
    ids = [f"call_{number % 2}_{place}" for place in (0, 1)]
    message = run.add(Message.assistant(None, [ToolCall(call_id, "ask", "{}") for call_id in ids]))
    asked = [
        {"id": f"q{2 * number + place}", "call_id": call_id, "text": "?", "options": [], "why": ""}
        | ({} if call is None else {"call": call})
        for place, call_id in enumerate(ids)
    ]
    listed = [
        {"call_id": call_id, "tool_name": "ask", "idempotent": True, "turn": 1} for call_id in ids
    ]
    questions = Write(QUESTIONS.name, "set", {"asked": asked, "held": ids})
    return _answer(Waiting(), *_cost(run), _open(listed), questions, messages=message)


def _delegates(run: Served, number: int, children: int, *, beside: bool) -> Any:
    ids = [f"call_{number % 2}_{place}" for place in range(children)]
    calls = [ToolCall(call_id, "explore", "{}") for call_id in ids]
    message = run.add(Message.assistant(None, calls))
    listed = [
        {"call_id": call_id, "tool_name": "explore", "idempotent": True, "turn": 1}
        for call_id in ids
    ]
    starts = tuple(
        ChildStart(
            call_id=call_id,
            agent="explore",
            pool="explore",
            task="look",
            config=run.spec.config,
            background=beside,
        )
        for call_id in ids
    )
    return _answer(Waiting(children=starts), *_cost(run), _open(listed), messages=message)


def _taken(run: Served) -> tuple[Write, ...]:
    """What children came to is in the log."""
    ended = run.values.get(CHILD_RESULTS.name)
    return (Write(CHILD_RESULTS.name, "drop", len(ended)),) if ended else ()


def _nothing_asked(run: Served) -> tuple[Write, ...]:
    return (Write(QUESTIONS.name, "set", None),) if run.values.get(QUESTIONS.name) else ()


def _open(calls: Any) -> Write:
    return Write(OPEN_CALLS.name, "set", list(calls))


def _answer(outcome: Any, *writes: Write, messages: tuple[Message, ...] = ()) -> Any:
    return StateDelta(writes, messages), outcome
