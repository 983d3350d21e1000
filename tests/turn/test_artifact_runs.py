"""Runs whose results are too long for their conversation: kept, read on in, replayed."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from harness_actors.actors import Runtime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import ArtifactsConfig, HarnessConfig
from harness_actors.messages import Message
from harness_actors.policies import AfterTool, Hooks, Replace
from harness_actors.ports import LargeResult, ModelRequest, ModelResponse
from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.stores.artifacts import artifacts_of, remove_artifacts
from harness_actors.testing.scripted import Reply
from harness_actors.tools import tool
from tests.actors.followers import opened, results
from tests.replay.recorded_runs import CountingModel, Session, done, program, recorded

INLINE = 12_000
ID = re.compile(r"\ba[0-9a-f]{10}\b")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@tool(effect="read_only")
async def long(characters: int) -> str:
    """Answer with a long text.

    Args:
        characters: How long.
    """
    return "".join(str(number % 10) for number in range(characters))


@tool(effect="read_only")
async def large(size: int) -> str:
    """Answer with a file.

    Args:
        size: How large it is, in bytes.
    """
    file = TemporaryFile()  # noqa: SIM115 - whoever takes it closes it
    file.write(b"x" * size)
    return LargeResult(repr(b"x" * 10), file)


@tool(worker=True, effect="read_only")
def worked_out(characters: int) -> str:
    """Answer with a long text, from another process.

    Args:
        characters: How long.
    """
    return "0123456789" * (characters // 10)


def reads_on(characters: int = 50_000, **arguments: Any) -> CountingModel:
    """Calls `long`, reads on in its result, and is done."""

    def script(messages: Any) -> Reply:
        spoken = sum(message.role == "assistant" for message in messages)
        if spoken == 0:
            return Reply.call("long", {"characters": characters})
        if spoken == 1:
            named = next(
                found[0]
                for message in messages
                if message.role == "tool" and (found := ID.search(message.text))
            )
            return Reply.call("read_artifact", {"id": named, **arguments})
        return done()

    return CountingModel(script)


def results_in(session: Session) -> list[Message]:
    return [message for message in session.recording().messages if message.role == "tool"]


async def test_a_model_reads_on_in_what_was_too_long_for_its_conversation(store: Path) -> None:
    session = await recorded(
        store, program(reads_on(start=20_000, end=20_010), [long]), artifacts={}
    )
    reference, page, _ = results_in(session)
    assert len(reference.text) <= INLINE
    assert (
        page.text
        == "[Characters 20,000 to 20,010 of 50,000; the next begins at start=20010.]\n0123456789"
    )


async def test_a_run_with_artifacts_is_replayed_without_them(store: Path) -> None:
    session = await recorded(store, program(reads_on(), [long]), artifacts={})
    for path in artifacts_of(store).rglob("*-*"):
        path.unlink()
    replayed = await session.replayed()
    assert replayed.same, replayed.differences


async def test_a_long_result_of_a_worker_process_is_kept_whole(store: Path) -> None:
    replies = [Reply.call("worked_out", {"characters": 2_000_000}), done()]
    session = await recorded(store, program(replies, [worked_out]), artifacts={})
    assert "has 2,000,000 characters" in results_in(session)[0].text
    (kept,) = artifacts_of(store).rglob("*-*")
    assert kept.read_text() == "0123456789" * 200_000
    replayed = await session.replayed()
    assert replayed.same, replayed.differences


async def test_what_a_hook_replaces_is_in_no_file(store: Path) -> None:
    async def hides(event: AfterTool) -> Replace | None:
        replaced = event.tool_name == "long"
        return Replace(event.text.replace("0123456789", "…")) if replaced else None

    replies = [
        Reply.call("long", {"characters": 200_000}),
        Reply.call("large", {"size": 50_000}),
        done(),
    ]
    agent = ChatAgent(
        model=CountingModel(replies), tools=[long, large], hooks=Hooks(post_tool=hides)
    )
    session = await recorded(store, Program.of(agent), artifacts={})

    hidden, seen, _ = results_in(session)
    assert "0123456789" not in hidden.text
    assert ID.search(seen.text) is not None
    kept = [path.read_text() for path in artifacts_of(store).rglob("*-*")]
    assert sorted(text[:1] for text in kept) == ["x", "…"]
    assert not any("0123456789" in text for text in kept)
    replayed = await session.replayed()
    assert replayed.same, replayed.differences


async def test_without_the_setting_nothing_is_kept_and_nothing_offered(store: Path) -> None:
    session = await recorded(
        store,
        program(
            [Reply.call("long", {"characters": 200_000}), Reply.call("read_artifact", {}), done()]
        ),
    )
    cut, unknown, _ = results_in(session)
    assert "characters left out" in cut.text
    assert "There is no tool 'read_artifact'" in unknown.text
    assert not artifacts_of(store).exists()


async def test_a_file_is_only_its_text_where_nothing_is_kept(store: Path) -> None:
    session = await recorded(
        store, program([Reply.call("large", {"size": 20_000}), done()], [large])
    )
    assert results_in(session)[0].text == repr(b"x" * 10)


async def test_exactly_as_much_as_may_stand_in_the_conversation_does(store: Path) -> None:
    replies = [
        Reply.call("long", {"characters": INLINE}),
        Reply.call("long", {"characters": INLINE + 1}),
        done(),
    ]
    session = await recorded(store, program(replies, [long]), artifacts={})
    inline, reference, _ = results_in(session)
    assert len(inline.text) == INLINE
    assert ID.search(inline.text) is None
    assert "12,001 characters" in reference.text


class TellingModel(CountingModel):
    """Writes down what it is offered."""

    def __init__(self, told: Path) -> None:
        super().__init__([Reply.call("long", {"characters": 20_000}), done()])
        self._told = told

    async def complete(self, request: ModelRequest) -> ModelResponse:
        with self._told.open("ab") as file:
            file.write(request.tools.encoded + b"\n")
        return await super().complete(request)


async def test_the_tools_are_the_same_in_every_request(store: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    await recorded(store, program(TellingModel(told), [long]), artifacts={})
    first, second = told.read_bytes().splitlines()
    assert first == second
    assert b'"read_artifact"' in first


def reads(artifact_id: str) -> CountingModel:
    """Reads a result that it knows by its id, and is done."""

    def script(messages: Any) -> Reply:
        if messages[-1].role == "tool":
            return done()
        return Reply.call("read_artifact", {"id": artifact_id, "end": 5})

    return CountingModel(script)


async def run(runtime: Runtime, model: CountingModel, run_id: str, conversation_id: str) -> None:
    made = program(model, [long])
    config = HarnessConfig(artifacts=ArtifactsConfig())
    spec = made.spec("go", config, run_id=run_id, conversation_id=conversation_id)
    await runtime.submit([spec], code=made.stored, secrets={})
    assert (await results(runtime, [run_id]))[run_id].status == "done"


@pytest.mark.parametrize("kind", ["local", pytest.param("ray", marks=pytest.mark.ray)])
async def test_later_runs_of_a_conversation_read_on_and_those_of_others_do_not(
    store: Path, kind: str
) -> None:
    async with opened(kind, store) as runtime:
        await run(runtime, reads_on(end=5), "first", "talk")
        journal = JournalReader(store)
        tools = [message for message in journal.load_conversation("talk") if message.role == "tool"]
        named = ID.search(tools[0].text)
        assert named is not None
        await run(runtime, reads(named[0]), "second", "talk")
        await run(runtime, reads(named[0]), "stranger", "another talk")
    (own, foreign) = (
        next(m for m in journal.load_own_messages(run_id) if m.role == "tool")
        for run_id in ("second", "stranger")
    )
    assert own.text.endswith("\n01234")
    assert not own.is_error
    assert foreign.is_error
    assert "There is no artifact" in foreign.text
    for run_id in ("first", "second", "stranger"):
        assert (await replay(load_recording(journal, run_id))).same


async def test_an_id_whose_artifact_has_expired_is_an_error_and_the_run_goes_on(
    store: Path,
) -> None:
    async with opened("local", store) as runtime:
        await run(runtime, reads_on(end=5), "first", "talk")
        (kept,) = artifacts_of(store).rglob("*-*")
        remove_artifacts(store, but=())
        await run(runtime, reads(kept.name.partition("-")[0]), "second", "talk")
    told = next(m for m in JournalReader(store).load_own_messages("second") if m.role == "tool")
    assert told.is_error
    assert "There is no artifact" in told.text


async def test_a_run_directory_that_is_copied_takes_its_long_results_along(
    tmp_path: Path,
) -> None:
    folder, copy = tmp_path / "run", tmp_path / "copy"
    folder.mkdir()
    store = folder / "runs.db"
    session = await recorded(store, program(reads_on(end=5), [long]), artifacts={})
    shutil.copytree(folder, copy)
    shutil.rmtree(folder)
    named = ID.search(results_in(replace(session, store=copy / "runs.db"))[0].text)
    assert named is not None
    async with opened("local", copy / "runs.db") as runtime:
        await run(runtime, reads(named[0]), "again", "run")
    again = JournalReader(copy / "runs.db").load_own_messages("again")
    assert next(m for m in again if m.role == "tool").text.endswith("\n01234")
