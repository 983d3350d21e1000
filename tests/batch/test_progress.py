import io
import json
import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from harness_actors.batch.live import LiveDisplay, describe
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
from harness_actors.printing.console import PlainConsole
from harness_actors.results import Reason

FAILED = TaskOutcome(
    id="t1",
    task_hash="h",
    run_id="r",
    attempt=1,
    status="failed",
    reason=Reason(kind="model_error", message="no answer"),
)


ROUND = RoundCompleted(
    turn=1,
    round=1,
    input_tokens=1500,
    output_tokens=500,
    cached_tokens=0,
    cost_usd=0.25,
    tool_calls=1,
)


def a_tally() -> Tally:
    tally = Tally(10)
    tally.running = 2
    tally.add_skipped("ok")
    tally.add(FAILED)
    tally.add_round(ROUND)
    return tally


def a_summary(tally: Tally) -> dict[str, Any]:
    command = {**tally.command(), "settings": {}}
    totals, unlisted = Totals([FAILED]).as_mapping(), Unlisted().as_mapping()
    removed = Totals().as_removed()
    told = {**unlisted, "waiting": {"tasks": 0, "answered": 0, "runs": []}}
    rest = {"without_result": 9, "removed": removed, **told, "command": command}
    return {"ending": "interrupted", **totals, **rest}


def test_the_state_of_a_batch_fits_in_a_line() -> None:
    line = figures(a_tally(), 3.25)

    told = "2/10 done (1 ok, 1 failed), 2 running, 3.2 rounds/s, 2.0k tokens, $0.25, "
    assert line.startswith(told)
    assert line.endswith(" left")


def test_runs_that_wait_are_counted_and_not_timed() -> None:
    tally = a_tally()
    assert "waiting" not in figures(tally, 0.0)
    tally.waiting = 7

    assert ", 2 running, 7 waiting, " in figures(tally, 0.0)
    # Of ten tasks two are done, one of them now, and one more can be.
    assert tally.eta_s == pytest.approx(tally.wall_s, rel=0.5)
    tally.waiting = 8
    assert tally.eta_s == 0


def test_a_question_is_told_above_the_bar_with_its_run() -> None:
    questions = [{"id": "q1", "text": "Which\ncolor?"}, {"id": "q2", "text": "Why?"}]
    waits = replace(
        FAILED,
        status="awaiting_input",
        reason=Reason(kind="question", details={"questions": questions}),
    )

    assert describe(waits) == "awaiting_input(question) run r asks: Which color? (and 1 more)"


def test_a_cost_that_nobody_knows_is_not_told_as_nothing() -> None:
    known = a_tally()
    assert ", $0.25" in figures(known, 0.0)
    assert ", cost -" in figures(Tally(1), 0.0)
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


def test_while_only_checks_are_at_work_there_is_time_to_the_end() -> None:
    tally = a_tally()
    tally.running = 0
    tally.begin_check()

    assert figures(tally, 0.0).endswith(" left")


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


def a_terminal(out: io.StringIO) -> Console:
    return Console(file=out, force_terminal=True, width=120, color_system="standard", _environ={})


SHOWS_CURSOR, GREEN, RED = "\x1b[?25h", "\x1b[32m", "\x1b[31m"


def test_checks_that_failed_after_runs_that_were_stopped_are_told_apart() -> None:
    checked = CheckResult(passed=False, exit_code=1, seconds=0.0, output="")
    done = [replace(FAILED, status="done", check=checked)] * 4
    at_limit = replace(FAILED, status="limit", reason=Reason(kind="max_turns"), check=checked)
    totals = Totals([*done, *[at_limit] * 5]).as_mapping()
    rows = final_rows({**a_summary(a_tally()), **totals}, None)

    at = rows.index(("checks", "0 passed, 9 failed"))
    assert rows[at + 1 : at + 3] == [
        ("", "4 × exit 1"),
        ("", "5 × of runs that were stopped, see above"),
    ]


