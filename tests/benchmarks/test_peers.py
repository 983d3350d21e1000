"""The comparison with other frameworks fits together, without any of them being there."""

import ast
import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from benchmarks import windows
from benchmarks.peers import conversations, server
from benchmarks.peers.bench_peers import (
    SHAPES,
    NotComparedError,
    check,
    list_contenders,
    parse_arguments,
)
from benchmarks.peers.contend import contend
from benchmarks.peers.contenders import (
    CONTENDERS,
    FINISHERS,
    SUMMARIZERS,
    SURVIVORS,
    Contender,
)
from benchmarks.peers.conversations import Work
from benchmarks.peers.environments import REQUIREMENTS, python_of, versions_of
from benchmarks.peers.report import Measured, Size
from benchmarks.windows import Window

PEERS = REQUIREMENTS.parent
FINISHING = [one for row in FINISHERS.values() for one in row.values()]
DELEGATING = [one.delegating for one in CONTENDERS.values() if one.delegates]
EVERYBODY = [
    *DELEGATING,
    *CONTENDERS.values(),
    *SURVIVORS.values(),
    *FINISHING,
    *SUMMARIZERS.values(),
]
ENVIRONMENTS = sorted({one.environment for one in EVERYBODY if one.environment})


@pytest.mark.parametrize("contender", EVERYBODY, ids=lambda contender: contender.label)
def test_every_contender_is_started_by_a_coroutine_that_its_module_has(
    contender: Contender,
) -> None:
    module, _, function = contender.entry.partition(":")
    source = (PEERS / f"{module.replace('.', '/')}.py").read_text()
    tree = compile(source, module, "exec", ast.PyCF_ONLY_AST)

    assert isinstance(tree, ast.Module)
    assert function in {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_environment_is_pinned_to_the_last_package(environment: str) -> None:
    lines = (REQUIREMENTS / f"{environment}.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]

    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []


@pytest.mark.parametrize("contender", EVERYBODY, ids=lambda contender: contender.label)
def test_the_versions_of_every_contender_are_known(contender: Contender) -> None:
    found = versions_of(contender.environment, contender.distributions)

    assert set(found) == set(contender.distributions)


def test_the_list_names_every_contender_with_the_versions_that_would_be_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    list_contenders(parse_arguments(["--list"]))

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CONTENDERS)
    pinned = versions_of("langgraph", ["langgraph"])["langgraph"]
    (line,) = (line for line in lines if line.startswith("langgraph "))
    assert f"langgraph {pinned}" in line


def test_only_those_asked_for_are_compared_and_a_smoke_test_is_small() -> None:
    options = parse_arguments(["--only", "pydantic-ai,ray", "--n", "3"])
    smoke = parse_arguments(["--smoke"])

    assert (list(options.contenders), options.n) == (["ray", "pydantic-ai"], 3)
    assert options.shapes == SHAPES
    small = [(2, 2, 1, 0), (2, 2, 8, 0), (1, 2, 1, 3)]
    assert (smoke.n, list(smoke.shapes.values())) == (1, small)


@pytest.mark.parametrize("wrong", [["--only", "langgraf"], ["--shapes", "9x9"], ["--n", "0"]])
def test_a_contender_or_shape_that_is_not_there_is_bad_input(wrong: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(wrong)


def test_an_environment_that_is_made_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_BENCH_CACHE", str(tmp_path))
    folder = tmp_path / "pydantic-ai"
    folder.mkdir()
    pins = (REQUIREMENTS / "pydantic-ai.txt").read_text()
    (folder / "made-of").write_text(f"{sys.version}\n{pins}")

    assert python_of("pydantic-ai") == folder / "bin" / "python"
    assert python_of(None) == Path(sys.executable)


def test_what_a_contender_prints_does_not_hide_its_marks() -> None:
    assert conversations.MARK == windows.MARK
    program = (
        "from benchmarks.peers.conversations import keep_marks_apart, window\n"
        "keep_marks_apart()\n"
        "print('a banner without an end', end='', flush=True)\n"
        "with window('work'): pass\n"
    )

    found = windows.measure_windows(
        [sys.executable, "-c", program], cwd=PEERS.parents[1], deadline_s=60
    )

    assert list(found) == ["work"]


def test_a_contender_that_fails_says_why_in_a_file(tmp_path: Path) -> None:
    work = Work(base_url="", folder=tmp_path, conversations=1, rounds=1)

    with pytest.raises(ModuleNotFoundError):
        contend("benchmarks.peers.nobody:contend", work)

    assert work.failure.read_text().startswith("ModuleNotFoundError: No module named")


def measured(**other: float) -> Measured:
    """Ten requests for two conversations of four rounds, and the warm-up's thirty."""
    counts = {"requests": 40, "lines": 8, "notes": 8, "request_bytes": 900.0, **other}
    return Measured(
        work=Window(wall_s=1.0, cpu_s=1.0, processes=1),
        idle_cpu_s=0.0,
        requests=int(counts["requests"]),
        lines=int(counts["lines"]),
        notes=int(counts["notes"]),
        request_bytes=counts["request_bytes"],
    )


def test_who_does_anything_but_the_work_is_not_compared() -> None:
    check(measured(), Size(2, 4), 1000.0)
    for wrong in ({"requests": 41}, {"lines": 9}, {"lines": 7, "notes": 7}, {"notes": 7}):
        with pytest.raises(NotComparedError, match="expected 40 and 8"):
            check(measured(**wrong), Size(2, 4), 1000.0)
    with pytest.raises(NotComparedError, match="the whole conversation takes 1200"):
        check(measured(), Size(2, 4), 1200.0)


async def test_calls_of_a_message_that_are_made_one_by_one_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "TOGETHER_WITHIN_S", 0.05)
    work = Work(base_url="", folder=tmp_path, conversations=1, rounds=2, calls=3)
    (task,) = work.tasks()
    asked = server.script({"messages": [{"role": "user", "content": task}]}).asked
    given = [json.loads(arguments) for _, arguments in asked]

    told = await asyncio.gather(*(work.tool(**one) for one in given))

    assert told == ["noted"] * 3
    assert len(set(work.log.read_text().splitlines())) == 3
    other = {**given[0], "line": "conversation 7, note 0.0 of 3"}
    with pytest.raises(TimeoutError, match="2 calls of a message do not begin"):
        await work.tool(**other)
    assert "do not begin" in work.failure.read_text()


def test_the_model_asks_for_each_note_and_ends_when_all_are_taken_or_the_tool_fails() -> None:
    user = {"role": "user", "content": [{"type": "text", "text": "3 2 /a file"}]}
    asking = {"role": "assistant", "tool_calls": []}
    noted = {"role": "tool", "content": "noted"}

    first = server.script({"messages": [user]})
    last = server.script({"messages": [user, asking, noted, asking, noted]})

    assert first.asked
    assert not last.asked
    failed = {"messages": [user, asking, {"role": "tool", "content": "failed"}]}
    assert not server.script(failed).asked
    assert server.lenient(failed).asked
