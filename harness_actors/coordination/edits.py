"""Arguments that a person gives for a call in place of the model's own."""

from collections.abc import Mapping
from typing import Any

from harness_actors.errors import AnswerError
from harness_actors.policies import Approve
from harness_actors.policies.argument_schema import schema_problem
from harness_actors.policies.decisions import decision_in
from harness_actors.state import unanswered


def edited_calls(
    values: Mapping[str, Any], answers: Mapping[str, str]
) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """The calls that are approved with other arguments.

    Args:
        values: The entries of a run's state.
        answers: By the id of the question; some may be none.

    Returns:
        By the same ids, the name of the tool and the arguments.
    """
    found: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for question in unanswered(values):
        text, call = answers.get(question["id"]), question.get("call")
        if call is None or not isinstance(text, str) or '"arguments"' not in text:
            continue
        try:
            decision = decision_in(text)
        except ValueError:
            continue  # told by whoever takes the answer
        if isinstance(decision, Approve) and decision.arguments is not None:
            found[question["id"]] = (call["tool"], decision.arguments)
    return found


def check_edits(
    run_id: str,
    edits: Mapping[str, tuple[str, Mapping[str, Any]]],
    schemas: Mapping[str, Mapping[str, Any]],
) -> None:
    """Refuse arguments that break the schema of their tool.

    Args:
        run_id: The run.
        edits: As `edited_calls` finds them.
        schemas: The parameters of tools by name, as far as anybody knows them.

    Raises:
        AnswerError: Some do; says in what.
    """
    for question_id, (tool, arguments) in edits.items():
        if tool in schemas and (said := schema_problem(schemas[tool], arguments)):
            problem = f"the arguments for {question_id!r} break the schema of {tool}: {said}"
            raise AnswerError(run_id, problem)
