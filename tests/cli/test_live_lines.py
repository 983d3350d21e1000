"""Lines of runs below others: printed into a log, kept in place on a terminal."""

import asyncio
import re
from io import StringIO
from pathlib import Path

import pytest

from harness_actors import ChatAgent
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.live_lines import FRAMES, MOST_LINES, LiveLines
from harness_actors.cli.screen import JsonLines, Terminal
from harness_actors.cli.window_use import WindowUse
from harness_actors.events import (
    AgentResponse,
    ChildEnded,
    ChildrenStarted,
    Event,
    RoundCompleted,
    RunEvent,
    RunParked,
    RunStarted,
    TextDelta,
    ToolCalled,
    ToolReturned,
    TurnCompleted,
    TurnStarted,
)
from harness_actors.harness import AgentHarness
from tests.subagents.team import Team, exploring

RUN = "run"
STARTED = RunStarted(task_preview="", stop_policy="interactive", max_turns=5)


class Tty(StringIO):
    """A terminal that understands what is sent to it to take lines back."""

    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> list[str]:
        lines: list[str] = []
        for part in re.split(r"(\x1b\[\d+A\x1b\[J)", self.getvalue()):
            if part.startswith("\x1b"):
                del lines[-int(part[2:].split("A")[0]) :]
            else:
                lines += part.splitlines()
        # Whichever spoke of the wheel is seen, and however long it took.
        return [re.sub(r" · \d+ s", " · N s", re.sub(f"[{FRAMES}]", "*", one)) for one in lines]


@pytest.fixture(autouse=True)
def _a_terminal_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def of(event: Event, run_id: str = RUN, path: str = "") -> RunEvent:
    return RunEvent(position=1, run_id=run_id, at=0.0, event=event, path=path)


def begun(count: int, run_id: str = RUN, path: str = "", agent: str = "scout") -> RunEvent:
    children = [
        {"run_id": f"{run_id}.{n}", "agent": agent, "call_id": f"c{n}"} for n in range(1, count + 1)
    ]
    return of(ChildrenStarted(turn=1, children=tuple(children)), run_id, path)


def over(number: int, run_id: str = RUN, path: str = "", agent: str = "scout") -> RunEvent:
    ended = ChildEnded(
        run_id=f"{run_id}.{number}", agent=agent, call_id=f"c{number}", status="completed"
    )
    return of(ended, run_id, path)


def calls(tool: str, number: int = 1) -> RunEvent:
    event = ToolCalled(call_id="x", tool_name=tool, arguments="{}")
    return of(event, f"{RUN}.{number}", "scout")


def a_round(number: int = 1, tool_calls: int = 1) -> RunEvent:
    event = RoundCompleted(
        turn=1,
        round=1,
        input_tokens=1,
        output_tokens=1,
        cached_tokens=0,
        cost_usd=0.0,
        tool_calls=tool_calls,
    )
    return of(event, f"{RUN}.{number}", "scout")


def returned(text: str, *, is_error: bool = False) -> RunEvent:
    event = ToolReturned(call_id="x", text=text, is_error=is_error)
    return of(event, f"{RUN}.1", "scout")


def said(text: str, *tools: str) -> RunEvent:
    return of(AgentResponse(text=text, tool_names=tools), f"{RUN}.1", "scout")


STORY = [
    begun(2),
    of(STARTED, f"{RUN}.1", "scout"),
    of(TurnStarted(turn=1, max_turns=5), f"{RUN}.1", "scout"),
    said("I look.", "look"),
    calls("look"),
    returned("saw it"),
    a_round(),
    returned("no such file", is_error=True),
    a_round(),
    said("It is there."),
    over(1),
]


def test_what_children_do_is_told_in_lines_below_that_they_begin() -> None:
    out = StringIO()
    lines = EventLines(out=out)
    for event in STORY:
        lines.show(event)

    assert out.getvalue().splitlines() == [
        "    ▸ run.1 scout: c1",
        "    ▸ run.2 scout: c2",
        "      run.1 I look.",
        "      run.1 → look {}",
        "      run.1 ✗ no such file",
        "    ✓ run.1 scout completed: 2 model calls, 2 tool calls",
    ]


def test_those_below_them_stand_deeper_and_say_whose_they_are() -> None:
    out = StringIO()
    lines = EventLines(out=out)
    lines.show(begun(1, "run.1", "scout", "low"))
    lines.show(over(1, "run.1", "scout", "low"))

    assert out.getvalue().splitlines() == [
        "      ▸ run.1.1 scout/low: c1",
        "      ✓ run.1.1 scout/low completed",
    ]


