"""Whether a run comes on, read from its conversation as that grows."""

from collections.abc import Collection, Iterator

from harness_actors.config import StallConfig
from harness_actors.conversation import Conversation
from harness_actors.messages import Message
from harness_actors.progress.rounds import Round, round_with
from harness_actors.progress.stalls import Stall
from harness_actors.progress.watch import ProgressWatch


class RunProgress:
    """Reads the rounds of one run, each of them once.

    What it says is a function of the conversation: whoever begins later, after a death or in
    another process, comes to the same.

    Args:
        run_id: The run.
        rules: After how many rounds a stall is told.
        polled: Names of the tools that are meant to be asked again and again.
        log: The conversation so far.
        task: The last message that the run began with; what stands before it is of other runs.
            None where there is none.
    """

    def __init__(
        self,
        run_id: str,
        rules: StallConfig,
        polled: Collection[str],
        log: Conversation,
        task: Message | None,
    ) -> None:
        self.run_id = run_id
        self._polled = polled
        self._watch = ProgressWatch(rules)
        self._read_to = _beginning(log, self._watch.reach, task)

    def read(self, log: Conversation) -> Stall | None:
        """Take the rounds that have ended since it was read.

        Returns:
            The way in which the run comes to nothing, up to the last of them; None where it comes
            on, and where there was none.
        """
        stall: Stall | None = None
        for ended, end in _rounds(log, self._read_to, self._polled):
            stall, self._read_to = self._watch.add(ended), end
        return stall


def _beginning(log: Conversation, rounds: int, task: Message | None) -> int:
    """Where so many rounds begin at the end of a log, or those of the run, if it has fewer."""
    for place in range(len(log) - 1, -1, -1):
        message = log[place]
        if task is not None and message.role == "user" and message.encoded == task.encoded:
            return place + 1
        if message.role == "assistant":
            rounds -= 1
            if rounds < 0:
                return place + 1
    return 0


def _rounds(log: Conversation, start: int, polled: Collection[str]) -> Iterator[tuple[Round, int]]:
    """The rounds from a place on whose calls all have their results, each with its end."""
    place, end = start, len(log)
    while place < end:
        answer, place = log[place], place + 1
        if answer.role != "assistant":
            continue
        results: dict[str, Message] = {}
        while place < end and (result := log[place]).role == "tool":
            results[result.tool_call_id or ""] = result
            place += 1
        calls = answer.tool_calls
        for call in calls:
            if call.id not in results:
                return
        yield round_with(answer, calls, results, polled), place
