"""Every benchmark runs from end to end and says what it is asked for."""

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench_recovery, bench_resume, findings
from benchmarks.__main__ import FOLDER, PREFIX, REPORTED, is_well, names, table
from benchmarks.bench_recovery import findings as findings_of_recovery
from benchmarks.findings import Finding, plain, row
from benchmarks.speed import slowness
from tests.chaos.recovery import Delays

Smokes = Mapping[str, "Future[subprocess.CompletedProcess[str]]"]


def report_recovery() -> None:
    seen = {"repair": Delays(seconds=(1.0, 2.0))}
    bench_recovery.report(Namespace(runs=30, times=5), seen, {"load": 0.5})


def report_resume() -> None:
    found = bench_resume.Resumed(first_call_s=2.0, tasks_s=0.1, ended=bench_resume.NEW)
    bench_resume.report(Namespace(repeats=3), {0: [found], 10_000: [found]})


ELSEWHERE: Mapping[str, Callable[[], None]] = {
    "recovery": report_recovery,
    "resume": report_resume,
}
"""Run by `tests/chaos` and `test_resume`, but for their last lines: each starts Ray for long.
These print such a line of figures that were made up."""
SMOKED = sorted(set(names()) - set(ELSEWHERE))
AT_ONCE = 2
DEADLINE_S = 240

# All together take some 40 s on 2 idle cores; a machine with other work is slower by as much.
pytestmark = pytest.mark.timeout(DEADLINE_S + 30)


def smoke(name: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    # From another folder: it must find its own modules wherever it is called.
    command = [sys.executable, str(FOLDER / f"{PREFIX}{name}.py"), "--smoke"]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@pytest.fixture(scope="module")
def smokes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Smokes]:
    """All of them, two at a time: half of what they do is waiting for processes that start."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(smoke, name, tmp_path_factory.mktemp(name)) for name in SMOKED}
        pool.shutdown(cancel_futures=True)


def report_of(name: str, smokes: Smokes) -> dict[str, Any]:
    ran = smokes[name].result()
    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    report: dict[str, Any] = json.loads(line)
    return report


@pytest.mark.ray
@pytest.mark.parametrize("name", SMOKED)
def test_a_benchmark_prints_one_line_with_its_answers(name: str, smokes: Smokes) -> None:
    report = report_of(name, smokes)

    assert report["benchmark"] == name
    assert {"unit", *REPORTED} <= set(report)
    assert report["findings"]
    for found in report["findings"]:
        assert found["question"]
        assert {"unit", "median", "at_most", "at_least", "met"} <= set(found)
        has_bar = (found["at_most"], found["at_least"]) != (None, None)
        assert (found["met"] is not None) == has_bar
    for contender in report.get("contenders", {}).values():
        assert contender["cpu_ms"]["least"] >= 0
        assert contender["rounds_per_s"]["median"] > 0


@pytest.mark.ray
def test_what_ray_starts_is_counted_and_the_model_server_is_not(smokes: Smokes) -> None:
    contenders = report_of("round_cost", smokes)["contenders"]

    assert contenders["ours"]["processes"] > 5
    assert {"driver", "coordinator", "agent_turn", "Ray"} <= set(
        contenders["ours"]["cpu_ms_by_role"]
    )
    others = set(contenders) - {"ours"}
    assert {contenders[name]["processes"] for name in others} == {1}


@pytest.mark.ray
def test_all_waiting_runs_ask_at_the_same_time(smokes: Smokes) -> None:
    report = report_of("memory", smokes)

    assert report["peak"]["median"] == report["runs"]
    assert report["waiting"]["all"]["processes"] == report["waiting"]["one"]["processes"]


@pytest.mark.ray
def test_the_journal_weighs_no_more_than_its_bar(smokes: Smokes) -> None:
    report = report_of("journal", smokes)

    assert report["bytes_per_message_byte"]["plain"] > 0
    assert 0 < report["bytes_per_message_byte"]["fenced"] <= 1.5


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_benchmark_that_is_run_elsewhere_prints_such_a_line_as_well(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ELSEWHERE[name]()

    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert report["benchmark"] == name
    assert {"unit", *REPORTED} <= set(report)
    assert report["findings"]
    assert is_well(report, judged=True)


def test_a_recovery_that_nothing_was_seen_of_misses_its_bar() -> None:
    seen = Delays(seconds=(1.0, 2.0))

    good, missing = findings_of_recovery({"repair": seen, "driver": Delays(seconds=())})

    assert good.met is True
    assert missing.met is False


def test_a_time_spent_computing_is_judged_by_how_slow_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert slowness() >= 1.0
    monkeypatch.setattr(findings, "slowness", lambda: 3.0)

    within, beyond, waiting = (
        Finding.of("it", [value], unit="ms", at_most=1.0, computing=computing)
        for value, computing in ((2.9, True), (3.1, True), (1.1, False))
    )

    assert (within.met, beyond.met, waiting.met) == (True, False, False)
    assert [row(found.as_plain())[2] for found in (within, waiting)] == ["≤ 1 · 3", "≤ 1"]


def test_the_table_has_a_row_for_each_answer_and_for_what_failed() -> None:
    slow = Finding.of("time", [2.0, 4.0, 3.0], unit="s", at_most=2.5)
    fast = Finding.of("pace", [9.0], unit="/s", at_least=8.0)
    reports = {"good": {"findings": plain([slow, fast])}, "bad": None, "bare": {"n": 1}}

    rows = table(reports, judged=True)

    assert rows[0] == ("good", "time", "3 s (2–4)", "≤ 2.5", "NO")
    assert rows[1] == ("", "pace", "9 /s", "≥ 8", "yes")
    assert rows[2][:2] == ("bad", "it failed")
    assert rows[3][0] == "bare"


def test_a_missed_bar_counts_unless_the_sizes_were_those_of_a_smoke_run() -> None:
    missed = {"findings": plain([Finding.of("time", [3.0], at_most=2.0)])}
    unseen = {"findings": plain([Finding.of("time", [3.0, None], at_most=2.0)])}

    assert not is_well(missed, judged=True)
    assert not is_well(unseen, judged=True)
    assert is_well(missed, judged=False)
    assert not is_well(None, judged=False)
