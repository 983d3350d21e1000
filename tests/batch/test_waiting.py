"""Runs of a batch that wait for their user: no place is held, no line written, nothing lost."""

import asyncio
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors.batch.batch import Batch
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.results_file import read_outcomes
from harness_actors.config import HarnessConfig
from harness_actors.errors import BadInputError, SetupChangedError, StoreError
from harness_actors.events import QuestionAnswered, RunEvent
from harness_actors.records import RunHeading, RunSpec
from harness_actors.results import HarnessResult, OpenQuestion
from harness_actors.testing import an_agent
from tests.batch.fake_runtime import (
    FakeRuntime,
    Journal,
    Script,
    a_batch,
    asking,
    ended,
    outcomes_of,
    tasks,
)


class Asks:
    """A script whose runs of some tasks ask their user, and are done when they are answered.

    Args:
        journal: Where the answers are.
        questions: What the runs of each task ask.
        others: How all others end.
        cost_usd: Of the rounds before the question.
        expires_at: Which of the questions are approvals, and until when.
    """

    def __init__(
        self,
        journal: Journal,
        questions: Mapping[str, tuple[str, ...]],
        others: Script = ended,
        *,
        cost_usd: float = 0.0,
        expires_at: Mapping[str, float] | None = None,
    ) -> None:
        self._journal = journal
        self._questions = questions
        self._others = others
        self._cost_usd = cost_usd
        self._expires_at = expires_at

    def __call__(self, spec: RunSpec) -> HarnessResult | None:
        questions = self._questions.get(str(spec.metadata["task_id"]))
        if questions is None:
            return self._others(spec)
        if spec.run_id not in self._journal.waits:
            cost_usd, expires_at = self._cost_usd, self._expires_at
            return asking(spec, *questions, cost_usd=cost_usd, expires_at=expires_at)
        return ended(spec, cost_usd=self._cost_usd + 1.0)


def a_runtime(journal: Journal, *names: str, **more: Any) -> FakeRuntime:
    return FakeRuntime(journal, Asks(journal, dict.fromkeys(names, ("q1",)), **more))


def run_of(journal: Journal, task_id: str) -> str:
    """The newest run of a task."""
    *_, run_id = (
        run_id for run_id, spec in journal.specs.items() if spec.metadata["task_id"] == task_id
    )
    return run_id


async def answer(runtime: FakeRuntime, task_id: str, *question_ids: str) -> None:
    run_id = run_of(runtime.journal, task_id)
    await runtime.answer(run_id, dict.fromkeys(question_ids or ("q1",), "blue"))


def in_file(folder: Path) -> list[str]:
    return [one.id for one in read_outcomes(folder / "results.jsonl")]


async def all_of(batch: Batch) -> list[TaskOutcome]:
    return [outcome async for outcome in batch.run()]


async def test_a_run_that_waits_gives_its_place_to_the_next_and_has_no_line(
    tmp_path: Path,
) -> None:
    journal = Journal()
    batch = a_batch(tasks(4), tmp_path, a_runtime(journal, "t1", "t3"), concurrency=1)

    async with asyncio.timeout(20):
        outcomes = await outcomes_of(batch)

    assert in_file(tmp_path) == ["t2", "t4"]
    first = outcomes["t1"]
    assert (first.status, first.verdict, first.is_final, first.ok) == (
        "awaiting_input", "waiting", False, False,
    )  # fmt: skip
    assert (first.run_id, first.attempt) == (run_of(journal, "t1"), 1)
    assert first.questions == (OpenQuestion(id="q1", text="q1?"),)
    assert outcomes["t2"].questions == ()
    assert (batch.ending, batch.ok, batch.tally.waiting) == ("waiting", False, 2)


async def test_the_summary_names_who_waits_and_what_they_ask(tmp_path: Path) -> None:
    journal = Journal()
    runtime = a_runtime(journal, "t1", "t2")
    batch = a_batch(tasks(3), tmp_path, runtime)
    await outcomes_of(batch)

    summary = json.loads((tmp_path / "summary.json").read_text())

    question = {"id": "q1", "text": "q1?", "options": [], "why": ""}
    assert summary["ending"] == "waiting"
    assert summary["waiting"] == {
        "tasks": 2,
        "answered": 0,
        "runs": [
            {"id": task, "run_id": run_of(journal, task), "questions": [question]}
            for task in ("t1", "t2")
        ],
    }
    assert (summary["without_result"], summary["command"]["waiting"]) == (2, 2)
    assert summary["unfinished"]["runs"] == 2
    assert summary["unfinished"]["usage"]["input_tokens"] == 20