def test_of_many_it_is_not_told_what_each_does() -> None:
    out = StringIO()
    lines = EventLines(out=out)
    for event in (begun(9), calls("look", 1), calls("look", 9), a_round(), over(1)):
        lines.show(event)

    assert out.getvalue().splitlines()[8:] == ["    ▸ and 1 more: 9 × scout in all"]


async def test_on_a_terminal_each_that_goes_on_has_a_line_and_is_folded_into_one() -> None:
    out = Tty()
    lines = EventLines(out=out)
    for event in STORY[:5]:
        lines.show(event)
    assert out.shown == ["    * run.1 scout: c1 · N s · → look {}", "    * run.2 scout: c2 · N s"]

    lines.tell("something else")
    for event in STORY[5:]:
        lines.show(event)

    assert out.shown == [
        "something else",
        "    ✓ run.1 scout completed: 2 model calls, 2 tool calls",
        "    * run.2 scout: c2 · N s",
    ]
    lines.show(over(2))
    assert out.shown[-1] == "    ✓ run.2 scout completed"


async def test_the_wheel_turns_while_something_goes_on_and_not_after_that() -> None:
    out = Tty()
    live = LiveLines(out)
    live.begin("a", "a")
    while FRAMES[2] not in out.getvalue():  # noqa: ASYNC110 - nobody tells it
        await asyncio.sleep(0.02)
    live.end("a")
    assert out.shown == []
    assert live._timer is None


async def test_what_is_too_long_for_the_terminal_is_cut_and_of_many_some_are_shown() -> None:
    out = Tty()
    live = LiveLines(out)
    for number in range(MOST_LINES + 3):
        live.begin(str(number), "漢字" * 60)
    assert len(out.shown) == MOST_LINES + 1
    assert out.shown[-1] == "    and 3 more"
    from rich.cells import cell_len

    assert all(cell_len(one) < 80 for one in out.shown)
    live.clear()


async def test_nothing_is_kept_in_place_while_an_answer_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = Tty()
    screen = Terminal(EventLines(out=out), live=True)
    screen.show(begun(1))
    screen.show(TextDelta(run_id=RUN, turn=1, round=1, attempt=1, text="so"))
    assert out.shown == []
    # That ends the line in which the answer stands.
    screen.show(over(1))
    assert capsys.readouterr().out == "so\n"
    assert out.shown == ["    ✓ run.1 scout completed"]
    screen.show(begun(1))
    screen.cut()
    assert out.shown == ["    ✓ run.1 scout completed"]


async def test_one_that_is_put_aside_goes_on_no_longer() -> None:
    out = Tty()
    lines = EventLines(out=out)
    lines.show(begun(1))
    lines.show(of(RunParked(turn=1), f"{RUN}.1", "scout"))
    assert out.shown == []


@pytest.mark.parametrize("quiet", [True, False])
def test_a_terminal_that_cannot_take_lines_back_is_sent_none(
    monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm" if quiet else "dumb")
    out = Tty()
    EventLines(out=out, quiet=quiet).show(begun(1))
    assert out.getvalue() == ("" if quiet else "    ▸ run.1 scout: c1\n")


def test_what_a_child_is_called_sends_nothing_to_a_terminal() -> None:
    out = StringIO()
    lines = EventLines(out=out)
    lines.show(begun(1))
    lines.show(calls("\x1b[2Jlook"))
    assert "\x1b" not in out.getvalue()


def test_json_lines_have_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    screen = JsonLines(EventLines(quiet=True))
    screen.show(calls("look"))
    screen.show(of(STARTED))
    first, second = capsys.readouterr().out.splitlines()
    assert '"path": "scout"' in first
    assert "path" not in second


def test_the_window_of_a_child_is_its_own() -> None:
    use = WindowUse(1_000)
    use.take(of(TurnCompleted(turn=1, ending="text", rounds=1, token_estimate=900), "run.1", "s"))
    assert use.line == ""


async def test_a_harness_feeds_them(tmp_path: Path) -> None:
    agent: ChatAgent = Team(exploring("a", "b")).agent()
    out = StringIO()
    lines = EventLines(out=out)
    async with AgentHarness(agent, runtime="local", store=tmp_path / "runs.db") as harness:
        async for item in harness.run_stream("Go.", children=True):
            if isinstance(item, RunEvent):
                lines.show(item)
        run_id = harness.run_id
    told = out.getvalue().splitlines()
    assert f'      {run_id}.1 → look {{"what":"a"}}' in told
    assert f"    ✓ {run_id}.2 explore completed: 2 model calls, 1 tool call" in told
