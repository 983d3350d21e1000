"""The comparison of completion with other frameworks fits together, without any of them there."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.bench_completion import Outcome, contract_of, falsely, measure, truly
from benchmarks.file_tools import file_tools
from benchmarks.peers.bench_peer_completion import OURS, findings_of, parse_arguments, rates_of
from benchmarks.peers.checked import CheckedTask
from benchmarks.peers.contenders import CHECKED, DEFAULTS, FINISHERS
from benchmarks.peers.finishing import expected_of, finishing
from harness_actors.contracts import AnyOf, ContainsText
from harness_actors.testing import CheckableTask, checkable_task
from harness_actors.testing.checkable import KINDS, Kind
from harness_actors.testing.fallible import Misbehaviour

OPTIONS = Namespace(tasks=3, files=3, seed=0, timeout_s=1.5)


async def finish(how: str) -> tuple[list[Outcome], list[str]]:
    module = "tests.benchmarks.finisher"
    async with finishing(Path(sys.executable), module) as at_work:
        at_work.how = how
        outcomes = await measure(at_work.run, {}, OPTIONS)
    return outcomes, list(at_work.said)


async def test_what_a_framework_claims_is_held_against_the_disk() -> None:
    outcomes, said = await finish("defaults")

    assert [falsely(one) for one in outcomes] == [True] * 3
    assert said == []


async def test_a_framework_that_heeds_the_users_check_is_truly_done() -> None:
    outcomes, said = await finish("checked")

    assert [(one.claimed, truly(one)) for one in outcomes] == [(True, True)] * 3, said


async def test_a_framework_that_raises_does_not_claim_and_what_it_said_is_kept() -> None:
    outcomes, said = await finish("gives_up")

    assert [one.claimed for one in outcomes] == [False] * 3
    assert said == ["NotDoneError: no more"]


async def test_a_framework_whose_process_dies_is_not_compared() -> None:
    with pytest.raises(RuntimeError, match="process ended"):
        await asyncio.wait_for(finish("dies"), 60)


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_of_a_framework_knows_what_our_contract_knows(kind: Kind, tmp_path: Path) -> None:
    task = checkable_task("task-1", tmp_path, kind=kind)

    texts: dict[str, list[str]] = {}
    for output in contract_of(task).outputs:
        assert isinstance(output.predicate, AnyOf)
        for one in output.predicate.parts:
            assert isinstance(one, ContainsText)
            texts.setdefault(one.file or "", []).append(one.pattern)

    expected = {name: list(shown) for name, shown in expected_of(task).items()}
    unescaped = {name: [text.replace("\\", "") for text in found] for name, found in texts.items()}
    assert unescaped == expected
    assert list(expected) == task.missing


def checked_task(task: CheckableTask) -> CheckedTask:
    return CheckedTask(
        how=DEFAULTS,
        base_url="",
        timeout_s=1.0,
        name=task.name,
        prompt=task.prompt,
        folder=str(task.folder),
        prefix="task_",
        expected=expected_of(task),
    )


async def test_the_check_names_what_is_missing_until_nothing_is(tmp_path: Path) -> None:
    task = checkable_task("task-1", tmp_path, size=3)
    user = CheckedTask.from_line(checked_task(task).as_line())
    write, *_ = user.tools

    for number in range(3):
        name = f"file-{number}.txt"
        assert name in (user.gap() or "")
        await write(name, task.steps[number].shown_by[0])
        assert name not in (user.gap() or "")

    assert user.gap() is None
    assert task.missing == []


async def test_tools_for_files_tell_what_goes_wrong_as_a_result(tmp_path: Path) -> None:
    write, read, edit, run = file_tools(tmp_path, prefix="task_")

    assert write.__name__ == "task_write_file"
    assert await write("a.txt", "one one") == "wrote a.txt"
    assert await edit("a.txt", "one", "two") == "error: old_text stands in the file 2 times"
    assert await edit("a.txt", "one one", "two") == "edited a.txt"
    assert await read("a.txt") == "two"
    assert (await read("b.txt")).startswith("error: ")
    assert await run("cat a.txt; exit 3") == "exit code 3\ntwo"


def outcome(*, claimed: bool, missing: Sequence[str] = ()) -> Outcome:
    return Outcome(
        task="task-1", claimed=claimed, missing=list(missing), calls=1, met=(), useless=0
    )


@pytest.mark.parametrize(
    ("other", "met"),
    [
        (outcome(claimed=True, missing=["a.txt"]), [True, True]),
        (outcome(claimed=False, missing=["a.txt"]), [True, False]),
        (outcome(claimed=True), [False, False]),
    ],
)
def test_the_bar_is_the_best_of_the_others_in_either_column(
    other: Outcome, met: list[bool]
) -> None:
    ours = outcome(claimed=True, missing=["a.txt"])

    findings = findings_of(
        {("mixed", DEFAULTS, OURS): [ours], ("mixed", DEFAULTS, "other"): [other]}
    )

    assert [found.met for found in findings if found.met is not None] == met


def test_everybody_is_asked_for_both_rows_and_a_smoke_test_is_small() -> None:
    assert list(FINISHERS[DEFAULTS]) == list(FINISHERS[CHECKED])
    assert parse_arguments([]).faults == ["mixed", "claims", "wanders"]
    assert parse_arguments(["--smoke"]).tasks == 3
    assert set(rates_of("mixed", smoke=False)) == {
        one for part in get_args(Misbehaviour) for one in get_args(part)
    }
    assert rates_of("claims", smoke=False) == {"claims": 0.04}


@pytest.mark.parametrize("wrong", [["--only", "langgraf"], ["--faults", "naps"]])
def test_a_framework_or_fault_that_is_not_there_is_bad_input(wrong: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(wrong)
