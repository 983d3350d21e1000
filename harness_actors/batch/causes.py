"""Why tasks did not end well, counted: causes that differ only in an id or a number are one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness_actors.batch.outcomes import TaskOutcome

CHECK_FAILED = "check failed"
"""The ending of a task whose run ended `done` and whose check did not pass."""

CAUSE_CHARS = 200
MOST_CAUSES = 20
"""Causes in a summary, at most; a table shows fewer."""

_ID = r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{8,}\b"
_LONG_NUMBER = r"(?<![:.\d])\b\d{4,}\b"
_QUANTITY = r"\b\d+(?:\.\d+)?(?= ?(?:ms|s|sec|seconds?|minutes?|tokens?|bytes|USD|attempts?)\b)"
_VARYING = re.compile(f"{_ID}|{_LONG_NUMBER}|{_QUANTITY}")


@dataclass(slots=True)
class _Cause:
    tasks: int = 0
    texts: set[str] = field(default_factory=set)


class Causes:
    """The causes of outcomes that are not ok.

    >>> causes = Causes()
    >>> causes.as_list()
    []
    """

    def __init__(self, outcomes: Iterable[TaskOutcome] = ()) -> None:
        self._found: dict[tuple[str, str], _Cause] = {}
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: TaskOutcome) -> None:
        if outcome.ok:
            return
        text = cause_of(outcome)
        cause = self._found.setdefault((ending_of(outcome), normalised(text)), _Cause())
        cause.tasks += 1
        # Two tell that they differ.
        if len(cause.texts) < 2:
            cause.texts.add(text)

    def as_list(self) -> list[dict[str, Any]]:
        """The most frequent ones first, as plain values for `summary.json`."""
        found = sorted(self._found.items(), key=lambda item: -item[1].tasks)
        return [
            {
                "ending": ending,
                "cause": next(iter(cause.texts)) if len(cause.texts) == 1 else common,
                "tasks": cause.tasks,
            }
            for (ending, common), cause in found[:MOST_CAUSES]
        ]


def ending_of(outcome: TaskOutcome) -> str:
    """How a task ended, as the reasons of a summary say it, or that its check did not pass."""
    if outcome.verdict == CHECK_FAILED:
        return CHECK_FAILED
    return f"{outcome.status}({outcome.reason.kind})"


def cause_of(outcome: TaskOutcome) -> str:
    """Why a task did not end well, in one line; empty where nothing was said."""
    if outcome.check is not None and outcome.verdict == CHECK_FAILED:
        code, said = outcome.check.exit_code, _line(outcome.check.output, last=True)
        how = "not finished" if code is None else f"exit {code}"
        return f"{how}: {said}" if said else how
    if outcome.questions:
        first, *others = outcome.questions
        more = f" (and {len(others)} more)" if others else ""
        whose = f" for {first.path}" if first.path else ""
        return f"run {outcome.run_id} asks{whose}: {short_question(first.text)}{more}"
    contract = outcome.contract
    by_contract = outcome.verdict == "contract unmet" or outcome.reason.kind == "blocked"
    if contract is not None and not contract.satisfied and by_contract:
        for missing in contract.unmet[:1]:
            left = len(contract.unmet) - 1
            told = f" (and {left} more)" if left else ""
            return _line(f"{missing.id}: {missing.description}: {missing.why}{told}")
    error = outcome.error or {}
    return _line(str(error.get("message") or outcome.reason.message))


def normalised(text: str) -> str:
    """A cause without what differs from task to task.

    >>> normalised("HTTP 429: limit of 30000 tokens, retry in 1.26s (req_8f31ab02c)")
    'HTTP 429: limit of … tokens, retry in …s (…)'
    >>> normalised("cannot connect to http://127.0.0.1:18080/v1")
    'cannot connect to http://127.0.0.1:18080/v1'
    """
    return _VARYING.sub("…", text)


def short_question(text: str) -> str:
    """A question in one line, without the end of a long one."""
    return _line(" ".join(text.split()))


def _line(text: str, *, last: bool = False) -> str:
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    line = " ".join(lines[-1 if last else 0].split()) if lines else ""
    return line if len(line) <= CAUSE_CHARS else _cut(line[: CAUSE_CHARS - 1])


def _cut(line: str) -> str:
    """A line after which more was said, without what was only begun, such as an advice."""
    for end in ("; ", ". ", " "):
        if (at := line.rfind(end)) > CAUSE_CHARS // 2:
            return f"{line[:at]}…"
    return f"{line}…"
