"""What a person at a terminal is shown of a run, and what a script reads."""

import json
from collections.abc import Callable
from io import StringIO

import pytest

from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.screen import JsonLines, JsonResult, Terminal
from harness_actors.events import (
    AgentResponse,
    Event,
    InputAwaited,
    RunEvent,
    RunParked,
    TextDelta,
    TextGap,
    ToolCalled,
    TurnStarted,
)
from harness_actors.results import HarnessResult, Reason, Status

GAP = TextGap(run_id="run", missed=None)
LOOKS = AgentResponse(text="I look.", tool_names=("look",))
SAYS = AgentResponse(text="It is there.", tool_names=())
TURN = TurnStarted(turn=1, max_turns=9)

Out = pytest.CaptureFixture[str]


def told(event: Event) -> RunEvent:
    return RunEvent(position=1, run_id="run", at=0.0, event=event)


def piece(text: str, *, round_: int = 1, attempt: int = 1) -> TextDelta:
    return TextDelta(run_id="run", turn=1, round=round_, attempt=attempt, text=text)


def over(text: str = "", status: Status = "done") -> HarnessResult:
    reason = Reason(kind="completed" if status == "done" else "model_error", message="")
    return HarnessResult(run_id="run", status=status, reason=reason, output_text=text)


class Shown:
    """A terminal, and what its notes say so far."""

    def __init__(
        self,
        *,
        live: bool | None = True,
        ending: bool = True,
        of_interest: Callable[[Event], bool] | None = None,
    ) -> None:
        self._out = StringIO()
        self.lines = EventLines(out=self._out)
        self.screen = Terminal(self.lines, of_interest=of_interest, ending=ending, live=live)

    @property
    def notes(self) -> list[str]:
        return self._out.getvalue().splitlines()

    def show(self, *items: RunEvent | TextDelta | TextGap) -> None:
        for item in items:
            self.screen.show(item)


def test_a_chat_shows_what_its_event_has_of_a_text_that_did_not_come(capsys: Out) -> None:
    shown = Shown(of_interest=lambda _: False, ending=False)

    shown.show(piece("I look."), told(LOOKS))
    shown.show(GAP, told(AgentResponse(text="And again.", tool_names=("look",))))
    shown.show(GAP, told(AgentResponse(text="The last is told at the end.", tool_names=())))

    assert capsys.readouterr().out == "I look.\n"
    missing = "  (some text did not get here in time)"
    assert shown.notes == [missing, "  And again.", missing]


def test_answers_are_written_as_they_are_said_once_and_each_on_lines_of_its_own(
    capsys: Out,
) -> None:
    shown = Shown()

    shown.show(piece("I "), piece("look."), told(LOOKS))
    shown.show(piece("It is\nthere.", round_=2))
    assert capsys.readouterr().out == "I look.\nIt is\nthere."
    shown.show(told(AgentResponse(text="It is\nthere.", tool_names=())))
    shown.screen.end(over("It is\nthere."))

    assert capsys.readouterr().out == "\n"
    assert [line.split(":")[0] for line in shown.notes] == ["done(completed)"]


def test_a_line_that_text_stands_in_is_ended_before_a_note(capsys: Out) -> None:
    for note in (told(TURN), GAP):
        Shown().show(piece("I look."), note)
        assert capsys.readouterr().out == "I look.\n"
        Shown().show(piece("I look.\n"), note)
        assert capsys.readouterr().out == "I look.\n"


def test_the_calls_of_an_answer_that_was_written_are_shown() -> None:
    shown = Shown()
    called = told(ToolCalled(call_id="1", tool_name="look", arguments="{}"))

    shown.show(piece("I look."), called, told(LOOKS), called)

    assert shown.notes == ["  → look {}", "  → look {}"]


def test_an_answer_that_begins_again_is_told_and_written_anew(capsys: Out) -> None:
    shown = Shown()

    shown.show(piece("I l"), piece("It is ", attempt=2), piece("there.", attempt=2), told(SAYS))
    shown.screen.end(over("It is there."))

    assert capsys.readouterr().out == "I l\nIt is there.\n"
    assert shown.notes[0] == "  the answer broke off, and begins again"


