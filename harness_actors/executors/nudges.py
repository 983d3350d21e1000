"""What a model is told that stopped, and is not to stop yet."""

from collections.abc import Mapping

from harness_actors.config import Completion

NUDGE = (
    "You answered without calling a tool, and `work_complete` has not been called, so the task "
    "still counts as unfinished. Do not repeat what you have said already. Do one of these now:\n"
    "- the task is done: call `work_complete` with a short summary of what came of it;\n"
    "- something is left to do: make the next tool call;\n"
    "- something failed: try another approach."
)
NOT_ACCEPTED = "The task does not count as done yet:\n{reasons}\nSee to that, then {again}."
AGAIN: Mapping[Completion, str] = {
    "explicit": "call `work_complete` again",
    "answer": "answer again",
}
