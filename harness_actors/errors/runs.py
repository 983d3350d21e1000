"""Errors of those who ask something of a run."""

from harness_actors.errors.root import HarnessError


class RunNotFoundError(HarnessError):
    """No journal here knows this run.

    Attributes:
        run_id: The run that was asked for.
        looked_in: Where it was looked for.
    """

    def __init__(self, run_id: str, looked_in: str) -> None:
        super().__init__(run_id, looked_in)
        self.run_id = run_id
        self.looked_in = looked_in

    def __str__(self) -> str:
        return f"no run {self.run_id!r} in {self.looked_in}"


class AnswerError(HarnessError):
    """An answer to a run was not taken; nothing was changed.

    Attributes:
        run_id: The run.
        problem: Why not.
    """

    def __init__(self, run_id: str, problem: str) -> None:
        super().__init__(run_id, problem)
        self.run_id = run_id
        self.problem = problem

    def __str__(self) -> str:
        return f"run {self.run_id!r} was not answered: {self.problem}"


class RunParkedError(HarnessError):
    """A run was put aside before it ended, so there is no result yet.

    Attributes:
        run_id: The run; `AgentHarness.resume` takes it up.
    """

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return f"run {self.run_id!r} was parked before it ended; resume({self.run_id!r}) goes on"


class ConversationBusyError(HarnessError):
    """A conversation has one run at a time; one harness continues one conversation.

    Whichever harness or command began the run in progress.

    Attributes:
        conversation_id: The conversation.
        waiting: The run of it that waits for its user; empty where one is in progress.
    """

    def __init__(self, conversation_id: str, waiting: str = "") -> None:
        super().__init__(conversation_id, waiting)
        self.conversation_id = conversation_id
        self.waiting = waiting

    def __str__(self) -> str:
        if self.waiting:
            return (
                f"run {self.waiting!r} of conversation {self.conversation_id!r} waits for answers; "
                "answer it and take it up, cancel it, or begin another conversation"
            )
        return (
            f"conversation {self.conversation_id!r} has a run in progress; "
            "await it first, or begin another conversation, in a new AgentHarness"
        )


class ConversationMovedOnError(HarnessError):
    """A cut run would answer what another run of its conversation has said since.

    While that other one is in progress, you get `ConversationBusyError` for runs that have
    not said their task yet.

    Attributes:
        run_id: The run that was to be taken up.
        conversation_id: The conversation of both.
        later_run_id: The first run that spoke after it.
    """

    def __init__(self, run_id: str, conversation_id: str, later_run_id: str) -> None:
        super().__init__(run_id, conversation_id, later_run_id)
        self.run_id = run_id
        self.conversation_id = conversation_id
        self.later_run_id = later_run_id

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} cannot go on where it was cut: run {self.later_run_id!r} has "
            f"continued its conversation {self.conversation_id!r} since; ask again in the "
            "conversation, or start a new run"
        )
