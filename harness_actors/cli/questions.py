"""Questions of runs, as they are put to a person, and how that person answers."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness_actors.cli.event_lines import EventLines, question_lines
from harness_actors.cli.shown_calls import asked_line, is_cut
from harness_actors.printing.plain import one_line
from harness_actors.results import HarnessResult, OpenQuestion

if TYPE_CHECKING:
    from harness_actors.cli.deciding import Deciding


class Choosing:
    """Takes line after line until one of them is an answer.

    Args:
        question: The question that is asked.

    Attributes:
        told: What is to be said before the next line, about the one that was taken.
        wanted: What the next line is to be, in a word; the answer, where nothing is said.
    """

    wanted = ""

    def __init__(self, question: OpenQuestion) -> None:
        self._asked = question
        self.told: tuple[str, ...] = ()

    def put(self) -> Iterator[str]:
        """What is asked, in lines."""
        return put(self._asked)

    def take(self, typed: str | None) -> str | None:
        """The answer in a line; None where there is none, see `told`.

        Args:
            typed: The line; None for one that could not be read, of which it was said why.
        """
        answer = answer_in(self._asked, typed or "")
        self.told = () if answer is not None else (allowed(self._asked), *self.put())
        return answer


def dialogue(question: OpenQuestion) -> "Choosing | Deciding":
    """How a person answers this question, line by line."""
    if question.kind != "approval":
        return Choosing(question)
    from harness_actors.cli.deciding import Deciding

    return Deciding(question)


def put(question: OpenQuestion) -> Iterator[str]:
    """A question in lines, with its options by number.

    >>> list(put(OpenQuestion(id="q1", text="Which?", options=("red", "blue"), why="to paint")))
    ['q1: Which?', '    to paint', '    1 red', '    2 blue']
    """
    yield asked_line(question.id, question.path, question.text)
    if question.why:
        yield f"    {one_line(question.why)}"
    marks = _numbers(question) or ["-"] * len(question.options)
    for mark, option in zip(marks, question.options, strict=True):
        yield f"    {mark} {one_line(option)}"


def answer_in(question: OpenQuestion, typed: str) -> str | None:
    """The answer in what a person has typed; None where there is none.

    An option is typed as it is, or by its number.

    >>> which = OpenQuestion(id="q1", text="Which?", options=("red", "blue"))
    >>> answer_in(which, " 2 "), answer_in(which, "red"), answer_in(which, "green")
    ('blue', 'red', None)
    """
    text = typed.strip()
    if not question.options or text in question.options:
        return text or None
    return dict(zip(_numbers(question), question.options, strict=False)).get(text)


def allowed(question: OpenQuestion) -> str:
    """What may be answered, for somebody who has answered something else."""
    if not question.options:
        return "an answer is needed"
    by_number = ", or a number of these" if _numbers(question) else ""
    return f"answer one of {', '.join(map(one_line, question.options))}{by_number}"


def _numbers(question: OpenQuestion) -> list[str]:
    """What options are chosen by; none where an option could be taken for the number of another."""
    if any(option.isdecimal() for option in question.options):
        return []
    return [str(number) for number in range(1, len(question.options) + 1)]


def tell_waiting(result: HarnessResult, store: Path, lines: EventLines, runtime: str) -> None:
    """Say what a run waits for, and by which commands it is answered and goes on."""
    for line in how_to_answer(result, store, runtime):
        lines.note(line)


def how_to_answer(result: HarnessResult, store: Path, runtime: str) -> Iterator[str]:
    """What a run asks, and the commands that answer it, to be copied by a person."""
    yield f"run {one_line(result.run_id)} waits for {result.reason.message}:"
    asked = result.reason.details["questions"]
    yield from (f"  {line}" for line in question_lines(asked))
    if any(is_cut(one.tool or "", one.arguments) for one in result.questions):
        yield f"all of the arguments by\n  {run_command('show', store, [result.run_id])}"
    plain = [one.id for one in result.questions if one.kind != "approval"]
    calls = [one.id for one in result.questions if one.kind == "approval"]
    if plain:
        yield "answer by"
    for question_id in plain:
        yield f"  {answer_command(store, result.run_id, question_id)}"
    if calls:
        yield "approve or deny by"
    for question_id in calls:
        yield from (f"  {line}" for line in decision_commands(store, result.run_id, question_id))
    yield f"and go on by\n  {resume_command(store, [result.run_id], runtime)}"


def answer_command(store: Path, run_id: str, question_id: str) -> str:
    """What answers a question, with ``TEXT`` where the answer stands."""
    return run_command("answer", store, [run_id, question_id, "TEXT"])


def decision_commands(store: Path, run_id: str, question_id: str) -> Iterator[str]:
    """What approves a call, and what denies it."""
    yield run_command("approve", store, [run_id, question_id])
    yield run_command("deny", store, [run_id, question_id, "--note", "WHY"])


def resume_command(store: Path, run_ids: Sequence[str], runtime: str) -> str:
    """What takes up runs where they ran before.

    Args:
        store: Their journal.
        run_ids: The runs.
        runtime: What they ran on: ``"ray"`` or ``"local"``.
    """
    command = run_command("resume", store, run_ids)
    return command if runtime == "ray" else f"{command} --runtime {runtime}"


def run_command(verb: str, store: Path, words: Sequence[str]) -> str:
    """A command of `harness ctl run` on runs of a journal, to be copied by a person."""
    from harness_actors.stores.places import journals_in

    where = [] if store in journals_in() else ["--store", str(store)]
    return shlex.join(["harness", "ctl", "run", verb, *words, *where])
