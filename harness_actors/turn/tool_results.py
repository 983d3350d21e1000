"""What the tools of a run gave last, looked up in its log when somebody asks."""

from collections.abc import Iterator, Sequence

from harness_actors.conversation import repaired
from harness_actors.messages import Message
from harness_actors.ports import NewestResult


class LoggedResults:
    """Answers the port `ToolResults` from a conversation.

    It is read from its end, and no further than to the newest call of the tool that is asked for;
    what stands before the task of the run is of other runs. So it costs nothing while nobody asks,
    and a result that Repair has written, or an executor of the user's own, counts like any other.

    Args:
        log: The conversation.
        task: The messages that the run began with.
    """

    def __init__(self, log: Sequence[Message], task: Sequence[Message]) -> None:
        self._results = _newest_first(log, task)
        self._seen: dict[str, NewestResult] = {}

    def newest(self, tool_name: str) -> NewestResult | None:
        while tool_name not in self._seen:
            found = next(self._results, None)
            if found is None:
                return None
            self._seen.setdefault(*found)
        return self._seen[tool_name]


def _newest_first(
    log: Sequence[Message], task: Sequence[Message]
) -> Iterator[tuple[str, NewestResult]]:
    # In the form in which it was put into the log.
    begun_by, _ = repaired(task)
    results: dict[str | None, Message] = {}
    for place in range(len(log) - 1, -1, -1):
        message = log[place]
        if begun_by and message.encoded == begun_by[-1].encoded:
            return
        if message.role == "tool":
            results[message.tool_call_id] = message
        elif message.role == "assistant":
            for call in reversed(message.tool_calls):
                result = results.get(call.id)
                if result is not None:
                    yield (
                        call.name,
                        NewestResult(call_id=call.id, is_error=result.is_error, text=result.text),
                    )
            results.clear()