def test_a_terminal_gets_failures_and_the_table() -> None:
    out, tally = io.StringIO(), a_tally()
    display = LiveDisplay(tally, a_terminal(out))
    display.note("[bold] as it is, 7 times")
    display.outcome(FAILED)
    display.outcome(replace(FAILED, id="fine", status="done"))
    display.close(a_summary(tally), "DIR/results.jsonl")

    told = out.getvalue()
    assert "[bold] as it is, 7 times" in told
    assert "t1: failed(model_error) no answer" in told
    assert "fine" not in told
    above, table = told.rsplit(SHOWS_CURSOR, 1)
    assert above.count("2/10 done") > 2, "drawn anew beneath what is told"
    rows = [line.split() for line in table.splitlines()]
    assert [*rows[-1]] == ["results", "DIR/results.jsonl"]
    assert "─" not in table


def test_a_terminal_shows_how_far_it_is_whenever_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, tally, now = io.StringIO(), a_tally(), [0.0]
    monkeypatch.setattr("harness_actors.batch.progress.time.monotonic", lambda: now[0])
    display = LiveDisplay(tally, a_terminal(out))
    drawn = []
    for done in (5, 10):
        tally.ended, tally.rounds, now[0] = done - tally.skipped, done, now[0] + 2.5
        out.seek(0)
        out.truncate()
        display.tick()
        drawn.append(out.getvalue())
    display.close({}, None)

    half, whole = drawn
    assert "5/10 done" in half
    assert "2.0 rounds/s" in half
    # What is done is of one colour.
    bars = [re.search(r"\x1b\[\d+m(━+)\x1b", text) for text in drawn]
    assert [bar and len(bar[1]) for bar in bars] == [20, 40]
    assert "10/10 done" in whole
    assert out.getvalue().rstrip().endswith(SHOWS_CURSOR)


@pytest.mark.parametrize(
    ("ending", "ok", "colour"),
    [("complete", 1, GREEN), ("complete", 0, RED), ("interrupted", 1, RED)],
)
def test_an_ending_is_green_where_all_is_well_and_red_else(
    ending: str, ok: int, colour: str
) -> None:
    out, tally = io.StringIO(), a_tally()
    summary = {**a_summary(tally), "ending": ending, "verdicts": {"ok": ok}, "tasks": 1}
    LiveDisplay(tally, a_terminal(out)).close(summary, "here")

    first, *others = out.getvalue().rsplit(SHOWS_CURSOR, 1)[1].strip("\n").splitlines()
    assert "ending" in first
    assert colour in first
    assert not [line for line in others if GREEN in line or RED in line]


def test_what_others_print_goes_above_the_bar_but_stays_on_stdout_for_a_script() -> None:
    before = sys.stdout
    beside = LiveDisplay(a_tally(), PlainConsole(stderr=True, force_terminal=True))
    try:
        assert sys.stdout is before
    finally:
        beside.close({}, None)
    display = LiveDisplay(a_tally(), PlainConsole(force_terminal=True))
    try:
        assert sys.stdout is not before
    finally:
        display.close({}, None)
    assert sys.stdout is before


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("as_json", "out", "err", "shown", "beside"),
    [
        (False, Terminal, Terminal, LiveDisplay, None),
        (False, Terminal, io.StringIO, LiveDisplay, None),
        (False, io.StringIO, Terminal, PlainDisplay, None),
        (True, Terminal, Terminal, JsonDisplay, "a log"),
        (True, io.StringIO, Terminal, JsonDisplay, "a bar"),
        (True, io.StringIO, io.StringIO, JsonDisplay, "a log"),
    ],
)
def test_a_batch_is_shown_as_those_can_who_look_at_it(
    monkeypatch: pytest.MonkeyPatch,
    as_json: bool,
    out: type[io.StringIO],
    err: type[io.StringIO],
    shown: type[object],
    beside: str | None,
) -> None:
    stdout, stderr = out(), err()
    monkeypatch.setattr("sys.stdout", stdout)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    display = make_display(a_tally(), as_json=as_json)
    display.note("note")
    display.outcome(FAILED)
    display.close({}, None)

    assert isinstance(display, shown)
    if beside is not None:
        assert [json.loads(line)["id"] for line in stdout.getvalue().splitlines()] == ["t1"]
        assert "note" in stderr.getvalue()
        # A bar has the failures above it, and gives the cursor back.
        is_bar = beside == "a bar"
        assert ("t1: failed(model_error) no answer" in stderr.getvalue()) is is_bar
        assert (SHOWS_CURSOR in stderr.getvalue()) is is_bar


