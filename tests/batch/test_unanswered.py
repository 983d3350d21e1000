"""Who waits, as the summary names them: by the journal and the tasks of the command."""

from typing import Any

from harness_actors.batch.roster import Roster
from harness_actors.batch.tasks import Task
from harness_actors.batch.unanswered import SHOWN_RUNS, waiting_runs
from harness_actors.records import RunHeading


def a_question(name: str, answer: str | None = None) -> dict[str, Any]:
    return {"id": name, "text": f"{name}?", "options": ["a"], "why": "so", "answer": answer}


def a_run(
    task_id: str,
    *questions: dict[str, Any],
    task_hash: str = "hash",
    metadata: dict[str, Any] | None = None,
) -> RunHeading:
    note = {"task_id": task_id, "task_hash": task_hash, "attempt": 1}
    return RunHeading(
        run_id=f"run of {task_id}",
        conversation_id="c",
        added_at=0.0,
        metadata=note if metadata is None else metadata,
        end=None,
        questions=questions,
    )


def a_roster(*names: str, is_whole: bool = True) -> Roster:
    roster = Roster()
    for name in names:
        roster.add(Task(id=name, task="x", task_hash="hash"))
    roster.is_whole = is_whole
    return roster


def test_a_run_is_named_with_what_is_open_of_its_questions() -> None:
    headings = [a_run("t1", a_question("q1", "yes"), a_question("q2")), a_run("t2")]

    found = waiting_runs(headings, a_roster("t1", "t2"))

    question = {"id": "q2", "text": "q2?", "options": ["a"], "why": "so"}
    run = {"id": "t1", "run_id": "run of t1", "questions": [question]}
    assert found == {"tasks": 1, "answered": 0, "runs": [run]}


def test_those_that_were_answered_are_counted_and_not_named() -> None:
    headings = [a_run(name, a_question("q1", "yes")) for name in ("t1", "t2")]
    headings.append(a_run("t3", a_question("q1")))

    found = waiting_runs(headings, a_roster("t1", "t2", "t3"))

    assert (found["tasks"], found["answered"]) == (3, 2)
    assert [run["id"] for run in found["runs"]] == ["t3"]


def test_of_many_the_first_are_named_and_all_are_counted() -> None:
    names = [f"t{at}" for at in range(SHOWN_RUNS + 3)]
    headings = [a_run(name, a_question("q1")) for name in names]

    found = waiting_runs(headings, a_roster(*names))

    assert found["tasks"] == SHOWN_RUNS + 3
    assert [run["id"] for run in found["runs"]] == names[:SHOWN_RUNS]


def test_runs_of_no_task_are_not_waited_for() -> None:
    removed = a_run("t1", a_question("q1"))
    changed = a_run("t2", a_question("q1"), task_hash="of earlier")
    foreign = a_run("t3", a_question("q1"), metadata={"from": "a chat"})
    roster = a_roster("t2", "t3")

    assert waiting_runs([removed, changed, foreign], roster)["tasks"] == 0


def test_where_not_all_tasks_were_come_by_all_runs_of_tasks_are_waited_for() -> None:
    others = a_run("t1", a_question("q1"))
    foreign = a_run("t3", a_question("q1"), metadata={"from": "a chat"})

    found = waiting_runs([others, foreign], a_roster("t2", is_whole=False))

    assert [run["id"] for run in found["runs"]] == ["t1"]
