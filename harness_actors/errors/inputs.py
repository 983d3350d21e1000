"""Errors of what a user has given: settings, files, code, workflows, and what tools say."""

from harness_actors.errors.root import HarnessError


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


SETUP_ADVICE = (
    "take another run directory, or the set-up that it was made with; or choose: "
    '--accept-changes (on_change="accept") keeps these and does the rest with what is given now, '
    '--retry-changed (on_change="retry") does these again'
)


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
