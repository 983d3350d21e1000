"""`compact_conversation`: how a model asks for a summary of what it need not see in full."""

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.function import tool

MOST_KEEP_CHARS = 2_000


@tool(effect="read_only", volatile=True)
async def compact_conversation(context: ToolContext, keep: str = "") -> str:
    """Have the older part of this conversation put into a summary that you are shown in its place.

    Call it when a piece of work is done whose details you need no longer. It is made while you go
    on, and every message can still be read with read_artifact.

    Args:
        keep: What the summary must have, in a sentence or two; left out, what seems to matter.
    """
    if len(keep) > MOST_KEEP_CHARS:
        raise ToolError(f"keep has more than {MOST_KEEP_CHARS:,} characters; be brief")
    if not context.want_summary(keep.strip()):
        raise ToolError("The conversations of this agent are not summarized.")
    return "It is being summarized. Go on; you will be shown the summary once it is made."
