"""A fallible model works, misbehaves by draws, and comes back only when it is told what helps."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import run
from typing import Any

import aiohttp
import orjson
import pytest
from openai import APIError, AsyncOpenAI

from harness_actors.testing import (
    CheckableTask,
    FallibleModel,
    LoopbackServer,
    ToolNames,
    checkable_task,
    fallible_server,
)
from harness_actors.testing.checkable import KINDS, Kind
from harness_actors.testing.fallible import MISBEHAVIOURS, Misbehaviour, ModelFault

GO_ON = "Continue."
CIRCLES = "You have made the same call several times."
NAMES = ("write_file", "read_file", "edit_file", "run_command", "work_complete")


class Client:
    """A harness that does what it is asked, and says nothing by itself."""

    def __init__(self, base_url: str, task: CheckableTask, names: tuple[str, ...] = NAMES) -> None:
        self._url = f"{base_url}/chat/completions"
        self._task = task
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": task.prompt}]
        self._tools = [{"type": "function", "function": {"name": name}} for name in names]

    async def ask(self) -> dict[str, Any]:
        """The model's message; the conversation stays as it is."""
        body = {"model": "fallible", "messages": self.messages, "tools": self._tools}
        async with aiohttp.ClientSession() as http, http.post(self._url, json=body) as answer:
            assert answer.status == 200, await answer.text()
            message: dict[str, Any] = (await answer.json())["choices"][0]["message"]
        return message

    async def step(self, told: str | None = None) -> dict[str, Any]:
        """Ask, do what is asked for, and say something after it."""
        message = await self.ask()
        self.messages.append(message)
        for call in message.get("tool_calls", ()):
            result = self._do(call["function"]["name"], call["function"]["arguments"])
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        if told is not None:
            self.messages.append({"role": "user", "content": told})
        return message

    def _do(self, name: str, encoded: str) -> str:
        folder = self._task.folder
        try:
            given = orjson.loads(encoded)
        except orjson.JSONDecodeError as error:
            return f"error: {error}"
        match name:
            case "write_file":
                (folder / given["path"]).write_text(given["content"])
            case "read_file":
                return str((folder / given["path"]).read_text())
            case "edit_file":
                text = (folder / given["path"]).read_text()
                (folder / given["path"]).write_text(
                    text.replace(given["old_text"], given["new_text"])
                )
            case "run_command":
                ran = run(
                    given["command"].split(),
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                return ran.stdout
            case "work_complete":
                return "noted"
            case _:
                return f"error: no tool {name}"
        return "done"


Opened = Callable[..., Any]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """A server with one task, whose model has one fault at every step, and a client of it."""

    @asynccontextmanager
    async def opened(
        fault: Misbehaviour | None = None, *, kind: Kind = "write", rate: float = 1.0, **more: Any
    ) -> AsyncIterator[tuple[Client, CheckableTask, FallibleModel]]:
        task = checkable_task("t1", tmp_path / "t1", kind=kind, size=4)
        task.prepare()
        model = FallibleModel([task], {fault: rate} if fault else {}, **more)
        async with fallible_server(model) as server:
            yield Client(server.base_url, task), task, model

    return opened


def called(message: dict[str, Any]) -> str | None:
    calls = message.get("tool_calls")
    return calls[0]["function"]["name"] if calls else None


@pytest.mark.parametrize("kind", KINDS)
async def test_without_faults_a_task_of_any_kind_is_done_in_its_steps(
    opened: Opened, kind: Kind
) -> None:
    async with opened(kind=kind) as (client, task, model):
        assert task.missing
        for _ in task.steps:
            assert called(await client.step()) != "work_complete"

        assert called(await client.ask()) == "work_complete"
        assert not task.missing
        assert model.occurred == []
        assert model.calls("t1") == len(task.steps) + 1


async def test_what_is_done_is_looked_up_and_not_believed(opened: Opened) -> None:
    async with opened() as (client, task, _):
        first = await client.step()
        (task.folder / "file-0.txt").unlink()

        again = await client.ask()

        assert again["tool_calls"][0]["function"] == first["tool_calls"][0]["function"]
        (task.folder / "file-0.txt").write_text("something else")
        assert "file-0.txt" in task.missing


async def test_a_client_without_a_tool_for_it_gets_a_text_at_the_end(opened: Opened) -> None:
    async with opened() as (client, task, _):
        for step in task.steps:
            (task.folder / step.output).write_text(step.arguments["content"])
        client._tools.pop()

        last = await client.ask()

        assert called(last) is None
        assert last["content"]


@pytest.mark.parametrize("fault", ["stops", "narrates"])
async def test_a_model_that_stops_comes_back_at_a_nudge(opened: Opened, fault: ModelFault) -> None:
    async with opened(fault) as (client, _, model):
        assert called(await client.step()) is None
        assert called(await client.ask()) is None, "nobody told it anything"
        client.messages.append({"role": "user", "content": GO_ON})

        assert called(await client.ask()) == "write_file"
        assert model.occurred == [("t1", 0, fault)]


@pytest.mark.parametrize("told", [GO_ON, "Check everything again.", "file-0.txt", "prompt"])
async def test_a_claim_stands_until_something_that_is_missing_is_named(
    opened: Opened, told: str
) -> None:
    async with opened("claims") as (client, task, model):
        assert called(await client.step()) == "write_file", "nothing is done yet"
        assert called(await client.step(task.prompt if told == "prompt" else told)) == (
            "work_complete"
        )
        assert called(await client.step("file-2.txt is missing")) == "work_complete"

        assert called(await client.ask()) == "write_file"
        assert model.occurred == [("t1", 1, "claims")]


async def test_a_refused_claim_that_names_the_file_in_its_result_is_dropped(opened: Opened) -> None:
    async with opened("claims") as (client, _, _):
        await client.step()
        await client.step()
        client.messages[-1]["content"] = "not accepted: no file file-3.txt"

        assert called(await client.ask()) == "write_file"


async def test_nobody_claims_falsely_when_all_is_done(opened: Opened) -> None:
    async with opened("claims") as (client, task, model):
        for step in task.steps:
            (task.folder / step.output).write_text(step.arguments["content"])

        assert called(await client.ask()) == "work_complete"
        assert model.occurred == []


@pytest.mark.parametrize(("fault", "different"), [("wanders", 5), ("repeats", 1)])
async def test_useless_calls_end_when_a_message_says_that_they_repeat(
    opened: Opened, fault: ModelFault, different: int
) -> None:
    async with opened(fault) as (client, _, model):
        seen = [await client.step(GO_ON) for _ in range(12)]
        assert {called(message) for message in seen} == {"read_file"}
        asked = {message["tool_calls"][0]["function"]["arguments"] for message in seen}
        assert len(asked) == different
        client.messages.append({"role": "user", "content": "Do not repeat what was said."})
        assert called(await client.step(CIRCLES)) == "read_file"

        assert called(await client.ask()) == "write_file"
        assert model.useless_calls("t1") == 13


@pytest.mark.parametrize("fault", ["wanders", "repeats"])
async def test_useless_calls_end_by_themselves_after_so_many(
    opened: Opened, fault: ModelFault
) -> None:
    async with opened(fault, wander_calls=7) as (client, _, model):
        asked = [called(await client.step()) for _ in range(8)]

        assert asked == ["read_file"] * 7 + ["write_file"]
        assert model.useless_calls("t1") == 7


async def test_arguments_are_garbled_until_the_call_is_answered(opened: Opened) -> None:
    async with opened("garbles") as (client, _, _):
        garbled = await client.step()
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(garbled["tool_calls"][0]["function"]["arguments"])
        result = client.messages.pop()
        again = await client.ask()
        assert again["tool_calls"][0]["function"] == garbled["tool_calls"][0]["function"]
        client.messages.append(result)

        right = await client.ask()

        assert orjson.loads(right["tool_calls"][0]["function"]["arguments"])["path"] == "file-0.txt"


async def test_an_unknown_tool_is_called_until_that_is_answered(opened: Opened) -> None:
    async with opened("unknown_tool") as (client, _, _):
        assert called(await client.ask()) == "write_file_v2"
        assert called(await client.step()) == "write_file_v2"

        assert called(await client.ask()) == "write_file"


async def test_an_empty_answer_is_followed_by_another_one_when_asked_again(opened: Opened) -> None:
    async with opened("empty") as (client, _, model):
        empty = await client.ask()
        assert called(empty) is None
        assert not empty["content"]

        assert called(await client.ask()) == "write_file"
        assert model.occurred == [("t1", 0, "empty")]


@pytest.mark.parametrize(("fault", "status"), [("rate_limit", 429), ("server_error", 500)])
async def test_a_provider_refuses_once_a_step(opened: Opened, fault: str, status: int) -> None:
    async with opened(fault) as (client, _, model):
        body = {"messages": client.messages, "tools": client._tools}
        async with aiohttp.ClientSession() as http, http.post(client._url, json=body) as answer:
            assert answer.status == status

        assert called(await client.step()) == "write_file"
        assert model.occurred == [("t1", 0, fault)]
        assert model.calls("t1") == 2


async def test_an_answer_that_was_cut_is_given_when_asked_again(opened: Opened) -> None:
    async with opened("cut") as (client, _, _):
        with pytest.raises(aiohttp.ClientError):
            await client.ask()

        assert called(await client.ask()) == "write_file"


async def test_an_empty_answer_that_was_cut_was_not_heard(opened: Opened, tmp_path: Path) -> None:
    task = checkable_task("both", tmp_path / "both")
    task.prepare()
    async with fallible_server(FallibleModel([task], {"cut": 1.0, "empty": 1.0})) as server:
        client = Client(server.base_url, task)
        with pytest.raises(aiohttp.ClientError):
            await client.ask()

        assert called(await client.ask()) is None
        assert called(await client.ask()) == "write_file"


async def test_a_stalled_answer_is_held_back(opened: Opened) -> None:
    async with opened("stall", stall_s=60.0) as (client, _, model):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.ask(), 0.2)

        assert called(await client.ask()) == "write_file"
        assert model.occurred == [("t1", 0, "stall")]


