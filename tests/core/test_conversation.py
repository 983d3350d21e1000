"""The rules of the log, on made-up and on recorded conversations."""

import time
from collections import Counter
from collections.abc import Sequence
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from harness_actors.conversation import UNKNOWN_OUTCOME, Conversation, repaired, unique_ids
from harness_actors.messages import Message, ToolCall
from tests.data import Recorded, recorded


def asks(*ids: str) -> Message:
    return Message.assistant(None, [ToolCall(call_id, "tool", "{}") for call_id in ids])


def says(call_id: str, text: str = "ok") -> Message:
    return Message.tool_result(call_id, text)


def encoded(messages: Sequence[Message]) -> list[bytes]:
    return [message.encoded for message in messages]


def check(messages: Sequence[Message]) -> None:
    """Every call has exactly one result right after it, and no result stands alone."""
    waiting: Counter[str | None] = Counter()
    for message in messages:
        if message.role == "tool":
            assert waiting[message.tool_call_id] == 1, "an orphan, or a second result"
            waiting[message.tool_call_id] -= 1
        else:
            assert not any(waiting.values()), "a call without a result after it"
            waiting = Counter(call.id for call in message.tool_calls)
            assert all(count == 1 for count in waiting.values()), "an id twice in one message"
    assert not any(waiting.values())


# ---- the log --------------------------------------------------------------------------------


def test_a_conversation_counts_its_tokens() -> None:
    log = Conversation([Message.user("a", tokens=3), Message.assistant("b", tokens=4)])
    log.append(Message.user("c", tokens=5))
    log.extend([Message.user("d", tokens=6)])
    assert (log.tokens, len(log)) == (18, 4)
    assert [message.text for message in log[1:3]] == ["b", "c"]
    assert log[-1].text == "d"
    assert [message.text for message in reversed(log)] == ["d", "c", "b", "a"]


def test_open_calls_are_those_of_the_newest_message_without_a_result() -> None:
    log = Conversation([Message.user("x"), asks("a", "b"), says("b")])
    assert [call.id for call in log.open_calls()] == ["a"]
    log.append(says("a"))
    assert log.open_calls() == ()


def test_nothing_is_open_in_a_log_that_ends_otherwise() -> None:
    assert Conversation().open_calls() == ()
    assert Conversation([Message.user("x")]).open_calls() == ()
    assert Conversation([Message.assistant("done")]).open_calls() == ()


def test_a_reused_id_is_open_again() -> None:
    log = Conversation([asks("a"), says("a"), asks("a")])
    assert [call.id for call in log.open_calls()] == ["a"]


# ---- repairs, one by one ---------------------------------------------------------------------


def test_what_is_in_order_is_left_as_it_is() -> None:
    messages = [Message.user("x"), asks("a", "b"), says("a"), says("b"), Message.assistant("y")]
    fixed, repairs = repaired(messages)
    assert repairs == 0
    assert all(one is other for one, other in zip(fixed, messages, strict=True))


def test_results_may_stand_in_another_order_than_their_calls() -> None:
    messages = [asks("a", "b", "c"), says("c"), says("a"), says("b")]
    assert repaired(messages) == (messages, 0)


def test_a_missing_result_says_that_the_outcome_is_unknown() -> None:
    fixed, repairs = repaired([asks("a", "b"), says("b"), Message.user("next")])
    assert [message.role for message in fixed] == ["assistant", "tool", "tool", "user"]
    assert (fixed[2].tool_call_id, fixed[2].text) == ("a", UNKNOWN_OUTCOME)
    assert fixed[2].is_error
    assert repairs == 1


def test_a_late_result_moves_after_its_call() -> None:
    fixed, repairs = repaired([asks("a"), Message.user("hurry"), says("a", "late")])
    assert [message.text for message in fixed] == ["", "late", "hurry"]
    assert repairs == 1


def test_a_result_without_a_call_is_left_out() -> None:
    fixed, repairs = repaired([says("ghost"), Message.user("x"), says("a"), asks("a"), says("a")])
    assert [message.role for message in fixed] == ["user", "assistant", "tool"]
    assert repairs == 2


def test_a_second_result_is_left_out() -> None:
    fixed, repairs = repaired([asks("a"), says("a", "first"), says("a", "second")])
    assert [message.text for message in fixed[1:]] == ["first"]
    assert repairs == 1


def test_an_id_twice_in_one_message_gets_a_suffix_and_so_does_its_result() -> None:
    fixed, repairs = repaired([asks("a", "a"), says("a", "one"), says("a", "two")])
    assert [call.id for call in fixed[0].tool_calls] == ["a", "a#2"]
    assert [(m.tool_call_id, m.text) for m in fixed[1:]] == [("a", "one"), ("a#2", "two")]
    assert repairs == 1


def test_empty_ids_get_names() -> None:
    fixed, _ = repaired([asks("", ""), says("", "one"), says("", "two")])
    assert [call.id for call in fixed[0].tool_calls] == ["call_1", "call_2"]
    check(fixed)


