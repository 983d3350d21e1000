"""What the commands of a batch's runs are kept from seeing, and where that is set."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch import run_batch
from harness_actors.batch.hiding import HIDE_VARIABLE, Hidden, hidden_in
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.tasks import Check, Task
from harness_actors.errors import BadInputError
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools
from harness_actors.tools.supervision.trial import hides_workspaces

LOOK = "echo mine > words.txt; ls .. | wc -l; cat ../../runs.db ../../*.json* 2>/dev/null | wc -c"
OURS = ("runs.db", "runs.db-wal", "runs.db.lock", "results.jsonl", "logs", "workspaces")


def looks_around(messages: Sequence[Message]) -> Reply:
    """Looks beside its workspace, and says what it saw."""
    if messages[-1].role != "tool":
        return Reply.call("run_command", {"command": LOOK})
    return Reply.call("work_complete", {"summary": messages[-1].text})


async def looked_around(run_dir: Path, check: Check | None = None) -> list[tuple[int, bool]]:
    """What each of three runs saw, one after the other: how many workspaces, and any journal."""
    agent = ChatAgent(model=ScriptedModel(looks_around), tools=coding_tools())
    tasks = [Task(id=str(number), task="look", check=check) for number in range(3)]
    outcomes = [
        outcome
        async for outcome in run_batch(
            tasks, agent, run_dir=run_dir, runtime="local", concurrency=1
        )
    ]
    assert [outcome.ok for outcome in outcomes] == [True] * 3, outcomes
    seen = [outcome.output_text.splitlines()[1:] for outcome in outcomes]
    return [(int(count), int(size) > 0) for count, size in seen]


async def test_a_run_sees_neither_those_before_it_nor_journal_and_results(tmp_path: Path) -> None:
    hidden = await hides_workspaces(required=False)

    seen = await looked_around(tmp_path / "run", Check(command="grep mine words.txt"))

    assert seen == ([(1, False)] * 3 if hidden else [(1, True), (2, True), (3, True)])


async def test_a_user_can_have_commands_see_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HIDE_VARIABLE, "never")

    assert await looked_around(tmp_path / "run") == [(1, True), (2, True), (3, True)]


async def test_what_must_be_hidden_is_in_what_the_journal_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HIDE_VARIABLE, "never")
    await looked_around(tmp_path / "never")
    monkeypatch.delenv(HIDE_VARIABLE)
    await looked_around(tmp_path / "auto")

    kept = {}
    for name in ("never", "auto"):
        journal = JournalReader(RunDirectory(tmp_path / name).store)
        run = journal.load_run(journal.headings()[0].run_id)
        assert run is not None
        assert run.spec.workspace is not None
        kept[name] = run.spec.workspace.covered, run.spec.workspace.must_be_covered
    assert kept == {"never": (None, False), "auto": (str(tmp_path / "auto"), False)}


def test_a_word_that_says_nothing_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HIDE_VARIABLE, "yes")

    with pytest.raises(BadInputError, match="must be one of auto, always, never, not 'yes'"):
        RunDirectory(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("others", "covered"),
    [
        ((), "."),
        ((".results.jsonl.harness-0123abcd.new", "checks", "setups.json"), "."),
        (("agent.yaml",), "workspaces"),
        (("workspaces-of-before",), "workspaces"),
        (("logs.txt",), "workspaces"),
    ],
)
def test_all_of_a_run_directory_is_covered_where_all_of_it_is_ours(
    others: tuple[str, ...], covered: str, tmp_path: Path
) -> None:
    for name in (*OURS, *others):
        (tmp_path / name).touch()

    assert hidden_in(tmp_path, "auto") == Hidden(tmp_path / covered, required=False)
    assert hidden_in(tmp_path, "always") == Hidden(tmp_path / covered, required=True)
    assert hidden_in(tmp_path, "never") == Hidden(None)
