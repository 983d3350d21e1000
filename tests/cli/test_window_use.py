"""How full a window is, as whoever watches a run is told."""

from typing import Any

import pytest

from harness_actors.cli.window_use import WindowUse
from harness_actors.events import (
    ContextCompacted,
    Event,
    RunEvent,
    RunStarted,
    TextDelta,
    TurnCompleted,
    TurnStarted,
)

STARTED = RunStarted(task_preview="go", stop_policy="interactive", max_turns=9)


def told(*events: Event) -> str:
    use = WindowUse(1_000)
    for event in events:
        use.take(RunEvent(position=1, run_id="run", at=0.0, event=event))
    return use.line


def turn(tokens: int) -> TurnCompleted:
    return TurnCompleted(turn=1, rounds=1, ending="natural", token_estimate=tokens)


def room(**sizes: Any) -> ContextCompacted:
    counts = {"cleared": 1, "externalized": 0, "dropped": 0, "summarized": 0}
    return ContextCompacted(turn=1, version=1, tokens_before=950, **sizes, **counts)


@pytest.mark.parametrize(
    ("events", "line"),
    [
        ((), ""),
        ((turn(249),), ""),
        ((turn(250),), "the next request takes 25% of the window, 250 of 1,000 tokens"),
        ((turn(900), turn(500)), "the next request takes 50% of the window, 500 of 1,000 tokens"),
        ((turn(900), room(tokens_after=200, window_tokens=1_000)), ""),
        (
            (turn(900), room(tokens_after=400, window_tokens=800)),
            "the next request takes 50% of the window, 400 of 800 tokens",
        ),
        ((turn(500), TurnStarted(turn=2, max_turns=9)), told(turn(500))),
        # Of another conversation, and cut before its first turn was over.
        ((turn(500), STARTED), ""),
    ],
)
def test_the_newest_size_counts(events: tuple[Event, ...], line: str) -> None:
    assert told(*events) == line


def test_text_says_nothing_of_it() -> None:
    use = WindowUse(1_000)
    use.take(TextDelta(run_id="run", turn=1, round=1, attempt=1, text="x" * 9_000))
    assert use.line == ""
