"""Every error this package raises on purpose.

HarnessError
├── ConfigError              a setting is unknown, out of range, or of a room that is not built
├── BadInputError            a tasks file, agent file or path that the caller must correct
│   └── SetupChangedError    a run directory has results of another agent, model or settings
├── AgentCodeError           a part of an agent cannot be sent to another process
├── ModelError               the provider failed; the subclass says what to do next
│   ├── ModelBusyError       ask again later: rate limit, overload, broken connection
│   ├── ContextOverflowError the conversation is larger than the model's window
│   ├── ModelRefusedError    the provider will not answer this conversation
│   ├── ModelAnswerError     an answer past all bounds, or with numbers that cannot be
│   └── ModelSetupError      wrong key, unknown model, dead endpoint: asking again is useless
├── ToolError                a tool failed; its text goes back to the model
├── StoreError               the journal could not be read or written
│   ├── RunFileError         a file of a run directory, beside the journal, failed
│   ├── StaleTermError       a newer coordinator owns the journal
│   └── StoreInUseError      another command works on this store or run directory
├── CellError                the actors of a cell could not be started
├── ActorLostError           a process of the cell died
├── RunNotFoundError         no journal here knows this run
├── AnswerError              an answer to a run was not taken
├── RunParkedError           a run was put aside before it ended
├── ConversationBusyError    one harness was asked for two runs at once
├── ConversationMovedOnError another run has continued the conversation of a cut one
└── WorkflowError            a workflow graph that cannot run
"""

from typing import Any


class HarnessError(Exception):
    """The root of all errors that this package raises on purpose.

    Every subclass takes positional arguments and hands exactly these to
    `Exception`: unpickling calls the class with `args`, and errors travel
    between processes.
    """


class ConfigError(HarnessError):
    """A setting that cannot be used.

    Attributes:
        field: Dotted name of the setting, as the caller writes it.
        problem: What is wrong with it and what was expected.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


AND_MORE = "and more after these"
"""The last of faults that are more than are told."""


class BadInputError(HarnessError):
    """Input that the caller must correct before anything can run.

    Attributes:
        source: The file or argument at fault.
        faults: One sentence per fault, in the order of the input.
    """

    def __init__(self, source: str, faults: tuple[str, ...]) -> None:
        super().__init__(source, faults)
        self.source = source
        self.faults = faults

    def __str__(self) -> str:
        if len(self.faults) == 1:
            return f"{self.source}: {self.faults[0]}"
        told = len(self.faults)
        count = f"more than {told - 1}" if self.faults[-1] == AND_MORE else str(told)
        return "\n".join((f"{self.source}: {count} faults", *self.faults))


class SetupChangedError(BadInputError):
    """Results or unfinished runs of a run directory were made with another set-up.

    Nothing was run. A directory that holds no batch at all, or one that another command works
    on, is a `BadInputError` of its own or a `StoreInUseError`.

    Attributes:
        source: The run directory.
        faults: What was made with which set-up, and in what that of now differs.
    """

    def __str__(self) -> str:
        return "\n".join((f"{self.source}: made with another set-up", *self.faults, SETUP_ADVICE))


SETUP_ADVICE = (
    "take another run directory, or the set-up that it was made with; or choose: "
    '--accept-changes (on_change="accept") keeps these and does the rest with what is given now, '
    '--retry-changed (on_change="retry") does these again'
)


class AgentCodeError(HarnessError):
    """A part of an agent cannot be sent to another process.

    Attributes:
        part: Which part, for example ``tool 'refund'``.
        reason: What the pickler said.
    """

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(part, reason)
        self.part = part
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.part} cannot be pickled, so it cannot reach the actors ({self.reason}); "
            "open connections, locks and files inside the tool when it is called"
        )


class ModelError(HarnessError):
    """The provider failed.

    Attributes:
        model: Name of the model that was asked.
        problem: What the provider or the connection said, shortened.
        status: HTTP status, or None where no answer came.
    """

    retryable = False

    def __init__(self, model: str, problem: str, status: int | None = None) -> None:
        super().__init__(model, problem, status)
        self.model = model
        self.problem = problem
        self.status = status

    def __str__(self) -> str:
        status = "" if self.status is None else f" (HTTP {self.status})"
        return f"model {self.model!r}{status}: {self.problem}"


class ModelBusyError(ModelError):
    """The provider may answer if asked again: rate limit, overload, cut connection.

    Attributes:
        retry_after_s: How long the provider asked to wait, in seconds, or None.
    """

    retryable = True

    def __init__(
        self,
        model: str,
        problem: str,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(model, problem, status)
        self.args = (model, problem, status, retry_after_s)
        self.retry_after_s = retry_after_s


class ContextOverflowError(ModelError):
    """The request is larger than the model's context window."""


class ModelRefusedError(ModelError):
    """The provider will not answer this conversation (content filter, policy)."""


class ModelAnswerError(ModelError):
    """An answer that cannot be taken: too large, too many calls, numbers that no call has.

    It is not asked for again: whoever sent it would send it again. Bytes that are no answer
    at all are a `ModelBusyError`.
    """


class ModelSetupError(ModelError):
    """Asking again is useless: wrong key, unknown model, dead endpoint, bad request."""


class ToolError(HarnessError):
    """A tool failed in a way the model can act on; the text goes back to it.

    Raise it inside a tool to answer the model with an error of your own words.
    Any other exception is answered with its type and text.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


class StoreError(HarnessError):
    """The journal could not be read or written.

    Attributes:
        path: The journal's file.
        problem: The cause, and what to do about it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"journal {self.path!r}: {self.problem}"


class RunFileError(StoreError):
    """A file that a run directory keeps beside its journal could not be read or written.

    One that is none of ours, or cannot be read before anything runs, is a `BadInputError`.
    """

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class StaleTermError(StoreError):
    """A newer coordinator owns the journal; what this one sends is refused."""


class StoreInUseError(StoreError):
    """Another command works on this store or run directory."""


class CellError(HarnessError):
    """The actors of a cell could not be started.

    Attributes:
        what: Which part of the cell.
        problem: What was waited for, for how long, and the likely cause.
    """

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what = what
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.what}: {self.problem}"


class ActorLostError(HarnessError):
    """A process of the cell died; its runs go to repair, or on at the next command.

    Attributes:
        actor: Which actor.
        problem: What is known of its death.
    """

    def __init__(self, actor: str, problem: str) -> None:
        super().__init__(actor, problem)
        self.actor = actor
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.actor} was lost: {self.problem}"


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


class WorkflowError(HarnessError):
    """A workflow graph that cannot run.

    Attributes:
        node: The executor at fault.
        problem: What is wrong with it.
    """

    def __init__(self, node: str, problem: str) -> None:
        super().__init__(node, problem)
        self.node = node
        self.problem = problem

    def __str__(self) -> str:
        return f"executor {self.node!r}: {self.problem}"


def error_facts(error: BaseException) -> dict[str, Any]:
    """What a result or an event says of an error: its type and one line of text."""
    text = str(error).strip() or type(error).__name__
    return {"type": type(error).__name__, "message": text[:2000]}
