"""Any log, in any window: what is shown is a conversation that providers accept."""

from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.conversation import Conversation, repaired
from harness_actors.messages import Message, ToolCall
from harness_actors.plan import CompactionPlan, ToolPolicy, View, is_pinned, render
from harness_actors.state import Pressure
from tests.compaction.logs import IMAGE, compacted, groups, joined, logs

POLICIES = {
    "read_file": ToolPolicy(durability="replayable"),
    "web_search": ToolPolicy(durability="non_replayable"),
    "list_directory": ToolPolicy(durability="ephemeral"),
}
PLAIN = {name: asdict(policy) for name, policy in POLICIES.items()}


def pressure(
    log: Conversation, window: int, plan: CompactionPlan | None = None, overhead: int = 100
) -> Pressure:
    shown = log.tokens if plan is None else View(log, plan).tokens
    return Pressure(
        window_tokens=window,
        request_tokens=shown + overhead,
        overhead_tokens=overhead,
        plan=0 if plan is None else plan.version,
        policies=PLAIN,
    )


@settings(deadline=None, max_examples=300)
@given(logs(), st.integers(500, 20_000))
def test_any_log_fits_or_says_that_it_does_not(log: Conversation, window: int) -> None:
    result = compacted(log, None, pressure(log, window))

    shown = list(log) if result.plan is None else View(log, result.plan).messages()
    assert repaired(shown)[1] == 0
    tokens = 100 + sum(message.tokens for message in shown)
    assert tokens <= result.request_tokens <= tokens + 1 or result.plan is None
    assert result.fits == (tokens <= window)
    check_words(list(log), shown)


def check_words(log: list[Message], shown: list[Message]) -> None:
    """The user's words are there, in their order; in an emergency in part, or the first and the
    last of them."""
    words = [message for message in log if is_pinned(message)]
    said = [message for message in shown if is_pinned(message)]
    if len(said) < len(words):
        users = [message for message in words if message.role == "user"]
        begins = [message.text[:20] for message in said]
        assert users[0].text[:20] in begins
        assert users[-1].text[:20] in begins
        return
    for word, seen in zip(words, said, strict=True):
        # Only in an emergency is one shown in part, and where the rest is.
        begins_with = seen.text.split("\n[…")[0]
        assert seen == word or (begins_with in word.text and "read_artifact" in seen.text)


def test_a_plan_that_would_show_more_than_there_is_is_none() -> None:
    """A notice in the place of little takes more than that."""
    calls = [ToolCall(f"c{number}", "read_file", "{}") for number in range(2)]
    read = [Message.tool_result(call.id, "", tokens=89, images=(IMAGE,)) for call in calls]
    log = joined([[Message.assistant(None, calls, tokens=52), *read], [Message.user("", tokens=4)]])
    first = compacted(log, None, pressure(log, 500)).plan
    assert first is not None
    log.extend([Message.told("", tokens=4), Message.user("word " * 54, tokens=67)])

    second = compacted(log, first, pressure(log, 500, first))

    assert second.plan is None
    assert second.fits


@settings(deadline=None, max_examples=150)
@given(logs(), st.lists(groups(), max_size=30), st.integers(500, 10_000))
def test_a_plan_grows_into_the_next_one(
    log: Conversation, later: list[list[Message]], window: int
) -> None:
    first = compacted(log, None, pressure(log, window)).plan
    if first is None:
        return
    assert CompactionPlan.from_plain(first.as_plain()) == first
    shown = list(render(log, first))
    log.extend(joined(later))
    assert list(render(log, first)) == shown
    assert View(log, first).messages() == [*shown, *log[first.upto :]]

    second = compacted(log, first, pressure(log, window, first)).plan
    if second is None:
        return
    assert (second.version, second.base) == (2, 1)
    assert CompactionPlan.from_plain(second.as_plain()) == second
    assert second.upto <= len(log)
    after = View(log, second)
    assert repaired(after.messages())[1] == 0
    assert after.tokens < View(log, first).tokens
    for span in first.spans:
        if span.action == "drop":
            assert any(
                one.action == "drop" and one.start <= span.start and span.end <= one.end
                for one in second.spans
            )


