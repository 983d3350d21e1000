"""What happens in a run, line by line, with what its tools print between."""

import asyncio
import json
from io import StringIO
from pathlib import Path

import pytest

from harness_actors.cli.event_lines import EventLines, event_line
from harness_actors.cli.log_lines import LogLines
from harness_actors.cli.printed import Printed
from harness_actors.events import (
    AgentResponse,
    ChildEnded,
    ChildrenStarted,
    ContextCompacted,
    ContextPressure,
    ContinuationPrompt,
    Event,
    ExecutorLost,
    InputAwaited,
    QuestionAnswered,
    Repaired,
    RunEvent,
    RunParked,
    RunResumed,
    RunStarted,
    StallFound,
    SummaryFailed,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from harness_actors.results import HarnessResult, Reason, Status, Usage
from harness_actors.stores.logs import log_of

ASKED = {"id": "q1", "text": "Which?", "options": ["red", "blue"], "why": "to paint"}
STARTED = RunStarted(task_preview="go", stop_policy="careful", max_turns=9)
FAILED = ToolReturned(call_id="1", text="no", is_error=True, traceback="in it\n")


def told(event: Event, run_id: str = "run") -> RunEvent:
    return RunEvent(position=1, run_id=run_id, at=0.0, event=event)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (TurnStarted(turn=2, max_turns=9), "turn 2"),
        (AgentResponse(text="I look\nthere", tool_names=()), "  I look there"),
        (AgentResponse(text=" \n", tool_names=("look",)), None),
        (ToolCalled(call_id="1", tool_name="look", arguments="{}"), "  → look {}"),
        (ToolReturned(call_id="1", text="seen", is_error=False), "  ← seen"),
        (FAILED, "  ✗ no"),
        (ToolReturned(call_id="1", text="x " * 99, is_error=False), "  ← " + "x " * 48 + "…"),
        (ContinuationPrompt(turn=1, count=2, max=3), "  asked to go on (2 of 3)"),
        (
            StallFound(
                turn=1, round=4, kind="monologue", rounds=3, what="", text="you said the same"
            ),
            "  in a circle: you said the same",
        ),
        (
            ContextPressure(turn=1, tokens=9_000, max_input_tokens=10_000),
            "  the conversation is long: 9,000 of 10,000 tokens",
        ),
        (
            ContextCompacted(
                turn=1,
                version=1,
                tokens_before=9_600,
                tokens_after=4_400,
                window_tokens=10_000,
                cleared=40,
                externalized=0,
                dropped=0,
            ),
            "  made room in the conversation: 9,600 → 4,400 tokens of 10,000; of its messages "
            "40 cleared",
        ),
        (
            SummaryFailed(turn=1, problem="it was cut off"),
            "  the conversation could not be summarized: it was cut off",
        ),
        (
            Repaired(kind="unknown", call_id="1", tool_name="write", turn=1),
            "  the outcome of a call of write is unknown",
        ),
        (
            ExecutorLost(executor="agent_turn", losses=1, tools=("write", "look")),
            "  agent_turn died during write, look; the run goes on in another",
        ),
        (
            ExecutorLost(executor="repair", losses=1),
            "  repair died; the run goes on in another",
        ),
        (
            InputAwaited(turn=1, questions=(ASKED, {"id": "q2", "text": "How?"})),
            "q1: Which?\n    one of: red, blue\n    to paint\nq2: How?",
        ),
        (QuestionAnswered(question_id="q1"), "q1 is answered"),
        (QuestionAnswered(question_id="q1", decision="approve"), "q1 is approved"),
        (QuestionAnswered(question_id="q1", decision="deny"), "q1 is denied"),
        (QuestionAnswered(question_id="q1", decision="respond"), "q1 is answered"),
        (RunResumed(turn=1), "resumed"),
        (RunParked(turn=1), None),
    ],
)
def test_each_event_that_says_something_to_a_reader_has_its_line(
    event: Event, line: str | None
) -> None:
    assert event_line(event) == line