async def test_the_same_command_goes_on_with_what_was_answered_and_leaves_the_rest(
    tmp_path: Path,
) -> None:
    journal = Journal()
    first = a_runtime(journal, "t1", "t2")
    await outcomes_of(a_batch(tasks(3), tmp_path, first))
    await answer(first, "t2")

    second = a_runtime(journal, "t1", "t2")
    batch = a_batch(tasks(3), tmp_path, second)
    outcomes = await outcomes_of(batch)

    assert {name: one.status for name, one in outcomes.items()} == {
        "t1": "awaiting_input", "t2": "done",
    }  # fmt: skip
    assert second.resumed == [run_of(journal, "t2")]
    assert outcomes["t2"].attempt == 1
    assert len(journal.specs) == 3
    assert sorted(in_file(tmp_path)) == ["t2", "t3"]
    assert batch.ending == "waiting"

    await answer(second, "t1")
    third = a_batch(tasks(3), tmp_path, a_runtime(journal, "t1"))
    assert [one.id for one in await all_of(third)] == ["t1"]
    assert third.ok
    assert sorted(in_file(tmp_path)) == ["t1", "t2", "t3"]
    assert third.summary["waiting"]["tasks"] == 0


@pytest.mark.parametrize("on_change", ["refuse", "accept", "retry"])
async def test_where_all_that_is_left_waits_no_runtime_is_opened(
    tmp_path: Path, on_change: str
) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(2), tmp_path, a_runtime(journal, "t1")))

    again = a_runtime(journal, "t1")
    batch = a_batch(tasks(2), tmp_path, again, on_change=on_change)
    outcomes = await outcomes_of(batch)

    assert not again.opened
    assert {name: one.status for name, one in outcomes.items()} == {"t1": "awaiting_input"}
    assert [one.text for one in outcomes["t1"].questions] == ["q1?"]
    assert outcomes["t1"].usage.input_tokens == 10
    assert (batch.ending, batch.tally.waiting, batch.tally.left) == ("waiting", 1, 1)


async def test_a_run_that_was_answered_in_part_waits_for_the_rest(tmp_path: Path) -> None:
    journal = Journal()
    script = Asks(journal, {"t1": ("q1", "q2", "q3")})
    first = FakeRuntime(journal, script)
    await outcomes_of(a_batch(tasks(1), tmp_path, first))
    await answer(first, "t1", "q2")

    second = FakeRuntime(journal, script)
    outcomes = await outcomes_of(a_batch(tasks(1), tmp_path, second))

    assert second.resumed == []
    assert [one.id for one in outcomes["t1"].questions] == ["q1", "q3"]


async def test_tasks_that_can_be_read_only_once_wait_as_well(tmp_path: Path) -> None:
    def once() -> Iterator[Mapping[str, str]]:
        yield from tasks(2)

    journal = Journal()
    first = a_batch(once(), tmp_path, a_runtime(journal, "t1"))
    await outcomes_of(first)
    again = a_runtime(journal, "t1")
    batch = a_batch(once(), tmp_path, again)
    outcomes = await outcomes_of(batch)

    assert (first.ending, batch.ending) == ("waiting", "waiting")
    assert (list(outcomes), again.resumed) == (["t1"], [])


async def test_each_epoch_of_a_task_waits_by_itself(tmp_path: Path) -> None:
    journal = Journal()
    first = a_runtime(journal, "t1", "t1@2")
    await outcomes_of(a_batch(tasks(1), tmp_path, first, epochs=2))
    await answer(first, "t1@2")

    batch = a_batch(tasks(1), tmp_path, a_runtime(journal, "t1", "t1@2"), epochs=2)
    outcomes = await outcomes_of(batch)

    assert {name: one.status for name, one in outcomes.items()} == {
        "t1": "awaiting_input", "t1@2": "done",
    }  # fmt: skip


