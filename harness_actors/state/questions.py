"""What the entries of a run say of its questions to its user, and of its answers."""

from collections.abc import Mapping
from typing import Any

from harness_actors.state.keys import ANSWERS, ASKED_BELOW, QUESTIONS, WAITING_SINCE


def is_waiting(values: Mapping[str, Any]) -> bool:
    """Whether a run waits for its user, by the entries of its state."""
    return values.get(WAITING_SINCE.name) is not None


def unanswered(values: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The questions, as plain values, to which a run has no answer yet, or one below it."""
    answers = values.get(ANSWERS.name) or {}
    return tuple(question for question in asked_in(values) if question["id"] not in answers)


def asked_in(values: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """What a run has asked, and what those below it have, answered or not, as plain values."""
    own = (values.get(QUESTIONS.name) or {}).get("asked", ())
    below = (values.get(ASKED_BELOW.name) or {}).values()
    return (*own, *(question for asked in below for question in asked or ()))


def expired(values: Mapping[str, Any], now: float) -> dict[str, str]:
    """The answers that count of approvals which nobody has given in time.

    Args:
        values: The entries of a run that waits.
        now: In seconds since the epoch.
    """
    asked = ((question["id"], question.get("call") or {}) for question in unanswered(values))
    return {
        question_id: call["default"]
        for question_id, call in asked
        if call.get("expires_at") is not None and now >= call["expires_at"]
    }


def told_of(question: Mapping[str, Any]) -> dict[str, Any]:
    """A question as it is told to whoever may answer it.

    Args:
        question: As `unanswered` has it.

    Returns:
        Its ``id``, ``text``, ``options`` and ``why``; of a run below the one that is asked about
        also the ``path`` of its agent; of an approval also ``kind``, ``tool``, ``arguments`` as
        JSON and, where it has an end, ``expires_at``.
    """
    told = {name: question[name] for name in ("id", "text", "options", "why")}
    told |= {name: question[name] for name in ("path",) if name in question}
    if (call := question.get("call")) is not None:
        told |= {"kind": "approval", "tool": call["tool"], "arguments": call["arguments"]}
        told |= {name: call[name] for name in ("expires_at",) if call.get(name) is not None}
    return told
