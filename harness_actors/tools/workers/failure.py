"""What a tool raised in a worker process, as it is told where it was called."""

from harness_actors.errors import ToolError


class WorkerToolError(ToolError):
    """A tool failed in a worker process.

    Attributes:
        text: What the model is told.
        traceback: Where in the user's code; empty where that had no part in it.
    """

    def __init__(self, text: str, traceback: str) -> None:
        super().__init__(text)
        self.args = (text, traceback)
        self.traceback = traceback