async def test_who_runs_failures_again_leaves_alone_what_waits(tmp_path: Path) -> None:
    def fails(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", "agent_error")

    journal = Journal()
    await outcomes_of(a_batch(tasks(2), tmp_path, a_runtime(journal, "t1", others=fails)))

    again = a_runtime(journal, "t1")
    outcomes = await outcomes_of(a_batch(tasks(2), tmp_path, again, retry_failed=True))

    assert (outcomes["t1"].attempt, outcomes["t2"].attempt) == (1, 2)
    assert outcomes["t1"].status == "awaiting_input"
    assert again.resumed == []


async def test_a_failure_behind_an_answer_has_its_retries(tmp_path: Path) -> None:
    journal = Journal()
    first = a_runtime(journal, "t1")
    await outcomes_of(a_batch(tasks(1), tmp_path, first))
    await answer(first, "t1")
    begun = run_of(journal, "t1")

    def fails_then_ends(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", "agent_error") if spec.run_id == begun else ended(spec)

    second = FakeRuntime(journal, fails_then_ends)
    outcomes = await outcomes_of(a_batch(tasks(1), tmp_path, second, retry_on_error=1))

    assert (outcomes["t1"].status, outcomes["t1"].attempt) == ("done", 2)


ANOTHER = HarnessConfig(max_turns=7)


async def test_what_waits_under_another_set_up_is_asked_about(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(2), tmp_path, a_runtime(journal, "t1")))

    with pytest.raises(SetupChangedError, match="1 result and 1 run made with"):
        await outcomes_of(a_batch(tasks(2), tmp_path, a_runtime(journal), config=ANOTHER))

    accepted = a_runtime(journal, "t1")
    kept = a_batch(tasks(2), tmp_path, accepted, config=ANOTHER, on_change="accept")
    (outcome,) = await all_of(kept)
    assert (outcome.status, outcome.attempt, accepted.opened) == ("awaiting_input", 1, False)

    begun = run_of(journal, "t1")
    retried = a_batch(tasks(2), tmp_path, a_runtime(journal), config=ANOTHER, on_change="retry")
    outcomes = await outcomes_of(retried)
    assert (outcomes["t1"].status, outcomes["t1"].attempt) == ("done", 2)
    assert journal.ends[begun].status == "cancelled"
    assert retried.ok


async def test_a_task_that_was_changed_is_begun_anew_and_its_question_is_of_no_task(
    tmp_path: Path,
) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(1), tmp_path, a_runtime(journal, "t1")))
    changed = [{"id": "t1", "task": "something else"}]

    batch = a_batch(changed, tmp_path, a_runtime(journal))
    outcomes = await outcomes_of(batch)

    assert (outcomes["t1"].status, outcomes["t1"].attempt) == ("done", 1)
    assert batch.ok
    assert batch.summary["waiting"]["tasks"] == 0
    assert batch.summary["unfinished"]["of_removed_tasks"] == 1


async def test_a_task_that_was_removed_is_not_waited_for(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(2), tmp_path, a_runtime(journal, "t2")))

    batch = a_batch(tasks(1), tmp_path, a_runtime(journal))

    assert await outcomes_of(batch) == {}
    assert batch.ok
    assert batch.summary["waiting"]["tasks"] == 0
    assert batch.summary["unfinished"]["of_removed_tasks"] == 1


# ---- money -------------------------------------------------------------------------


async def test_what_waiting_runs_have_cost_is_spent(tmp_path: Path) -> None:
    journal = Journal()
    first = a_runtime(journal, "t1", cost_usd=2.0)
    batch = a_batch(tasks(1), tmp_path, first, budget_usd=3.0)
    await outcomes_of(batch)
    assert batch.ending == "waiting"

    def dollar(spec: RunSpec) -> HarnessResult:
        return ended(spec, cost_usd=1.0)

    runtime = FakeRuntime(journal, dollar)
    second = a_batch(tasks(4), tmp_path, runtime, budget_usd=3.0, concurrency=1)
    outcomes = await outcomes_of(second)

    done = [name for name, one in outcomes.items() if one.is_final]
    assert done == ["t2"], "2 USD of 3 were spent by the run that waits"
    assert second.ending == "budget"
    assert second.summary["waiting"]["tasks"] == 1


async def test_a_run_that_is_answered_when_the_budget_is_spent_goes_on_with_a_larger_one(
    tmp_path: Path,
) -> None:
    journal = Journal()
    first = a_runtime(journal, "t1", cost_usd=2.0)
    spent = a_batch(tasks(1), tmp_path, first, budget_usd=2.0)
    await outcomes_of(spent)
    await answer(first, "t1")

    second = a_runtime(journal, "t1", cost_usd=2.0)
    held = a_batch(tasks(1), tmp_path, second, budget_usd=2.0)
    assert await outcomes_of(held) == {}
    assert (held.ending, second.resumed) == ("budget", [])
    assert held.summary["waiting"] == {"tasks": 1, "answered": 1, "runs": []}

    third = a_runtime(journal, "t1", cost_usd=2.0)
    larger = a_batch(tasks(1), tmp_path, third, budget_usd=4.0)
    outcomes = await outcomes_of(larger)
    assert outcomes["t1"].status == "done"
    assert larger.ok