async def drive(server: LoopbackServer, task: CheckableTask, *, retries: int) -> None:
    """Work on a task to its end, each request sent several times."""
    client = Client(server.base_url, task)
    for _ in range(200):
        for _ in range(retries):
            try:
                await client.ask()
            except (aiohttp.ClientError, AssertionError):
                continue
        try:
            message = await client.step(f"{CIRCLES} Missing: {', '.join(task.missing)}.")
        except (aiohttp.ClientError, AssertionError):
            continue
        if called(message) == "work_complete" and not task.missing:
            return
    raise AssertionError("it came to no end")


async def occurrences(folder: Path, seed: int, retries: int) -> dict[str, set[tuple[int, str]]]:
    tasks = [checkable_task(f"t{n}", folder / f"t{n}", kind=KINDS[n % 3]) for n in range(6)]
    rates: dict[Misbehaviour, float] = {f: 0.15 for f in MISBEHAVIOURS if f != "stall"}
    model = FallibleModel(tasks, rates, seed=seed)
    async with fallible_server(model) as server:
        for task in tasks:
            task.prepare()
            await drive(server, task, retries=retries)
            assert not task.missing
    met: dict[str, set[tuple[int, str]]] = {task.name: set() for task in tasks}
    for name, step, fault in model.occurred:
        met[name].add((step, fault))
    return met


