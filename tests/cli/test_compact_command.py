"""Summaries that a user asks for, and what is shown of a window."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness_actors.cli.app import app
from harness_actors.testing import LoopbackServer, Reply
from tests.cli.test_chat_command import command, piped

LONG = "It went so and so. " * 200
DECISION = "We'll use SQLite because it is there. "


class Talker:
    """Answers at length, and has what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.bodies.append(body)
        said = sum(message["role"] == "user" for message in body["messages"])
        return Reply.text(f"{DECISION if said == 1 else ''}Answer {said}. {LONG}")


LINES = "one\ntwo\nthree\nfour\n"


async def ctl(home: Path, *words: str) -> Any:
    variables = {"HARNESS_HOME": str(home), "COLUMNS": "200"}
    arguments = ["ctl", "run", *words]
    # In a thread: a command has an event loop of its own.
    return await asyncio.to_thread(CliRunner().invoke, app, arguments, env=variables)


async def test_a_chat_goes_on_with_a_summary_that_was_asked_for(tmp_path: Path) -> None:
    talker = Talker()
    async with LoopbackServer(talker) as server:
        given = f"{LINES}/compact the numbers\nfive\nsix\n"
        status, out, error = await piped(tmp_path, given, command(server, "--json"))

    assert status == 0, error
    items = [json.loads(line) for line in out.splitlines()]
    (event,) = [one for one in items if one.get("type") == "context_compacted"]
    assert event["summarized"] > 0
    assert event["tokens_after"] < event["tokens_before"]
    before, after = (
        [message["content"] for message in talker.bodies[at]["messages"]] for at in (3, 4)
    )
    assert not any("were summarized" in text for text in before)
    (summary,) = [text for text in after if "were summarized" in text]
    assert "We'll use SQLite" in summary
    # The user's own words, and the newest answer.
    for word in ("one", "two", "three", "four", "five"):
        assert word in after
    assert any(text.startswith("Answer 4. ") for text in after)
    assert sum(map(len, after)) < sum(map(len, before))


@pytest.mark.ray
async def test_on_a_ray_as_well(tmp_path: Path) -> None:
    talker = Talker()
    async with LoopbackServer(talker) as server:
        flags = command(server, "--runtime", "ray", "--address", "local")
        status, _, error = await piped(tmp_path, f"{LINES}/compact\nfive\n", flags)

    assert status == 0, error
    assert "the conversation is summarized before the next line is answered" in error
    assert "were summarized" in json.dumps(talker.bodies[-1])


async def test_what_is_known_of_a_window_is_shown(tmp_path: Path) -> None:
    async with LoopbackServer(Talker()) as server:
        status, out, _ = await piped(
            tmp_path, f"{LINES}/compact\nfive\n", command(server, "--json")
        )
    assert status == 0
    run_id = json.loads(out.splitlines()[-1])["run_id"]

    shown = await ctl(tmp_path, "show", run_id)
    assert shown.exit_code == 0, shown.output
    (window,) = [line for line in shown.stdout.splitlines() if line.startswith("window ")]
    assert "of 128,000 tokens" in window
    (room,) = [line for line in shown.stdout.splitlines() if line.startswith("made room ")]
    assert "summarized" in room
    told = json.loads((await ctl(tmp_path, "show", run_id, "--json")).stdout)["window"]
    assert told["plan"] == 1
    assert told["summaries"]["model_calls"] == 0
    assert [one["version"] for one in told["compacted"]] == [1]


async def test_of_a_run_that_nobody_serves_nothing_is_summarized(tmp_path: Path) -> None:
    async with LoopbackServer(Talker()) as server:
        _, out, _ = await piped(tmp_path, "one\n", command(server, "--json"))
    run_id = json.loads(out.splitlines()[-1])["run_id"]

    plain = await ctl(tmp_path, "compact", run_id, "the names")
    assert plain.exit_code == 1
    assert "nothing is summarized" in plain.stdout
    told = await ctl(tmp_path, "compact", run_id[:6], "--json")
    assert (told.exit_code, json.loads(told.stdout)) == (1, {"run_id": run_id, "compacts": False})
    unknown = await ctl(tmp_path, "compact", "nobody")
    assert unknown.exit_code == 2
    assert "Traceback" not in unknown.output


def an_agent(folder: Path, server: LoopbackServer, window: int) -> list[str]:
    path = folder / f"window{window}.yaml"
    fields = {
        "model": {"id": "scripted", "base_url": server.base_url, "key_name": "HARNESS_TEST_KEY"},
        "harness": {"max_input_tokens": window},
    }
    path.write_text(json.dumps(fields))
    return ["--runtime", "local", "--agent", str(path)]


async def test_whoever_watches_is_told_once_a_window_fills(tmp_path: Path) -> None:
    async with LoopbackServer(Talker()) as server:
        words = an_agent(tmp_path, server, 5_000)
        roomy = an_agent(tmp_path, server, 50_000)
        key = {"HARNESS_TEST_KEY": "k"}
        _, _, chatted = await piped(tmp_path, "one\ntwo\nthree\n", ["chat", *words], **key)
        task = "x " * 1_500
        _, _, ran = await piped(tmp_path, "", ["run", task, *words], **key)
        _, out, quiet = await piped(tmp_path, "", ["run", task, *words, "--json"], **key)
        _, _, short = await piped(tmp_path, "", ["run", "one", *roomy], **key)

    told = [line for line in chatted.splitlines() if "of the window" in line]
    # Not behind the first answer, which fills less than a quarter.
    assert len(told) == 2
    assert all(line.endswith("of 5,000 tokens; /compact makes room") for line in told)
    (line,) = [line for line in ran.splitlines() if "of the window" in line]
    assert line.startswith("the next request takes ")
    assert "of the window" not in out + quiet + short
