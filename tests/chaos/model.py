"""The model of the workload: answers from plans, and remembers who asked when."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from harness_actors.testing import LoopbackServer, Reply
from harness_actors.testing.faults import Slow
from tests.chaos.logs import now
from tests.chaos.plans import RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, when it came.

    Attributes:
        at: Seconds, as `now` tells them.
        run: The task.
        spoken: How often the model had spoken before.
        begins_turn: The newest message is a user's: a turn begins.
        answered_at: When the run was answered before; None where it never was.
    """

    at: float
    run: str
    spoken: int
    begins_turn: bool
    answered_at: float | None


_STEP = re.compile(r"\bstep\W+(\d+)")


class WatchedModel:
    """A model server on this machine, for as long as it is entered.

    Args:
        log: Gets a line for each request.
        seed: What the latencies depend on.
        latency_s: The shortest and the longest that an answer takes.

    Attributes:
        asked: All requests, the oldest first.
        distinct: The tasks with each of their steps that was asked for at least once.
        over: The tasks that were given their last answer.
        asking: The tasks that were last answered with a question to their user, with a call
            that must be approved of, or with calls that delegate.
        released: Patient runs may end; set from outside.
    """

    def __init__(
        self, log: Path, *, seed: int = 0, latency_s: tuple[float, float] = (0.05, 0.25)
    ) -> None:
        self._log = log
        self._random = Random(f"latency:{seed}")
        self._latency_s = latency_s
        self._server = LoopbackServer(self._reply, faults=self._note, keep=0)
        self._news = asyncio.Event()
        self.asked: list[Asked] = []
        self.distinct: set[tuple[str, int]] = set()
        self.over: set[str] = set()
        self.asking: set[str] = set()
        self.released = False
        self._begun: dict[str, str] = {}
        self._answered_at: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        self._lines = self._log.open("a", buffering=1)
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.__aexit__(kind, error, trace)
        self._lines.close()

    @property
    def base_url(self) -> str:
        return self._server.base_url

    async def until(self, holds: Callable[[], bool], *, tick_s: float = 0.5) -> None:
        """Return when something holds; looked at with every request, and every `tick_s`."""
        while not holds():
            try:
                async with asyncio.timeout(tick_s):
                    await self._news.wait()
            except TimeoutError:
                continue

    def in_flight(self, agent: str | None = None) -> frozenset[str]:
        """The healthy tasks that were begun, did not get their last answer yet, and do not wait.

        Args:
            agent: Of them those that were delegated to this one; empty for those that nobody has
                delegated, None for all.
        """
        begun = {name for name, of in self._begun.items() if agent in (None, of)}
        return frozenset(begun - self.over - self.asking)

    def _note(self, number: int, body: dict[str, Any]) -> Slow:
        messages = body["messages"]
        plan = RunPlan.of_request(messages)
        asked = Asked(
            at=now(),
            run=plan.name,
            spoken=_spoken(messages),
            begins_turn=messages[-1]["role"] == "user",
            answered_at=self._answered_at.get(plan.name),
        )
        self.asked.append(asked)
        self.asking.discard(plan.name)
        self.distinct.add((asked.run, asked.spoken))
        if not plan.poison:
            # One that crashes its process ends without a last answer.
            self._begun[asked.run] = plan.agent
        self._lines.write(f"{asked.at:.6f} asked {asked.run} {asked.spoken}\n")
        self._tell()
        return Slow(self._random.uniform(*self._latency_s))

    def _reply(self, body: dict[str, Any]) -> Reply:
        plan, spoken = RunPlan.of_request(body["messages"]), _spoken(body["messages"])
        self._answered_at[plan.name] = at = now()
        if plan.is_over(spoken, released=self.released):
            self.over.add(plan.name)
        elif plan.waits_at(spoken):
            self.asking.add(plan.name)
        self._lines.write(f"{at:.6f} answered {plan.name} {spoken}\n")
        return plan.answer(spoken, released=self.released)

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _spoken(messages: list[dict[str, Any]]) -> int:
    """How often the model has spoken: its newest words say so, for others may not be shown."""
    words = [json.dumps(one) for one in messages if one["role"] == "assistant"]
    found = _STEP.findall(words[-1]) if words else []
    return 1 + int(found[-1]) if found else len(words)