async def test_faults_are_those_of_the_seed_whoever_asks_and_however_often(tmp_path: Path) -> None:
    once = await occurrences(tmp_path / "once", 3, 0)
    thrice = await occurrences(tmp_path / "thrice", 3, 2)
    other = await occurrences(tmp_path / "other", 4, 0)

    assert sum(map(len, once.values())) > 10
    assert once == thrice
    assert once != other
    assert len({frozenset(met) for met in once.values()}) > 1, "each task has draws of its own"


def test_a_fault_is_drawn_about_as_often_as_its_rate_says(tmp_path: Path) -> None:
    model = FallibleModel([checkable_task("t", tmp_path)], {"stops": 0.04})

    drawn = sum(model.draws("stops", f"task-{n}", step) for n in range(500) for step in range(6))

    assert 80 <= drawn <= 160


async def test_a_client_that_streams_and_calls_its_tools_otherwise_works_too(
    tmp_path: Path,
) -> None:
    task = checkable_task("t1", tmp_path / "t1")
    task.prepare()
    names = ToolNames(write="save", read="load")
    tools: Any = [{"type": "function", "function": {"name": name}} for name in ("save", "load")]
    async with (
        fallible_server(FallibleModel([task], tools=names)) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
    ):
        said: Any = [{"role": "user", "content": [{"type": "text", "text": task.prompt}]}]
        stream = await client.chat.completions.create(
            model="m", messages=said, tools=tools, stream=True
        )
        deltas = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
        (first, *_) = [call for delta in deltas for call in delta.tool_calls or ()]

        assert first.function is not None
        assert first.function.name == "save"
        with pytest.raises(APIError, match="tools must have load, save"):
            await client.chat.completions.create(model="m", messages=said)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b"{}",
        b'{"messages": 1}',
        b'{"messages": []}',
        b'{"messages": [1]}',
        b'{"messages": [{"role": 1}]}',
        b'{"messages": [{"role": "user", "content": 5}]}',
        b'{"messages": [{"role": "user", "content": [5]}]}',
        b'{"messages": [{"role": "user", "content": [{"text": 5}]}]}',
        b'{"messages": [{"role": "user", "content": "[nobody]"}]}',
        b'{"messages": [{"role": "user", "content": "[t1]"}], "tools": {}}',
        b'{"messages": [{"role": "user", "content": "[t1]"}], "tools": null}',
        b'{"messages": [{"role": "user", "content": "[t1]"}], "tools": [1]}',
        b'{"messages": [{"role": "user", "content": "[t1]"}], "tools": [{"function": 1}]}',
        b'{"messages": [{"role": "user", "content": "[t1]"}], "tools": [{"function": {}}]}',
        b'{"messages": [{"role": "user", "content": "' + b"[" * 1_000_000 + b'"}]}',
        b"\xff\xfe",
    ],
)
async def test_what_makes_no_sense_is_refused(opened: Opened, body: bytes) -> None:
    async with opened() as (client, _, model), aiohttp.ClientSession() as http:
        async with http.post(client._url, data=body) as answer:
            assert 400 <= answer.status < 500
            assert (await answer.json())["error"]["message"]

        assert model.calls("t1") == 0
        assert called(await client.ask()) == "write_file"


@pytest.mark.parametrize("rates", [{"stop": 0.1}, {"stops": 1.1}, {"stops": -0.1}])
def test_rates_that_make_no_sense_are_refused(tmp_path: Path, rates: Any) -> None:
    with pytest.raises(ValueError, match="rates"):
        FallibleModel([checkable_task("t", tmp_path)], rates)


def test_tasks_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    unknown: Any = "sing"
    with pytest.raises(ValueError, match="sing"):
        checkable_task("t", tmp_path, kind=unknown)
    with pytest.raises(ValueError, match="3 steps"):
        checkable_task("t", tmp_path, size=2)
    with pytest.raises(ValueError, match="same name"):
        FallibleModel([checkable_task("t", tmp_path), checkable_task("t", tmp_path)])
