"""Children that work in copies, from the call to what is brought in."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness_actors import ChatAgent, HarnessConfig
from harness_actors.messages import Message
from harness_actors.models.tokens import counter_for
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import child_copy, coding_tools
from harness_actors.turn import prepare
from tests.subagents.copies import (
    DEEPER,
    LINES,
    applies,
    changes,
    fix,
    fixer,
    ran,
    writes,
    writes_itself,
)
from tests.subagents.team import DONE, Team, in_order, results, told
from tests.subagents.test_background import replays_as_it_was, until_there
from tests.subagents.trees import Files, files_in, make


async def test_changes_of_a_copy_are_told_looked_at_and_brought_in(tmp_path: Path) -> None:
    result, journal = await ran(
        tmp_path,
        fix({"a": "2\n", "new/b": "2\n"}, {"a": "3\n"}),
        changes(),
        applies(),
        applies(),
        applies("fix-2"),
        files={"a": "1\n", "other": "1\n"},
    )
    assert result.status == "done"
    first, second, shown, applied, again, clash, _ = told(journal, result.run_id)
    assert first == (
        "repaired\n\n[fix-1 has worked in a copy of your workspace and changed 2 files there: "
        "a, new/b. See how with agent_changes, and bring it into your workspace with agent_apply.]"
    )
    assert "[fix-2 has worked in a copy of your workspace and changed 1 file there: a." in second
    assert shown.startswith("fix-1 has changed 2 files.\n\ndiff a\n--- a/a\n+++ b/a\n")
    assert "-1\n+2\n" in shown
    assert "diff new/b\nnew file\n--- /dev/null\n+++ b/new/b\n" in shown
    assert applied == "Taken as they are in the copy:\n- a\n- new/b"
    assert again == "There already:\n- a\n- new/b"
    assert clash.startswith(
        "In conflict, and left as they are:\n- a: both have changed the same lines\n"
    )
    assert files_in(tmp_path / "workspace") == {"a": "2\n", "new/b": "2\n", "other": "1\n"}
    await replays_as_it_was(journal, result.run_id, f"{result.run_id}.1", f"{result.run_id}.2")


async def test_a_copy_is_as_the_workspace_was_when_its_run_began(tmp_path: Path) -> None:
    edited = LINES.replace("line 1", "theirs"), LINES.replace("line 7", "ours")
    result, journal = await ran(
        tmp_path,
        fix({"a": edited[0]}),
        writes_itself("a", edited[1]),
        applies(),
        files={"a": LINES},
    )
    assert told(journal, result.run_id)[2] == "Merged with what your workspace has:\n- a"
    both = LINES.replace("line 1", "theirs").replace("line 7", "ours")
    assert files_in(tmp_path / "workspace") == {"a": both}


async def test_one_that_changes_nothing_says_so(tmp_path: Path) -> None:
    result, journal = await ran(
        tmp_path,
        fix({"a": "1"}),
        changes(),
        applies(),
        files={"a": "1"},
    )
    first, shown, applied, _ = told(journal, result.run_id)
    assert first.endswith(
        "[fix-1 has worked in a copy of your workspace, and has changed no file there.]"
    )
    assert shown == applied == "fix-1 has changed no file in its copy of the workspace."


async def test_some_files_are_looked_at_and_brought_in(tmp_path: Path) -> None:
    result, journal = await ran(
        tmp_path,
        fix({"a": "2", "b/one": "2", "b/two": "2", "c": "2"}),
        changes(path="b"),
        applies(paths=["b/", "./c"]),
        changes(path="d"),
        applies(paths=["../a"]),
        files={},
    )
    _, shown, applied, *unknown, _ = told(journal, result.run_id)
    assert "diff b/one" in shown
    assert "diff a" not in shown
    assert applied == "Taken as they are in the copy:\n- b/one\n- b/two\n- c"
    assert unknown[0] == "fix-1 has not changed 'd'; it has changed a, b/one, b/two, c"
    assert unknown[1].startswith("fix-1 has not changed '../a'; ")
    assert files_in(tmp_path / "workspace") == {"b/one": "2", "b/two": "2", "c": "2"}


@pytest.mark.parametrize(
    "handle", ["fix-2", "other-1", "../fix-1", "fix-1/work", "", ".", "x" * 99]
)
async def test_an_unknown_handle_is_the_result(tmp_path: Path, handle: str) -> None:
    result, journal = await ran(
        tmp_path, fix({"a": "1"}), changes(handle), applies(handle), files={}
    )
    assert result.status == "done"
    for said in told(journal, result.run_id)[1:3]:
        assert "there are fix-1." in said or "at least 1 character" in said


async def test_one_in_the_background_is_brought_in_when_its_end_is_told(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")

    def says(conversation: Sequence[Message]) -> Reply:
        if not results(conversation):
            return Reply.call("until_there", {"path": gone})
        return in_order(Reply.text(""), writes_itself("a", "2"), Reply.text("repaired"))(
            conversation
        )

    work = make(tmp_path / "workspace", {"a": "1"})
    parts = {"tools": [*coding_tools(), until_there]}
    steps = [
        fix({}),
        applies(),
        Reply.call("run_command", {"command": f"touch {gone}"}),
        Reply.call("agent_wait", {}),
        applies(),
        DONE,
    ]
    team = Team(in_order(*steps), {"You repair": says}, [fixer(background=True)], parts)
    async with team.harness(tmp_path / "runs.db", workspace=work) as harness:
        result = await harness.run("Go.")
        log = await harness.conversation(result.run_id)
    journal = JournalReader(tmp_path / "runs.db")
    found = told(journal, result.run_id)
    assert found[1].startswith("fix-1 is still at work, or you have not been told yet")
    assert found[4] == "Taken as they are in the copy:\n- a"
    assert any(
        "[fix-1 completed]\nrepaired\n\n[fix-1 has worked in a copy" in str(one["content"])
        for one in log
    )
    await replays_as_it_was(journal, result.run_id, f"{result.run_id}.1")


async def test_one_that_fails_has_a_copy_all_the_same(tmp_path: Path) -> None:
    def fails(conversation: Sequence[Message]) -> Reply:
        if results(conversation):
            raise RuntimeError("no model")
        return writes(conversation)

    result, journal = await ran(tmp_path, fix({"a": "2"}), applies(), files={"a": "1"}, says=fails)
    first, applied, _ = told(journal, result.run_id)
    assert first.startswith("fix ended failed")
    assert "[fix-1 has worked in a copy of your workspace" in first
    assert applied == "Taken as they are in the copy:\n- a"
    await replays_as_it_was(journal, result.run_id)


async def test_a_workspace_that_cannot_be_copied_is_the_result_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_copy, "MOST_ENTRIES", 1)
    result, journal = await ran(tmp_path, fix({}), changes(), files={"a": "1", "b": "1"})
    said, none, _ = told(journal, result.run_id)
    assert result.status == "done"
    assert said.startswith("fix ended failed")
    assert "has worked in a copy" not in said
    assert "has more than 1 entries or 2 GiB, which is too large for a copy" in said
    assert none.startswith("There is no agent 'fix-1' that has worked in a copy for you")
    await replays_as_it_was(journal, result.run_id)


async def test_paths_may_be_absolute_or_as_they_were_shown(tmp_path: Path) -> None:
    result, journal = await ran(
        tmp_path,
        fix({"a": "2", "b\x07": "2", "c": "2"}),
        applies(paths=[str(tmp_path / "workspace" / "a")]),
        applies(paths=[r"'b\x07'"]),
        changes(path=str(tmp_path / "elsewhere" / "c")),
        files={"a": "1", "b\x07": "1", "c": "1"},
    )
    _, absolute, shown, elsewhere, _ = told(journal, result.run_id)
    assert absolute == "Taken as they are in the copy:\n- a"
    assert shown == "Taken as they are in the copy:\n- 'b\\x07'"
    assert "fix-1 has not changed '" in elsewhere
    assert files_in(tmp_path / "workspace") == {"a": "2", "b\x07": "2", "c": "1"}


async def test_what_was_undone_comes_once_more(tmp_path: Path) -> None:
    undone = writes_itself("a", "1")
    result, journal = await ran(
        tmp_path, fix({"a": "2"}), applies(), undone, applies(), files={"a": "1"}
    )
    applied = told(journal, result.run_id)[1:4:2]
    assert applied == ["Taken as they are in the copy:\n- a"] * 2
    assert files_in(tmp_path / "workspace") == {"a": "2"}


async def test_who_comes_to_a_value_has_its_copy_told_behind_that(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"fixed": {"type": "integer"}}}
    says = in_order(writes_itself("a", "2"), Reply.text('{"fixed": 1}'))
    spec = fixer(output_type=schema)
    result, journal = await ran(tmp_path, fix({}), files={"a": "1"}, spec=spec, says=says)
    value, _, about = told(journal, result.run_id)[0].partition("\n\n")
    assert json.loads(value) == {"fixed": 1}
    assert about.startswith("[fix-1 has worked in a copy of your workspace and changed 1 file")
    await replays_as_it_was(journal, result.run_id, f"{result.run_id}.1")


async def test_links_stay_links_and_lead_nowhere_outside(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", {"secret": "s"})
    files: Files = {"in": ("link", "a"), "out": ("link", str(outside / "secret")), "a": "1"}
    command = f"echo 2 > a; ln -s {outside} folder; ln -s a near; rm in"
    does = in_order(Reply.call("run_command", {"command": command}), Reply.text("done"))
    result, journal = await ran(tmp_path, fix({}), applies(), files=files, says=does)
    said = told(journal, result.run_id)[1]
    assert "- folder: it is a link that leads out of the workspace" in said
    assert files_in(tmp_path / "workspace") == {
        "a": "2\n",
        "near": ("link", "a"),
        "out": ("link", str(outside / "secret")),
    }
    assert files_in(outside) == {"secret": "s"}


async def test_those_below_a_copy_share_it(tmp_path: Path) -> None:
    below = fixer(name="below", workspace="shared", instructions="You are below.")
    spec = fixer(sub_agents=[below])
    work = make(tmp_path / "workspace", {"a": "1"})
    team = Team(
        in_order(fix({}), applies(), DONE),
        {
            "You repair": in_order(
                Reply.call("below", {"prompt": '{"a": "2"}'}), Reply.text("repaired")
            ),
            "You are below": writes,
        },
        [spec],
        {"tools": coding_tools()},
    )
    async with team.harness(tmp_path / "runs.db", workspace=work, config=DEEPER) as harness:
        result = await harness.run("Go.")
    journal = JournalReader(tmp_path / "runs.db")
    assert told(journal, f"{result.run_id}.1") == ["repaired"]
    assert told(journal, result.run_id)[1] == "Taken as they are in the copy:\n- a"


async def test_binary_files_are_named_with_their_sizes(tmp_path: Path) -> None:
    command = r"printf '\377\0\1\2' > image; printf 'x' >> text"
    does = in_order(Reply.call("run_command", {"command": command}), Reply.text("done"))
    result, journal = await ran(
        tmp_path, fix({}), changes(), files={"image": b"\xff", "text": "a"}, says=does
    )
    shown = told(journal, result.run_id)[1]
    assert "diff image\nnot shown, for it is no text or too long: 1 bytes -> 4 bytes\n" in shown
    assert "-a\n\\ No newline at end of file\n+ax\n\\ No newline at end of file\n" in shown


async def test_without_copies_nothing_is_added_to_requests() -> None:
    offered, told_of = list[bytes](), list[list[str]]()
    for spec in (fixer(workspace="shared"), fixer(workspace="read_only"), fixer()):
        agent = ChatAgent(model=ScriptedModel([]), tools=coding_tools(), sub_agents=[spec])
        prepared = await prepare(agent, HarnessConfig(), counter_for("scripted"))
        offered.append(prepared.tools.encoded)
        told_of.append([message.text for message in prepared.head])
    assert [b"agent_apply" in one for one in offered] == [False, False, True]
    assert offered[0] == offered[1]
    assert told_of[0] == told_of[1]
    assert "fix works in a copy of your workspace" in told_of[2][0]


async def test_a_handle_is_of_one_run_of_a_conversation(tmp_path: Path) -> None:
    work = make(tmp_path / "workspace", {"a": "1"})
    waits = Reply.call("agent_wait", {})
    top = in_order(fix({"a": "2"}), waits, DONE, applies(), fix({"b": "2"}), applies(), waits, DONE)
    spec = fixer(background=True)
    team = Team(top, {"You repair": writes}, [spec], {"tools": coding_tools()})
    async with team.harness(tmp_path / "runs.db", workspace=work) as harness:
        await harness.run("Go.")
        second = await harness.run("Go on.")
    journal = JournalReader(tmp_path / "runs.db")
    unknown, _, at_work, *_ = told(journal, second.run_id)[-5:]
    assert unknown == (
        "There is no agent 'fix-1' that has worked in a copy for you; there are none."
    )
    # What the first run was told of its own `fix-1` says nothing of this one.
    assert at_work.startswith("fix-1 is still at work")
    assert files_in(work) == {"a": "1"}