async def test_what_is_answered_meanwhile_is_paid_for_once(tmp_path: Path) -> None:
    """2 USD before the question and 3 behind it, of 6; paid twice, nothing would be left.

    The last of the tasks begins when the run that was answered has come back.
    """
    journal = Journal()
    runtime = FakeRuntime(journal, Asks(journal, {"t1": ("q1",)}, holds("t2"), cost_usd=2.0))
    batch = a_batch(tasks(4), tmp_path, runtime, budget_usd=6.0, concurrency=1)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(1)
    await answer(runtime, "t1")
    runtime.end(run_of(journal, "t2"), ended(journal.specs[run_of(journal, "t2")]))

    async with asyncio.timeout(20):
        outcomes = await command

    assert {name: one.status for name, one in outcomes.items()} == dict.fromkeys(
        ("t1", "t2", "t3", "t4"), "done"
    )
    assert batch.ok


def holds(name: str) -> Script:
    """Runs of this task stay in flight, others end."""

    def script(spec: RunSpec) -> HarnessResult | None:
        return None if spec.metadata["task_id"] == name else ended(spec)

    return script


# ---- while the batch goes on ---------------------------------------------------------


class Watched:
    """A batch of which one run stays in flight, and its outcomes so far."""

    def __init__(
        self,
        folder: Path,
        *asking: str,
        count: int = 2,
        questions: tuple[str, ...] = ("q1",),
        journal: Journal | None = None,
        expires_at: Mapping[str, float] | None = None,
        **settings: Any,
    ) -> None:
        self.journal = journal or Journal()
        asked = dict.fromkeys(asking, questions)
        last = f"t{count}"
        script = Asks(self.journal, asked, holds(last), expires_at=expires_at)
        self.runtime = FakeRuntime(self.journal, script)
        self.events: list[RunEvent] = []
        self.batch = a_batch(
            tasks(count), folder, self.runtime, on_event=self.events.append, **settings
        )
        self.outcomes: list[TaskOutcome] = []
        self._last = last
        self._came = asyncio.Event()
        self._command = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for outcome in self.batch.run():
            self.outcomes.append(outcome)
            self._came.set()

    async def until(self, *told: tuple[str, str]) -> None:
        """Wait until these tasks have come to these statuses."""
        async with asyncio.timeout(20):
            while not set(told) <= {(one.id, one.status) for one in self.outcomes}:
                self._came.clear()
                await self._came.wait()

    async def finish(self) -> list[tuple[str, str]]:
        """End the run in flight, and the batch: what it told of all others, in its order."""
        run_id = run_of(self.journal, self._last)
        self.runtime.end(run_id, ended(self.journal.specs[run_id]))
        async with asyncio.timeout(20):
            await self._command
        return [(one.id, one.status) for one in self.outcomes if one.id != self._last]


async def test_a_run_that_is_answered_while_the_batch_goes_on_is_taken_up_at_once(
    tmp_path: Path,
) -> None:
    work = Watched(tmp_path, "t1")
    await work.until(("t1", "awaiting_input"))
    assert work.batch.tally.waiting == 1

    await answer(work.runtime, "t1")

    await work.until(("t1", "done"))
    assert work.batch.tally.waiting == 0
    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert work.batch.ok
    assert sorted(in_file(tmp_path)) == ["t1", "t2"]
    assert any(isinstance(told.event, QuestionAnswered) for told in work.events)


async def test_a_run_that_asks_twice_is_taken_up_behind_its_last_answer(tmp_path: Path) -> None:
    work = Watched(tmp_path, "t1", questions=("q1", "q2", "q3"))
    await work.until(("t1", "awaiting_input"))

    for question_id in ("q3", "q1"):
        await answer(work.runtime, "t1", question_id)
        await work.runtime.until_noted(len(work.journal.log))
        assert (work.runtime.resumed, work.batch.tally.waiting) == ([], 1)
    await answer(work.runtime, "t1", "q2")

    await work.until(("t1", "done"))
    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert work.runtime.resumed == [run_of(work.journal, "t1")]


async def test_a_run_that_comes_back_waits_for_a_place(tmp_path: Path) -> None:
    work = Watched(tmp_path, "t1", concurrency=1)
    await work.until(("t1", "awaiting_input"))
    await work.runtime.until_in_flight(1)

    await answer(work.runtime, "t1")

    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "done")]
    assert work.runtime.peak == 1


