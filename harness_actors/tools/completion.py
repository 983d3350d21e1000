"""`work_complete`: how a model says that it is done."""

from harness_actors.errors import ToolError
from harness_actors.tools.function import tool


# `async`, though it awaits nothing: it is too short for a thread.
@tool(effect="read_only")
async def work_complete(summary: str) -> str:
    """Say that the whole task is done. Call this last, and only when nothing is left to do.

    Args:
        summary: What was done and how it was checked, in a few sentences.
    """
    return f"Work recorded as complete: {_checked(summary)}"


# Where others have a say in whether the run is over; to a model it is the same tool.
@tool(effect="read_only", name="work_complete")
async def work_complete_to_check(summary: str) -> str:
    """Say that the whole task is done. Call this last, and only when nothing is left to do.

    Args:
        summary: What was done and how it was checked, in a few sentences.
    """
    _checked(summary)
    return "Noted; it is being checked."


def _checked(summary: str) -> str:
    if not summary.strip():
        raise ToolError("summary is empty; say in a few sentences what was done")
    return summary.strip()
