import io
import json
from typing import Any

import pytest
from rich.console import Console

from harness_actors.batch.live import LiveDisplay
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.progress import (
    JsonDisplay,
    PlainDisplay,
    figures,
    final_rows,
    make_display,
)
from harness_actors.batch.spending import Unlisted
from harness_actors.batch.summary import NOT_KNOWN
from harness_actors.batch.tally import Tally, Totals
from harness_actors.events import RoundCompleted
from harness_actors.results import Reason

FAILED = TaskOutcome(
    id="t1",
    task_hash="h",
    run_id="r",
    attempt=1,
    status="failed",
    reason=Reason(kind="model_error", message="no answer"),
)


def a_tally() -> Tally:
    tally = Tally(10)
    tally.running = 2
    tally.add_skipped(ok=True)
    tally.add(FAILED)
    tally.add_round(
        RoundCompleted(
            turn=1,
            round=1,
            input_tokens=1500,
            output_tokens=500,
            cached_tokens=0,
            cost_usd=0.25,
            tool_calls=1,
        )
    )
    return tally


def a_summary(tally: Tally) -> dict[str, Any]:
    command = {**tally.command(), "settings": {}}
    totals, unlisted = Totals([FAILED]).as_mapping(), Unlisted().as_mapping()
    return {"ending": "interrupted", **totals, **unlisted, "command": command}


def test_the_state_of_a_batch_fits_in_a_line() -> None:
    line = figures(a_tally(), 3.25)

    assert line.startswith("2/10 done, 2 running, 1 failed, 3.2 rounds/s, 2.0k tokens, $0.25, ")
    assert line.endswith(" left")


def test_a_total_that_is_not_known_is_not_made_up() -> None:
    assert figures(Tally(None), 0.0).startswith("0/? done")


def test_a_log_gets_a_line_now_and_then_and_the_table_last() -> None:
    out, tally = io.StringIO(), a_tally()
    display = PlainDisplay(tally, out, every_s=0)
    display.note("starting Ray")
    display.tick()
    display.close(a_summary(tally), "DIR/results.jsonl")

    lines = out.getvalue().splitlines()
    assert lines[0] == "starting Ray"
    assert lines[1].startswith("2/10 done")
    assert "failed(model_error) 1" in lines
    assert lines[-1] == "results    DIR/results.jsonl"


def test_scripts_get_json_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    tally = a_tally()
    display = make_display(tally, as_json=True)
    assert isinstance(display, JsonDisplay)
    display.note("starting Ray")
    display.tick()
    display.outcome(FAILED)
    display.close(a_summary(tally), "DIR/results.jsonl")

    outcome, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert outcome["id"] == "t1"
    assert last["summary"]["statuses"] == {"failed": 1}
    assert last["results"] == "DIR/results.jsonl"


def test_a_terminal_gets_failures_and_the_table() -> None:
    out, tally = io.StringIO(), a_tally()
    display = LiveDisplay(tally, Console(file=out, force_terminal=True, width=120))
    display.outcome(FAILED)
    display.tick()
    display.close(a_summary(tally), "DIR/results.jsonl")

    assert "t1: failed(model_error) no answer" in out.getvalue()
    assert "DIR/results.jsonl" in out.getvalue()


def test_nothing_is_said_of_a_command_that_did_not_begin() -> None:
    out = io.StringIO()
    PlainDisplay(Tally(3), out).close({}, None)

    assert out.getvalue() == ""


def test_the_table_says_what_runs_without_a_result_have_of_its_figures() -> None:
    unlisted = Unlisted()
    for _ in range(2):
        unlisted.unfinished.add(input_tokens=1000, output_tokens=50, cost_usd=0.25)
    unlisted.ended.add(input_tokens=7, output_tokens=3, cost_usd=0.0)
    rows = dict(final_rows({**a_summary(a_tally()), **unlisted.as_mapping()}, None))

    assert rows["unfinished"] == "2 runs: 2,100 of the tokens and $0.5000 of the cost"
    assert rows["unlisted"] == (
        "1 run that ended without a line: 10 of the tokens and $0.0000 of the cost"
    )
    assert "results" not in rows


def test_figures_that_lack_the_unfinished_runs_say_so() -> None:
    rows = dict(final_rows({**a_summary(a_tally()), **NOT_KNOWN}, None))

    assert "not counted" in rows["unfinished"]


def test_tasks_that_were_done_before_are_counted_from_the_beginning_and_once() -> None:
    tally = Tally(5)
    tally.know_skipped(3, ok=2)
    tally.add_skipped(ok=True)

    assert figures(tally, 0.0).startswith("3/5 done")
    assert (tally.skipped, tally.skipped_ok, tally.left) == (3, 2, 2)
