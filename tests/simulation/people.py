"""Those who answer runs: several at once, in any order, too early, too late and wrongly."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from harness_actors.errors import AnswerError, RunNotFoundError
from harness_actors.records import id_at_the_top
from tests.simulation.approvals import decide, key_in_question
from tests.simulation.ledger import root_of
from tests.simulation.questions import FIRST_WORDS, key_of
from tests.simulation.workload import PlannedRun

if TYPE_CHECKING:
    from tests.simulation.driver import Driver

NOBODY = "run-nobody"
"""A run that there is not."""


class People:
    """Answers what the runs of one command ask.

    Args:
        driver: The command.
        chance: Theirs.
        soon: They hear what is asked below others, and answer soon.
    """

    def __init__(self, driver: "Driver", chance: Random, *, soon: bool = False) -> None:
        self._driver = driver
        self._chance = chance
        self._soon = soon
        self._at: dict[str, asyncio.Event] = {}
        self._answers = 0

    async def answer(self, run_id: str, questions: Sequence[Mapping[str, Any]]) -> None:
        """A run is told to wait: one or two people hear of it, unless some are at it already."""
        if run_id in self._at or not questions:
            return  # all was answered while it left service
        self._at[run_id] = done = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._chance.choice((1, 1, 2))):
                    group.create_task(self._person(run_id, questions))
        finally:
            del self._at[run_id]
            done.set()

    async def hear(self, run_id: str, questions: Sequence[Mapping[str, Any]]) -> None:
        """A run below others asks, and these go on: often somebody answers at once."""
        if self._soon or self._chance.random() < 0.5:
            root = root_of(run_id)
            asked = [{**one, "id": id_at_the_top(run_id, root, one["id"])} for one in questions]
            await self.answer(root, asked)

    async def done(self, run_id: str) -> None:
        """Wait for those who are at a run; now and then somebody cannot."""
        done = self._at.get(run_id)
        if done is not None and self._chance.random() < 0.8:
            await done.wait()
        else:
            await asyncio.sleep(self._chance.random())

    async def guess(self, plan: PlannedRun) -> None:
        """Answer a run that has perhaps asked nothing yet, or is over."""
        for after_s in plan.guesses:
            await asyncio.sleep(after_s)
            question_id = f"q{self._chance.randint(1, 3)}"
            await self._say(plan.run_id, {question_id: self._words(plan.run_id)})

    async def _person(self, run_id: str, questions: Sequence[Mapping[str, Any]]) -> None:
        chance = self._chance
        within_s = (0.0, 0.05, 0.5) if self._soon else (0.0, 0.05, 1.0, 8.0, 40.0)
        await asyncio.sleep(chance.random() * chance.choice(within_s))
        if chance.random() < 0.05:
            await self._driver.request(run_id, "cancel")
        if self._soon and chance.random() < 0.2:
            # So that it is about to leave service when it is answered.
            await self._driver.request(run_id, "park")
        if chance.random() < 0.1:
            await self._blunder(run_id, questions)
        answers = {question["id"]: self._answer(question) for question in questions}
        if chance.random() < 0.5:
            await self._say(run_id, answers)
        else:
            for question_id in chance.sample(list(answers), len(answers)):
                await self._say(run_id, {question_id: answers[question_id]})
                await asyncio.sleep(chance.random() * chance.choice((0.0, 0.1, 3.0)))
        if chance.random() < 0.15:
            await self._say(run_id, answers)
        if self._soon and chance.random() < 0.3:
            # So that those that it was answered for have just come back.
            await asyncio.sleep(chance.random() / 2)
            await self._driver.request(run_id, "park")

    async def _blunder(self, run_id: str, questions: Sequence[Mapping[str, Any]]) -> None:
        """Say what is no answer."""
        first = questions[0]["id"]
        match self._chance.choice(("run", "question", "words")):
            case "run":
                await self._say(NOBODY, {first: self._words(NOBODY)})
            case "question":
                await self._say(run_id, {first: self._answer(questions[0]), "q99": "yes"})
            case _:
                words = "another one" if questions[0]["options"] else " "
                await self._say(run_id, {first: words})

    def _answer(self, question: Mapping[str, Any]) -> str:
        if question.get("kind") == "approval":
            words = self._words(key_in_question(question))
            return decide(self._chance, question, words, self._answers)
        if question["options"]:
            option: str = self._chance.choice(question["options"])
            return option
        return self._words(key_of(question["text"]))

    def _words(self, about: str) -> str:
        """What nobody else says."""
        self._answers += 1
        return f"{FIRST_WORDS}{about}: {self._driver.name} says {self._answers}"

    async def _say(self, run_id: str, answers: Mapping[str, str]) -> None:
        rules = self._driver.replies
        reply = rules.says(run_id, answers)
        try:
            await self._driver.runtime.answer(run_id, answers)
        except (AnswerError, RunNotFoundError) as error:
            rules.was_refused(reply, error)
        else:
            rules.was_taken(reply)
        finally:
            rules.done(reply)
