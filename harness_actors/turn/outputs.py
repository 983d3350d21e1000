"""The values of runs, as calls hold them; and what is told where looking at one has failed."""

from typing import Any

from harness_actors.errors import error_facts
from harness_actors.messages import ToolCall
from harness_actors.outputs import OutputCodeError, value_of
from harness_actors.outputs.words import OUTPUT
from harness_actors.turn.interruption import is_ctrl_c
from harness_actors.turn.tracebacks import user_traceback


def facts_of(failed: OutputCodeError) -> dict[str, Any]:
    """What is told of code of a user that failed when it looked at a value."""
    error = failed.__cause__ or failed
    if is_ctrl_c(error):
        raise error
    facts = {"reason": "agent_error", **error_facts(error)}
    if traceback := user_traceback(error):
        facts["traceback"] = traceback
    return facts


def value_in(call: ToolCall) -> Any:
    """The value in a `work_complete` that has succeeded."""
    return value_of(call.arguments)[OUTPUT]
