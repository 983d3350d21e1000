"""What a run is told of a child of it that has ended."""

from collections.abc import Mapping
from typing import Any

from harness_actors.messages import encode_json
from harness_actors.records import ParentLink, child_handle
from harness_actors.results import HarnessResult
from harness_actors.state import CHANGED_FILES, ChildResult, ChildStatus

MOST_CHARS = 100_000
"""Of what a child says: it is held in the state of the run that waits for it."""
_CUT = "\n[… cut: {left:,} of {chars:,} characters left out …]\n"
_CUT_WORDS = "\n[Cut to {most} of {words} words.]"
_ENDED = "{agent} ended {how}: {why}"
_SAID = "\nIts last words:\n{text}"
_COPY = "\n\n[{handle} has worked in a copy of your workspace{what}]"
_UNCHANGED = ", and has changed no file there."
_SEE = " See how with agent_changes, and bring it into your workspace with agent_apply."
_CHANGED = f" and changed {{files}} there: {{names}}{{more}}.{_SEE}"
_UNSEEN = f", and did not come to say what it has changed.{_SEE}"


def status_of(result: HarnessResult) -> ChildStatus:
    """How a child has ended, for the one that waits for it."""
    kind = result.reason.kind
    match result.status:
        case "done":
            return "completed"
        case "cancelled":
            return "cancelled"
        case "limit" if kind in ("time", "working_time"):
            return "timed_out"
        case "failed" if kind in ("executor_lost", "node_lost"):
            return "lost"
    return "failed"


def child_result(link: ParentLink, result: HarnessResult, values: Mapping[str, Any]) -> ChildResult:
    """What the run is told that waits for a child.

    Args:
        link: Where the child stands.
        result: How it ended.
        values: The entries of its state.
    """
    status, said = status_of(result), _within(result.output_text.strip(), link.most_words)
    if status == "completed" and not _is_held(link, result):
        status = "failed"
    elif status == "completed" and link.typed:
        said = encode_json(result.output).decode()
    if status != "completed":
        agent, kind = link.agent.rpartition("/")[2], f"{result.status}({result.reason.kind})"
        why = result.reason.message or "no details"
        said = _ENDED.format(agent=agent, how=kind, why=why) + (
            _SAID.format(text=said) if said else ""
        )
    text = _bounded(said)
    if link.copied and not _has_done_nothing(result):
        handle = child_handle(result.run_id, link.agent)
        text += _COPY.format(handle=handle, what=_changed(values.get(CHANGED_FILES.name)))
    return ChildResult(call_id=link.call_id, run_id=result.run_id, status=status, text=text)


def _changed(found: Mapping[str, Any] | None) -> str:
    """What a child has changed in its copy."""
    if found is None:
        return _UNSEEN
    count, names = found["count"], found["paths"]
    if not count:
        return _UNCHANGED
    more = f" and {count - len(names):,} more" if count > len(names) else ""
    files = "1 file" if count == 1 else f"{count:,} files"
    return _CHANGED.format(files=files, names=", ".join(names), more=more)


def _has_done_nothing(result: HarnessResult) -> bool:
    """It failed before its model had said anything, as one does that cannot have its copy."""
    return result.status == "failed" and not result.usage.model_calls


def _is_held(link: ParentLink, result: HarnessResult) -> bool:
    """Whether a run that is done has come to all that it was held to."""
    return result.ok and (result.completion_verified or not link.typed)


def words_in(text: str) -> int:
    """How many words a text has."""
    return len(text.split())


def _within(text: str, most_words: int | None) -> str:
    """A text of so many words at most, with a word about it where some were left out."""
    if most_words is None or (words := words_in(text)) <= most_words:
        return text
    at, left = 0, most_words
    # By hand: what stands between words stays as it is.
    for word in text.split()[:left]:
        at = text.index(word, at) + len(word)
    return text[:at] + _CUT_WORDS.format(most=most_words, words=words)


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARS:
        return text
    half = (MOST_CHARS - len(_CUT) - 20) // 2
    left = len(text) - 2 * half
    return text[:half] + _CUT.format(left=left, chars=len(text)) + text[-half:]
