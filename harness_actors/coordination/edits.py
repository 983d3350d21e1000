"""Arguments that a person gives for a call in place of the model's own."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from harness_actors.errors import AnswerError
from harness_actors.messages import encode_json
from harness_actors.policies import Approve
from harness_actors.policies.decisions import decision_in
from harness_actors.state import unanswered

MOST_CHECKS = 5_000
"""Keywords of a schema that are looked at, at most: some schemas have more ways than there is time
for, and everybody's runs wait meanwhile."""
_UNBOUNDED = frozenset(
    {"pattern", "patternProperties", "uniqueItems", "unevaluatedItems", "unevaluatedProperties"}
)
"""What takes more than a step of its own for a value. The tool looks at it."""


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


def schema_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """In what arguments break a schema, without the code of its tool.

    What cannot be told in `MOST_CHECKS` steps is left to the tool, which checks whatever it is
    called with; so is what a schema says that is none.

    Args:
        schema: That of a tool's parameters.
        arguments: Plain JSON values by name.

    Returns:
        A sentence; empty where they break it in nothing.

    >>> schema_problem({"properties": {"usd": {"type": "number"}}}, {"usd": "much"})
    "$.usd: must be of type 'number', not 'much'"
    """
    # Only a person's edit needs these, and they take a tenth of a second to import.
    from jsonschema.exceptions import SchemaError, best_match
    from jsonschema.validators import Draft202012Validator, create
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    from harness_actors.contracts.schema_check import MOST_FAULTS, sentence_of

    schema = {name: value for name, value in schema.items() if name != "$schema"}
    if b'"$schema"' in encode_json(schema):
        return ""  # a part in a dialect of its own would not be counted
    steps = iter(range(MOST_CHECKS))
    keywords = {
        name: _counted(name, check, steps)
        for name, check in Draft202012Validator.VALIDATORS.items()
        if name not in _UNBOUNDED
    }
    types = Draft202012Validator.TYPE_CHECKER
    checker = create(Draft202012Validator.META_SCHEMA, keywords, type_checker=types)
    try:
        Draft202012Validator.check_schema(schema)
        # Without a registry of our own, jsonschema fetches what a reference names.
        faults = checker(schema, registry=Registry()).iter_errors(dict(arguments))
        worst = best_match(islice(faults, MOST_FAULTS))
    except (SchemaError, Unresolvable, RecursionError, OverflowError, _TooManyStepsError):
        return ""
    return "" if worst is None else sentence_of(worst)


class _TooManyStepsError(Exception):
    """Nobody can look at all of it here; the tool will."""


def _counted(name: str, check: Callable[..., Any], steps: Iterator[int]) -> Callable[..., Any]:
    def looked_at(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if next(steps, None) is None:
            raise _TooManyStepsError
        # It would search names with the schema's patterns.
        if name == "additionalProperties" and "patternProperties" in schema:
            return None
        return check(validator, value, instance, schema)

    return looked_at