async def test_a_run_that_waited_before_is_told_of_while_all_places_are_taken(
    tmp_path: Path,
) -> None:
    journal = Journal()
    first, second = tasks(2)
    await outcomes_of(a_batch([second], tmp_path, a_runtime(journal, "t2")))
    runtime = FakeRuntime(journal, Asks(journal, {"t2": ("q1",)}, holds("t1")))

    stream = a_batch([first, second], tmp_path, runtime, concurrency=1).run()
    async with asyncio.timeout(20):
        told = await anext(stream)
    await stream.aclose()

    assert (told.id, told.status) == ("t2", "awaiting_input")
    assert runtime.peak == 1


async def test_a_run_that_waited_before_is_taken_up_as_well(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(1), tmp_path, a_runtime(journal, "t1")))
    runtime = FakeRuntime(journal, Asks(journal, {"t1": ("q1",)}, holds("t2")))
    batch = a_batch(tasks(2), tmp_path, runtime)
    command = asyncio.create_task(all_of(batch))
    await runtime.until_in_flight(1)

    await answer(runtime, "t1")
    await runtime.until_resumed(1)
    runtime.end(run_of(journal, "t2"), ended(journal.specs[run_of(journal, "t2")]))

    told = [(one.id, one.status) for one in await command if one.id == "t1"]
    assert told == [("t1", "awaiting_input"), ("t1", "done")]
    assert batch.ok


class Listening(FakeRuntime):
    """Has something happen behind the list of its runs, and before they are followed."""

    when_listed: Callable[[], Awaitable[None]]

    async def headings(self, beginning: str = "") -> list[RunHeading]:
        found = await super().headings(beginning)
        await self.when_listed()
        return found


@pytest.mark.parametrize("happens", ["answered", "cancelled"])
@pytest.mark.parametrize("order", ["early", "late"])
async def test_what_happens_to_a_waiting_run_while_a_command_starts_is_not_missed(
    tmp_path: Path, happens: str, order: str
) -> None:
    journal = Journal()
    *others, task = tasks(3)
    await outcomes_of(a_batch([task], tmp_path, a_runtime(journal, "t3", cost_usd=2.0)))
    runtime = Listening(journal, Asks(journal, {"t3": ("q1",)}, cost_usd=2.0))

    async def answered() -> None:
        await answer(runtime, "t3")

    async def cancelled() -> None:
        await runtime.stop([run_of(journal, "t3")], "cancel")

    runtime.when_listed = answered if happens == "answered" else cancelled
    given = [*others, task] if order == "late" else [task, *others]
    batch = a_batch(given, tmp_path, runtime, concurrency=1)
    async with asyncio.timeout(20):
        outcomes = [one async for one in batch.run() if one.is_final]

    status = "done" if happens == "answered" else "cancelled"
    assert {one.id: one.status for one in outcomes} == {"t1": "done", "t2": "done", "t3": status}
    assert batch.ending == "complete"


@pytest.mark.parametrize("order", ["early", "late"])
async def test_what_is_answered_in_part_while_a_command_starts_waits_for_the_rest(
    tmp_path: Path, order: str
) -> None:
    journal = Journal()
    *others, task = tasks(3)
    script = Asks(journal, {"t3": ("q1", "q2")})
    await outcomes_of(a_batch([task], tmp_path, FakeRuntime(journal, script)))
    runtime = Listening(journal, script)

    async def answered() -> None:
        await answer(runtime, "t3", "q1")

    runtime.when_listed = answered
    given = [*others, task] if order == "late" else [task, *others]
    batch = a_batch(given, tmp_path, runtime, concurrency=1)
    outcomes = await outcomes_of(batch)

    assert runtime.resumed == []
    assert outcomes["t3"].status == "awaiting_input"
    assert outcomes["t3"].questions[-1].id == "q2"
    assert batch.ending == "waiting"


async def test_a_run_that_is_cancelled_while_it_waits_has_its_line(tmp_path: Path) -> None:
    work = Watched(tmp_path, "t1")
    await work.until(("t1", "awaiting_input"))

    await work.runtime.stop([run_of(work.journal, "t1")], "cancel")

    await work.until(("t1", "cancelled"))
    await work.finish()
    assert (work.batch.ending, work.batch.tally.waiting) == ("complete", 0)
    assert sorted(in_file(tmp_path)) == ["t1", "t2"]


async def test_a_run_that_is_answered_and_then_cancelled_is_over(tmp_path: Path) -> None:
    work = Watched(tmp_path, "t1", concurrency=1)
    await work.until(("t1", "awaiting_input"))
    await work.runtime.until_in_flight(1)
    # Its place is not free yet.
    await answer(work.runtime, "t1")
    await work.runtime.stop([run_of(work.journal, "t1")], "cancel")

    assert await work.finish() == [("t1", "awaiting_input"), ("t1", "cancelled")]
    assert work.runtime.resumed == []
    assert sorted(in_file(tmp_path)) == ["t1", "t2"]


