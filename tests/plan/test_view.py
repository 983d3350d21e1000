"""What a model is shown follows the log and its newest plan."""

from dataclasses import replace

from harness_actors.conversation import Conversation
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, Span, View, Viewer, without_dropped

FIRST = CompactionPlan(version=1, base=0, upto=2, spans=(Span(start=1, end=2, action="drop"),))
SECOND = replace(FIRST, version=2, base=1, upto=3, spans=(Span(start=1, end=3, action="drop"),))


def a_log(count: int) -> Conversation:
    return Conversation(Message.assistant(f"m{n}", tokens=10) for n in range(count))


def test_without_a_plan_there_is_no_view() -> None:
    assert Viewer().see(a_log(3), None) is None


def test_a_view_is_kept_until_there_is_another_plan_or_log() -> None:
    viewer, log = Viewer(), a_log(4)
    first = viewer.see(log, FIRST)
    assert first is not None
    assert viewer.see(log, FIRST) is first
    assert [m.text for m in first.messages()][2:] == ["m2", "m3"]

    second = viewer.see(log, SECOND)
    assert second is not None
    assert [m.text for m in second.messages()][2:] == ["m3"]
    assert "m1 to m2" in second.messages()[1].text

    other = a_log(5)
    assert viewer.see(other, SECOND) is not second


def test_a_view_grows_with_its_log() -> None:
    log = a_log(4)
    view = Viewer().see(log, FIRST)
    assert view is not None
    before = view.tokens
    log.append(Message.user("new", tokens=7))
    assert view.messages()[-1].text == "new"
    assert view.tokens == before + 7
    assert view.tokens == sum(message.tokens for message in view.messages())


def test_what_is_dropped_is_not_sent_to_whoever_plans_on() -> None:
    log = a_log(4)
    left = without_dropped(log, SECOND)
    assert [message.encoded for message in left] == [log[0].encoded, b"{}", b"{}", log[3].encoded]
    assert without_dropped(log, None) == tuple(log)
    shown = View(Conversation(left), SECOND)
    assert shown.messages() == View(log, SECOND).messages()
    assert (shown.tokens, shown.size_bytes) == (
        View(log, SECOND).tokens,
        sum(len(message.encoded) for message in shown.messages()),
    )
