"""A runtime in memory: runs end as a script says, and its journal outlives it."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_actors.actors.driver.awaiting import Answerer, reason_to_wait
from harness_actors.actors.runtime import News, Runtime, StopMode, TextCursor, Texts
from harness_actors.batch.agents import Agents
from harness_actors.batch.batch import Batch
from harness_actors.batch.engine import OnEvent
from harness_actors.batch.feed import TaskSource
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.run_directory import RunDirectory, Runs
from harness_actors.batch.settings import BatchSettings
from harness_actors.config import HarnessConfig
from harness_actors.errors import AnswerError, RunNotFoundError, StoreError
from harness_actors.events import (
    Event,
    InputAwaited,
    QuestionAnswered,
    RoundCompleted,
    RunCompleted,
    RunEvent,
    RunParked,
)
from harness_actors.messages import Message
from harness_actors.ports import Agent, Clock
from harness_actors.records import RunHeading, RunSpec
from harness_actors.results import HarnessResult, Reason, Status, Usage
from harness_actors.testing import an_agent

Script = Callable[[RunSpec], HarnessResult | None]
"""How a run ends, or what it waits for; None leaves it in flight until it is stopped."""


def ended(
    spec: RunSpec, status: Status = "done", kind: str = "completed", *, cost_usd: float = 0.0
) -> HarnessResult:
    usage = Usage(model_calls=1, input_tokens=10, output_tokens=5, cost_usd=cost_usd)
    return HarnessResult(
        run_id=spec.run_id,
        status=status,
        reason=Reason(kind=kind, message=f"because of {kind}" if status == "failed" else ""),
        turn_count=1,
        usage=usage,
    )


def asking(
    spec: RunSpec,
    *questions: str,
    cost_usd: float = 0.0,
    expires_at: Mapping[str, float] | None = None,
) -> HarnessResult:
    """What a run comes to that asks its user, by these ids; some of them are approvals."""
    asked = [_told_of(name, (expires_at or {}).get(name)) for name in questions]
    usage = Usage(model_calls=1, input_tokens=10, output_tokens=5, cost_usd=cost_usd)
    return HarnessResult(
        run_id=spec.run_id,
        status="awaiting_input",
        reason=reason_to_wait(asked),
        turn_count=1,
        usage=usage,
    )


def _told_of(name: str, expires_at: float | None) -> dict[str, Any]:
    told: dict[str, Any] = {"id": name, "text": f"{name}?", "options": [], "why": ""}
    if expires_at is None:
        return told
    return {**told, "kind": "approval", "tool": "pay", "arguments": "{}", "expires_at": expires_at}


def always_done(spec: RunSpec) -> HarnessResult | None:
    return ended(spec)


def never_ends(_: RunSpec) -> HarnessResult | None:
    return None


@dataclass
class Journal:
    """What survives a command: runs and their events.

    Attributes:
        now: The time of whoever decides that an approval has expired.
    """

    specs: dict[str, RunSpec] = field(default_factory=dict)
    ends: dict[str, HarnessResult] = field(default_factory=dict)
    waits: dict[str, HarnessResult] = field(default_factory=dict)
    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    log: list[RunEvent] = field(default_factory=list)
    now: Callable[[], float] = time.time

    def write(self, run_id: str, *events: Event) -> None:
        position = len(self.log) + 1
        self.log += [
            RunEvent(position=position, run_id=run_id, at=self.now(), event=event)
            for event in events
        ]

    def headings(self) -> list[RunHeading]:
        return [
            RunHeading(
                run_id=spec.run_id,
                conversation_id=spec.conversation_id,
                added_at=0.0,
                metadata=spec.metadata,
                end=self.ends.get(spec.run_id),
                turns=1 if spec.run_id in self.waits else 0,
                usage=self._usage(spec.run_id),
                workspace=spec.workspace.path if spec.workspace else None,
                questions=self._questions(spec.run_id),
            )
            for spec in self.specs.values()
        ]

    def heading(self, run_id: str) -> RunHeading:
        return next(one for one in self.headings() if one.run_id == run_id)

    def open_questions(self, run_id: str) -> list[str]:
        """Ids of what a run waits for."""
        return [one["id"] for one in self._questions(run_id) if one["answer"] is None]

    def _usage(self, run_id: str) -> Usage:
        known = self.ends.get(run_id) or self.waits.get(run_id)
        return Usage() if known is None else known.usage

    def _questions(self, run_id: str) -> tuple[Mapping[str, Any], ...]:
        if run_id in self.ends or run_id not in self.waits:
            return ()
        given = self.answers.get(run_id, {})
        asked = self.waits[run_id].reason.details["questions"]
        return tuple(self._with_answer(one, given.get(one["id"])) for one in asked)

    def _with_answer(self, question: Mapping[str, Any], given: str | None) -> dict[str, Any]:
        if given is None and self.now() >= question.get("expires_at", math.inf):
            return {**question, "answer": "no", "expired": True}
        return {**question, "answer": given}


class FakeDirectory(RunDirectory):
    """A run directory whose journal is the fake one."""

    def __init__(self, path: Path, journal: Journal) -> None:
        super().__init__(path)
        self._journal = journal

    @property
    def has_runs(self) -> bool:
        return bool(self._journal.specs)

    def journal(self) -> Runs:
        return self._journal


class FakeRuntime:
    """Answers the `Runtime` port from a journal that tests share between commands.

    Attributes:
        secrets: The keys that it was handed.
        calls: The tasks of each call that submitted runs.
    """

    def __init__(self, journal: Journal, script: Script = always_done) -> None:
        self.journal = journal
        self.script = script
        self.resumed: list[str] = []
        self.in_flight: set[str] = set()
        self.peak = 0
        self.opened = False
        self.closed = False
        self.allowed_usd: float | None = None
        self.secrets: dict[str, str] = {}
        self.calls: list[list[str]] = []
        self.failure: StoreError | None = None
        self._news = asyncio.Event()
        self._started = asyncio.Event()
        self._noted = 0

    async def submit(
        self, specs: Sequence[RunSpec], *, code: Mapping[str, bytes], secrets: Mapping[str, str]
    ) -> None:
        self.secrets.update(secrets)
        self.calls.append(tasks_of(specs))
        for spec in specs:
            assert spec.code in code
            assert set(spec.keys) <= secrets.keys()
            self.journal.specs[spec.run_id] = spec
            self._make_workspace(spec)
            self._start(spec)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        self.secrets.update(secrets)
        for run_id in run_ids:
            if run_id not in self.journal.specs:
                raise RunNotFoundError(run_id, "the fake journal")
            self.resumed.append(run_id)
            if self.journal.open_questions(run_id):
                self._ask_again(run_id)
            else:
                self._start(self.journal.specs[run_id])

    def wait(self, run_id: str, waits: HarnessResult) -> None:
        """Have a run in flight wait for its user."""
        self.in_flight.discard(run_id)
        self.journal.waits[run_id] = waits
        questions = tuple(waits.reason.details["questions"])
        asked = InputAwaited(turn=1, questions=questions)
        self.journal.write(run_id, _round(waits.usage), asked)
        self._news.set()

    def end(self, run_id: str, result: HarnessResult) -> None:
        """End a run in flight."""
        self.in_flight.discard(run_id)
        self.journal.ends[run_id] = result
        reason = result.reason
        self.journal.write(
            run_id,
            _round(result.usage),
            RunCompleted(status=result.status, reason=reason.kind, message=reason.message),
        )
        self._news.set()

    def break_down(self, failure: StoreError) -> None:
        """Fail every call from now on, as a coordinator whose disk is full."""
        self.failure = failure
        self._news.set()

    async def until_in_flight(self, runs: int) -> None:
        while len(self.in_flight) < runs:
            self._started.clear()
            await self._started.wait()

    async def until_resumed(self, runs: int) -> None:
        while len(self.resumed) < runs:
            self._started.clear()
            await self._started.wait()

    async def until_noted(self, position: int) -> None:
        """Wait until whoever follows has heard of all up to a position."""
        while self._noted < position:
            self._started.clear()
            await self._started.wait()

    async def wait_for_news(
        self, cursor: int, *, messages: bool = False, at_once: bool = False
    ) -> News:
        self._noted = cursor
        self._started.set()
        while len(self.journal.log) <= cursor and self.failure is None:
            self._news.clear()
            await self._news.wait()
        if self.failure is not None:
            raise self.failure
        events = tuple(self.journal.log[cursor:])
        results = {
            event.run_id: self.journal.ends[event.run_id]
            for event in events
            if isinstance(event.event, RunCompleted)
        }
        return News(cursor=cursor + len(events), events=events, results=results)

    async def subscribe(self, run_ids: Sequence[str]) -> None:
        raise NotImplementedError("a batch does not read what its runs say")

    async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
        raise NotImplementedError("a batch does not read what its runs say")

    async def allow(self, budget_usd: float | None) -> None:
        self.allowed_usd = budget_usd

    async def compact(self, run_id: str, keep: str = "") -> bool:
        return False

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
        given = self.journal.answers.setdefault(run_id, {})
        for question_id, text in answers.items():
            if question_id not in self.journal.open_questions(run_id):
                raise AnswerError(run_id, f"it has no question {question_id!r}")
            given[question_id] = text
            self.journal.write(run_id, QuestionAnswered(question_id=question_id))
        self._news.set()

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        if mode == "cancel":
            for run_id in run_ids:
                self.end(run_id, ended(self.journal.specs[run_id], "cancelled", "user"))
            return ()
        unserved = tuple(run_id for run_id in run_ids if run_id not in self.in_flight)
        for run_id in self.in_flight.intersection(run_ids):
            self.in_flight.discard(run_id)
            self.journal.write(run_id, RunParked(turn=1))
        self._news.set()
        return unserved

    async def position(self) -> int:
        return len(self.journal.log)

    async def headings(self, beginning: str = "") -> list[RunHeading]:
        return [one for one in self.journal.headings() if one.run_id.startswith(beginning)]

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        return tuple(event for event in self.journal.log if event.run_id == run_id)

    async def conversation(self, conversation_id: str) -> list[Message]:
        return []

    async def close(self) -> None:
        self.closed = True

    def _make_workspace(self, spec: RunSpec) -> None:
        if spec.workspace is not None:
            Path(spec.workspace.path).mkdir(parents=True, exist_ok=True)

    def _ask_again(self, run_id: str) -> None:
        asked = self.journal.heading(run_id).open_questions
        assert any("expires_at" in one for one in asked), "nobody was to take it up"
        self.journal.write(run_id, InputAwaited(turn=1, questions=asked))
        self._started.set()
        self._news.set()

    def _start(self, spec: RunSpec) -> None:
        self.in_flight.add(spec.run_id)
        self.peak = max(self.peak, len(self.in_flight))
        self._started.set()
        result = self.script(spec)
        if result is None:
            return
        result = replace(result, run_id=spec.run_id)
        if result.status == "awaiting_input":
            self.wait(spec.run_id, result)
        else:
            self.end(spec.run_id, result)


def _round(usage: Usage) -> RoundCompleted:
    return RoundCompleted(
        turn=1,
        round=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost_usd=usage.cost_usd,
        tool_calls=0,
    )


def a_batch(
    tasks: TaskSource,
    folder: Path,
    runtime: FakeRuntime,
    *,
    agent: Agent | None = None,
    config: HarnessConfig | None = None,
    agents: Agents | None = None,
    answerer: Answerer | None = None,
    on_event: OnEvent | None = None,
    clock: Clock | None = None,
    **settings: object,
) -> Batch:
    """A command on a run directory, served by a fake runtime."""

    async def open_it(_: Path) -> Runtime:
        runtime.opened = True
        return runtime

    return Batch(
        tasks,
        agents or Agents.of(agent or an_agent(), config or HarnessConfig()),
        directory=FakeDirectory(folder, runtime.journal),
        settings=BatchSettings(**settings),  # type: ignore[arg-type]
        open_runtime=open_it,
        on_event=on_event,
        answerer=answerer,
        clock=clock,
    )


async def outcomes_of(batch: Batch) -> dict[str, TaskOutcome]:
    """Run a batch to its end: its outcomes by task."""
    return {outcome.id: outcome async for outcome in batch.run()}


def tasks(count: int) -> list[Mapping[str, str]]:
    return [{"id": f"t{number}", "task": f"do {number}"} for number in range(1, count + 1)]


def tasks_of(specs: Iterable[RunSpec]) -> list[str]:
    """The tasks that runs were for, in their order."""
    return [str(spec.metadata.get("task_id", spec.run_id)) for spec in specs]