async def test_an_answer_comes_before_anybody_has_heard_of_the_question(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(2), tmp_path, a_runtime(journal, "t1", "t2")))
    runtime = FakeRuntime(journal, Asks(journal, {}, holds("t3")))
    stream = a_batch(tasks(3), tmp_path, runtime).run()
    first = await anext(stream)

    # The outcome of the second is on offer, and not taken.
    await answer(runtime, "t2")
    await runtime.until_noted(len(journal.log))
    second = await anext(stream)
    async with asyncio.timeout(20):
        third = await anext(stream)
    await stream.aclose()

    told = [(one.id, one.status) for one in (first, second, third)]
    assert told == [("t1", "awaiting_input"), ("t2", "awaiting_input"), ("t2", "done")]


async def test_ctrl_c_leaves_what_waits_as_it_is_and_the_next_command_goes_on(
    tmp_path: Path,
) -> None:
    work = Watched(tmp_path, "t1")
    await work.until(("t1", "awaiting_input"))
    await work.runtime.until_in_flight(1)

    work.batch.park()
    # What is answered from here on is the next command's.
    await answer(work.runtime, "t1")
    async with asyncio.timeout(20):
        await work._command
    assert (work.batch.ending, work.runtime.resumed) == ("interrupted", [])
    assert work.batch.summary["waiting"] == {"tasks": 1, "answered": 1, "runs": []}

    again = a_batch(tasks(2), tmp_path, a_runtime(work.journal, "t1"))
    outcomes = await outcomes_of(again)
    assert {name: one.status for name, one in outcomes.items()} == {"t1": "done", "t2": "done"}
    assert len(work.journal.specs) == 2


async def test_a_waiting_run_that_is_cancelled_behind_a_ctrl_c_has_its_line(
    tmp_path: Path,
) -> None:
    work = Watched(tmp_path, "t1")
    await work.until(("t1", "awaiting_input"))
    await work.runtime.until_in_flight(1)

    work.batch.park()
    await work.runtime.stop([run_of(work.journal, "t1")], "cancel")
    async with asyncio.timeout(20):
        await work._command

    assert [(one.id, one.status) for one in work.outcomes] == [
        ("t1", "awaiting_input"), ("t1", "cancelled"),
    ]  # fmt: skip
    assert in_file(tmp_path) == ["t1"]
    assert (work.batch.ending, work.batch.tally.waiting) == ("interrupted", 0)


