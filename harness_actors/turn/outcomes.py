"""What comes of a call: a closed set of values, each with what its result message needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness_actors.messages import NO_FACTS, Failure, MessageFacts
from harness_actors.ports import ToolOutput
from harness_actors.results import LimitKind
from harness_actors.turn.texts import PART_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What all of them have.

    Attributes:
        text: For the model; valid Unicode and bounded. What a tool said is whole where long
            results are kept, until `keep_large` has seen it.
    """

    text: str

    @property
    def failure(self) -> Failure | None:
        """Why it is no success; None where it is one."""
        return None

    @property
    def limit(self) -> LimitKind | None:
        """The bound of the run that stopped it, or did not let it begin; None where none did."""
        return None

    @property
    def images(self) -> tuple[str, ...]:
        """Images that belong to it, as URLs."""
        return ()

    @property
    def image_tokens(self) -> int:
        """What they add to a request."""
        return 0

    @property
    def is_error(self) -> bool:
        """Whether it failed, or did not run."""
        return self.failure is not None

    @property
    def ran(self) -> bool:
        """Whether it is one of the calls that a run may make."""
        return self.failure not in ("refused", "unknown")

    @property
    def facts(self) -> MessageFacts:
        """What is told with its message."""
        return NO_FACTS if self.limit is None else MessageFacts(limit=self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Success(_Outcome):
    """What those have that are no failure.

    Attributes:
        output: Images that belong to it, and how often it was tried; None for none, and once.
    """

    output: ToolOutput | None = None

    @property
    def images(self) -> tuple[str, ...]:
        return () if self.output is None else self.output.images

    @property
    def image_tokens(self) -> int:
        return 0 if self.output is None else self.output.image_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionResult(_Success):
    """The tool did what it was asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolArtifactReference(_Success):
    """It did, and said so much that it is kept elsewhere; the text says what and where.

    Attributes:
        artifact_id: What it is kept under.
        size_chars: Characters of the whole.
    """

    artifact_id: str
    size_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure(_Outcome):
    """The tool raised, or returned what nobody can use.

    Attributes:
        traceback: Where it failed in code of a user, for that one; empty elsewhere.
        ends: Facts of the error by which the run ends; None where the model goes on with it.
    """

    traceback: str = ""
    ends: Mapping[str, Any] | None = None

    @property
    def failure(self) -> Failure:
        return "failed"

    @property
    def facts(self) -> MessageFacts:
        return MessageFacts(traceback=self.traceback)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTimeout(_Outcome):
    """It was stopped, for its own time or that of its run was over.

    Attributes:
        by: The bound of the run that stopped it; None where its own did.
    """

    by: LimitKind | None = None

    @property
    def failure(self) -> Failure:
        return "timed_out"

    @property
    def limit(self) -> LimitKind | None:
        return self.by


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDenied(_Outcome):
    """It was not run, or nobody knows whether it was.

    Attributes:
        how: Not made; not wanted by its user, or whoever stands in; or cut off before it could
            report.
        by: The bound of the run that did not let it begin; None where none did.
    """

    how: Literal["refused", "denied", "unknown"] = "refused"
    by: LimitKind | None = None

    @property
    def failure(self) -> Failure:
        return self.how

    @property
    def limit(self) -> LimitKind | None:
        return self.by


ToolOutcome = ToolExecutionResult | ToolTimeout | ToolFailure | ToolDenied | ToolArtifactReference
"""What may come of a call."""


def outcome_of(
    text: str,
    failure: Failure | None,
    limit: LimitKind | None = None,
    *,
    images: tuple[str, ...] = (),
) -> ToolOutcome:
    """The outcome that a result message tells of.

    Args:
        text: What it says.
        failure: How the call failed; None where it did not.
        limit: The bound of the run that had to do with it; None where none had.
        images: Images that belong to it.
    """
    match failure:
        case None if images:
            tokens = PART_TOKENS * len(images)
            output = ToolOutput(text, images=images, image_tokens=tokens)
            return ToolExecutionResult(text=text, output=output)
        case None:
            return ToolExecutionResult(text=text)
        case "failed":
            return ToolFailure(text=text)
        case "timed_out":
            return ToolTimeout(text=text, by=limit)
        case "refused" | "denied" | "unknown":
            return ToolDenied(text=text, how=failure, by=limit)