def test_of_several_runs_each_line_says_whose_it_is() -> None:
    out = StringIO()
    lines = EventLines(out=out)
    lines.show(told(STARTED))
    lines.show(told(FAILED), "aaa")
    lines.show(told(STARTED), "aaa")
    assert lines.seen
    assert out.getvalue() == "run run\naaa ✗ no\n"


@pytest.mark.parametrize("debug", [False, True])
def test_where_code_of_a_user_failed_is_shown_to_those_who_ask_for_it(debug: bool) -> None:
    out = StringIO()
    lines = EventLines(debug=debug, out=out)
    lines.show(told(FAILED))
    reason = Reason(kind="agent_error", message="why", details={"traceback": "at its end\n"})
    usage = Usage(model_calls=1, input_tokens=10)
    lines.end(HarnessResult(run_id="run", status="failed", reason=reason, usage=usage, wall_s=1.25))

    said = out.getvalue()
    ended = "failed(agent_error) why: 0 turns, 1 model call, 0 tool calls, 10 tokens, cost -, 1.2 s"
    assert ended in said
    assert ("    in it\n" in said, "    at its end\n" in said) == (debug, debug)
    assert ("harness ctl run show run says where; --debug at once" in said) is not debug


@pytest.mark.parametrize(("status", "kind"), [("done", "completed"), ("stalled", "no_completion")])
def test_why_a_run_ended_is_said_where_it_did_not_end_well(status: Status, kind: str) -> None:
    out = StringIO()
    reason = Reason(kind=kind, message="the reason")
    EventLines(out=out).end(HarnessResult(run_id="run", status=status, reason=reason))
    assert ("the reason" in out.getvalue()) is (status != "done")


def test_scripts_are_shown_notes_and_the_tracebacks_that_were_asked_for() -> None:
    out = StringIO()
    lines = EventLines(quiet=True, debug=True, out=out)
    lines.show(told(FAILED))
    lines.tell("for somebody who watches")
    lines.note("for everybody")
    assert out.getvalue() == "    in it\n\nfor everybody\n"


# ---- what tools print -------------------------------------------------------------------


def printed(origin: str, text: str) -> str:
    return f"2026-01-31T23:59:59.999 [{origin}] {text}"


class Log:
    """The log of a run, and what is shown of it."""

    def __init__(self, store: Path) -> None:
        self.path = log_of(store, "run")
        self.path.parent.mkdir()
        self.out = StringIO()
        self.lines = EventLines(out=self.out)

    def add(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    @property
    def shown(self) -> list[str]:
        return self.out.getvalue().splitlines()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "runs.db")


async def look() -> None:
    """Let so much time pass that the log is looked at again; it takes none."""
    await asyncio.sleep(0.5)


