"""What came of one predicate at one attempt, and how that is said."""

from dataclasses import dataclass, field
from typing import Literal

from harness_actors.contracts.ledger import VALUE_CHARS, Evidence, EvidenceKind
from harness_actors.errors import HarnessError

NEEDS_RUN = "cannot be told without a run"
MODEL_JUDGMENT = "model_judgment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of one predicate at one attempt.

    Attributes:
        verdict: Whether it holds; `unknown` where that could not be told, and then it does not
            count as met, nor does its opposite.
        why: What is there instead, or why it could not be told; empty where it holds.
        evidence: What shows that it holds.
        parts: Those of what it is made of.
        needs_run: It is unknown only because nobody ran.
    """

    verdict: Literal["met", "unmet", "unknown"]
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    parts: "tuple[Finding, ...]" = field(default=())
    needs_run: bool = False


CONFIRMED_BY_MODEL = Finding(
    verdict="met", evidence=(Evidence(kind="response", ref=MODEL_JUDGMENT, value=""),)
)


def met(kind: EvidenceKind, ref: str, value: str) -> Finding:
    """Of one that holds, with what shows it."""
    return Finding(verdict="met", evidence=(Evidence(kind=kind, ref=ref, value=cut(value)),))


def no_workspace() -> Finding:
    """Of one that needs a workspace where there is none."""
    return Finding(verdict="unknown", why="there is no workspace to look into")


def needs_run(what: str) -> Finding:
    """Of one that only a run can tell.

    Args:
        what: What is not known.
    """
    return Finding(verdict="unknown", why=f"{what} {NEEDS_RUN}", needs_run=True)


def failed(what: str, error: Exception) -> Finding:
    """Of one whose look raised an error.

    Args:
        what: What was looked at.
        error: The error.
    """
    told = isinstance(error, HarnessError | OSError)
    problem = str(error) if told else f"{type(error).__name__}: {error}"
    return Finding(verdict="unknown", why=cut(f"{what} could not be looked at: {problem}"))


def cut(text: str) -> str:
    """A text, `VALUE_CHARS` of it at most."""
    return text if len(text) <= VALUE_CHARS else f"{text[: VALUE_CHARS - 1]}…"


def short(text: str) -> str:
    """A text among others in a sentence."""
    return repr(text) if len(text) <= 80 else f"{text[:79]!r}…"


def ending(output: str) -> str:
    """The end of what was printed: what a command says last is what it came to."""
    return output if len(output) <= VALUE_CHARS // 2 else f"…{output[-VALUE_CHARS // 2 :]}"