def test_a_text_with_a_gap_is_told_in_one_piece_at_the_end(capsys: Out) -> None:
    shown = Shown()

    shown.show(piece("It "), TextGap(run_id="run", missed=1234))
    shown.show(piece("there."), told(SAYS))
    shown.screen.end(over("It is there."))

    assert capsys.readouterr().out == "It \nthere.\nIt is there.\n"
    assert shown.notes[0] == "  (1,234 characters of text did not get here in time)"


def test_a_gap_is_that_of_the_answer_it_is_in_alone(capsys: Out) -> None:
    shown = Shown(of_interest=lambda event: isinstance(event, TurnStarted))

    shown.show(GAP, told(TURN), told(LOOKS), told(LOOKS))

    assert shown.notes[1:] == ["turn 1", "  I look."]


def test_where_nobody_watches_an_answer_is_told_in_one_piece_when_it_is_final(
    capsys: Out,
) -> None:
    shown = Shown(live=None)  # what is captured is no terminal

    shown.show(piece("It is "), GAP, told(SAYS))
    assert capsys.readouterr().out == ""
    shown.screen.end(over("It is there."))

    assert capsys.readouterr().out == "It is there.\n"
    assert shown.notes[0] == "  It is there."


@pytest.mark.parametrize("text", ["", "  \n"])
def test_where_there_is_no_answer_nothing_is_said(capsys: Out, text: str) -> None:
    Shown().screen.end(over(text))
    assert capsys.readouterr().out == ""


def test_a_chat_tells_only_the_endings_that_are_not_good(capsys: Out) -> None:
    shown = Shown(ending=False)
    shown.screen.end(over("fine"))
    assert shown.notes == []
    shown.screen.end(over("", "failed"))
    assert len(shown.notes) == 1


@pytest.mark.parametrize("how", ["end", "cut"])
def test_the_next_run_of_a_chat_begins_anew(capsys: Out, how: str) -> None:
    shown = Shown(ending=False)
    shown.show(piece("It is there."))
    shown.screen.end(over("It is there.")) if how == "end" else shown.screen.cut()

    shown.screen.end(over("It is there."))

    assert capsys.readouterr().out == "It is there.\nIt is there.\n"


def test_a_run_has_begun_also_where_no_line_is_shown_of_it() -> None:
    shown = Shown(of_interest=lambda _: False)
    begun = [shown.lines.seen]
    shown.show(told(TURN))
    begun.append(shown.lines.seen)
    assert (begun, shown.notes) == ([False, True], [])


def test_scripts_read_a_line_per_event_text_and_result(capsys: Out) -> None:
    screen = JsonLines(EventLines(quiet=True))
    screen.show(told(RunParked(turn=1)))
    screen.show(piece("I look."))
    screen.end(over("It is there."))
    screen.cut()

    event, text, result = map(json.loads, capsys.readouterr().out.splitlines())
    assert (event["type"], event["run_id"], event["position"]) == ("run_parked", "run", 1)
    assert (text["type"], text["text"]) == ("text_delta", "I look.")
    assert (result["type"], result["output_text"]) == ("result", "It is there.")


def test_whoever_asks_for_the_result_reads_nothing_else(capsys: Out) -> None:
    screen = JsonResult(EventLines(quiet=True))
    screen.show(told(TURN))
    screen.show(piece("I look."))
    screen.end(over("It is there."))
    screen.cut()

    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["output_text"] == "It is there."


def test_what_a_run_asks_is_left_to_whoever_puts_it(capsys: Out) -> None:
    shown = Shown()
    shown.screen.show(piece("I must ask."))
    shown.screen.show(told(InputAwaited(turn=1, questions=({"id": "q1", "text": "Which?"},))))
    assert capsys.readouterr().out == "I must ask.\n"
    assert shown.notes == [], "else it stands there twice"


def test_an_answer_that_is_cut_ends_its_line(capsys: Out) -> None:
    shown = Shown()
    shown.screen.show(piece("half of"))
    shown.screen.cut()
    shown.screen.show(piece("another", round_=2))
    shown.screen.end(over("another"))
    assert capsys.readouterr().out == "half of\nanother\n"
