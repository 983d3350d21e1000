"""The whole conversation of a run can be read back, from Python and at the terminal."""

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors import AgentHarness, ChatAgent, run_batch, tool
from harness_actors.agents import Program
from harness_actors.batch.tasks import Check, Task
from harness_actors.cli.app import app
from harness_actors.errors import ModelSetupError, RunNotFoundError
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.stores.conversations import code_of, request_name
from harness_actors.stores.expiry import compact
from harness_actors.testing import Reply, ScriptedModel

Harness = Callable[..., Result]
LONG = "line of a long report\n" * 500
TASKS = ("Read them.", "Once more.")
PROMPT = "You are a clerk. Ärger vermeiden."


@tool(effect="read_only")
async def report(year: int) -> str:
    """Read a report.

    Args:
        year: Which.
    """
    if year < 1900:
        raise LookupError(f"no report of {year}: {LONG}")
    return LONG


def _clerk(messages: Sequence[Message]) -> Reply:
    if messages[-1].role == "tool":
        return Reply.call("work_complete", {"summary": "read"})
    return Reply.calls([("report", {"year": 1800}), ("report", {"year": 2026})], said="Both.")


def clerk() -> ChatAgent:
    return ChatAgent(model=ScriptedModel(_clerk), instructions=PROMPT, tools=[report])


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))
    runner = CliRunner()
    return lambda *words: runner.invoke(app, words, catch_exceptions=False)


async def two_runs(store: Path | None = None) -> tuple[list[str], list[dict[str, Any]]]:
    """Two runs of one conversation: their ids, and the messages as they are read back."""
    async with AgentHarness(clerk(), runtime="local", store=store) as talk:
        ids = [(await talk.run(task)).run_id for task in TASKS]
        return ids, await talk.conversation(ids[0])


def lines(shown: Result) -> list[Any]:
    return [json.loads(line) for line in shown.stdout.splitlines()]


