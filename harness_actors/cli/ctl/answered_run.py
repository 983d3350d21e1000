"""A run that waits for its user, and what it is answered by a command."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_actors.cli.ctl.facts import is_served, word_of
from harness_actors.cli.ctl.given_answers import GivenAnswer
from harness_actors.cli.questions import answer_command, run_command
from harness_actors.cli.shown_calls import brief_call, decided_word
from harness_actors.errors import AnswerError, HarnessError
from harness_actors.policies.decisions import Decision, decision_in, decision_text
from harness_actors.records import RunHeading, id_at_the_top

ALL_ANSWERED = "all of its questions were answered before; the first answer counts"
ALL_DECIDED = "all of its calls were decided about before; the first decision counts"
TOO_LATE = "the time to decide about its calls is over, and what was set for that case counts"
NO_CALL = "no call of it waits for approval"


@dataclass(slots=True)
class AnsweredRun:
    """A run, and what it is to be answered.

    Attributes:
        store: Its journal.
        heading: What the journal says of it.
        below: The run below it that was named, whose questions it asks; empty for none.
        answers: By the ids of its questions; decisions about calls among them.
        taken: All of them are on disk.
        refused: Why none of them was taken.
    """

    store: Path
    heading: RunHeading
    below: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    taken: bool = False
    refused: HarnessError | None = None

    @property
    def run_id(self) -> str:
        return self.heading.run_id

    @property
    def goes_on(self) -> bool:
        """Others of its tree are at work, so that who has asked is served as well."""
        return word_of(self.heading, served=is_served(self.store)) == "running"

    @property
    def open_questions(self) -> list[Mapping[str, Any]]:
        """What it still waits for, by its heading."""
        return _open_of(self._questions)

    @property
    def open_in_tree(self) -> list[Mapping[str, Any]]:
        """What it still waits for, whichever run of its tree was named."""
        return _open_of(self.heading.questions)

    @property
    def _questions(self) -> Sequence[Mapping[str, Any]]:
        """Those that are meant: where a run below it was named, that one's."""
        if not self.below:
            return self.heading.questions
        before = id_at_the_top(self.below, self.run_id, "")
        return [one for one in self.heading.questions if one["id"].startswith(before)]

    def add(self, given: GivenAnswer) -> None:
        """Answer a question of it, or decide about a call by a word.

        Raises:
            AnswerError: It waits for nothing, not for one answer alone, or twice for this one; or
                it asks for approval, and this decides nothing.
        """
        self._check_waits()
        question_id = self._at_the_top(given.question) or self._only_question()
        asked = self._asked(question_id)
        is_decision = asked is not None and _is_approval(asked)
        self._take(question_id, self._decision(question_id, given) if is_decision else given.text)

    def decide(self, call: str, decision: Decision) -> None:
        """Decide about a call of it that waits for approval.

        Args:
            call: The id of the question, or that of the call; empty for the only open one.
            decision: What is decided.

        Raises:
            AnswerError: It waits for nothing, not for one decision alone, or twice for this one;
                or it does not ask about that call.
        """
        self._check_waits()
        question_id = self._approval(call) if call else self._only_approval()
        self._take(question_id, decision_text(decision))

    def decide_all(self, decision: Decision) -> None:
        """Decide about each of its calls that waits for approval.

        Raises:
            AnswerError: None does.
        """
        self._check_waits()
        for asked in self._open_approvals():
            self._take(asked["id"], decision_text(decision))

    def said(self) -> dict[str, list[str]]:
        """What was said, in a word, with the ids of the questions to which it was."""
        words: dict[str, list[str]] = {}
        for question_id, text in self.answers.items():
            asked = self._asked(question_id)
            is_decision = asked is not None and _is_approval(asked)
            word = decided_word(text) if is_decision else "answered"
            words.setdefault(word, []).append(question_id)
        return words

    def _check_waits(self) -> None:
        if self.heading.end is not None:
            raise AnswerError(self.run_id, f"it is over: {self.heading.end.status}")
        if not self._questions:
            raise AnswerError(self.below or self.run_id, "it waits for no answer")

    def _take(self, question_id: str, text: str) -> None:
        if question_id in self.answers:
            raise AnswerError(self.run_id, f"question {question_id!r} is answered twice here")
        self.answers[question_id] = text

    def _at_the_top(self, question_id: str) -> str:
        """A question of the run that was named, by its id there or here."""
        if not self.below or not question_id or self._asked(question_id) is not None:
            return question_id
        return id_at_the_top(self.below, self.run_id, question_id)

    def _asked(self, name: str, by: str = "id") -> Mapping[str, Any] | None:
        return next((one for one in self._questions if one.get(by) == name), None)

    def _only_question(self) -> str:
        ids = [asked["id"] for asked in self.open_questions]
        if not ids:
            raise AnswerError(self.run_id, ALL_ANSWERED)
        if len(ids) > 1:
            problem = f"{len(ids)} of its questions are open, so name one: {', '.join(ids)}"
            raise AnswerError(self.run_id, problem)
        return str(ids[0])

    def _only_approval(self) -> str:
        first, *others = self._open_approvals()
        if others:
            listed = _listed([first, *others])
            problem = f"{len(others) + 1} of its calls wait for approval: {listed}"
            raise AnswerError(self.run_id, f"{problem}; name one, or give --all")
        return str(first["id"])

    def _open_approvals(self) -> list[Mapping[str, Any]]:
        """The calls that still wait for a decision: one at least."""
        found = [asked for asked in self.open_questions if _is_approval(asked)]
        if not found:
            asked = [one for one in self._questions if _is_approval(one)]
            decided = TOO_LATE if any(one.get("expired") for one in asked) else ALL_DECIDED
            raise AnswerError(self.run_id, decided if asked else NO_CALL)
        return found

    def _approval(self, call: str) -> str:
        """The id of the question whether this call may be made."""
        asked = self._asked(self._at_the_top(call)) or self._asked(call, "call_id")
        if asked is None:
            problem = f"no call {call!r} of it waits for approval; there are "
            raise AnswerError(self.run_id, problem + _listed(self._open_approvals()))
        if not _is_approval(asked):
            problem = f"{call!r} is a question, and no call to decide about"
            how = answer_command(self.store, self.run_id, asked["id"])
            raise AnswerError(self.run_id, f"{problem}; answer it by {how}")
        return str(asked["id"])

    def _decision(self, question_id: str, given: GivenAnswer) -> str:
        try:
            return decision_text(decision_in(given.text))
        except ValueError as error:
            how = run_command("approve", self.store, [self.run_id, question_id])
            problem = f"{question_id!r} asks whether a call may be made: {error}"
            raise AnswerError(self.run_id, f"{problem}, or use {how}, or deny") from None


def _open_of(questions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [asked for asked in questions if asked["answer"] is None]


def _is_approval(asked: Mapping[str, Any]) -> bool:
    return asked.get("kind") == "approval"


def _listed(asked: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{one['id']} ({brief_call(one['tool'], one['arguments'])})" for one in asked)
