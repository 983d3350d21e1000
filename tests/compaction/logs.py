"""Conversations of any shape, drawn."""

from collections.abc import Sequence

from hypothesis import strategies as st

from harness_actors.compaction import Compacted, Ladder
from harness_actors.config import CompactionConfig
from harness_actors.conversation import Conversation
from harness_actors.messages import Message, ToolCall
from harness_actors.plan import CompactionPlan
from harness_actors.state import Pressure

TOOLS = ("read_file", "write_file", "web_search", "list_directory", "think")
WORDS = st.integers(0, 6000).map(lambda chars: ("word " * (chars // 5 + 1))[:chars])
IMAGE = "data:image/png;base64," + "A" * 2000


def tokens(text: str) -> int:
    return len(text) // 4 + 4


@st.composite
def groups(draw: st.DrawFn) -> list[Message]:
    """One message, or one with calls and all their results."""
    kind = draw(st.sampled_from(["user", "told", "text", "calls", "calls", "calls", "system"]))
    text = draw(WORDS)
    match kind:
        case "user":
            return [Message.user(text, tokens=tokens(text))]
        case "told":
            return [Message.told(text, tokens=tokens(text))]
        case "system":
            return [Message.system(text[:300], tokens=tokens(text[:300]))]
        case "text":
            return [Message.assistant(text, tokens=tokens(text))]
    # Ids are used again by later messages.
    calls = [
        ToolCall(f"c{number}", draw(st.sampled_from(TOOLS)), draw(arguments()))
        for number in range(draw(st.integers(1, 4)))
    ]
    asked = Message.assistant(draw(st.none() | WORDS), calls)
    return [asked, *(draw(results(call)) for call in calls)]


def arguments() -> st.SearchStrategy[str]:
    plain = st.sampled_from(["{}", '{"path":"src/a.py"}', "no JSON at all", '{"q": [1, {"a": 2}]}'])
    return plain | WORDS.map(lambda text: '{"path":"b.py","content":"' + text + '"}')


@st.composite
def results(draw: st.DrawFn, call: ToolCall) -> Message:
    text = draw(WORDS)
    failure = draw(st.none() | st.sampled_from(["failed", "unknown"]))
    images = (IMAGE,) if draw(st.integers(0, 9)) == 0 else ()
    return Message.tool_result(
        call.id,
        text,
        failure=failure,  # type: ignore[arg-type]
        is_error=failure is not None,
        tokens=tokens(text) + 85 * len(images),
        images=images,
    )


def logs(most: int = 40) -> st.SearchStrategy[Conversation]:
    return st.lists(groups(), max_size=most).map(joined)


def joined(parts: Sequence[Sequence[Message]]) -> Conversation:
    return Conversation(message for part in parts for message in part)


def compacted(log: Conversation, plan: CompactionPlan | None, pressure: Pressure) -> Compacted:
    """What comes of the ladder with the usual settings."""
    ladder = Ladder(log, plan, pressure, CompactionConfig())
    for _ in ladder.climb():
        pass
    return ladder.result()