async def test_every_message_is_read_back_whole(tmp_path: Path) -> None:
    _, messages = await two_runs(tmp_path / "runs.db")

    roles = ["user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [message["role"] for message in messages] == ["system", *roles, *roles]
    assert messages[0]["content"] == PROMPT
    assert messages[4]["content"] == LONG
    assert json.loads(messages[2]["tool_calls"][1]["function"]["arguments"]) == {"year": 2026}
    assert json.loads(json.dumps(messages)) == messages, "plain values"


async def test_a_harness_that_ran_nothing_reads_the_journals_at_home(
    tmp_path: Path, harness: Harness
) -> None:
    ids, messages = await two_runs()

    other = AgentHarness(ChatAgent(model=ScriptedModel([])))
    assert await other.conversation(ids[1]) == messages
    with pytest.raises(RunNotFoundError, match="nowhere"):
        await other.conversation("nowhere")


def test_show_has_all_messages_on_request(tmp_path: Path, harness: Harness) -> None:
    ids, messages = asyncio.run(two_runs())

    plain = json.loads(harness("ctl", "run", "show", ids[0], "--json").stdout)
    failed = [message for message in plain["conversation"] if message.pop("is_error", False)]
    dispositions = [message.pop("disposition") for message in failed]
    assert plain["conversation"] == messages
    assert dispositions == ["failed", "failed"]
    assert plain["messages"] == len(messages) - 1, "the number of the log's messages, as before"
    assert len(failed) == 2
    assert [error["tool"] for error in plain["tool_errors"]] == ["report"]
    assert "in report" in plain["tool_errors"][0]["traceback"]

    brief = harness("ctl", "run", "show", ids[0]).stdout
    assert LONG not in brief
    assert "report (call_" in brief
    assert "test_reading_back.py:" in brief
    full = harness("ctl", "run", "show", ids[0], "--full").stdout
    assert full.count(LONG) >= 2
    assert PROMPT in full
    assert "── 2 user\nRead them." in full
    assert '→ report {"year":2026}' in full.replace(": ", ":")
    assert "    Traceback (most recent call last):" in full


def test_show_has_the_last_messages_of_its_own_run(tmp_path: Path, harness: Harness) -> None:
    ids, _ = asyncio.run(two_runs())

    for run_id, task, other in zip(ids, TASKS, TASKS[::-1], strict=True):
        told = json.loads(harness("ctl", "run", "show", run_id, "--json").stdout)
        assert (told["own_messages"], told["messages"]) == (6, 12)
        brief = harness("ctl", "run", "show", run_id).stdout
        assert other not in brief
        assert "6 more messages of other runs in this conversation; --full shows all" in brief
        full = harness("ctl", "run", "show", run_id, "--full").stdout
        assert task in full
        assert other in full


def test_the_newest_runs_are_those_submitted_last_whatever_their_journal(
    tmp_path: Path, harness: Harness
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (later,) = asyncio.run(runs_in(home / "runs.db", "a"))
    newest, oldest = asyncio.run(runs_in(home / "runs-2.db", "b", "c")), later
    (last,) = asyncio.run(runs_in(home / "runs.db", "d"))

    said = harness("ctl", "run", "show", "xyz").stderr

    wanted = [last, *newest[::-1], oldest]
    assert sorted(wanted, key=said.index) == wanted


async def runs_in(store: Path, *tasks: str) -> list[str]:
    async with AgentHarness(clerk(), runtime="local", store=store) as talk:
        return [(await talk.run(task)).run_id for task in tasks]


async def batch_of(count: int, folder: Path) -> list[str]:
    tasks = [f"task {number}" for number in range(count)]
    return [
        str(outcome.run_id)
        async for outcome in run_batch(tasks, clerk(), runtime="local", run_dir=folder)
    ]


def test_a_run_directory_is_exported_a_conversation_a_line(
    tmp_path: Path, harness: Harness
) -> None:
    asyncio.run(batch_of(3, tmp_path / "runs"))

    exported = lines(harness("ctl", "run", "export", "--run-dir", str(tmp_path / "runs")))
    assert len(exported) == 3
    for line in exported:
        assert set(line) == {"messages", "tools"}
        roles = [message["role"] for message in line["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
        assert [t["function"]["name"] for t in line["tools"]] == ["report", "work_complete"]
        assert line["tools"][0]["function"]["parameters"]["required"] == ["year"]
    tasks = sorted(line["messages"][1]["content"] for line in exported)
    assert tasks == ["task 0", "task 1", "task 2"]


def test_runs_of_one_conversation_are_one_line(tmp_path: Path, harness: Harness) -> None:
    ids, messages = asyncio.run(two_runs())

    (line,) = lines(harness("ctl", "run", "export"))
    assert line["messages"] == messages
    assert lines(harness("ctl", "run", "export", ids[1][:8], ids[0])) == [line]
    assert lines(harness("ctl", "run", "export", "--status", "failed")) == []
    refused = harness("ctl", "run", "export", ids[0], "--status", "done")
    assert refused.exit_code == 2


def attempts(folder: Path) -> tuple[str, str, str]:
    """Runs of a batch: one that failed, the one that followed it, and one with a failed check."""

    def clerk_of(status: Reply) -> ChatAgent:
        return ChatAgent(model=ScriptedModel(lambda _: status), instructions=PROMPT)

    async def batch(status: Reply) -> dict[str, str]:
        tasks = [
            Task(task="one", id="one"),
            Task(task="two", id="two", check=Check(command="false")),
        ]
        told = run_batch(
            tasks, clerk_of(status), run_dir=folder, runtime="local", retry_failed=True
        )
        return {str(outcome.id): str(outcome.run_id) async for outcome in told}

    async def both() -> tuple[str, str, str]:
        first = await batch(Reply.error(ModelSetupError("scripted", "no answer")))
        second = await batch(Reply.call("work_complete", {"summary": "read"}))
        return first["one"], second["one"], second["two"]

    return asyncio.run(both())


def test_the_attempt_that_counts_is_exported(tmp_path: Path, harness: Harness) -> None:
    before, counts, unchecked = attempts(tmp_path / "runs")

    def exported(*flags: str) -> list[str]:
        words = ("ctl", "run", "export", "--run-dir", str(tmp_path / "runs"), *flags)
        return [line["run_id"] for line in lines(harness(*words, "--format", "harness"))]

    assert set(exported()) == {counts, unchecked}
    assert exported("--ok") == [counts]
    assert {before, counts, unchecked} < set(exported("--all-attempts"))
    assert set(exported("--status", "done")) == {counts, unchecked}
    assert exported(before) == [before], "a run that is named is written"
    refused = harness("ctl", "run", "export", before, "--ok", "--run-dir", str(tmp_path / "runs"))
    assert refused.exit_code == 2


def test_a_journal_without_prompts_is_exported_from_the_task_on(
    tmp_path: Path, harness: Harness
) -> None:
    packed = Path(__file__).parent / "data" / "journals" / "v1.db.gz"
    (tmp_path / "old.db").write_bytes(gzip.decompress(packed.read_bytes()))

    exported = harness("ctl", "run", "export", "--store", str(tmp_path / "old.db"))

    assert exported.exit_code == 0
    told = lines(exported)
    assert told
    assert all(set(line) == {"messages"} for line in told)
    assert all(line["messages"][0]["role"] == "user" for line in told)
    assert f"{len(told)} without system prompt and tools" in exported.stderr


async def test_the_prompt_is_kept_once_for_a_program_and_goes_with_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    await two_runs(store)

    compact(store)

    journal = JournalReader(store)
    (code,) = {journal.load_run(h.run_id).spec.code for h in journal.headings()}  # type: ignore[union-attr]
    kept = code_of(journal, code)
    assert set(kept) == {code, request_name(code)}
    assert json.loads(kept[request_name(code)])["instructions"] == PROMPT


def test_an_agent_that_cannot_say_what_it_has_is_submitted_all_the_same() -> None:
    class Odd:
        """A user's own agent, without instructions."""

        name = "odd"
        model = ScriptedModel([])
        tools = ()

    program = Program.of(Odd())  # type: ignore[arg-type]
    assert list(program.stored) == [program.code]


def test_a_run_that_has_said_nothing_is_no_line(tmp_path: Path, harness: Harness) -> None:
    async def fails_at_once() -> str:
        twice = ChatAgent(model=ScriptedModel([]), tools=[report])
        agent = type("Twice", (), {"name": "twice", "model": twice.model, "instructions": ""})()
        agent.tools = [report, report]
        async with AgentHarness(agent, runtime="local") as failing:
            return (await failing.run("Begin.")).reason.kind

    assert asyncio.run(fails_at_once()) == "agent_error"
    exported = harness("ctl", "run", "export")
    assert (exported.exit_code, exported.stdout) == (0, "")
