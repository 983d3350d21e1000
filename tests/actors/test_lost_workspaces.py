"""A run whose workspace is taken away while it works there."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessResult, tool
from harness_actors.messages import Message
from harness_actors.ports import ToolContext
from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools

ON_RAY = [pytest.mark.ray, pytest.mark.timeout(200)]
WAYS = {
    "removed": "the folder was removed or moved away",
    "moved": "the folder was removed or moved away",
    "replaced": "another one was put in the place of the folder",
    "linked": "a symlink was put in the place of the folder",
}


def take_away(folder: Path, how: str) -> None:
    if how == "moved":
        folder.rename(folder.with_name("elsewhere"))
        return
    if how == "linked":
        (folder.parent / "outside").mkdir()
        folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to(folder.parent / "outside")
        return
    # A folder that is removed may leave its inode to the next one that is made.
    folder.rename(folder.with_name("old"))
    if how == "replaced":
        folder.mkdir()
    shutil.rmtree(folder.with_name("old"))


@tool
async def lose(how: str, context: ToolContext) -> str:
    """Take the folder away, as a user does.

    Args:
        how: In which way.
    """
    assert context.workspace is not None
    take_away(context.workspace, how)
    return "lost"


@tool
async def work(context: ToolContext) -> str:
    """Leave something in the folder."""
    assert context.workspace is not None
    context.workspace.mkdir(exist_ok=True)
    (context.workspace / "work").touch()
    return "worked"


class Script:
    """Says one reply after the other, by the number of answers in the conversation."""

    def __init__(self, *replies: Reply, while_asked: Callable[[], None] = lambda: None) -> None:
        self._replies = replies
        self._while_asked = while_asked

    def __call__(self, messages: Sequence[Message]) -> Reply:
        self._while_asked()
        return self._replies[sum(message.role == "assistant" for message in messages)]


async def result_of(folder: Path, kind: Any, script: Script) -> HarnessResult:
    agent = ChatAgent(model=ScriptedModel(script), tools=[lose, work, *coding_tools()])
    address, store = "local" if kind == "ray" else None, folder.parent / "runs.db"
    async with AgentHarness(
        agent, runtime=kind, address=address, store=store, workspace=folder
    ) as harness:
        return await harness.run("work there")


@pytest.mark.parametrize(
    ("how", "kind"),
    [*((how, "local") for how in WAYS), pytest.param("removed", "ray", marks=ON_RAY)],
)
async def test_it_fails_before_its_model_is_asked_again(
    tmp_path: Path, how: str, kind: str
) -> None:
    folder = tmp_path / "workspace"
    script = Script(Reply.call("work"), Reply.call("lose", {"how": how}), Reply.call("work"))

    result = await result_of(folder, kind, script)

    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert str(folder) in result.reason.message
    assert f"{WAYS[how]} that the run works in" in result.reason.message
    assert (result.usage.model_calls, result.usage.tool_calls) == (2, 2)
    assert not (folder / "work").exists()


@pytest.mark.parametrize(
    "answer",
    [Reply.call("work"), Reply.call("work_complete", {"summary": "all is well"}), Reply.text("hm")],
    ids=["calls a tool", "completes", "answers"],
)
async def test_what_the_model_says_after_that_is_not_done_but_paid(
    tmp_path: Path, answer: Reply
) -> None:
    folder = tmp_path / "workspace"
    script = Script(answer, while_asked=lambda: take_away(folder, "removed"))

    result = await result_of(folder, "local", script)

    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert (result.usage.model_calls, result.usage.tool_calls) == (1, 0)
    assert not folder.exists()


@pytest.mark.parametrize("how", ["linked", "replaced"])
async def test_calls_of_the_same_answer_do_nothing_in_another_folder(
    tmp_path: Path, how: str
) -> None:
    folder = tmp_path / "workspace"
    script = Script(
        Reply.calls(
            [
                ("lose", {"how": how}),
                ("write_file", {"path": "a/b.txt", "content": "x"}),
                ("create_directory", {"path": "made"}),
                ("run_command", {"command": "touch made"}),
            ]
        )
    )

    result = await result_of(folder, "local", script)

    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert WAYS[how] in result.reason.message
    assert result.usage.tool_calls == 4
    assert list(folder.iterdir()) == []


async def test_a_turn_that_completes_after_that_has_failed(tmp_path: Path) -> None:
    script = Script(
        Reply.calls([("lose", {"how": "linked"}), ("work_complete", {"summary": "all is well"})])
    )

    result = await result_of(tmp_path / "workspace", "local", script)

    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert WAYS["linked"] in result.reason.message


@pytest.mark.parametrize("asked", [False, True], ids=["by a tool", "while the model is asked"])
async def test_such_a_run_is_replayed_to_its_end(tmp_path: Path, asked: bool) -> None:
    folder = tmp_path / "workspace"
    if asked:
        script = Script(Reply.call("work"), while_asked=lambda: take_away(folder, "removed"))
    else:
        script = Script(Reply.call("lose", {"how": "removed"}))
    result = await result_of(folder, "local", script)

    again = await replay(load_recording(JournalReader(tmp_path / "runs.db"), result.run_id))

    assert again.differences == ()
    assert again.end is not None
    assert again.end.reason == result.reason


async def test_a_workspace_that_stays_is_worked_in_to_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    script = Script(Reply.call("work"), Reply.call("work_complete", {"summary": "worked"}))

    result = await result_of(folder, "local", script)

    assert result.status == "done"
    assert (folder / "work").exists()
