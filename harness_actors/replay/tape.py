"""What a journal answers in place of a model, of tools and of the clock, in one visit.

Everything is a function of how long the log is, never a cursor: the message that stands
at that place in the journal is what comes next.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from harness_actors.config import Limits
from harness_actors.conversation import Conversation
from harness_actors.errors import ContextOverflowError, ModelError, ToolError
from harness_actors.messages import Message
from harness_actors.ports import ModelResponse
from harness_actors.records import StoredChange
from harness_actors.replay.visits import Visit
from harness_actors.results import Usage
from harness_actors.signals import TurnComplete
from harness_actors.state import USAGE
from harness_actors.turn.one_call import CUT_ARGUMENTS
from harness_actors.turn.texts import RESULT_CHARS

TIME_IS_UP = "The run's time was up before this call "
JUST_BEFORE_S = 0.001
"""What is left of a limit that ran out during a call: the call is stopped by it at once."""


class Tape:
    """The answers of one visit to the agent turn.

    Args:
        visit: The visit.
        log: The conversation as the executor has it; it grows while the visit goes on.
        limits: The bounds of the run.
        leave: Called where the journal has nothing more to say: with what was asked for in
            vain, or with an empty text where it shows that the visit was cut.
    """

    def __init__(
        self, visit: Visit, log: Conversation, limits: Limits, leave: Callable[[str], None]
    ) -> None:
        self._visit = visit
        self._log = log
        self._begun_at = len(log)
        self._limits = limits
        self._leave = leave
        self._messages = [
            (message, change) for change in visit.changes for message in change.delta.messages
        ]

    async def answer(self, model: str) -> ModelResponse:
        """What the model said next.

        Raises:
            Exception: What it raised, where the journal says that it failed.
        """
        found = self._next()
        if found is None:
            await self._no_answer(model)
        message, change = found
        if message.role != "assistant":
            await self._give_up(f"the model was asked where {_placed(message)} follows")
        return ModelResponse(
            text=message.body.get("content"),
            tool_calls=message.tool_calls,
            finish_reason=self._finish_reason(message),
            usage=_usage_in(change),
        )

    async def result(self, call_id: str, tool: str) -> str:
        """What a call came to.

        Raises:
            ToolError: It failed.
        """
        found = self._next()
        if found is None:
            await self._stuck(f"tool {tool!r} was called")
        message = found[0]
        if message.role != "tool" or message.tool_call_id != call_id:
            await self._give_up(
                f"tool {tool!r} was called by {call_id!r} where {_placed(message)} follows"
            )
        if _time_was_up(message):
            await _until_stopped(message.text.removeprefix(f"{TIME_IS_UP}finished.").strip())
        text = unshortened(message.text)
        if message.is_error:
            raise ToolError(text)
        return text

    def seconds_left(self) -> float | None:
        """What is left of the limit by time that stopped the run; None where none did."""
        found = self._next()
        if found is not None:
            if not _time_was_up(found[0]):
                return None
            return 0.0 if found[0].text.startswith(f"{TIME_IS_UP}began") else JUST_BEFORE_S
        ending = self._ending()
        if ending is None or ending.limit not in ("time", "working_time"):
            return None
        return JUST_BEFORE_S if self._asked_in_vain() else 0.0

    def limit_by_time(self) -> str:
        """Which limit by time it was."""
        ending = self._ending()
        if ending is not None and ending.limit in ("time", "working_time"):
            return ending.limit
        return "time" if self._limits.time_s is not None else "working_time"

    def _next(self) -> tuple[Message, StoredChange] | None:
        place = len(self._log) - self._begun_at
        return self._messages[place] if place < len(self._messages) else None

    def _ending(self) -> TurnComplete | None:
        signal = None if self._visit.hop is None else self._visit.hop.signal
        return signal if isinstance(signal, TurnComplete) else None

    def _asked_in_vain(self) -> bool:
        """The turn's last change counts a model call that brought no answer."""
        last = self._visit.changes[-1]
        answered = sum(message.role == "assistant" for message in last.delta.messages)
        return _usage_in(last).model_calls > answered

    async def _no_answer(self, model: str) -> NoReturn:
        ending = self._ending()
        if ending is not None and ending.ending == "error":
            raise as_raised(model, ending)
        if ending is not None and ending.limit == "context":
            raise ContextOverflowError(model, "as the journal has it")
        if ending is not None and self.seconds_left():
            await asyncio.Event().wait()
        await self._stuck("the model was asked once more")

    async def _stuck(self, what: str) -> NoReturn:
        nothing_more = f"{what} where the journal has nothing more of this visit"
        await self._give_up("" if self._visit.cut is not None else nothing_more)

    async def _give_up(self, problem: str) -> NoReturn:
        # Not raised: whatever a model or a tool raises is an answer.
        self._leave(problem)
        await asyncio.Event().wait()
        raise AssertionError("a visit that was left does not go on")

    def _finish_reason(self, message: Message) -> str:
        ids = {call.id for call in message.tool_calls}
        place = len(self._log) - self._begun_at
        for result, _ in self._messages[place + 1 :]:
            if result.role != "tool":
                break
            # Only an answer that reached its length limit has its calls refused like this.
            if result.is_error and result.tool_call_id in ids and result.text == CUT_ARGUMENTS:
                return "length"
        return "tool_calls" if ids else "stop"


async def _until_stopped(last_words: str) -> None:
    """Wait for the limit, of which nearly nothing is left, and say what was said then."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError as stopped:
        if last_words:
            stopped.add_note(last_words)
        raise


def unshortened(text: str) -> str:
    """A text that is shortened to this one: long results are kept without their middle."""
    if len(text) <= RESULT_CHARS:
        return text
    head, tail = RESULT_CHARS - RESULT_CHARS // 2, RESULT_CHARS // 2
    note = text[head : len(text) - tail].split()
    # "[… 6 of 10 characters left out …]"
    whole = int(note[3]) if len(note) > 3 and note[3].isdigit() else len(text)
    return text[:head] + " " * (whole - head - tail) + text[len(text) - tail :]


def as_raised(model: str, ending: TurnComplete) -> Exception:
    """An error of the kind and the words that the journal has of one."""
    facts = ending.error or {}
    words = str(facts.get("message", ""))
    kind = type(str(facts.get("type", "Exception")), (_RECORDED[facts.get("reason", "")],), {})
    error: Exception = kind(words)
    return error


class _RecordedModelError(ModelError):
    """A failure of the provider, in the words of the journal."""

    def __init__(self, words: str) -> None:
        super().__init__("recorded", words)

    def __str__(self) -> str:
        return self.problem


_RECORDED: dict[object, type[Exception]] = {
    "model_error": _RecordedModelError,
    "agent_error": Exception,
    "": Exception,
}


def _usage_in(change: StoredChange) -> Usage:
    """What a change adds to the run's usage; one holds one answer of the model at most."""
    spent = Usage()
    for write in change.delta.writes:
        if write.key == USAGE.name:
            spent += USAGE.decode(write.value)
    return spent


def _time_was_up(message: Message) -> bool:
    return message.role == "tool" and message.is_error and message.text.startswith(TIME_IS_UP)


def _placed(message: Message) -> str:
    return f"{message.role} message {message.encoded.decode()[:200]}"
