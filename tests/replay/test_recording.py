"""A run is read whole from its journal, with what others added to its conversation."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness_actors.config import HarnessConfig
from harness_actors.errors import BadInputError, RunNotFoundError
from harness_actors.events import TurnStarted
from harness_actors.messages import Message
from harness_actors.records import Entry, Hop, RunAdded, RunChanged, RunSpec, StoredChange
from harness_actors.replay import Recording, load_recording, plan_fork
from harness_actors.replay.recording import CHANGES_PER_PAGE
from harness_actors.results import HarnessResult, Reason, Usage
from harness_actors.signals import RepairTrigger
from harness_actors.state import StateDelta
from harness_actors.stores import JournalReader, SqliteJournal

TASK = (Message.user("the task"),)
DONE = Reason(kind="completed", message="")


def a_spec(run_id: str, conversation_id: str = "talk") -> RunSpec:
    return RunSpec(
        run_id=run_id,
        conversation_id=conversation_id,
        task=TASK,
        code="code",
        config=HarnessConfig(),
        edges=(),
    )


def added(spec: RunSpec) -> RunAdded:
    return RunAdded(spec=spec, command="c", at=1.0)


def said(
    run_id: str, version: int, text: str | None, *, end: HarnessResult | None = None
) -> RunChanged:
    """A change that adds a message, or none."""
    return RunChanged(
        run_id=run_id,
        version=version,
        delta=StateDelta(messages=() if text is None else (Message.user(text),)),
        hop=Hop(to="repair", signal=RepairTrigger()),
        losses=0,
        end=end,
        at=1.0,
    )


def an_end(run_id: str) -> HarnessResult:
    return HarnessResult(
        run_id=run_id, status="done", reason=DONE, turn_count=1, usage=Usage(model_calls=1)
    )


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def a_journal(store: Path, *entries: Entry) -> JournalReader:
    journal = SqliteJournal(store)
    journal.commit(journal.begin_term(), entries)
    journal.close()
    return JournalReader(store)


def test_a_run_of_more_changes_than_are_read_at_once_is_read_whole(tmp_path: Path) -> None:
    """Its positions are not its versions: another run's changes are among them."""
    ours, theirs, count = a_spec("ours"), a_spec("theirs"), CHANGES_PER_PAGE + 5
    entries: list[Entry] = [added(ours), added(theirs)]
    for version in range(1, count + 1):
        entries.append(said("theirs", version, f"their {version}"))
        end = an_end("ours") if version == count else None
        entries.append(said("ours", version, f"our {version}", end=end))

    recording = load_recording(a_journal(tmp_path / "runs.db", *entries), "ours")

    assert [change.version for change in recording.changes] == list(range(1, count + 1))
    assert texts(recording.messages) == [f"our {version}" for version in range(1, count + 1)]
    assert texts([message for _, message in recording.others]) == [
        f"their {version}" for version in range(1, count + 1)
    ]
    assert recording.end is not None


def test_what_others_said_is_in_the_order_of_the_conversation(tmp_path: Path) -> None:
    """Not in that of the runs, and without what was said elsewhere."""
    journal = a_journal(
        tmp_path / "runs.db",
        *(added(a_spec(name)) for name in ("one", "two", "ours")),
        added(a_spec("elsewhere", "another talk")),
        said("two", 1, "first"),
        said("elsewhere", 1, "not here"),
        said("one", 1, "second"),
        said("ours", 1, "ours"),
        said("two", 2, "third", end=an_end("two")),
    )

    recording = load_recording(journal, "ours")

    assert texts([message for _, message in recording.others]) == ["first", "second", "third"]
    last = max(position for position, _ in recording.others)
    assert texts(recording.log_before(last)) == ["first", "second", "ours"]


class Growing(JournalReader):
    """A journal in which the run goes on when somebody has just looked at it."""

    def load_changes(self, run_id: str, after: int = 0, limit: int = 1000) -> list[StoredChange]:
        if not after:
            journal = SqliteJournal(self.path)
            journal.commit(journal.begin_term(), [said("ours", 2, "later", end=an_end("ours"))])
            journal.close()
        return super().load_changes(run_id, after, limit)


def test_a_run_that_goes_on_while_it_is_read_is_read_as_it_stood(tmp_path: Path) -> None:
    a_journal(tmp_path / "runs.db", added(a_spec("ours")), said("ours", 1, "so far"))

    recording = load_recording(Growing(tmp_path / "runs.db"), "ours")

    assert (texts(recording.messages), recording.end) == (["so far"], None)


def test_a_run_that_the_journal_does_not_have_is_named(tmp_path: Path) -> None:
    journal = a_journal(tmp_path / "runs.db", added(a_spec("ours")))

    with pytest.raises(RunNotFoundError, match="theirs"):
        load_recording(journal, "theirs")


# ---- forks -----------------------------------------------------------------------------


def a_change(position: int, *words: str, turn: int | None = None) -> StoredChange:
    events = () if turn is None else (TurnStarted(turn=turn, max_turns=9),)
    messages = tuple(Message.user(text) for text in words)
    return StoredChange(
        position=position,
        at=1.0,
        version=position,
        delta=StateDelta(messages=messages, events=events),
        hop=None,
        losses=0,
    )


RECORDING = Recording(
    spec=a_spec("ours"),
    added_at=1.0,
    changes=(
        a_change(2),
        a_change(3, "the task", turn=1),
        a_change(5, "an answer", "a result"),
        a_change(7, "a nudge"),
        a_change(9, "more", turn=2),
    ),
    end=None,
    others=((1, Message.user("before")), (6, Message.user("between")), (8, Message.user("late"))),
)


def test_a_fork_begins_with_all_that_was_said_before_its_turn() -> None:
    fork = plan_fork(RECORDING, 2)

    said_before = ["before", "the task", "an answer", "a result", "between", "a nudge", "late"]
    assert texts(fork.messages) == said_before
    assert fork.metadata == {"forked_from": {"run_id": "ours", "turn": 2}}


def test_a_fork_from_the_first_turn_begins_with_the_task() -> None:
    assert texts(plan_fork(RECORDING, 1).messages) == ["before", "the task"]


@pytest.mark.parametrize("turn", [0, 3])
def test_a_fork_from_a_turn_that_there_is_not_says_which_there_are(turn: int) -> None:
    with pytest.raises(BadInputError, match=f"turns 1 to 2, and no {turn}"):
        plan_fork(RECORDING, turn)