def a_group(number: int, tool: str, result: str, arguments: str = "{}") -> list[Message]:
    call = ToolCall(f"c{number}", tool, arguments)
    return [
        Message.assistant(f"step {number}", [call], tokens=30),
        Message.tool_result(call.id, result, tokens=len(result) // 4),
    ]


def a_run(rounds: int, tool: str = "read_file", chars: int = 4000) -> Conversation:
    parts = [a_group(n, tool, f"{n} " + "x" * chars, f'{{"path":"f{n}"}}') for n in range(rounds)]
    return joined([[Message.user("the task", tokens=6)], *parts])


def test_results_that_can_be_had_again_go_first_and_the_oldest_of_them() -> None:
    log = a_run(30)
    result = compacted(log, None, pressure(log, 30_000))
    assert result.plan is not None
    assert {span.action for span in result.plan.spans} == {"clear"}
    shown = View(log, result.plan).messages()
    assert len(shown) == len(log)
    assert 'path="f0"' in shown[2].text
    assert 'Call read_file again for it, or read_artifact(id="m2").' in shown[2].text
    assert shown[-1] == log[-1]
    assert result.request_tokens <= 0.45 * 30_000


def test_what_no_call_brings_back_is_named_where_it_is_dropped() -> None:
    log = a_run(60, "web_search", 2000)
    result = compacted(log, None, pressure(log, 8_000))
    assert result.plan is not None
    assert result.dropped > 0
    text = next(
        m.text
        for m in View(log, result.plan).messages()
        if "m2: " in m.text or "left out" in m.text
    )
    assert 'web_search({"path":"f' in text
    assert result.request_tokens <= 0.45 * 8_000


def test_the_steps_of_a_conversation_are_few_however_long_it_is() -> None:
    log = a_run(2000)
    result = compacted(log, None, pressure(log, 32_000))
    assert result.plan is not None
    assert len(result.plan.spans) <= 3
    assert len(str(result.plan.as_plain())) < 2000


def test_a_message_larger_than_the_window_is_shown_in_part() -> None:
    words = "begin " + "x" * 100_000 + " end"
    log = Conversation([Message.user(words, tokens=25_000)])
    result = compacted(log, None, pressure(log, 8_000))
    assert result.plan is not None
    assert result.fits
    shown = View(log, result.plan).messages()[0].text
    assert shown.startswith("begin ")
    assert shown.endswith(" end")
    assert 'read_artifact(id="m0")' in shown


def test_what_cannot_be_made_smaller_is_named() -> None:
    log = Conversation(Message.system(f"{n} short words", tokens=50) for n in range(400))
    result = compacted(log, None, pressure(log, 2_000))
    assert not result.fits
    assert result.plan is None
    assert result.largest == (0, 50)


def test_of_a_long_talk_the_task_and_what_was_said_last_stay() -> None:
    log = Conversation(Message.user(f"{n} short words", tokens=50) for n in range(400))
    result = compacted(log, None, pressure(log, 2_000))
    assert result.fits
    assert result.plan is not None
    texts = [message.text for message in View(log, result.plan).messages()]
    assert texts[0] == "0 short words"
    assert "Messages m1 to m" in texts[1]
    assert texts[-1] == "399 short words"
    assert len(texts) > 20


def test_as_long_as_anything_else_can_go_the_users_words_stay() -> None:
    def said(number: int) -> list[Message]:
        return [Message.user(f"word {number}", tokens=10), *a_group(number, "think", "x" * 900)]

    log = joined([part for number in range(20) for part in (said(number)[:1], said(number)[1:])])
    result = compacted(log, None, pressure(log, 3_000))
    assert result.fits
    assert result.plan is not None
    shown = View(log, result.plan).messages()
    words = [message.text for message in shown if is_pinned(message)]
    assert words == [f"word {number}" for number in range(20)]


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_providers_count_is_what_counts(ratio: float) -> None:
    log = a_run(30)
    near = pressure(log, 30_000)
    counted = Pressure(
        window_tokens=30_000,
        request_tokens=int(near.request_tokens * ratio),
        overhead_tokens=100,
        policies=PLAIN,
    )
    result = compacted(log, None, counted)
    assert result.plan is not None or ratio == 0.5
    shown = log.tokens if result.plan is None else View(log, result.plan).tokens
    assert (shown + 100) * ratio <= max(
        0.45 * 30_000, counted.request_tokens if ratio < 1 else 0
    ) + 2


def test_room_is_made_where_a_provider_counts_many_times_as_much() -> None:
    log = a_run(30)
    window, seen = 10 * 30_000, 10 * (100 + log.tokens)
    assert seen > window, "by the provider's count the window is too small, and by ours far from it"
    counted = Pressure(
        window_tokens=window, request_tokens=seen, overhead_tokens=100, policies=PLAIN
    )
    result = compacted(log, None, counted)
    assert result.plan is not None
    assert result.request_tokens <= 0.45 * window + 10


def test_what_is_being_worked_on_is_not_dropped_however_large_it_is() -> None:
    log = a_run(6, "web_search", 16_000)
    result = compacted(log, None, pressure(log, 3_000))
    assert result.fits
    assert result.plan is not None
    shown = View(log, result.plan).messages()
    assert shown[-2] == log[-2]
    assert shown[-1].text.startswith("5 xxx")
    # As much of it as there is room for: what is older is dropped first.
    assert len(shown[-1].text) > 2_500
    assert 'read_artifact(id="m12")' in shown[-1].text
