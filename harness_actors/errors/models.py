"""Errors of the providers of models, and of what they answer."""

from harness_actors.errors.root import HarnessError


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


class ModelsFailedError(ModelError):
    """No model of a chain answered: several were asked, and the problem is that of each.

    Where one alone was asked, its own error is raised.
    """

    def __str__(self) -> str:
        return f"no model of the chain has answered: {self.problem}"


class SummaryError(HarnessError):
    """A part of a conversation could not be put into few words; it stays as it is shown.

    Attributes:
        summarizer: Name of whoever was to do it.
        problem: What was wrong.
    """

    def __init__(self, summarizer: str, problem: str) -> None:
        super().__init__(summarizer, problem)
        self.summarizer = summarizer
        self.problem = problem

    def __str__(self) -> str:
        return f"summarizer {self.summarizer!r}: {self.problem}"