async def test_a_run_whose_workspace_is_removed_while_it_waits_is_begun_anew(
    tmp_path: Path,
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    task = {"id": "t1", "task": "x", "workspace": str(given)}
    other = {"id": "t2", "task": "y"}
    journal = Journal()
    runtime = FakeRuntime(journal, Asks(journal, {"t1": ("q1",)}, holds("t2")))
    batch = a_batch([task, other], tmp_path / "run", runtime)
    stream = batch.run()
    begun = (await anext(stream)).run_id or ""
    shutil.rmtree(tmp_path / "run" / "workspaces" / begun)

    await answer(runtime, "t1")
    again = await anext(stream)
    await stream.aclose()

    assert (again.id, again.attempt, again.status) == ("t1", 2, "awaiting_input")
    assert journal.ends[begun].status == "cancelled"


async def test_a_run_whose_workspace_was_removed_between_two_commands_is_begun_anew(
    tmp_path: Path,
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    task = {"id": "t1", "task": "x", "workspace": str(given)}
    journal = Journal()
    await outcomes_of(a_batch([task], tmp_path / "run", a_runtime(journal, "t1")))
    begun = run_of(journal, "t1")
    assert (tmp_path / "run" / "workspaces" / begun).is_dir(), "it is kept while the run waits"
    shutil.rmtree(tmp_path / "run" / "workspaces" / begun)

    batch = a_batch([task], tmp_path / "run", a_runtime(journal))
    outcomes = await outcomes_of(batch)

    assert (outcomes["t1"].attempt, outcomes["t1"].status) == (2, "done")
    assert journal.ends[begun].status == "cancelled"


async def test_a_run_that_waits_in_another_folder_is_asked_about(tmp_path: Path) -> None:
    """Going on would write into the folder that this one was copied from."""
    given = tmp_path / "given"
    given.mkdir()
    task = {"id": "t1", "task": "x", "workspace": str(given)}
    journal = Journal()
    first = a_runtime(journal, "t1")
    await outcomes_of(a_batch([task], tmp_path / "run", first))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    begun = run_of(journal, "t1")

    refused = a_runtime(journal)
    with pytest.raises(BadInputError, match=r"1 unfinished run in .*/run/workspaces', not here"):
        await outcomes_of(a_batch([task], tmp_path / "copy", refused))
    assert (refused.opened, journal.ends) == (False, {})

    chosen = a_batch([task], tmp_path / "copy", a_runtime(journal), on_change="accept")
    outcomes = await outcomes_of(chosen)
    assert (outcomes["t1"].attempt, outcomes["t1"].status) == (2, "done")
    assert journal.ends[begun].status == "cancelled"


async def test_a_check_stands_on_what_there_was_before_an_answered_run_went_on(
    tmp_path: Path,
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "Makefile").write_text("all:\n\t@false\n")
    task = {"id": "t1", "task": "x", "workspace": str(given), "check": {"command": "make"}}
    journal = Journal()
    await outcomes_of(a_batch([task], tmp_path / "run", a_runtime(journal, "t1")))

    def spoils(spec: RunSpec) -> HarnessResult | None:
        if spec.metadata["task_id"] != "t1":
            return None
        (given / "Makefile").write_text("all:\n\t@true\n")
        return ended(spec)

    runtime = FakeRuntime(journal, spoils)
    stream = a_batch([task, tasks(2)[1]], tmp_path / "run", runtime).run()
    assert (await anext(stream)).status == "awaiting_input"
    await answer(runtime, "t1")
    check = (await anext(stream)).check
    await stream.aclose()

    assert check is not None
    assert not check.passed
    assert check.output.startswith(f"not checked: {given}: what it gives to checks was changed")


# ---- a program that answers at once ----------------------------------------------------


async def test_a_program_answers_at_once_and_nobody_sees_that_it_waited(tmp_path: Path) -> None:
    asked: list[OpenQuestion] = []

    def answers(question: OpenQuestion) -> str:
        asked.append(question)
        return "blue"

    journal = Journal()
    runtime = a_runtime(journal, "t1", "t3")
    batch = a_batch(tasks(3), tmp_path, runtime, answerer=answers, concurrency=1)
    async with asyncio.timeout(20):
        outcomes = await all_of(batch)

    assert sorted((one.id, one.status) for one in outcomes) == [
        ("t1", "done"), ("t2", "done"), ("t3", "done"),
    ]  # fmt: skip
    assert asked == [OpenQuestion(id="q1", text="q1?")] * 2
    assert batch.ok


class HeardLate(FakeRuntime):
    """A runtime whose answers are on disk before anybody hears of them: when the run goes on."""

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
        self.journal.answers.setdefault(run_id, {}).update(answers)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        for run_id in run_ids:
            for name in self.journal.answers.get(run_id, ()):
                self.journal.write(run_id, QuestionAnswered(question_id=name))
        await super().resume(run_ids, secrets=secrets)


async def test_a_run_goes_on_with_what_a_program_answered_also_where_that_is_heard_of_late(
    tmp_path: Path,
) -> None:
    journal = Journal()
    script = Asks(journal, {"t1": ("q1", "q2"), "t2": ("q1",)})
    batch = a_batch(tasks(2), tmp_path, HeardLate(journal, script), answerer=lambda _: "blue")
    async with asyncio.timeout(20):
        outcomes = await all_of(batch)

    assert {(one.id, one.status) for one in outcomes} == {("t1", "done"), ("t2", "done")}
    assert (batch.ok, batch.tally.waiting) == (True, 0)


@pytest.mark.parametrize("left", ["q1", "q2", "q3"])
async def test_what_a_program_does_not_answer_waits_and_all_else_is_answered(
    tmp_path: Path, left: str
) -> None:
    async def answers(question: OpenQuestion) -> str | None:
        return None if question.id == left else "blue"

    journal = Journal()
    script = Asks(journal, {"t1": ("q1", "q2", "q3")})
    batch = a_batch(tasks(1), tmp_path, FakeRuntime(journal, script), answerer=answers)
    (outcome,) = await all_of(batch)

    assert [one.id for one in outcome.questions] == [left]
    assert outcome.reason.message == "1 question to answer"
    assert journal.open_questions(run_of(journal, "t1")) == [left]
    assert batch.ending == "waiting"


async def test_what_waited_before_is_asked_of_the_program_too(tmp_path: Path) -> None:
    journal = Journal()
    await outcomes_of(a_batch(tasks(2), tmp_path, a_runtime(journal, "t1", "t2")))

    runtime = a_runtime(journal, "t1", "t2")
    batch = a_batch(tasks(2), tmp_path, runtime, answerer=lambda _: "blue", concurrency=1)
    async with asyncio.timeout(20):
        outcomes = await all_of(batch)

    assert {(one.id, one.status) for one in outcomes} == {("t1", "done"), ("t2", "done")}
    assert batch.ok


async def test_an_answer_that_is_not_taken_leaves_the_run_waiting_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal()
    runtime = a_runtime(journal, "t1")

    async def somebody_is_first(_: OpenQuestion) -> str:
        journal.answers[run_of(journal, "t1")] = {"q1": "red"}
        return "blue"

    batch = a_batch(tasks(2), tmp_path, runtime, answerer=somebody_is_first)
    with caplog.at_level(logging.WARNING, "harness_actors.batch.waiting"):
        outcomes = await outcomes_of(batch)

    assert outcomes["t1"].status == "awaiting_input"
    assert outcomes["t2"].status == "done"
    assert "was not answered" in caplog.text
    assert journal.answers[run_of(journal, "t1")] == {"q1": "red"}


async def test_of_several_answers_one_that_is_not_taken_keeps_no_other_back(
    tmp_path: Path,
) -> None:
    journal = Journal()

    async def somebody_answers_the_second(question: OpenQuestion) -> str:
        if question.id == "q2":
            journal.answers[run_of(journal, "t1")]["q2"] = "red"
        return "blue"

    runtime = FakeRuntime(journal, Asks(journal, {"t1": ("q1", "q2", "q3", "q4")}))
    batch = a_batch(tasks(1), tmp_path, runtime, answerer=somebody_answers_the_second)
    await outcomes_of(batch)

    given = journal.answers[run_of(journal, "t1")]
    assert given == {"q1": "blue", "q2": "red", "q3": "blue", "q4": "blue"}


async def test_ctrl_c_asks_a_program_nothing_more_of_whatever_run(tmp_path: Path) -> None:
    asked: list[OpenQuestion] = []
    both = asyncio.Event()

    async def thinks(question: OpenQuestion) -> str:
        asked.append(question)
        if len(asked) == 2:
            both.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")

    journal = Journal()
    script = Asks(journal, dict.fromkeys(("t1", "t2"), ("q1", "q2")))
    batch = a_batch(tasks(2), tmp_path, FakeRuntime(journal, script), answerer=thinks)
    command = asyncio.create_task(all_of(batch))
    await both.wait()

    batch.park()

    async with asyncio.timeout(20):
        outcomes = await command
    assert [one.id for one in asked] == ["q1", "q1"]
    assert sorted((one.id, len(one.questions)) for one in outcomes) == [("t1", 2), ("t2", 2)]


async def test_ctrl_c_waits_for_no_program_that_is_to_answer(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def thinks(_: OpenQuestion) -> str:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")

    journal = Journal()
    batch = a_batch(tasks(1), tmp_path, a_runtime(journal, "t1"), answerer=thinks)
    command = asyncio.create_task(all_of(batch))
    await asked.wait()
    assert (batch.tally.running, batch.tally.waiting) == (0, 1), "it waits for the program"

    batch.park()

    async with asyncio.timeout(20):
        (outcome,) = await command
    assert outcome.status == "awaiting_input"
    assert journal.open_questions(run_of(journal, "t1")) == ["q1"]


# ---- nothing is lost -------------------------------------------------------------------


async def test_a_command_that_breaks_down_loses_no_question(tmp_path: Path) -> None:
    work = Watched(tmp_path, "t1")
    await work.until(("t1", "awaiting_input"))
    work.runtime.break_down(StoreError("runs.db", "no room"))
    with pytest.raises(StoreError):
        await work._command

    again = a_runtime(work.journal, "t1")
    outcomes = await outcomes_of(a_batch(tasks(2), tmp_path, again))

    assert {name: one.status for name, one in outcomes.items()} == {
        "t1": "awaiting_input", "t2": "done",
    }  # fmt: skip
    assert run_of(work.journal, "t1") not in again.resumed
    assert in_file(tmp_path) == ["t2"]


async def test_an_agent_is_the_one_of_its_set_up_in_the_outcome(tmp_path: Path) -> None:
    journal = Journal()
    first = await outcomes_of(a_batch(tasks(1), tmp_path, a_runtime(journal, "t1")))
    again = await outcomes_of(a_batch(tasks(1), tmp_path, a_runtime(journal, "t1")))

    for outcomes in (first, again):
        outcome = outcomes["t1"]
        assert (outcome.agent, outcome.setup) == (an_agent().name, first["t1"].setup)
        assert outcome.setup is not None