def test_a_log_gets_a_line_every_ten_seconds_with_the_pace_of_these(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("harness_actors.batch.progress.time.monotonic", lambda: now[0])
    out, tally = io.StringIO(), Tally(None)
    display = PlainDisplay(tally, out)
    told = []
    for second in (*range(1, 31), 90, 91, 100):
        now[0] = float(second)
        tally.rounds += 2 if second <= 20 else 6
        display.tick()
        if line := out.getvalue():
            told.append((second, line.split(", ")[3]))
            out.seek(0)
            out.truncate()

    paces = {10: "2.0", 20: "2.0", 30: "6.0", 90: "0.1", 100: "1.2"}
    assert told == [(second, f"{pace} rounds/s") for second, pace in paces.items()]


def test_the_last_line_of_a_log_has_the_pace_of_the_whole_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("harness_actors.batch.tally.time.monotonic", lambda: now[0])
    tally, out = a_tally(), io.StringIO()
    tally.rounds, now[0] = 30, 120.0
    PlainDisplay(tally, out).close(a_summary(tally), None)

    assert ", 1.5 rounds/s, " in out.getvalue().splitlines()[0]
    assert tally.command()["wall_s"] == 20.0
    # One has ended in these, and eight are left.
    assert (tally.eta_s, figures(tally, 0.0).split(", ")[-1]) == (160.0, "2 min 40 s left")


def test_the_figures_of_a_command_are_those_of_its_summary() -> None:
    tally = Tally(10)
    tally.know_skipped({"limit": 2}, out_of_budget=2)
    tally.add(FAILED)
    tally.add(replace(FAILED, status="limit", reason=Reason(kind="budget")))
    tally.retried, tally.parked, tally.waiting = 4, 3, 1
    for _ in range(2):
        tally.add_round(ROUND)
    told = tally.command()

    assert (tally.failed, tally.out_of_budget, tally.ended) == (1, 3, 2)
    assert {name: told[name] for name in told if not name.endswith(("_at", "_s"))} == {
        "tasks": 10,
        "done_before": 2,
        "ended": 2,
        "not_ended": 6,
        "parked": 3,
        "waiting": 1,
        "retries": 4,
        "rounds": 2,
    }
    assert told["started_at"] <= told["ended_at"]
    assert (tally.tokens, tally.cost_usd) == (4000, 0.5)
    endless = Tally(None)
    endless.add(FAILED)
    assert (endless.left, endless.eta_s, endless.command()["not_ended"]) == (None, None, None)


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


def test_runs_that_were_cut_before_they_used_anything_are_told() -> None:
    unlisted = Unlisted()
    unlisted.unfinished.add(cost_usd=0.0)
    rows = dict(final_rows({**a_summary(a_tally()), **unlisted.as_mapping()}, None))

    assert rows["unfinished"] == "1 run"


def test_figures_that_lack_the_unfinished_runs_say_so() -> None:
    rows = dict(final_rows({**a_summary(a_tally()), **NOT_KNOWN}, None))

    assert "not counted" in rows["unfinished"]


def test_tasks_that_were_done_before_are_counted_from_the_beginning_and_once() -> None:
    tally = Tally(5)
    tally.know_skipped({"ok": 2, "check failed": 1})
    tally.add_skipped("ok")

    assert figures(tally, 0.0).startswith("3/5 done (2 ok, 0 failed, 1 failed their check), ")
    assert (tally.skipped, tally.all_ok, tally.left) == (3, False, 2)
