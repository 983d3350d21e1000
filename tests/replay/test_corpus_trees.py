"""Trees that were recorded once and are not over are taken up by the code of now."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness_actors.replay import Recording, load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.subagents.letters import ENDED
from tests.data.corpus import expected, unpack
from tests.data.corpus.delegating import TreeTake
from tests.data.corpus.trees import LEFT

TREES = "trees"
FEWEST = 15


def recordings(store: Path, name: str) -> dict[str, Recording]:
    """All runs of a tree, by where they are below its root."""
    journal = JournalReader(store)
    names = [heading.run_id for heading in journal.headings()]
    tree = [one for one in names if one == name or one.startswith(f"{name}.")]
    found = {one.removeprefix(name): load_recording(journal, one) for one in tree}
    journal.close()
    return found


def put_code(store: Path, name: str) -> None:
    """Have the runs of a tree run the code of now: a journal of the corpus is without any."""
    spec = recordings(store, name)[""].spec
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(
            "UPDATE code SET blob = ? WHERE code = ?", (LEFT[name].program().blob, spec.code)
        )


def told(recording: Recording) -> list[str]:
    """What a run was told of those that it has sent out, in the order of its log."""
    return [
        message.text
        for message in recording.messages
        if message.role == "tool" or (message.by_harness and ENDED in message.text)
    ]


def test_there_are_enough_trees_and_those_that_are_left_are_not_over() -> None:
    runs = expected(TREES)
    roots = {run for run in runs if "." not in run}
    assert len(roots) >= FEWEST
    assert {run.partition(".")[0] for run in runs} == roots
    assert {run for run in roots if runs[run]["end"] is None} == LEFT.keys()


@pytest.mark.parametrize("name", LEFT)
async def test_a_tree_that_was_left_comes_to_its_end_and_is_told_each_result_once(
    name: str, tmp_path: Path
) -> None:
    store = unpack(TREES, tmp_path)
    left, before = LEFT[name], recordings(store, name)
    assert before[""].end is None
    put_code(store, name)
    take = TreeTake(store, name, None)
    if left.answers:
        async with take.opened("whoever answers") as runtime:
            await runtime.answer(name, left.answers)

    end = await take.taken_up("another")

    assert (end.status, end.reason.kind) == ("done", "completed")
    after = recordings(store, name)
    assert after.keys() == {"", *left.below}
    for below, came_to in left.below.items():
        assert after[below].end is not None
        parent = below.rpartition(".")[0]
        said = "\n".join(told(after[parent]))
        assert said.count(came_to) == 1, (below, said)
    for below, recording in after.items():
        # What was there stays as it was, and all of it comes out the same once more.
        kept = before[below].changes if below in before else ()
        assert recording.changes[: len(kept)] == kept
        replayed = await replay(recording)
        assert replayed.same, (below, replayed.differences)
