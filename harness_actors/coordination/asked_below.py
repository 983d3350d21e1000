"""What runs ask that others have begun: the run at the top of their tree asks it for them.

Whoever answers looks at that run alone. A run below is told when it is served again.
"""

from collections.abc import Iterator, Mapping
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


def to_go_on(
    top: ActiveRun, aside: Mapping[str, ActiveRun], served: Mapping[str, ActiveRun]
) -> list[str]:
    """The runs below one that are to be served again, each after its parent.

    They were answered, or were put aside with one that was, or stand between it and one that is
    served. Below one that is about to leave service nobody goes on before that one does.

    Args:
        top: The run at the top of their tree, which is served.
        aside: Those of its tree that were put aside, by id.
        served: All that are in service, by id.
    """
    above = {run_id: list(_above(run, aside, served)) for run_id, run in aside.items()}
    answered = aside.keys() & answered_below(top.state.values)
    between = {one.spec.run_id for run_id in answered for one in above[run_id]}
    found: list[str] = []
    for run_id, those in above.items():
        was_put_aside_with_one = any(one.spec.run_id in answered for one in those)
        if run_id not in answered | between and not was_put_aside_with_one:
            continue
        if not any(one.leaves_service for one in those if one.spec.run_id in served):
            found.append(run_id)
    return sorted(found, key=lambda run_id: len(above[run_id]))


def _above(
    run: ActiveRun, aside: Mapping[str, ActiveRun], served: Mapping[str, ActiveRun]
) -> Iterator[ActiveRun]:
    while (link := run.spec.parent) is not None:
        run = aside.get(link.run_id) or served[link.run_id]
        yield run


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
