"""A contest measures the work, and refuses to compare anything else."""

from dataclasses import replace

import pytest

from benchmarks import contest
from benchmarks.contend import warm_up_of
from benchmarks.contest import Contender, Measured, compete
from benchmarks.flames import Profile
from benchmarks.notes import Work, script
from benchmarks.windows import Window

WORK = Work(conversations=2, rounds=2)


def test_work_is_the_same_on_the_other_side_of_a_command_line() -> None:
    work = replace(WORK, at_once=1, tool="look", result_bytes=200)

    assert Work.from_json(work.as_json()) == work


def test_results_have_the_length_that_is_asked_for() -> None:
    work = replace(WORK, result_bytes=200, task_bytes=500)
    task = work.task(0, work.log)
    body = {"messages": [{"role": "user", "content": task}]}

    ((name, arguments),) = script(body).asked

    assert len(task) == 500
    assert name == "note"
    assert '"size":200' in arguments


def test_contenders_that_send_something_else_are_not_compared() -> None:
    # The same work by name, but one of them has longer results.
    longer = replace(WORK, task_bytes=5000)
    contenders = {
        "one": Contender(kind="aiohttp", title="one", work=WORK),
        "other": Contender(kind="joined", title="the other", work=WORK),
    }
    found = compete(contenders, 1)
    sent = {name: measured[0].sent_bytes for name, measured in found.items()}

    assert sent["one"] == pytest.approx(sent["other"], rel=contest.SAME_BYTES)
    more = compete({"other": replace(contenders["other"], work=longer)}, 1)
    with pytest.raises(RuntimeError, match="did not do the same work"):
        contest._check_bytes(contenders, {"one": found["one"], "other": more["other"]})


def test_a_missing_tool_call_is_no_measurement() -> None:
    contender = Contender(kind="aiohttp", title="one", work=WORK)
    asked = WORK.model_calls + warm_up_of(WORK).model_calls

    contest._check_counts(contender, asked, ["a", "b", "c", "d"])
    for requests, notes in ((asked - 1, "abcd"), (asked, "abc"), (asked, "abcc")):
        with pytest.raises(RuntimeError, match="expected"):
            contest._check_counts(contender, requests, list(notes))


def test_idle_time_is_charged_for_as_long_as_the_work_took() -> None:
    work = Window(wall_s=4.0, cpu_s=3.0, processes=1)
    idle = Window(wall_s=1.0, cpu_s=0.25, processes=1)

    assert contest._idle_s({"work": work}) == 0.0
    assert contest._idle_s({"work": work, "idle": idle}) == 1.0
    measured = Measured(
        window=work,
        idle_cpu_s=1.0,
        cpu_by_role={},
        requests=0,
        sent_bytes=0,
        counts=(),
        rounds=1000,
        tool_calls=1000,
    )
    assert (measured.gross_ms, measured.net_ms, measured.wall_ms) == (3.0, 2.0, 4.0)


def test_a_sample_belongs_to_the_innermost_room_of_its_stack() -> None:
    loop = "run_forever (/usr/lib/python3.11/asyncio/base_events.py:1)"
    asked = "ask (/x/harness_actors/turn/answers.py:7)"
    sent = "request (/x/site-packages/aiohttp/client.py:3)"
    encoded = "dumps (/usr/lib/python3.11/json/__init__.py:9)"

    profile = Profile.of(
        [f"{loop} 5", f"{loop};{asked} 2", f"{loop};{asked};{sent};{encoded} 3", " 4"]
    )

    assert profile.rooms == {"model client": 3, "turn": 2, "event loop and the rest": 5, "Ray": 4}
    assert profile.frames["turn"] == {"ask (harness_actors/turn/answers.py)": 2}
