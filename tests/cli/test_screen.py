"""What a person at a terminal is shown of a run."""

from io import StringIO

import pytest

from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.screen import Terminal
from harness_actors.events import AgentResponse, Event, RunEvent, TextDelta, TextGap


def told(event: Event) -> RunEvent:
    return RunEvent(position=1, run_id="run", at=0.0, event=event)


def test_a_chat_shows_what_its_event_has_of_a_text_that_did_not_come(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = StringIO()
    screen = Terminal(EventLines(out=out), of_interest=lambda _: False, ending=False, live=True)

    screen.show(TextDelta(run_id="run", turn=1, round=1, attempt=1, text="I look."))
    screen.show(told(AgentResponse(text="I look.", tool_names=("look",))))
    screen.show(TextGap(run_id="run", missed=None))
    screen.show(told(AgentResponse(text="And again.", tool_names=("look",))))
    screen.show(TextGap(run_id="run", missed=None))
    screen.show(told(AgentResponse(text="The last is told at the end.", tool_names=())))

    assert capsys.readouterr().out == "I look.\n"
    missing = "  (some text did not get here in time)"
    assert out.getvalue().splitlines() == [missing, "  And again.", missing]