def test_a_reused_id_belongs_to_the_newest_call_before_the_result() -> None:
    messages = [asks("a"), asks("a"), says("a", "of the second")]
    fixed, repairs = repaired(messages)
    assert [message.text for message in fixed] == ["", UNKNOWN_OUTCOME, "", "of the second"]
    assert repairs == 1


def test_the_text_beside_calls_with_bad_ids_is_kept() -> None:
    message = Message.assistant("let me see", [ToolCall("a", "f", "{}"), ToolCall("a", "g", "{}")])
    fixed, _ = repaired([message])
    assert fixed[0].text == "let me see"
    assert [call.name for call in fixed[0].tool_calls] == ["f", "g"]


def test_nothing_is_a_conversation_too() -> None:
    assert repaired([]) == ([], 0)


@given(st.lists(st.sampled_from(["a", "b", "a#2", "", "call_1"]), max_size=8))
def test_unique_ids_are_unique_and_keep_the_calls(ids: list[str]) -> None:
    calls = [ToolCall(call_id, f"tool{n}", "{}") for n, call_id in enumerate(ids)]
    unique = unique_ids(calls)
    assert len({call.id for call in unique}) == len(calls)
    assert all(call.id for call in unique)
    assert [call.name for call in unique] == [call.name for call in calls]


def test_ids_of_a_long_message_are_made_unique_in_linear_time() -> None:
    calls = [ToolCall("same", "f", "{}")] * 60_000
    began = time.process_time()
    unique = unique_ids(calls)
    log = Conversation([Message.assistant(None, unique)])
    log.extend(Message.tool_result(call.id, "x") for call in unique[:-1])

    assert log.open_calls() == (ToolCall("same#60000", "f", "{}"),)
    _, repairs = repaired([Message.assistant(None, calls), *log[1:]])
    # In quadratic time, each of the three takes minutes.
    assert time.process_time() - began < 20
    assert repairs


MESSAGES = st.lists(
    st.one_of(
        st.builds(asks, *[st.sampled_from("abc")] * 2),
        st.builds(asks, st.sampled_from("abc")),
        st.builds(says, st.sampled_from("abcd")),
        st.just(Message.user("x")),
        st.just(Message.assistant("y")),
    ),
    max_size=12,
)


@given(MESSAGES)
def test_any_list_of_messages_is_brought_in_order(messages: list[Message]) -> None:
    fixed, repairs = repaired(messages)
    check(fixed)
    assert (repairs == 0) == (encoded(fixed) == encoded(messages))
    again, none = repaired(fixed)
    assert (encoded(again), none) == (encoded(fixed), 0), "once is enough"
    # Nothing that was said is lost, and nothing but results is added.
    others = [message.text for message in messages if message.role != "tool"]
    assert [message.text for message in fixed if message.role != "tool"] == others


# ---- recorded conversations --------------------------------------------------------------------

EACH = pytest.mark.parametrize("conversation", recorded(), ids=lambda recorded: recorded.id)


@EACH
def test_a_recorded_conversation_stays_as_it_is(conversation: Recorded) -> None:
    fixed, repairs = repaired(conversation.messages)
    check(fixed)
    assert encoded(fixed)[: len(conversation.messages)] == encoded(conversation.messages)
    assert repairs == len(fixed) - len(conversation.messages) == conversation.open_at_end


def test_the_recorded_conversations_have_what_made_up_ones_would_not() -> None:
    assert any(conversation.ids_repeat for conversation in recorded())
    assert any(conversation.open_at_end for conversation in recorded())
    assert any(len(m.tool_calls) > 3 for c in recorded() for m in c.messages)


@EACH
def test_a_recorded_conversation_that_was_cut_is_closed(conversation: Recorded) -> None:
    messages = conversation.messages
    for end in range(0, len(messages), max(1, len(messages) // 40)):
        fixed, repairs = repaired(messages[:end])
        check(fixed)
        open_calls = Conversation(messages[:end]).open_calls()
        assert repairs == len(open_calls)
        assert len(fixed) == end + len(open_calls)


@EACH
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_a_recorded_conversation_that_was_damaged_is_put_in_order(
    conversation: Recorded, seed: int
) -> None:
    chance = Random(seed)
    messages = list(conversation.messages)
    for _ in range(chance.randint(1, 12)):
        at, to = chance.randrange(len(messages)), chance.randrange(len(messages))
        match chance.choice(["drop", "move", "double"]):
            case "drop" if len(messages) > 2:
                del messages[at]
            case "move":
                messages.insert(to, messages.pop(at))
            case _:
                messages.insert(to, messages[at])
    fixed, repairs = repaired(messages)
    check(fixed)
    assert (repairs == 0) == (encoded(fixed) == encoded(messages))


@EACH
def test_results_that_were_shuffled_find_their_calls(conversation: Recorded) -> None:
    """Within the block after its message a result may stand anywhere."""
    chance = Random(7)
    messages: list[Message] = []
    block: list[Message] = []
    for message in [*conversation.messages, Message.user("end")]:
        if message.role == "tool":
            block.append(message)
        else:
            chance.shuffle(block)
            messages += [*block, message]
            block = []
    fixed, repairs = repaired(messages)
    open_at_end = conversation.open_at_end
    assert repairs == open_at_end
    assert len(fixed) == len(messages) + open_at_end
