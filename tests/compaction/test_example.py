"""The example of docs/compaction.md."""

from dataclasses import asdict

from harness_actors.compaction import Compacted
from harness_actors.conversation import Conversation
from harness_actors.messages import Message, ToolCall
from harness_actors.plan import ToolPolicy, View
from harness_actors.state import Pressure
from tests.compaction.logs import compacted

WINDOW, OVERHEAD = 8_000, 500
POLICIES = {"read_file": asdict(ToolPolicy(durability="replayable"))}


def test_the_example_is_as_it_is_told() -> None:
    log = Conversation([Message.user("Read the book.", tokens=8)])
    found: list[tuple[int, int, Compacted]] = []
    plan = None
    for number in range(1, 53):
        call = ToolCall(f"c{number}", "read_file", f'{{"path":"page{number}.txt"}}')
        log.append(Message.assistant(None, [call], tokens=30))
        page = f"page {number}: " + "the quick brown fox jumps " * 42
        log.append(Message.tool_result(call.id, page, tokens=270))
        size = OVERHEAD + (log.tokens if plan is None else View(log, plan).tokens)
        if size < 0.95 * WINDOW:
            continue
        pressure = Pressure(
            window_tokens=WINDOW,
            request_tokens=size,
            overhead_tokens=OVERHEAD,
            policies=POLICIES,
        )
        made = compacted(log, plan, pressure)
        found.append((number, size, made))
        assert made.plan is not None
        plan = made.plan

    told = [
        (number, size, made.request_tokens, [(s.action, s.start, s.end) for s in made.plan.spans])
        for number, size, made in found
        if made.plan is not None
    ]
    assert told == [
        (24, 7708, 3574, [("drop", 1, 7), ("clear", 7, 39)]),
        (38, 7773, 3581, [("drop", 1, 35), ("clear", 35, 67)]),
        (52, 7780, 3581, [("drop", 1, 63), ("clear", 63, 95)]),
    ]
    assert plan is not None
    assert (plan.version, plan.base, plan.upto) == (3, 2, 95)
    shown = View(log, plan).messages()
    assert shown[3].text == (
        "[Left out to make room: a result of 1,101 characters. "
        'path="page32.txt". Call read_file again for it, or read_artifact(id="m64").]'
    )
