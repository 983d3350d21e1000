"""What is wrong on the way in ends in a clear line or a defined outcome, never in a traceback.

Here through the real command. A malformed line, an id given twice, a missing workspace, a wrong
key and two commands on one run directory are in `tests/cli/test_batch_command.py`; each kind of
provider fault is in `tests/models/test_openai.py`, each kind of tool fault in `tests/turn`.
"""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_actors.messages import Message
from harness_actors.testing import LoopbackServer, Reply, over_messages
from harness_actors.testing.faults import (
    EMPTY_CHOICES,
    UNKNOWN_MODEL,
    BreakOff,
    Fault,
    NeverAnswer,
    always,
    first,
)
from tests.cli.commands import answers, finished, started

TOOLS = """
import sys
import threading
from harness_actors import tool

GUARD = threading.Lock()

class Strange(Exception):
    def __str__(self):
        raise RuntimeError("no words")

@tool
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b

@tool
def misbehave(how: str):
    '''Misbehave.'''
    match how:
        case "raise":
            raise ValueError("the disk is on fire")
        case "strange":
            raise Strange
        case "exit":
            sys.exit(3)
        case "bytes":
            return b"\\xff\\x00"
        case "nan":
            return {"value": float("nan")}
        case "object":
            return object()
        case "itself":
            loop = []
            loop.append(loop)
            return loop
        case "surrogate":
            return "half \\udc80 of it"
        case "nothing":
            return None
"""

UNPICKLABLE = """
import threading
from harness_actors import tool

def make():
    guard = threading.Lock()
    @tool
    def guarded() -> str:
        '''Use a lock.'''
        with guard:
            return "x"
    return guarded

guarded = make()
"""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A command that has ended."""

    status: int
    out: str
    error: str
    seconds: float

    def __post_init__(self) -> None:
        for said in (self.out, self.error):
            assert "Traceback" not in said
            assert "ray." not in said.lower()
        # With the time that a busy machine takes to start Python and Ray.
        assert self.seconds < 45

    @property
    def result(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.out.splitlines()[0])
        return result


async def harness(*arguments: str, home: Path, **variables: str) -> Ended:
    began = time.monotonic()
    running = await started(arguments, HARNESS_HOME=str(home), **variables)
    status, out, error = await finished(running)
    return Ended(status=status, out=out, error=error, seconds=time.monotonic() - began)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent with tools of its own beside its file."""
    write(tmp_path, "bad_tools.py", TOOLS)
    return write(
        tmp_path,
        "agent.yaml",
        "environment: {tools: ['bad_tools:add', 'bad_tools:misbehave']}",
    )


def at(server: LoopbackServer, runtime: str = "local") -> list[str]:
    where = ["--runtime", runtime, *(["--address", "local"] if runtime == "ray" else [])]
    return [*where, "--model", "scripted", "--model-base-url", server.base_url]


TWO_CALLS = [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})]


def misbehave(how: str) -> Reply:
    return Reply.call("misbehave", {"how": how})


# ---- what a model may say, and what a tool may do --------------------------------------

CASES: dict[str, tuple[Reply, str]] = {
    "no JSON": (Reply.call("add", "{no json"), "JSON"),
    "no object": (Reply.call("add", "[1, 2]"), "object"),
    "a wrong type": (Reply.call("add", {"a": "one", "b": 2}), "a"),
    "one missing": (Reply.call("add", {"a": 1}), "b"),
    "one too many": (Reply.call("add", {"a": 1, "b": 2, "c": 3}), "c"),
    "an unknown tool": (Reply.call("subtract"), "There is no tool 'subtract'. Tools: add, misb"),
    "no name": (Reply.call(""), "There is no tool"),
    "one id twice": (Reply.calls(TWO_CALLS, ids=["x", "x"]), "3 | 7"),
    "no ids": (Reply.calls(TWO_CALLS, ids=["", ""]), "3 | 7"),
    "raise": (misbehave("raise"), "ValueError: the disk is on fire"),
    "strange": (misbehave("strange"), "Strange: (its text cannot be read: RuntimeError)"),
    "exit": (misbehave("exit"), "SystemExit: 3"),
    "bytes": (misbehave("bytes"), "bytes"),
    "nan": (misbehave("nan"), "NaN"),
    "object": (misbehave("object"), "object"),
    "itself": (misbehave("itself"), "list"),
    "surrogate": (misbehave("surrogate"), "half ? of it"),
    "nothing": (misbehave("nothing"), ""),
}


def answers_case(messages: Sequence[Message]) -> Reply:
    """What the case of the task says first; then completes with what the tools answered."""
    if messages[-1].role == "user":
        return CASES[messages[-1].text][0]
    told = [message.text for message in messages if message.role == "tool"]
    return Reply.call("work_complete", {"summary": f"told: {' | '.join(told)}"})


