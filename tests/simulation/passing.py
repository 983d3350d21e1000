"""Middleware of a schedule's agents: what it does to calls, and what becomes of that."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from harness_actors.messages import Message
from harness_actors.policies import Deny, ToolInvocation
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.records import RunChanged
from tests.simulation.disk import DiskRun
from tests.simulation.gated_calls import HEARD, has_place, key_in, mood_of, results_in
from tests.simulation.ledger import Happening, Ledger
from tests.simulation.questions import FIRST_WORDS

NOT_PASSED = "a call that middleware does not pass on is not made"
AS_PASSED = "a call is made as middleware has passed it on"
WITHHELD = "what middleware withholds is not told"
ENDS_WITH_IT = "nothing of a call goes on when it has its result"

WORDS = "the middleware is broken"
"""In the end of a run that middleware around its model has ended."""
PASSED = "passed"
"""The argument by which middleware marks what it passes on."""
MOODS = (
    *("plain",) * 6,
    *("deny", "answer", "change", "change", "twice", "raise", "raise after", "deny after"),
    *("apart", "apart", "hang"),
)
KEPT = ("deny", "answer", "raise", "hang")
"""Moods in which it does not pass a call on."""
WITHHOLDING = ("raise", "raise after", "deny", "deny after", "hang")
"""Moods in which nobody is told what the tool has said."""
AROUND_MODEL = (*("plain",) * 40, "raise")
APART_S = 0.01

Next = Callable[[Any], Awaitable[Any]]


class Passing:
    """Watches the middleware of a schedule, and is it.

    Args:
        ledger: Where it is written down.
        seed: That of the schedule.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self._ledger = ledger
        self._seed = seed
        self._passes = False
        self._left: set[asyncio.Future[Any]] = set()
        self.again: Counter[str] = Counter()
        """How often calls were made once more, by run."""

    def middleware(self) -> Sequence[Any]:
        """That of the agents, which stands around calls from now on."""
        self._passes = True
        return [self, _passes_on]

    # ---- what happens -----------------------------------------------------------------

    def called(self, key: str, given: Mapping[str, Any]) -> None:
        """A tool is called."""
        if not self._passes or not has_place(key):
            return
        mood = self._mood(key)
        if mood in KEPT:
            self._ledger.broken(NOT_PASSED, f"{key} is made, which meets {mood!r}")
        if (PASSED in given) != (mood == "change"):
            self._ledger.broken(AS_PASSED, f"{key} is made with {dict(given)}")

    def changed(self, run: DiskRun, change: RunChanged, log: Sequence[Message]) -> None:
        """A change of a run is on disk, and in its log."""
        if not self._passes:
            return
        for key, result in results_in(log, len(change.delta.messages)):
            mood = self._mood(key)
            made = (call for call in reversed(self._ledger.tools) if call.key == key)
            call = next(made, None)
            # In the place of the tool a person may answer, and hooks in other words for that.
            by_person = call is None or result.text.startswith(FIRST_WORDS)
            if mood in WITHHOLDING and result.disposition == "done" and not by_person:
                self._ledger.broken(WITHHELD, f"{key}, which meets {mood!r}, is done")
            if mood == "deny" and result.disposition in ("failed", "timed_out"):
                self._ledger.broken(NOT_PASSED, f"{key} is {result.disposition}, and was denied")
            if call is not None and result.disposition in HEARD and not call.process.gone:
                self._check_made(call, result)

    def _check_made(self, call: Happening, result: Message) -> None:
        if call.is_open and not call.let_go:
            self._ledger.broken(ENDS_WITH_IT, f"{call.what} of {call.key} goes on")
        elif result.disposition == "done" and call.ending == "was cut":
            self._ledger.broken(WITHHELD, f"{call.key} was cut, and is done")

    def _mood(self, key: str) -> str:
        return mood_of(self._seed, "passing", key, MOODS)

    # ---- middleware -------------------------------------------------------------------

    async def around_tool(self, call: ToolInvocation, next: Next) -> Any:
        given = call.parsed()
        key = key_in(given)
        match None if key is None else self._mood(key):
            case "deny":
                return Deny(f"closed to {key}")
            case "answer":
                return f"done {key} without it"
            case "change":
                return await next(call.with_arguments({**given, PASSED: True}))
            case "twice":
                await next(call)
                self.again[call.run_id] += call.idempotent
            case "raise":
                raise ValueError(WORDS)
            case "raise after":
                await next(call)
                raise ValueError(WORDS)
            case "deny after":
                await next(call)
                return Deny(f"closed to {key}")
            case "apart":
                left = asyncio.ensure_future(next(call))
                self._left.add(left)
                left.add_done_callback(self._seen)
                await asyncio.sleep(APART_S)
                return f"done {key} early"
            case "hang":
                await asyncio.Event().wait()
        return await next(call)

    def _seen(self, left: "asyncio.Future[Any]") -> None:
        self._left.discard(left)
        if not left.cancelled():
            left.exception()

    async def around_model(self, request: ModelRequest, next: Next) -> ModelResponse:
        answer: ModelResponse = await next(request)
        task = next_task(request.messages)
        place = f"{task}/{len(request.messages)}"
        if mood_of(self._seed, "model", place, AROUND_MODEL) == "raise":
            raise ValueError(WORDS)
        return answer


async def _passes_on(call: ToolInvocation, next: Next) -> Any:
    """The innermost: there is more than one."""
    return await next(call)


def next_task(messages: Sequence[Message]) -> str:
    """The run that a conversation is at."""
    texts = (message.text for message in reversed(messages) if message.role == "user")
    return next((text.partition("]")[0][1:] for text in texts if text.startswith("[run-")), "")