@pytest.mark.virtual_time
async def test_what_a_tool_prints_is_shown_when_it_was_told_that_it_begins(log: Log) -> None:
    log.add("of an earlier command\n")
    showing = LogLines(log.path, log.lines, skipped=log.path.stat().st_size)
    log.add(printed("model", "asked\n") + printed("say", "one\n") + printed("say stderr", "two\n"))
    await look()
    assert log.shown == ["  [model] asked"]
    showing.begin("say")
    await look()
    assert log.shown[1:] == ["  [say] one", "  [say stderr] two"]

    showing.show_all()
    log.add(printed("say", "of its next call\n") + printed("say", "with no"))
    await look()
    assert len(log.shown) == 3, "that call was not told yet"
    log.add(" end")
    await showing.close()
    assert log.shown[3:] == ["  [say] of its next call", "  [say] with no end"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("new", [True, False])
async def test_that_something_was_printed_is_told_at_the_end_unless_it_was_shown(
    log: Log, new: bool
) -> None:
    store = log.path.parents[1] / "runs.db"
    log.add(printed("say", "before\n"))
    hidden, shown = Printed(log.lines, shown=False), Printed(log.lines, shown=True)
    for one in (hidden, shown):
        assert not one.tell(), "nobody knows of a run yet"
        one.begin(store, "run", new=new)
    assert hidden.tell() is new, "what an earlier command printed was told by that one"
    log.add(printed("say", "now\n"))
    assert hidden.tell()
    assert not shown.tell()
    await hidden.end()
    await shown.end()
    assert [line.split("] ")[1] for line in log.shown if "[say]" in line] == (
        ["before", "now"] if new else ["now"]
    )
    assert f"your code printed something: {log.path}; -v shows it at once" in log.shown


def a_call(number: int, prompt: str) -> ToolCalled:
    arguments = json.dumps({"prompt": prompt})
    return ToolCalled(call_id=f"c{number}", tool_name="scout", arguments=arguments)


def begun(count: int) -> ChildrenStarted:
    children = [
        {"run_id": f"run.{number}", "agent": "scout", "call_id": f"c{number}"}
        for number in range(1, count + 1)
    ]
    return ChildrenStarted(turn=1, children=tuple(children))


def over(number: int, status: str = "completed") -> ChildEnded:
    return ChildEnded(run_id=f"run.{number}", agent="scout", call_id=f"c{number}", status=status)


def lines_of(*events: Event, whose: str = "") -> list[str]:
    out = StringIO()
    lines = EventLines(out=out)
    for event in events:
        lines.show(told(event), whose)
    return out.getvalue().splitlines()


def test_runs_that_are_begun_are_told_with_what_they_are_to_do_and_how_they_end() -> None:
    shown = lines_of(a_call(1, 'say "hi"\nto all'), begun(2), over(2), over(1, "lost"))

    assert shown[1:] == [
        '    ▸ run.1 scout: say "hi" to all',
        # Of a run that is shown from its middle on.
        "    ▸ run.2 scout: c2",
        "    ✓ run.2 scout completed",
        "    ✗ run.1 scout lost",
    ]
    assert lines_of(begun(1), over(1), whose="abc") == [
        "abc     ▸ run.1 scout: c1",
        "abc     ✓ run.1 scout completed",
    ]
    assert lines_of(over(7)) == ["    ✓ run.7 scout completed"]


def test_of_many_runs_those_are_told_that_did_not_end_well() -> None:
    ends = [over(number, "failed" if number == 5 else "completed") for number in range(1, 65)]
    shown = lines_of(begun(64), *ends)

    assert len(shown) == 8 + 1 + 1 + 1
    assert shown[8:] == [
        "    ▸ and 56 more: 64 × scout in all",
        "    ✗ run.5 scout failed",
        "    all 64 have ended: 63 completed, 1 failed",
    ]


def test_a_long_prompt_is_cut_and_does_no_harm() -> None:
    cut = '{"prompt": "x \x1b[2J ' + "y " * 200
    shown = lines_of(ToolCalled(call_id="c1", tool_name="scout", arguments=cut), begun(1))[-1]

    assert len(shown) <= 110
    assert "\x1b" not in shown


def test_the_end_of_a_run_tells_what_it_took_with_those_that_it_has_begun() -> None:
    out = StringIO()
    below = Usage(model_calls=4, input_tokens=1_000)
    result = HarnessResult(
        run_id="run",
        status="done",
        reason=Reason(kind="completed"),
        turn_count=1,
        usage=Usage(model_calls=2, input_tokens=10),
        children=2,
        children_usage=below,
    )
    EventLines(out=out).end(result)

    assert out.getvalue().splitlines() == [
        "done(completed): 1 turn, 2 model calls, 0 tool calls, 10 tokens, cost -, 0.0 s",
        "  with the 2 runs that it has begun: 6 model calls, 0 tool calls, 1,010 tokens, cost -",
    ]
