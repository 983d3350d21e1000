"""Rounds as the turn loop commits them, with texts of real conversations in their messages."""

import gzip
from itertools import count
from pathlib import Path

import orjson

from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import DEFAULT_EDGES
from harness_actors.events import RoundCompleted, RunCompleted
from harness_actors.messages import Message, ToolCall
from harness_actors.records import Entry, RunAdded, RunChanged, RunSpec
from harness_actors.results import HarnessResult, Reason, Usage
from harness_actors.state import StateDelta, Write

RECORDED = Path(__file__).parents[1] / "tests" / "data" / "conversations.jsonl.gz"
COMMAND = "a command"
THOUGHT_CHARS, ARGUMENT_CHARS, RESULT_CHARS = 80, 60, 280
"""With what JSON and the format add, some 640 bytes a round."""


def texts() -> str:
    """What was said in the recorded conversations, one after the other."""
    lines = gzip.decompress(RECORDED.read_bytes()).splitlines()
    messages = [message for line in lines for message in orjson.loads(line)["messages"]]
    said = [message.get("content") for message in messages]
    return "\n".join(text for text in said if isinstance(text, str))


def added(run_id: str) -> RunAdded:
    """A run that begins."""
    spec = RunSpec(
        run_id=run_id,
        conversation_id=run_id,
        task=(Message.user(f"The task of {run_id}: look at the order and say why it is late."),),
        code="c0de" * 16,
        config=HarnessConfig(),
        edges=DEFAULT_EDGES,
        keys=("OPENAI_API_KEY",),
        metadata={"id": run_id, "task_hash": "0123456789abcdef" * 4},
    )
    return RunAdded(spec=spec, command=COMMAND, at=1_790_000_000.25)


def ended(run_id: str, version: int) -> RunChanged:
    """The last change of a run."""
    end = HarnessResult(
        run_id=run_id,
        status="done",
        reason=Reason(kind="completed", message="the summary"),
        turn_count=1,
        output_text="Order 17 was late because of snow; the customer got a refund.",
        completion_verified=True,
        usage=Usage(model_calls=12, tool_calls=11, input_tokens=9_000, output_tokens=700),
        wall_s=12.25,
    )
    over = RunCompleted(status="done", reason="completed", message="the summary")
    return _changed(run_id, version, StateDelta(events=(over,)), end=end)


class Rounds:
    """The rounds of one run, one after the other.

    Args:
        run_id: The run.
        fenced: Its tool is not idempotent, so that every round is committed in two parts.
        text: What the messages are filled with; see `texts`.

    Attributes:
        message_bytes: Bytes of the messages of all rounds that were made.
        version: Version of the run's state after them.
    """

    def __init__(self, run_id: str, *, fenced: bool, text: str) -> None:
        self._run_id = run_id
        self._fenced = fenced
        self._pieces = _Pieces(text)
        self._number = count(1)
        self.message_bytes = 0
        self.version = 0

    def make(self) -> list[Entry]:
        """The entries of the next round."""
        number = next(self._number)
        call = ToolCall(
            f"call_{number:08d}_{self._run_id[:8]}",
            "run_command" if self._fenced else "read_file",
            orjson.dumps({"path": self._piece(ARGUMENT_CHARS)}).decode(),
        )
        asked = Message.assistant(self._piece(THOUGHT_CHARS), [call])
        answered = Message.tool_result(call.id, self._piece(RESULT_CHARS))
        self.message_bytes += len(asked.encoded) + len(answered.encoded)
        return self._entries(number, call, asked, answered)

    def _entries(
        self, number: int, call: ToolCall, asked: Message, answered: Message
    ) -> list[Entry]:
        completed = RoundCompleted(
            turn=1,
            round=number,
            input_tokens=100 * number,
            output_tokens=asked.tokens,
            cached_tokens=0,
            cost_usd=0.00125,
            tool_calls=1,
        )
        asking = _usage(number, asked.tokens, calls=1)
        if not self._fenced:
            writes = (*asking, _turn(number))
            return [self._change(StateDelta(writes, (asked, answered), (completed,)))]
        listed = {
            "call_id": call.id,
            "tool_name": call.name,
            "idempotent": False,
            "turn": 1,
        }
        pending = (Write("harness.open_calls", "set", [listed]), *asking, _turn(number))
        done = (
            Write("harness.open_calls", "set", []),
            *_usage(number, answered.tokens, calls=0),
        )
        return [
            self._change(StateDelta(pending, (asked,))),
            self._change(StateDelta(done, (answered,), (completed,))),
        ]

    def _change(self, delta: StateDelta) -> RunChanged:
        self.version += 1
        return _changed(self._run_id, self.version, delta)

    def _piece(self, length: int) -> str:
        return self._pieces.next(length)


def _changed(
    run_id: str, version: int, delta: StateDelta, *, end: HarnessResult | None = None
) -> RunChanged:
    at = 1_790_000_000.123457 + version * 1.000003
    return RunChanged(
        run_id=run_id, version=version, delta=delta, hop=None, losses=0, end=end, at=at
    )


def _usage(number: int, tokens: int, *, calls: int) -> tuple[Write, Write]:
    used = {
        "model_calls": calls,
        "tool_calls": 1,
        "input_tokens": 100 * number * calls,
        "output_tokens": tokens * calls,
        "cached_tokens": 0,
        "cost_usd": 0.00125 * calls,
        # As a clock reads: all digits that a float has.
        "working_s": (number * 0.1234567891234) % 7,
    }
    return (
        Write("harness.usage", "increment", used),
        Write("harness.request_tokens", "increment", tokens),
    )


def _turn(number: int) -> Write:
    return Write("harness.turn", "set", {"rounds": number, "progressed": True})


class _Pieces:
    """Cuts a text into pieces, from its beginning again at its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self, length: int) -> str:
        if self._at + length > len(self._text):
            self._at = 0
        piece = self._text[self._at : self._at + length]
        self._at += length
        return piece
