import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from harness_actors.batch.live import LiveDisplay
from harness_actors.batch.outcomes import CheckResult, TaskOutcome
from harness_actors.batch.progress import (
    JsonDisplay,
    PlainDisplay,
    figures,
    make_display,
)
from harness_actors.batch.spending import Unlisted
from harness_actors.batch.summary import NOT_KNOWN
from harness_actors.batch.table import final_rows
from harness_actors.batch.tally import Tally
from harness_actors.batch.totals import Totals
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
    tally.add_skipped("ok")
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
    removed = Totals().as_removed()
    rest = {"without_result": 9, "removed": removed, **unlisted, "command": command}
    return {"ending": "interrupted", **totals, **rest}


def test_the_state_of_a_batch_fits_in_a_line() -> None:
    line = figures(a_tally(), 3.25)

    assert line.startswith("2/10 done (1 ok, 1 failed), 2 running, 3.2 rounds/s, 2.0k tokens, ")
    assert line.endswith(" left")


def test_a_cost_that_nobody_knows_is_not_told_as_nothing() -> None:
    known = a_tally()
    assert ", $0.25" in figures(known, 0.0)
    assert ", $0.00" in figures(Tally(1), 0.0)
    unknown = a_tally()
    unknown.cost_usd = 0.0
    assert ", cost -" in figures(unknown, 0.0)
    assert "$" not in figures(unknown, 0.0)
    for cost_usd, shown in (0.25, "$0.2500"), (0.0, "-"):
        usage = {"input_tokens": 10, "output_tokens": 5, "cost_usd": cost_usd}
        rows = dict(final_rows({**a_summary(a_tally()), "usage": usage}, None))
        assert rows["cost"] == shown


def test_endings_beside_failures_and_checks_at_work_are_told_where_there_are_some() -> None:
    tally = a_tally()
    check = CheckResult(passed=False, exit_code=1, seconds=0.0, output="")
    tally.add(replace(FAILED, status="done", check=check))
    tally.add(replace(FAILED, status="limit", check=check))
    tally.add(replace(FAILED, status="stalled"))
    tally.begin_check()

    assert figures(tally, 0.0).startswith(
        "5/10 done (1 ok, 1 failed, 1 failed their check, 1 at a limit, 1 stalled), "
        "2 running, 1 checking, "
    )


def test_where_nothing_is_at_work_there_is_no_time_to_the_end() -> None:
    tally = a_tally()
    tally.running = 0

    assert "left" not in figures(tally, 0.0)


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
    assert "failed(model_error)  1: no answer" in lines
    assert lines[-1] == "results              DIR/results.jsonl"


def test_scripts_get_json_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    tally = a_tally()
    display = make_display(tally, as_json=True)
    assert isinstance(display, JsonDisplay)
    display.note("starting Ray")
    display.tick()
    display.outcome(FAILED)
    display.close(a_summary(tally), "DIR/results.jsonl")

    told = capsys.readouterr()
    outcome, last = map(json.loads, told.out.splitlines())
    assert told.err == "starting Ray\n"
    assert outcome["id"] == "t1"
    assert last["summary"]["statuses"] == {"failed": 1}
    assert last["results"] == "DIR/results.jsonl"


def test_scripts_get_the_progress_beside_the_json() -> None:
    out, log, tally = io.StringIO(), io.StringIO(), a_tally()
    display = JsonDisplay(out, PlainDisplay(tally, log, every_s=0))
    display.tick()
    display.outcome(FAILED)
    display.close(a_summary(tally), None)

    assert len(out.getvalue().splitlines()) == 2
    assert [line.split(",")[0] for line in log.getvalue().splitlines()] == ["2/10 done (1 ok"]


def test_causes_are_counted_in_the_table_and_the_rarer_ones_left_to_the_summary() -> None:
    causes = ["refused", "refused", *(f"no {word}" for word in ("key", "room", "way"))]
    failed = [replace(FAILED, error={"message": cause}) for cause in causes]
    checked = CheckResult(passed=False, exit_code=7, seconds=0.0, output="one\n2 of 3 wrong\n")
    totals = Totals([*failed, replace(FAILED, status="done", check=checked)]).as_mapping()
    rows = final_rows({**a_summary(a_tally()), **totals}, None)

    at = rows.index(("failed(model_error)", "5"))
    assert rows[at + 1] == ("", "2 × refused")
    assert rows[at + 4] == ("", "and 1 more cause, see summary.json")
    assert ("checks", "0 passed, 1 failed: exit 7: 2 of 3 wrong") in rows
    assert ("ok", "0 of 15 tasks") in rows


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
    unlisted = Unlisted(stranded=1)
    for _ in range(2):
        unlisted.unfinished.add(input_tokens=1000, output_tokens=50, cost_usd=0.25)
    unlisted.ended.add(input_tokens=7, output_tokens=3, cost_usd=0.0)
    rows = dict(final_rows({**a_summary(a_tally()), **unlisted.as_mapping()}, None))

    assert rows["unfinished"] == (
        "2 runs, 1 of them of removed tasks: 2,100 of the tokens and $0.5000 of the cost"
    )
    assert rows["earlier"] == ("1 attempt that another one followed: 10 of the tokens")
    assert "results" not in rows


def test_figures_that_lack_the_unfinished_runs_say_so() -> None:
    rows = dict(final_rows({**a_summary(a_tally()), **NOT_KNOWN}, None))

    assert "not counted" in rows["unfinished"]


def test_tasks_that_were_done_before_are_counted_from_the_beginning_and_once() -> None:
    tally = Tally(5)
    tally.know_skipped({"ok": 2, "check failed": 1})
    tally.add_skipped("ok")

    assert figures(tally, 0.0).startswith("3/5 done (2 ok, 0 failed, 1 failed their check), ")
    assert (tally.skipped, tally.all_ok, tally.left) == (3, False, 2)