@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=pytest.mark.ray)])
async def test_what_a_model_or_a_tool_does_wrong_is_answered_and_the_run_goes_on(
    tmp_path: Path, agent: Path, runtime: str
) -> None:
    tasks = [json.dumps({"id": case, "task": case}) for case in CASES]
    write(tmp_path, "tasks.jsonl", "\n".join(tasks))
    async with LoopbackServer(over_messages(answers_case)) as server:
        ended = await harness(
            *("batch", str(tmp_path / "tasks.jsonl"), "--run-dir", str(tmp_path / "run")),
            *("--json", "--agent", str(agent), *at(server, runtime)),
            home=tmp_path,
        )

    *lines, last = [json.loads(line) for line in ended.out.splitlines()]
    outcomes = {line["id"]: line for line in lines}
    assert ended.status == 0
    assert last["summary"]["ending"] == "complete"
    for case, (_, told) in CASES.items():
        assert outcomes[case]["status"] == "done"
        assert told in outcomes[case]["output_text"]


# ---- what a provider may do ----------------------------------------------------------


@pytest.mark.parametrize("fault", [EMPTY_CHOICES, BreakOff("in_body"), BreakOff("before_headers")])
async def test_a_broken_answer_is_asked_for_again(tmp_path: Path, fault: Fault) -> None:
    async with LoopbackServer(answers, faults=first(1, fault)) as server:
        ended = await harness("run", "go", "--json", *at(server), home=tmp_path)

    assert (ended.status, ended.result["output_text"]) == (0, "You said: go")
    assert server.requests == 2


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (EMPTY_CHOICES, "choices"),
        (BreakOff("in_body"), "scripted"),
        (UNKNOWN_MODEL, "404"),
    ],
)
async def test_a_provider_that_never_answers_well_fails_the_run_with_its_word(
    tmp_path: Path, fault: Fault, told: str
) -> None:
    async with LoopbackServer(faults=always(fault)) as server:
        ended = await harness("run", "go", "--json", *at(server), home=tmp_path)

    assert ended.status == 1
    assert (ended.result["status"], ended.result["reason"]["kind"]) == ("failed", "model_error")
    assert told in ended.result["reason"]["message"]


async def test_an_endpoint_that_is_dead_is_named_within_seconds(tmp_path: Path) -> None:
    dead = "http://127.0.0.1:9/v1"
    flags = ("--runtime", "local", "--model", "m", "--model-base-url", dead)
    ended = await harness("run", "go", "--json", *flags, home=tmp_path)

    assert ended.status == 1
    assert ended.result["reason"]["kind"] == "model_error"
    assert dead in ended.result["reason"]["message"]


@pytest.mark.parametrize("url", ["not a url", "ftp://127.0.0.1/v1", "http://[::1"])
async def test_an_endpoint_that_is_none_is_told(tmp_path: Path, url: str) -> None:
    flags = ("--runtime", "local", "--model", "m", "--model-base-url", url)
    ended = await harness("run", "go", *flags, home=tmp_path)

    assert ended.status in (1, 2)
    assert url in ended.error


async def test_an_endpoint_that_says_nothing_is_left_at_the_time_limit(tmp_path: Path) -> None:
    async with LoopbackServer(faults=always(NeverAnswer())) as server:
        flags = ("--json", "--time-limit", "1")
        ended = await harness("run", "go", *flags, *at(server), home=tmp_path)

    assert ended.status == 1
    assert (ended.result["status"], ended.result["reason"]["kind"]) == ("limit", "time")


async def test_a_key_that_is_missing_is_told_with_the_variable_to_set(tmp_path: Path) -> None:
    flags = ("--json", "--runtime", "local", "--model", "gpt-4.1-mini")
    ended = await harness("run", "go", *flags, home=tmp_path)

    assert ended.status != 0
    assert "OPENAI_API_KEY" in ended.out + ended.error


# ---- what a user may write -----------------------------------------------------------


@pytest.mark.parametrize(
    ("yaml", "told"),
    [
        ("harness: {sub_agents: {depth: 1}}", "sub_agents.depth: no such setting"),
        ("harness: {work_items: {}}", "work_items: this part of the harness is not built"),
        ("harness: {compaction: {soft: 0.4}}", "compaction.low_water: must be below soft (0.4)"),
        ("harness: {compaction: {sift: 0.5}}", "compaction.sift: no such setting"),
        ("persona: {contract: {goal: x}}", "persona.contract.outputs: is missing"),
        ("harness: {max_turn: 3}", "max_turn: no such setting; there are max_turns"),
        (
            "harness: {limits: {tokens: 0}}",
            "agent.yaml: harness.limits.tokens: must be a whole number",
        ),
        (
            "enviroment: {}",
            "enviroment: there is no such field; there are model, models, fallback, persona",
        ),
        ("environment: {tools: ['no_such_module:f']}", "no_such_module"),
        ("environment: {tools: ['broken:f']}", "broken"),
        ("environment: {workspace: {from: nowhere}}", "there is no folder"),
        ("a: [", "agent.yaml"),
    ],
)
async def test_an_agent_file_with_a_fault_is_told_before_anything_runs(
    tmp_path: Path, yaml: str, told: str
) -> None:
    write(tmp_path, "bad_tools.py", TOOLS)
    write(tmp_path, "broken.py", "def f(:\n")
    agent = write(tmp_path, "agent.yaml", yaml)
    ended = await harness("run", "go", "--agent", str(agent), "--model", "m", home=tmp_path)

    assert (ended.status, ended.out) == (2, "")
    assert ended.error.startswith("error: ")
    assert told in ended.error


