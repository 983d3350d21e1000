"""`ToolUsage`: how often each tool was called."""


class ToolUsage:
    """Middleware that has the calls of each tool counted.

    The counts are a part of the run, so they outlive processes: they are told by an event
    `tool_usage` at the end of each turn, and to `agent_stop` hooks.
    """

    counts_tools = True
