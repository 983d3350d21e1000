"""Calls that were made before, answered from the log while nothing can have changed since."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from harness_actors.conversation import Conversation, repaired
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import AskingTool, Tool
from harness_actors.turn.one_call import PlannedCall

REMEMBERED = 256
"""Calls of a run whose results can be given again, at most; the newest ones."""
LOOKED_BACK = 100
"""Messages at the end of a log that are read where a turn begins, or goes on after a death."""


class RepeatGuard:
    """Knows which calls of a run need not be made again.

    Of tools that are idempotent and not volatile, a call that succeeded before with the same
    arguments has the same result, until something runs that may write, or the user was asked.

    Args:
        log: The conversation; it grows while the turn goes on.
        tools: Those of the agent, by name.
        task: The messages that the run began with, behind which its own calls stand; empty where
            nothing that stands in the log may be given again.
    """

    def __init__(
        self, log: Conversation, tools: Mapping[str, Tool], task: Sequence[Message]
    ) -> None:
        self._log = log
        self._tools = tools
        self._task = task
        self._places: dict[bytes, int] | None = None
        """Positions of results in the log; None as long as nobody has asked."""
        self._read_to = len(log)

    def key_of(self, plan: PlannedCall) -> bytes | None:
        """What a call has in common with those that are the same; None for one that must be made.

        Arguments are compared as JSON values, whatever their order and spaces.
        """
        if plan.tool is None or plan.alone:
            return None
        return _key(plan.tool, plan.call)

    def earlier(self, key: bytes) -> str | None:
        """The text of the earlier result; None where the call must be made."""
        place = self._known().get(key)
        if place is None:
            return None
        text = self._log[place].body.get("content")
        return text if isinstance(text, str) else None

    def begins(self, plan: PlannedCall) -> None:
        """A call is about to be made; what it may write makes all old."""
        if plan.tool is not None and _may_write(plan.tool):
            self._places = {}

    def succeeded(self, key: bytes) -> None:
        """The result of a call was added to the log."""
        places = self._known()
        places.pop(key, None)
        places[key] = len(self._log) - 1
        if len(places) > REMEMBERED:
            del places[next(iter(places))]

    def _known(self) -> dict[bytes, int]:
        if self._places is None:
            # Read when somebody asks, and then once: most turns never do.
            task, _ = repaired(self._task)
            found = list(self._found(task[-1].encoded)) if task else []
            self._places = dict(reversed(found))
        return self._places

    def _found(self, begins_behind: bytes) -> Iterator[tuple[bytes, int]]:
        """Calls that succeeded, the newest first, up to where something may have been written."""
        results: dict[str | None, int] = {}
        for place in range(self._read_to - 1, max(-1, self._read_to - 1 - LOOKED_BACK), -1):
            message = self._log[place]
            if message.encoded == begins_behind:
                return
            if message.role == "tool":
                results[message.tool_call_id] = place
            elif message.role == "assistant":
                for call in reversed(message.tool_calls):
                    tool, at = self._tools.get(call.name), results.get(call.id)
                    disposition = None if at is None else self._log[at].disposition
                    if disposition == "refused":
                        continue  # never made
                    if tool is None:
                        return
                    if at is not None and disposition == "done" and (key := _key(tool, call)):
                        yield key, at
                    if _may_write(tool):
                        return
                results.clear()


def _may_write(tool: Tool) -> bool:
    # Whoever was asked may have changed anything before the answer came.
    return tool.spec.effect != "read_only" or isinstance(tool, AskingTool)


def _key(tool: Tool, call: ToolCall) -> bytes | None:
    spec = tool.spec
    if spec.volatile or not (spec.idempotent or spec.effect == "read_only"):
        return None
    if isinstance(tool, AskingTool) or (arguments := call.comparable_arguments()) is None:
        return None
    return blake2b(f"{call.name}\0{arguments}".encode(), digest_size=16).digest()