async def test_an_agent_that_cannot_be_pickled_is_told_by_its_part(tmp_path: Path) -> None:
    write(tmp_path, "locks.py", UNPICKLABLE)
    agent = write(tmp_path, "agent.yaml", "environment: {tools: ['locks:guarded']}")
    write(tmp_path, "tasks.jsonl", '{"task": "x"}\n')
    endpoint = ("--model", "m", "--model-base-url", "http://127.0.0.1:9/v1")
    flags = ("--agent", str(agent), *endpoint)
    one = await harness("run", "go", *flags, home=tmp_path)
    many = await harness(
        *("batch", str(tmp_path / "tasks.jsonl"), "--run-dir", str(tmp_path / "run")),
        *flags,
        home=tmp_path,
    )

    for ended in (one, many):
        assert ended.status == 2
        assert "tool 'guarded' cannot be pickled" in ended.error
    assert not await asyncio.to_thread((tmp_path / "run").exists)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", ""], "error: TASK: the task is empty"),
        (["run", "x", "--max-turns", "0"], "error: --max-turns: must be a whole number"),
        (["run", "x", "--time-limit", "nan"], "error: --time-limit: must be a number above 0"),
        (["run", "x", "-M", "temperature"], "-M: must be KEY=VALUE"),
        (["run", "x", "--agent", "/no/where.yaml"], "/no/where.yaml: No such file"),
        (["run", "x", "--model", ""], "no model is named"),
        (["batch", "/", "--run-dir", "/tmp/x"], "/: Is a directory"),
    ],
)
async def test_flags_with_a_fault_are_told_before_anything_runs(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    model = () if "--model" in arguments else ("--model", "m")
    flags = (*model, "--runtime", "local", "--model-base-url", "http://127.0.0.1:9/v1")
    ended = await harness(*arguments, *flags, home=tmp_path)

    assert (ended.status, ended.out) == (2, "")
    assert told in ended.error


@pytest.mark.parametrize("home", ["file", "file/below"])
async def test_a_home_where_no_journal_can_be_is_told(tmp_path: Path, home: str) -> None:
    write(tmp_path, "file", "")
    flags = ("--runtime", "local", "--model", "m", "--model-base-url", "http://127.0.0.1:9/v1")
    ended = await harness("run", "go", *flags, home=tmp_path / home)

    assert ended.status == 2
    assert "set HARNESS_HOME to a folder" in ended.error


# ---- a run directory that somebody had his hands in ----------------------------------


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("results.jsonl", b"not ours\n{}\n", "line 1: not a result of a batch"),
        ("results.jsonl", b'{"id": "t1"}\n{"id": "t2"}\n', "line 1: not a result of a batch"),
        ("results.jsonl", b"a single line", "line 1: not a result of a batch"),
        ("results.jsonl", b'{"mine": 1}\n{"mine": 2', "line 1: not a result of a batch"),
        ("summary.json", b'{"mine": 1}', "is no summary of a batch"),
        ("runs.db", b"garbage" * 1000, "runs.db"),
        ("runs.db.lock", b"locked versions", "that file is none of ours"),
    ],
)
async def test_files_that_are_none_of_ours_are_told_and_left_alone(
    tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / name).write_bytes(content)
    changed_at = (run / name).stat().st_mtime_ns
    write(tmp_path, "tasks.jsonl", '{"task": "x"}\n')
    async with LoopbackServer() as server:
        ended = await harness(
            *("batch", str(tmp_path / "tasks.jsonl"), "--run-dir", str(run), *at(server)),
            home=tmp_path,
        )

    assert ended.status in (1, 2)
    assert told in ended.error
    assert server.requests == 0
    assert (run / name).read_bytes() == content
    assert (run / name).stat().st_mtime_ns == changed_at


async def test_tasks_from_a_pipe_are_refused_for_they_are_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tasks.jsonl")
    flags = ("--run-dir", str(tmp_path / "run"), "--runtime", "local", "--model", "m")
    endpoint = ("--model-base-url", "http://127.0.0.1:9/v1")
    tasks = str(tmp_path / "tasks.jsonl")
    ended = await harness("batch", tasks, *flags, *endpoint, home=tmp_path)

    assert ended.status == 2
    assert "save them to a file first" in ended.error


@pytest.mark.ray
async def test_a_ray_that_is_not_there_is_told_within_seconds(tmp_path: Path) -> None:
    flags = ("--model", "m", "--model-base-url", "http://127.0.0.1:9/v1")
    ended = await harness("run", "go", "--address", "127.0.0.1:9", *flags, home=tmp_path)

    assert ended.status == 1
    assert "127.0.0.1:9" in ended.error
    assert "ray start --head" in ended.error
