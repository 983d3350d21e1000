"""A run is refused to go on only where that is certain to do the wrong thing."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.config import HarnessConfig
from harness_actors.errors import BadInputError, ConversationMovedOnError
from harness_actors.messages import Message
from harness_actors.records import CodeStored, Entry, Hop, RunAdded, WorkspaceSpec
from harness_actors.signals import RepairComplete, Signal, TurnComplete
from harness_actors.state import STOP_DECISION, TURN_COUNT, Write
from harness_actors.stores import SqliteJournal
from harness_actors.stores.taking_up import check_taking_up
from tests.stores.entries import a_round, a_spec, added, an_end, changed

BEGUN = Write(TURN_COUNT.name, "increment", 1)


def talking(run_id: str) -> list[Entry]:
    """A run of the conversation whose turn has begun, up to its task."""
    task = Message.user(f"the task of {run_id}")
    return [
        added(run_id, conversation_id="talk"),
        changed(1, run_id, writes=[BEGUN], messages=[task]),
    ]


def keep(journal: SqliteJournal, entries: Sequence[Entry]) -> Path:
    journal.commit(journal.begin_term(), [CodeStored(code="c0de", blob=b"x"), *entries])
    return journal.path


def test_a_cut_run_after_which_another_one_spoke_is_refused(journal: SqliteJournal) -> None:
    alone = keep(journal, [*talking("cut"), a_round(2, "cut")])
    check_taking_up(alone, ["cut"])

    store = keep(journal, [*talking("next"), changed(2, "next", end=an_end("next"))])
    keep(journal, talking("newest"))

    with pytest.raises(ConversationMovedOnError) as refused:
        check_taking_up(store, ["next", "cut"])
    assert str(refused.value) == (
        "run 'cut' cannot go on where it was cut: run 'next' has continued its conversation "
        "'talk' since; ask again in the conversation, or start a new run"
    )
    check_taking_up(store, ["newest"])


def test_a_run_of_another_conversation_is_no_obstacle(journal: SqliteJournal) -> None:
    other = (added("other", conversation_id="elsewhere"), a_round(1, "other"))

    check_taking_up(keep(journal, [*talking("cut"), *other]), ["cut"])


def test_a_later_run_that_has_said_nothing_yet_is_no_obstacle(journal: SqliteJournal) -> None:
    closing = Message.tool_result("call-2", "its outcome is unknown")
    later = (added("next", conversation_id="talk"), changed(1, "next", messages=[closing]))

    check_taking_up(keep(journal, [*talking("cut"), *later]), ["cut"])


def test_a_run_that_was_put_aside_before_its_task_was_said_goes_on_after_the_others(
    journal: SqliteJournal,
) -> None:
    waiting = (added("cut", conversation_id="talk"), changed(1, "cut"))

    check_taking_up(keep(journal, [*waiting, *talking("next")]), ["cut"])


@pytest.mark.parametrize(
    ("completion", "turn", "custom", "goes_on"),
    [
        ("answer", TurnComplete(ending="text", text="so it is"), (), True),
        ("explicit", TurnComplete(ending="completed", text="so it is"), (), True),
        ("explicit", TurnComplete(ending="text", text="so it is"), (), False),
        ("explicit", TurnComplete(ending="completed", findings=("a gap",)), (), False),
        ("answer", TurnComplete(ending="text", findings=("a gap",)), (), False),
        ("answer", TurnComplete(ending="rounds"), (), False),
        ("answer", RepairComplete(), (), False),
        ("explicit", TurnComplete(ending="limit", limit="tokens"), (), True),
        ("explicit", TurnComplete(ending="completed", text="so it is"), (STOP_DECISION,), False),
    ],
)
def test_a_run_that_has_only_to_be_judged_goes_on_to_its_end(
    journal: SqliteJournal,
    completion: str,
    turn: Signal,
    custom: tuple[str, ...],
    goes_on: bool,
) -> None:
    (_, begun) = talking("cut")
    config = HarnessConfig.from_mapping({"completion": completion})
    spec = replace(a_spec("cut", "talk"), config=config, custom=custom)
    judged = changed(2, "cut", hop=Hop(to=STOP_DECISION, signal=turn))
    submitted = RunAdded(spec=spec, command="chat", at=100.0)
    store = keep(journal, [submitted, begun, judged, *talking("next")])

    if goes_on:
        check_taking_up(store, ["cut"])
    else:
        with pytest.raises(ConversationMovedOnError):
            check_taking_up(store, ["cut"])


@pytest.mark.parametrize("there", ["nothing", "file", "link", "broken link"])
def test_a_run_without_the_folder_that_it_worked_in_is_refused(
    journal: SqliteJournal, tmp_path: Path, there: str
) -> None:
    path = tmp_path / "work"
    if there == "file":
        path.write_text("")
    elif there != "nothing":
        path.symlink_to(tmp_path if there == "link" else tmp_path / "nowhere")
    spec = replace(a_spec("cut"), workspace=WorkspaceSpec(path=str(path)))
    submitted = RunAdded(spec=spec, command="run", at=100.0)
    store = keep(journal, [submitted])
    check_taking_up(store, ["cut"])  # it makes the folder itself, before its first turn

    keep(journal, [changed(1, "cut", writes=[BEGUN])])

    with pytest.raises(BadInputError) as refused:
        check_taking_up(store, ["cut"])
    assert str(refused.value) == (
        f"run 'cut': there is no folder {str(path)!r}, in which it works; make it again, with what "
        "was in it, or start a new run"
    )


def test_a_run_goes_on_in_the_folder_that_it_worked_in(
    journal: SqliteJournal, tmp_path: Path
) -> None:
    # On the way to it there may be links.
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "work").mkdir()
    spec = replace(a_spec("cut"), workspace=WorkspaceSpec(path=str(tmp_path / "link" / "work")))
    submitted = RunAdded(spec=spec, command="run", at=100.0)

    check_taking_up(keep(journal, [submitted, changed(1, "cut", writes=[BEGUN])]), ["cut"])


def test_what_is_over_or_unknown_is_no_matter_of_this(journal: SqliteJournal) -> None:
    over = [*talking("over"), changed(2, "over", end=an_end("over")), *talking("next")]

    check_taking_up(keep(journal, over), ["over", "nobody"])
