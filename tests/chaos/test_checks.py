"""The checks find what they are for: in a sound batch nothing, and each thing that is planted."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_actors.messages import Message, ToolCall
from harness_actors.results import HarnessResult, Reason, Status
from tests.chaos.checks import Findings, check, check_denied, count_waves
from tests.chaos.command import BatchCommand
from tests.chaos.kinds import KINDS
from tests.chaos.logs import ToolLine, read_tool_log
from tests.chaos.model import Asked, WatchedModel
from tests.chaos.plans import BESIDE, WAIT, make_plans
from tests.chaos.recovery import Delays, recoveries
from tests.chaos.strikes import Strike, waves_in
from tests.chaos.trees import Tree, faults_in


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> BatchCommand:
    """A small batch that nothing has happened to."""
    return asyncio.run(a_sound_batch(tmp_path_factory.mktemp("sound")))


async def a_sound_batch(
    folder: Path, *, delegating: int = 0, agent: str = "agent.yaml"
) -> BatchCommand:
    log = str(folder / "tools.log")
    plans = make_plans(4, seed=2, rounds=(4, 6), log=log, seconds=0.02, delegating=delegating)
    async with WatchedModel(folder / "model.log", latency_s=(0.0, 0.01)) as model:
        command = BatchCommand(folder, model.base_url, plans, at_once=4, address=None, agent=agent)
        command.start()
        assert await command.finish(within_s=60) == 0, command.said()
    return command


def test_a_sound_batch_is_clean(sound: BatchCommand) -> None:
    findings = check(sound)

    assert findings.broken == []
    assert findings.calls > 10
    assert findings.unknown == findings.repeated == findings.children == 0


async def test_a_sound_batch_that_delegates_is_clean(tmp_path: Path) -> None:
    command = await a_sound_batch(tmp_path, delegating=2, agent="delegating_agent.yaml")

    findings = check(command)

    assert findings.broken == []
    assert findings.children >= 2


def ended(status: Status, text: str) -> HarnessResult:
    reason = Reason(kind="completed" if status == "done" else "executor_lost")
    return HarnessResult(run_id="r.1", status=status, output_text=text, reason=reason)


WHOLE, LOST = ended("done", "found"), ended("failed", "")
TREES: dict[str, tuple[list[str], dict[str, list[HarnessResult | None]]]] = {
    "a run and its answer": ([], {"a": [WHOLE]}),
    "a call without a run": (["lost"], {}),
    "two runs of a call": (["doubled"], {"a": [WHOLE, WHOLE]}),
    "a run without an end": (["lost"], {"a": [None]}),
    "a run that failed": (["wrongly ended"], {"a": [LOST]}),
    "an answer of another": (["lost"], {"a": [ended("done", "found less")]}),
    "a run without a call": (["lost"], {"a": [WHOLE], "b": [WHOLE]}),
}


@pytest.mark.parametrize("name", TREES)
def test_a_call_that_delegates_has_one_run_and_its_answer(name: str) -> None:
    words, ends = TREES[name]
    plan = make_plans(1, seed=2, rounds=(4, 6), log="log", delegating=1)[0]
    log = [
        Message.assistant(None, [ToolCall("a", "explore", "{}")]),
        Message.tool_result("a", "found"),
    ]

    found = faults_in(Tree(plan=plan, is_child=False, ends=ends), log)

    assert [word for word, _ in found] == words


SENT_OUT = Message.assistant(None, [ToolCall("a", BESIDE, "{}")])
STARTED = Message.tool_result("a", "sent out")
TOLD = Message.told("[document-1 completed]\nfound")
WAITED = (
    Message.assistant(None, [ToolCall("w", WAIT, "{}")]),
    Message.tool_result("w", "it has ended"),
)
SAID = Message.assistant("done")


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ([SENT_OUT, STARTED, TOLD, SAID], []),
        ([SENT_OUT, STARTED, *WAITED, TOLD, SAID], []),
        # It has ended before anybody could tell.
        ([SENT_OUT, STARTED, *WAITED], []),
        ([SENT_OUT, STARTED, *WAITED, SAID], ["lost"]),
        ([SENT_OUT, STARTED, TOLD, SAID, TOLD], ["doubled"]),
    ],
)
def test_what_was_done_in_the_background_is_told_once(log: list[Message], words: list[str]) -> None:
    plan = make_plans(1, seed=2, rounds=(4, 6), log="log", delegating=1)[0]

    found = faults_in(Tree(plan=plan, is_child=False, ends={"a": [WHOLE]}), log)

    assert [word for word, _ in found] == words


def edit_results(change: Callable[[list[str]], list[str]]) -> Callable[[BatchCommand], None]:
    def edit(command: BatchCommand) -> None:
        lines = command.results_path.read_text().splitlines(keepends=True)
        command.results_path.write_text("".join(change(lines)))

    return edit


def fail_first(lines: list[str]) -> list[str]:
    result = json.loads(lines[0])
    result["status"], result["reason"]["kind"] = "failed", "executor_lost"
    return [json.dumps(result) + "\n", *lines[1:]]


def run_sql(statement: str) -> Callable[[BatchCommand], None]:
    def run(command: BatchCommand) -> None:
        with sqlite3.connect(command.store) as connection:
            assert connection.execute(statement).rowcount == 1
        connection.close()

    return run


def begin_again(command: BatchCommand) -> None:
    """The first call that must not be made twice is made once more, later."""
    lines = command.tool_log.read_text().splitlines(keepends=True)
    line = next(line for line in lines if " begin note " in line)
    command.tool_log.write_text("".join([*lines, line]))


def forget_ends(command: BatchCommand) -> None:
    lines = command.tool_log.read_text().splitlines(keepends=True)
    command.tool_log.write_text("".join(line for line in lines if " end note " not in line))


FIRST = "SELECT min(id) FROM messages WHERE role = 'assistant'"
LAST = "SELECT max(id) FROM messages WHERE role = 'tool'"
PLANTED: dict[str, tuple[str, Callable[[BatchCommand], None]]] = {
    "a missing line": ("lost", edit_results(lambda lines: lines[1:])),
    "a line twice": ("doubled", edit_results(lambda lines: [*lines, lines[0]])),
    "a torn last line": ("malformed", edit_results(lambda lines: [*lines, lines[0][:40]])),
    "an ending by chance": ("wrongly ended", edit_results(fail_first)),
    "a result that is gone": (
        "unanswered",
        run_sql(f"DELETE FROM messages WHERE id = ({LAST})"),
    ),
    "a result twice": (
        "doubled",
        run_sql(
            "INSERT INTO messages SELECT id + 100, role, tokens, is_error, encoded "
            f"FROM messages WHERE id = ({LAST})"
        ),
    ),
    "an answer that is gone": (
        "lost",
        run_sql(f"DELETE FROM messages WHERE id = ({FIRST})"),
    ),
    "a call made twice": ("started twice", begin_again),
    "a result that was made up": ("lost", forget_ends),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str, sound: BatchCommand, tmp_path: Path) -> None:
    word, plant = PLANTED[name]
    folder = tmp_path / "copy"
    shutil.copytree(sound.folder, folder)
    # Never started. Its runs have logged to the other folder, as their calls say.
    copy = BatchCommand(folder, "http://127.0.0.1:9/v1", list(sound.plans.values()), at_once=4)

    plant(copy)

    assert word in {found for found, _ in check(copy).broken}


def a_strike(kind: str, *, at: float, pid: int, gone_at: float | None = None) -> Strike:
    return Strike(
        kind=KINDS[kind],
        at=at,
        since=at,
        gone_at=gone_at or at,
        struck=frozenset({pid}),
        replaced=frozenset({pid}),
        affected=frozenset({"t0", "t1"}),
    )


def test_what_a_stopped_process_does_later_is_found(sound: BatchCommand) -> None:
    lines = read_tool_log(sound.tool_log)
    middle = lines[len(lines) // 2].at

    findings = check(sound, [a_strike("stopped_agent_turn", at=middle, pid=lines[0].pid)])

    assert {word for word, _ in findings.broken} == {"late"}


def test_a_run_that_is_thrown_back_by_two_steps_is_found(sound: BatchCommand) -> None:
    def asked(*steps: int) -> list[Asked]:
        return [
            Asked(at=float(at), run="t0", spoken=step, begins_turn=False, answered_at=None)
            for at, step in enumerate(steps)
        ]

    assert check(sound, asked=asked(0, 1, 2, 1, 2)).broken == []
    assert [word for word, _ in check(sound, asked=asked(0, 1, 2, 0)).broken] == ["lost"]


def test_recovery_counts_from_the_strike_to_the_next_request_of_a_new_process() -> None:
    def asked(at: float, run: str, answered_at: float | None = None) -> Asked:
        begins = answered_at is not None
        return Asked(at=at, run=run, spoken=1, begins_turn=begins, answered_at=answered_at)

    requests = [asked(10.01, "t0"), asked(12.5, "t0"), asked(13.0, "t0"), asked(14.0, "t9")]
    killed = a_strike("coordinator", at=10.0, pid=1, gone_at=10.1)
    assert recoveries(killed, requests) == {"t0": 2.5}

    # Only a turn that ended after the strike needed what was struck.
    turns = [asked(11.0, "t0", 9.9), asked(12.0, "t1", 10.5), asked(13.0, "t0", 12.5)]
    assert recoveries(a_strike("repair", at=10.0, pid=1), turns) == {"t1": 2.0}


def test_the_95th_percentile_is_a_figure_that_was_measured() -> None:
    assert Delays(seconds=tuple(map(float, range(1, 101)))).p95 == 95.0
    assert Delays(seconds=(3.0,)).p95 == 3.0
    assert Delays(seconds=()).p95 is None


def line(word: str, sort: str, call_id: str, *, run_id: str = "r", pid: int = 7) -> ToolLine:
    return ToolLine(
        at=0.0,
        begins=word == "begin",
        sort=sort,
        task="t",
        run_id=run_id,
        call_id=call_id,
        pid=pid,
    )


def test_a_denied_call_that_ran_is_found() -> None:
    log = [
        Message.assistant(None, [ToolCall("a", "pay", '{"what":"one"}')]),
        Message.tool_result("a", "not today", failure="denied"),
    ]
    findings = Findings()
    check_denied("q", log, [line("begin", "pay", "a")], findings)
    assert findings.broken == []
    check_denied("r", log, [line("begin", "pay", "a")], findings)
    assert [word for word, _ in findings.broken] == ["ran though denied"]


def test_a_wave_is_open_while_several_calls_of_a_run_are_at_work_in_a_host() -> None:
    first, second = line("begin", "look", "a"), line("begin", "look", "b")
    assert waves_in([first, second], [7]) == [7]
    assert waves_in([first, second], [8]) == []
    assert waves_in([first, line("end", "look", "a"), second], [7]) == []
    assert waves_in([first, line("begin", "note", "b")], [7]) == []
    assert waves_in([first, line("begin", "look", "b", run_id="q")], [7]) == []
    assert waves_in([first, line("begin", "look", "b", pid=8)], [7, 8]) == []
    assert count_waves([first, second, line("end", "look", "a"), line("begin", "look", "c")]) == 2
