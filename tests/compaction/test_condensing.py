"""Any log, in any window: what is summarized, and the plan by which it is."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.compaction import Condensation
from harness_actors.compaction.condensing import BLOCK_TOKENS, Block
from harness_actors.config import CompactionConfig
from harness_actors.conversation import Conversation, repaired
from harness_actors.messages import Message
from harness_actors.plan import (
    CompactionPlan,
    Decision,
    Shown,
    Summary,
    View,
    is_pinned,
    without_summarized,
)
from harness_actors.state import Pressure
from tests.compaction.logs import compacted, groups, joined, logs
from tests.compaction.test_ladder import POLICIES, a_group, a_run, pressure

SETTINGS = CompactionConfig(summaries=True, facts=("The port is 4711.",))
SHOWN = Shown(POLICIES)


def condensation(
    log: Conversation, plan: CompactionPlan | None, why: Pressure, *, asked: bool = False
) -> Condensation:
    return Condensation(without_summarized(log, plan), plan, why, SETTINGS, SHOWN, asked=asked)


def blocks(one: Condensation, most: int = 2_000, keep: str = "") -> tuple[Block, ...]:
    return one.blocks("a summarizer", most, keep)


def summaries(parts: Sequence[Block]) -> dict[str, Summary]:
    """Of each block, the first and the last position in it."""
    return {
        part.key: Summary(
            decisions=(Decision(what=f"{part.messages[0][0]} to {part.messages[-1][0]}"),)
        )
        for part in parts
    }


def proposal(one: Condensation) -> tuple[CompactionPlan, int] | None:
    return one.proposal(summaries(blocks(one)))


@settings(deadline=None, max_examples=200)
@given(logs(), st.integers(500, 20_000), st.booleans())
def test_of_any_log_a_part_is_summarized_and_the_rest_is_shown_as_it_was(
    log: Conversation, window: int, asked: bool
) -> None:
    made = proposal(condensation(log, None, pressure(log, window), asked=asked))
    if made is None:
        return
    plan, freed = made
    assert freed > 0
    shown = View(log, plan).messages()
    assert repaired(shown)[1] == 0
    assert [one for one in shown if is_pinned(one)] == [one for one in log if is_pinned(one)]
    assert "The port is 4711." in "".join(one.text for one in shown)
    assert log[-1] == shown[-1]
    assert CompactionPlan.from_plain(plan.as_plain()) == plan
    assert shown == View(log, CompactionPlan.from_plain(plan.as_plain())).messages()
    again = proposal(condensation(log, None, pressure(log, window), asked=asked))
    assert again == made
    before, after = log.tokens, View(log, plan).tokens
    assert abs(before - after - freed) <= 1


@settings(deadline=None, max_examples=100)
@given(logs(), st.lists(groups(), max_size=30), st.integers(500, 10_000), st.booleans())
def test_what_is_summarized_grows_and_so_does_its_summary(
    log: Conversation, later: list[list[Message]], window: int, ladder_between: bool
) -> None:
    first = proposal(condensation(log, None, pressure(log, window)))
    if first is None:
        return
    plan = first[0]
    log.extend(joined(later))
    if ladder_between:
        squeezed = compacted(log, plan, pressure(log, window, plan)).plan
        if squeezed is not None:
            assert (squeezed.summary, squeezed.summarized) == (plan.summary, plan.summarized)
            plan = squeezed
    second = proposal(condensation(log, plan, pressure(log, window, plan)))
    if second is None:
        return
    grown = second[0]
    assert grown.follows(plan)
    assert repaired(View(log, grown).messages())[1] == 0
    told = {place for span in plan.summarized for place in range(span.start, span.end)}
    told_now = {place for span in grown.summarized for place in range(span.start, span.end)}
    assert told < told_now
    assert plan.summary is not None
    assert grown.summary is not None
    assert grown.summary.decisions[: len(plan.summary.decisions)] == plan.summary.decisions
    assert View(log, grown).tokens < View(log, plan).tokens


def test_it_goes_down_to_the_low_water_mark_with_the_oldest_messages() -> None:
    log = a_run(30, chars=800)
    why = pressure(log, 8_000)
    plan, freed = proposal(condensation(log, None, why)) or (None, 0)
    assert plan is not None
    (span,) = plan.summarized
    assert span.start == 1, "the task stays"
    left = why.request_tokens - freed
    assert 0.25 * 8_000 < left <= 0.45 * 8_000


def test_blocks_are_as_large_as_a_summarizer_takes_and_divide_no_call_from_its_results() -> None:
    log = a_run(60, chars=800)
    one = condensation(log, None, pressure(log, 14_000))
    parts = blocks(one, 1_000)
    assert len(parts) > 5
    for part in parts:
        assert sum(message.tokens for _, message, _ in part.messages) <= 1_000
        roles = [message.role for _, message, _ in part.messages]
        assert roles == ["assistant", "tool"] * (len(roles) // 2)
        assert all(call is not None for _, message, call in part.messages if message.role == "tool")
    positions = [at for part in parts for at, _, _ in part.messages]
    assert positions == list(range(1, positions[-1] + 1))


def test_a_message_larger_than_a_block_is_one_of_its_own() -> None:
    log = joined(
        [[Message.user("go", tokens=2)], *(a_group(n, "think", "x" * 9_000) for n in range(9))]
    )
    parts = blocks(condensation(log, None, pressure(log, 20_000)), 1_000)
    assert [len(part.messages) for part in parts] == [2] * len(parts)


def test_no_block_is_larger_than_ours_whatever_a_summarizer_takes() -> None:
    log = a_run(900, chars=800)
    parts = blocks(condensation(log, None, pressure(log, 128_000)), 10**6)
    sizes = [sum(message.tokens for _, message, _ in part.messages) for part in parts]
    assert max(sizes) <= BLOCK_TOKENS
    assert len(parts) > 3


def test_the_same_part_has_the_same_key_and_another_way_to_summarize_it_another() -> None:
    log = a_run(60, chars=800)
    one = condensation(log, None, pressure(log, 14_000))
    keys = [part.key for part in blocks(one)]
    assert len(set(keys)) == len(keys)
    log.extend(a_group(60, "read_file", "y" * 800))
    later = condensation(log, None, pressure(log, 14_000))
    assert [part.key for part in blocks(later)][: len(keys) - 1] == keys[:-1]
    for other in (blocks(one, keep="names"), one.blocks("another", 2_000)):
        assert not {part.key for part in other} & set(keys)


def test_two_parts_that_are_the_same_have_a_summary_each() -> None:
    """A summary names messages by their numbers; and of one key, the journal keeps the first."""
    task = [Message.user("the task", tokens=6)]
    log = joined([task, *[a_group(0, "read_file", "y" * 800) for _ in range(60)]])
    parts = blocks(condensation(log, None, pressure(log, 14_000)))
    assert len({tuple(message.encoded for _, message, _ in part.messages) for part in parts}) == 2
    assert len({part.key for part in parts}) == len(parts) > 2


def test_what_a_plan_has_dropped_is_summarized_too() -> None:
    log = a_run(60, "web_search", 2_000)
    dropped = compacted(log, None, pressure(log, 8_000)).plan
    assert dropped is not None
    assert any(span.action == "drop" for span in dropped.spans)
    log.extend(joined([a_group(n, "web_search", "z" * 2_000) for n in range(60, 70)]))
    one = condensation(log, dropped, pressure(log, 8_000, dropped))
    at, message, _ = blocks(one)[0].messages[0]
    assert (at, message) == (1, log[1])
    plan, _ = proposal(one) or (None, 0)
    assert plan is not None
    assert {span.action for span in plan.spans if span.start < dropped.upto} == {"summarize"}


def test_a_little_is_not_worth_a_change() -> None:
    log = a_run(30, chars=800)
    why = pressure(log, 60_000)
    assert proposal(condensation(log, None, why)) is None
    made = proposal(condensation(log, None, why, asked=True))
    assert made is not None, "but where a user asks for it"


@pytest.mark.parametrize("ratio", [0.5, 2.0, 20.0])
def test_the_providers_count_is_what_counts(ratio: float) -> None:
    log = a_run(30, chars=800)
    ours = pressure(log, 8_000)
    counted = Pressure(
        window_tokens=int(8_000 * ratio),
        request_tokens=int(ours.request_tokens * ratio),
        overhead_tokens=100,
    )
    plan, freed = proposal(condensation(log, None, ours)) or (None, 0)
    scaled, more = proposal(condensation(log, None, counted)) or (None, 0)
    assert plan is not None
    assert scaled is not None
    assert scaled.summarized == plan.summarized
    assert more == pytest.approx(freed * ratio, abs=3)


def test_only_system_messages_and_words_of_the_user_are_left_alone() -> None:
    words = [Message.system("Be brief.", tokens=500), Message.user("go", tokens=500)] * 9
    log = Conversation(words)
    one = condensation(log, None, pressure(log, 2_000))
    assert (blocks(one), proposal(one)) == ((), None)
