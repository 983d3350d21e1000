"""Runs that were recorded once come out the same ever after: see `tests/data/corpus`."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from harness_actors.events import (
    DERIVED_EVENTS,
    EVENT_TYPES,
    TOLD_EVENTS,
    ContextCompacted,
    HookFailed,
    ModelFellBack,
    StrategyFailed,
    SummaryFailed,
    ToolsCounted,
)
from harness_actors.messages import FAILURES, Message
from harness_actors.replay import Recording, load_recording, replay
from harness_actors.results import REASONS
from harness_actors.stores import JournalReader
from tests.data.corpus import expected, journals, plain, unpack
from tests.data.corpus.agents import CUES
from tests.data.corpus.observing import GAUGE, Watch

FEWEST = 30
NEVER_YET = {
    ("stalled", "repetition"),
    ("stalled", "blocked"),
    ("failed", "node_lost"),
    ("failed", "store_error"),
    ("awaiting_input", "question"),
    ("awaiting_input", "approval"),
}
"""Endings that no run has by itself, or that no code brings about yet."""
ELSEWHERE = (
    HookFailed,
    ToolsCounted,
    ModelFellBack,
    ContextCompacted,
    StrategyFailed,
    SummaryFailed,
)
"""Events of agents with gates or several models, and of runs that outgrow their window: none of
the corpus has them; `test_gates`, `test_compaction` and `tests/test_fallback.py` record such."""

OTHERWISE = {
    ("second", "must-not-ask"): {
        "change 6 of 8, at 'agent_turn'",
        "change 8 of 8, at 'stop_decision'",
    }
}
"""What is meant to come out otherwise by now, and where. A turn that must not ask closes the calls
of its message itself; they were closed with the end of its run, behind all that came in between."""

ALL = [(journal, run) for journal in journals() for run in sorted(expected(journal))]
FIRST = "first"

Open = Callable[[str], JournalReader]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """The journals by name, each unpacked once."""
    folder = tmp_path_factory.mktemp("corpus")
    return cache(lambda journal: JournalReader(unpack(journal, folder)))


@pytest.mark.parametrize(("journal", "run"), ALL)
async def test_a_recorded_run_comes_out_the_same(opened: Open, journal: str, run: str) -> None:
    """Each message, event and entry of its state, where it went on, and how it ended."""
    recording = load_recording(opened(journal), run)
    then = dict(expected(journal)[run])
    facts = then.pop("facts")
    # Before the replay: what is read otherwise would be otherwise on both of its sides.
    assert plain(recording) == then

    replayed = await replay(recording)

    assert {found.where for found in replayed.differences} == OTHERWISE.get((journal, run), set())
    assert replayed.same == ((journal, run) not in OTHERWISE)
    assert replayed.same_messages == sum(len(change["messages"]) for change in then["changes"])
    # All that could be made again then can be made again now, whatever it is called.
    assert len(replayed.facts) <= len(facts)


@pytest.mark.parametrize("journal", journals())
def test_a_journal_has_the_runs_that_are_expected(opened: Open, journal: str) -> None:
    assert {heading.run_id for heading in opened(journal).headings()} == set(expected(journal))


def test_the_runs_have_every_ending_and_everything_that_befalls_a_run() -> None:
    runs = [run for journal in journals() for run in expected(journal).values()]
    assert len(runs) >= FEWEST
    endings = {run["end"] and (run["end"]["status"], run["end"]["reason"]["kind"]) for run in runs}
    known = {(status, kind) for status, kinds in REASONS.items() for kind in kinds}
    assert endings == {None} | known - NEVER_YET

    changes = [change for run in runs for change in run["changes"]]
    events = {event["type"] for change in changes for event in change["events"]}
    told = {event.type for event in (*DERIVED_EVENTS, *TOLD_EVENTS, *ELSEWHERE)}
    assert events == EVENT_TYPES - told
    messages = [message for change in changes for message in change["messages"]]
    assert any(message[3] for message in messages)
    assert {message[4] for message in messages if len(message) > 4} == {None, *FAILURES}


@pytest.mark.parametrize("run", ["observed", "observed-in-two-processes"])
async def test_what_was_observed_then_is_read_by_the_executor_of_now(
    opened: Open, run: str
) -> None:
    recording = load_recording(opened("observed"), run)
    CUES.clear()
    CUES.go.set()
    seen = next(GAUGE)

    replayed = await replay(recording, [Watch(held=run != "observed")])

    assert replayed.same, replayed.differences
    assert not any("watch" in fact for fact in replayed.facts)
    assert next(GAUGE) == seen + 1, "nobody has looked"


@pytest.mark.parametrize("run", ["cell-died", "talk-3"])
async def test_a_message_too_many_in_any_hop_is_told(opened: Open, run: str) -> None:
    recording = load_recording(opened(FIRST), run)
    hops = [place for place, change in enumerate(recording.changes) if change.hop is not None]

    for place in hops:
        replayed = await replay(_with_another_message(recording, place))

        assert not replayed.same, recording.changes[place]


def _with_another_message(recording: Recording, place: int) -> Recording:
    changes = list(recording.changes)
    delta = changes[place].delta
    delta = replace(delta, messages=(*delta.messages, Message.user("more")))
    changes[place] = replace(changes[place], delta=delta)
    return replace(recording, changes=tuple(changes))
