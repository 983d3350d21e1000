"""A model server that has a book read, and notes when it is asked and when it has answered."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from benchmarks.peers.book import SUMMARIZER
from harness_actors.testing import LoopbackServer, Reply
from harness_actors.testing.completions import as_message
from harness_actors.testing.faults import Slow

READ = "The book is read."
MOST_SUMMARIES = 10
TOLD = "The user has a book read, page by page. The pages so far are of a fox and a dog. " * 6
SUMMARY: Mapping[str, Any] = {
    "facts": [TOLD],
    "decisions": [],
    "open_items": [],
    "current_task": "Read the book to its last page.",
    "current_plan": ["Read the next page."],
}
"""As the harness asks for it; the others take whatever is said."""


@dataclass(slots=True)
class Asked:
    """A request.

    Attributes:
        for_summary: It asks for a summary; else the agent asks how it goes on.
        came: When it was there.
        tokens: How large it was, a token for each four bytes.
        answered: When its answer was sent; None where the client did not wait for it.
        ends: The answer ends the conversation.
    """

    for_summary: bool
    came: float
    tokens: int
    answered: float | None = None
    ends: bool = False


class Watch:
    """One conversation, as a model server sees it.

    A summary takes its time, and all other answers are quick. The conversation goes on by the
    number of answers and not by what is in a request, of which a summary leaves nothing.

    Args:
        rounds: Pages of the book; after them one more answer ends the conversation. It ends after
            `MOST_SUMMARIES`, too: who is summarized before each page needs no more of them.
        answer_s: How long an answer takes, in seconds.
        summary_s: How long a summary takes.

    Attributes:
        asked: All requests, in the order in which they came.
    """

    def __init__(self, *, rounds: int, answer_s: float, summary_s: float) -> None:
        self._rounds = rounds
        self._answer_s = answer_s
        self._summary_s = summary_s
        self._read = 0
        self._summaries = 0
        self._answers = 0
        self._open: dict[int, Asked] = {}
        self.asked: list[Asked] = []

    def server(self) -> LoopbackServer:
        """The server, to be entered."""
        return LoopbackServer(self._reply, faults=self._came, keep=0)

    def _came(self, _: int, body: dict[str, Any]) -> Slow:
        # A server asks for the fault of a request when it is there, and for its answer when that
        # is sent.
        came = time.perf_counter()
        for_summary = body["model"] == SUMMARIZER
        asked = Asked(for_summary, came, len(orjson.dumps(body)) // 4)
        self.asked.append(asked)
        self._open[id(body)] = asked
        return Slow(self._summary_s if for_summary else self._answer_s)

    def _reply(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = self._open.pop(id(body))
        asked.answered = time.perf_counter()
        reply = self._summary() if asked.for_summary else self._go_on(asked)
        choice = {"index": 0, "message": as_message(reply, 0), "finish_reason": reply.ending}
        # Each has an id of its own, as from a provider: who goes by them takes equal ones for one.
        self._answers += 1
        return {"id": f"chatcmpl-{self._answers}", "choices": [choice]}

    def _summary(self) -> Reply:
        self._summaries += 1
        return Reply.text(orjson.dumps(SUMMARY).decode())

    def _go_on(self, asked: Asked) -> Reply:
        asked.ends = self._read == self._rounds or self._summaries >= MOST_SUMMARIES
        if asked.ends:
            return Reply.text(READ)
        self._read += 1
        return Reply.calls([("page", {"number": self._read})], ids=[f"call_{self._read}"])
