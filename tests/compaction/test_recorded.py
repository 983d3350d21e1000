"""Recorded conversations of real agents, as they grow, in small windows."""

from collections.abc import Sequence

import pytest

from harness_actors.conversation import Conversation, repaired
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, View, is_pinned
from tests.compaction.logs import compacted
from tests.compaction.test_ladder import check_words, pressure
from tests.data import recorded, shortened

WINDOWS = (4_000, 8_000, 32_000)
WHOLE = {one.id: one.messages for one in recorded()}
SHORT = {name: tuple(map(Message.from_wire, messages)) for name, messages in shortened().items()}


def grown(messages: Sequence[Message], window: int) -> tuple[Conversation, list[CompactionPlan]]:
    """A conversation that came in message by message, and the plans that it needed."""
    log, plan, plans = Conversation(), None, list[CompactionPlan]()
    for message in repaired(messages)[0]:
        log.append(message)
        # A request is made where all calls have their results.
        if log.open_calls():
            continue
        view = View(log, plan).tokens if plan else log.tokens
        if view + 100 < 0.95 * window:
            continue
        made = compacted(log, plan, pressure(log, window, plan))
        assert made.fits, made
        if made.plan is not None:
            check(log, made.plan, window)
            plan = made.plan
            plans.append(plan)
    return log, plans


def check(log: Conversation, plan: CompactionPlan, window: int) -> None:
    view = View(log, plan)
    shown = view.messages()
    assert repaired(shown)[1] == 0
    assert view.tokens + 100 <= window
    assert view.messages() == View(log, CompactionPlan.from_plain(plan.as_plain())).messages()
    check_words(list(log), shown)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", WHOLE)
def test_a_conversation_is_kept_within_its_window(name: str, window: int) -> None:
    log, plans = grown(WHOLE[name], window)
    assert [plan.version for plan in plans] == list(range(1, len(plans) + 1))
    # Each frees enough for a while; but where all that there is are the user's own words.
    words = sum(message.tokens for message in log if is_pinned(message))
    if words < window // 2:
        assert len(plans) <= 2 + 2 * log.tokens // (window - words)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", SHORT)
def test_so_are_those_with_shortened_texts(name: str, window: int) -> None:
    grown(SHORT[name], window)


def test_some_of_them_outgrow_each_window() -> None:
    for window in WINDOWS:
        assert sum(bool(grown(messages, window)[1]) for messages in WHOLE.values()) >= 2
