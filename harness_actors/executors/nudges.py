"""What a model is told that stopped without saying that it is done."""

NUDGE = (
    "You answered without calling a tool, and `work_complete` has not been called, so the task "
    "still counts as unfinished. Do not repeat what you have said already. Do one of these now:\n"
    "- the task is done: call `work_complete` with a short summary of what came of it;\n"
    "- something is left to do: make the next tool call;\n"
    "- something failed: try another approach."
)
