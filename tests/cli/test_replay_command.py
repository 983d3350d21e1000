"""`harness replay`: a run once more, or onwards from one of its turns."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors.agents import ChatAgent, Program
from harness_actors.cli.app import app
from harness_actors.config import HarnessConfig
from harness_actors.models import OpenAIModel, Price
from harness_actors.records import WorkspaceSpec
from harness_actors.stores import JournalReader
from harness_actors.stores.artifacts import folder_of
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel
from harness_actors.tools import coding_tools
from tests.actors.followers import results
from tests.replay.families import grown, scouts
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    Session,
    done,
    opened_locally,
    program,
    with_another_nudge,
    write_journal,
)

Harness = Callable[..., Result]


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    runner = CliRunner()
    return lambda *words: runner.invoke(app, words, catch_exceptions=False)


REPLIES = [
    Reply.call("write", {"text": "one"}),
    Reply.text("I think it is written"),
    Reply.text("it is"),
    done("written"),
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A journal with a run of three turns, of which two began with a nudge."""
    store = tmp_path / "runs.db"
    session = Session(store, program(REPLIES), {}, "write one", "first1", "first1")
    asyncio.run(session.to_its_end())
    return store


def test_one_of_a_thing_is_told_as_one(harness: Harness, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    asyncio.run(Session(store, program([done()]), {}, "write one", "one1", "one1").to_its_end())

    replayed = harness("replay", "one", "--store", str(store))

    assert "1 answer of the model, 1 result of tools" in replayed.stdout


def test_the_same_log_is_said_to_be_the_same(harness: Harness, store: Path) -> None:
    replayed = harness("replay", "first", "--store", str(store))

    assert replayed.exit_code == 0
    assert "run first1: 9 messages, done(completed)" in replayed.stdout
    assert "4 answers of the model, 2 results of tools" in replayed.stdout
    assert "the same log: all 9 messages, byte for byte, and the same end" in replayed.stdout


def test_a_replay_for_scripts(harness: Harness, store: Path) -> None:
    replayed = json.loads(harness("replay", "first1", "--store", str(store), "--json").stdout)

    assert replayed["same"] is True
    assert replayed["same_messages"] == replayed["messages"] == 9
    assert (replayed["status"], replayed["reason"]) == ("done", "completed")
    assert replayed["differences"] == []


def test_what_differs_is_printed(harness: Harness, store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    recording = Session(store, program([]), run_id="first1").recording()
    write_journal(with_another_nudge(recording), other)

    replayed = harness("replay", "first1", "--store", str(other))
    plain = json.loads(harness("replay", "first1", "--store", str(other), "--json").stdout)

    assert replayed.exit_code == 1
    assert "'stop_decision': message 1 (user)" in replayed.stdout
    assert '"content":"keep going"' in replayed.stdout
    assert "another log: the first 4 of 9 messages are the same" in replayed.stdout
    assert plain["same"] is False
    assert len(plain["differences"]) == 2


@pytest.mark.parametrize(
    "flags", [["--model", "x"], ["-M", "temperature=0"], ["--workspace", "/tmp"]]
)
def test_a_replay_takes_nothing_that_a_fork_needs(
    harness: Harness, store: Path, flags: list[str]
) -> None:
    replayed = harness("replay", "first1", "--store", str(store), *flags)

    assert replayed.exit_code == 2
    assert "add --from" in replayed.stderr


# ---- going on from a turn ---------------------------------------------------------------


def forked_run(tmp_path: Path) -> tuple[Any, list[Any]]:
    """The one run of the home, and its conversation."""
    journal = JournalReader(tmp_path / "home" / "runs.db")
    (heading,) = journal.headings()
    return heading, journal.load_conversation(heading.conversation_id)


def log_of(store: Path) -> list[Any]:
    return JournalReader(store).load_conversation("first1")


def test_a_fork_goes_on_with_the_agent_of_the_run(
    harness: Harness, store: Path, tmp_path: Path
) -> None:
    forked = harness("replay", "first1", "--store", str(store), "--from", "2", "--runtime", "local")

    heading, log = forked_run(tmp_path)
    assert forked.exit_code == 0
    assert forked.stdout == "written\n"
    assert f"run {heading.run_id}, from turn 2 of run first1" in forked.stderr
    assert heading.metadata == {"forked_from": {"run_id": "first1", "turn": 2}}
    assert heading.run_id not in ("first1", "")
    # A script is a function of the conversation, so all of it comes out again.
    assert [m.encoded for m in log] == [m.encoded for m in log_of(store)]


LONG_REPLIES = [
    Reply.call("long", {"characters": 20_000}),
    Reply.text("I have seen it"),
    done("seen"),
]


def test_a_fork_reads_on_in_the_long_results_of_its_log(harness: Harness, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    session = Session(store, program(LONG_REPLIES), {"artifacts": {}}, "look", "first1", "first1")
    asyncio.run(session.to_its_end())
    words = ("replay", "first1", "--store", str(store), "--runtime", "local", "--from")

    assert harness(*words, "2").exit_code == 0
    assert harness(*words, "1").exit_code == 0

    home = tmp_path / "home" / "runs.db"
    second, first = JournalReader(home).headings()
    (whole,) = folder_of(store, "first1").iterdir()
    assert [path.read_text() for path in folder_of(home, second.conversation_id).iterdir()] == [
        whole.read_text()
    ]
    # The other one has no such result in its log, but has made it anew.
    assert {path.name for path in folder_of(home, first.conversation_id).iterdir()} == {whole.name}


@pytest.fixture
def live() -> Iterator[str]:
    """The address of a live model, which has ideas of its own."""
    with serving(lambda body: done(f"after {len(body['messages'])} messages")) as base_url:
        yield base_url


@contextmanager
def serving(answer: Callable[[dict[str, Any]], Reply]) -> Iterator[str]:
    """The address of a model that answers by a function of the request."""
    loop = asyncio.new_event_loop()
    server = LoopbackServer(answer)
    loop.run_until_complete(server.__aenter__())
    thread = Thread(target=loop.run_forever)
    thread.start()
    yield server.base_url
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def test_a_fork_goes_on_with_another_model(
    harness: Harness, store: Path, tmp_path: Path, live: str
) -> None:
    words = ("replay", "first1", "--store", str(store), "--from", "3", "--runtime", "local")
    forked = harness(*words, "--model", "other", "--model-base-url", live, "--json")

    _, log = forked_run(tmp_path)
    # The system prompt, and what the log held when turn 3 began.
    assert json.loads(forked.stdout)["output_text"] == "after 8 messages"
    assert [m.encoded for m in log[:7]] == [m.encoded for m in log_of(store)[:7]]
    assert len(log) == 9


def test_a_fork_of_the_same_model_elsewhere_keeps_its_price_and_settings(
    harness: Harness, tmp_path: Path
) -> None:
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Reply:
        asked.append(body)
        return done("done")

    store = tmp_path / "runs.db"
    with serving(answer) as base_url:
        price, settings = Price(2.0, None, 9.0), {"seed": 1, "top_p": 0.5}
        model = OpenAIModel("mine", base_url=base_url, price=price, settings=settings)
        agent = Program.of(ChatAgent(model=model))
        asyncio.run(Session(store, agent, {}, "write one", "first1", "first1").to_its_end())
        words = ("replay", "first1", "--store", str(store), "--from", "1", "--runtime", "local")
        with serving(answer) as elsewhere:
            forked = harness(*words, "--model-base-url", elsewhere, "-M", "seed=2", "--json")

    usage = json.loads(forked.stdout)["usage"]
    assert usage["cost_usd"] == price.cost_usd(
        input_tokens=usage["input_tokens"],
        cached_tokens=0,
        output_tokens=usage["output_tokens"],
    )
    assert [(body["seed"], body["top_p"]) for body in asked] == [(1, 0.5), (2, 0.5)]


def test_turn_one_begins_at_the_task(
    harness: Harness, store: Path, tmp_path: Path, live: str
) -> None:
    words = ("replay", "first1", "--store", str(store), "--from", "1", "--runtime", "local")
    forked = harness(*words, "--model", "other", "--model-base-url", live)

    assert forked.stdout == "after 2 messages\n"
    assert [m.role for m in forked_run(tmp_path)[1]] == ["user", "assistant", "tool"]


def test_a_turn_that_there_is_not_is_bad_input(harness: Harness, store: Path) -> None:
    forked = harness("replay", "first1", "--store", str(store), "--from", "4")

    assert forked.exit_code == 2
    assert "run 'first1' has turns 1 to 3, and no 4" in forked.stderr


@pytest.mark.parametrize("given", [False, True])
def test_a_fork_works_in_a_workspace_of_its_own(
    harness: Harness, tmp_path: Path, given: bool
) -> None:
    template, mine = tmp_path / "template", tmp_path / "mine"
    for folder in (template, mine):
        folder.mkdir()
    (template / "a.txt").write_text("begin")
    store = tmp_path / "runs.db"
    asyncio.run(_writes(store, tmp_path / "first", template))

    words = ["replay", "first1", "--store", str(store), "--from", "1", "--runtime", "local"]
    forked = harness(*words, *(["--workspace", str(mine)] if given else []))

    heading, _ = forked_run(tmp_path)
    stored = JournalReader(tmp_path / "home" / "runs.db").load_run(heading.run_id)
    assert forked.exit_code == 0
    assert stored is not None
    assert stored.spec.workspace is not None
    place = Path(stored.spec.workspace.path)
    assert place != tmp_path / "first"
    assert (place / "b.txt").read_text() == "hello"
    assert (place == mine) is given
    assert (place / "a.txt").exists() is not given
    assert ("the files of that turn are not kept" in forked.stderr) is not given


async def _writes(store: Path, place: Path, template: Path) -> None:
    model = ScriptedModel([Reply.call("write_file", {"path": "b.txt", "content": "hello"}), done()])
    agent = Program.of(ChatAgent(model=model, tools=coding_tools()))
    spec = agent.spec(
        "write",
        HarnessConfig(),
        run_id="first1",
        workspace=WorkspaceSpec(path=str(place), source=str(template)),
    )
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await runtime.submit([spec], code={agent.code: agent.blob}, secrets={})
        await results(runtime, ["first1"])


def test_a_run_and_those_that_it_began_are_replayed_by_a_beginning(
    harness: Harness, tmp_path: Path
) -> None:
    store = tmp_path / "tree.db"
    asyncio.run(grown(store, [scouts("read a", "read b"), done()]))

    for given, run_id in (("r", "run"), ("r.2", "run.2"), ("run.1", "run.1")):
        said = harness("replay", given, "--store", str(store))

        assert said.exit_code == 0
        assert said.stdout.startswith(f"run {run_id}: ")
        assert "the same log" in said.stdout
    assert harness("replay", "r.", "--store", str(store)).exit_code == 2
