"""What runs ask that others have begun: the run at the top of their tree asks it for them.

Whoever answers looks at that run alone. A run below is told when it is served again.
"""

from collections.abc import Mapping
from typing import Any

from harness_actors.coordination.active import ActiveRun
from harness_actors.records import RunSpec, id_at_the_top
from harness_actors.state import ANSWERS, ASKED_BELOW, Write, asked_in, unanswered


def put_above(run: ActiveRun) -> Write:
    """What a run below others asks, for the one at the top."""
    spec = run.spec
    assert spec.parent is not None, "one at the top asks for itself"
    asked = [
        {**question, "id": id_above(spec, question["id"]), "path": spec.parent.agent}
        for question in unanswered(run.state.values)
    ]
    return Write(ASKED_BELOW.name, "put", [spec.run_id, asked])


def taken_back(spec: RunSpec, top: Mapping[str, Any]) -> tuple[Write, ...]:
    """That a run below others asks nothing more, for the one at the top.

    Args:
        spec: The run.
        top: The entries of the one at the top.
    """
    asked: Mapping[str, Any] = top.get(ASKED_BELOW.name) or {}
    if not asked.get(spec.run_id):
        return ()
    if any(questions for run_id, questions in asked.items() if run_id != spec.run_id):
        return (Write(ASKED_BELOW.name, "put", [spec.run_id, None]),)
    return (Write(ASKED_BELOW.name, "set", {}),)


def answers_from_above(run: ActiveRun, top: Mapping[str, Any]) -> dict[str, str]:
    """What a run below others was answered, by its own ids; nothing before all is answered.

    Args:
        run: The run.
        top: The entries of the one at the top.
    """
    given = top.get(ANSWERS.name) or {}
    asked = [question["id"] for question in unanswered(run.state.values)]
    found = {one: given[name] for one in asked if (name := id_above(run.spec, one)) in given}
    return found if len(found) == len(asked) else {}


def answered_below(top: Mapping[str, Any]) -> list[str]:
    """The runs below one whose questions are all answered, and that have not gone on.

    Args:
        top: The entries of the one at the top.
    """
    asked: Mapping[str, Any] = top.get(ASKED_BELOW.name) or {}
    given = top.get(ANSWERS.name) or {}
    return [
        run_id
        for run_id, questions in asked.items()
        if questions and all(question["id"] in given for question in questions)
    ]


def answers_above(
    spec: RunSpec, answers: Mapping[str, str], top: Mapping[str, Any]
) -> dict[str, str]:
    """Answers that are given to a run below others, as the one at the top knows the questions.

    Args:
        spec: The run.
        answers: By its own ids, or by those at the top.
        top: The entries of the one at the top.
    """
    known = {question["id"] for question in asked_in(top)}
    return {
        number if number in known else id_above(spec, number): text
        for number, text in answers.items()
    }


def id_above(spec: RunSpec, question_id: str) -> str:
    """What a question of a run is called where the one at the top of its tree asks it."""
    return id_at_the_top(spec.run_id, spec.root, question_id)


def asks_nothing(values: Mapping[str, Any]) -> bool:
    """Whether no run below has a question at the one of these entries."""
    return not any((values.get(ASKED_BELOW.name) or {}).values())
