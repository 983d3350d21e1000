"""What people and scripts see of a batch while it works, and at its end."""

import json
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import IO, Any, Protocol

from harness_actors.batch.outcomes import TaskOutcome, encode_outcome
from harness_actors.batch.tally import Tally
from harness_actors.messages import encode_json

PLAIN_EVERY_S = 10.0
PACE_OVER_S = 10.0

ENDINGS: Mapping[str, str] = {
    "complete": "all tasks have ended",
    "budget": "the budget is spent; the same command with a larger one goes on",
    "failures": "too many tasks failed; the same command goes on with the others",
    "interrupted": "interrupted: what finished is kept; the same command goes on",
    "parked": "runs were put aside, see `harness doctor`; the same command goes on",
    "error": "stopped by an error; the same command goes on",
}

UNLISTED: Mapping[str, str] = {"unfinished": "", "unlisted": " that ended without a line"}
"""Runs that the results do not tell of, as the summary names them, and what they are."""


class Display(Protocol):
    """Shows a batch to somebody."""

    def note(self, text: str) -> None:
        """Something to be told now, such as what is waited for."""
        ...

    def outcome(self, outcome: TaskOutcome) -> None: ...

    def tick(self) -> None:
        """Called about twice a second."""
        ...

    def close(self, summary: Mapping[str, Any], results: str | None) -> None:
        """The end: the summary, empty if there is none, and where the results are, if any."""
        ...


def make_display(tally: Tally, *, as_json: bool, out: IO[str] | None = None) -> Display:
    """The display for wherever stdout leads: a terminal, a log, or a script."""
    stream = sys.stdout if out is None else out
    if as_json:
        return JsonDisplay(stream)
    if stream.isatty():
        from harness_actors.batch.live import LiveDisplay

        return LiveDisplay(tally)
    return PlainDisplay(tally, stream)


class JsonDisplay:
    """Each outcome as a line of JSON, the summary last, and nothing else on stdout."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def outcome(self, outcome: TaskOutcome) -> None:
        print(encode_json(encode_outcome(outcome)).decode(), file=self._out, flush=True)

    def tick(self) -> None:
        pass

    def close(self, summary: Mapping[str, Any], results: str | None) -> None:
        if summary:
            print(json.dumps({"summary": summary, "results": results}), file=self._out, flush=True)


class PlainDisplay:
    """Lines for a log: one every ten seconds, and the table at the end."""

    def __init__(self, tally: Tally, out: IO[str], *, every_s: float = PLAIN_EVERY_S) -> None:
        self._tally = tally
        self._out = out
        self._every_s = every_s
        self._pace = Pace(tally)
        self._last = time.monotonic()

    def note(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def outcome(self, outcome: TaskOutcome) -> None:
        pass

    def tick(self) -> None:
        self._pace.tick()
        if time.monotonic() - self._last >= self._every_s:
            self._last = time.monotonic()
            self.note(figures(self._tally, self._pace.rounds_per_s))

    def close(self, summary: Mapping[str, Any], results: str | None) -> None:
        if summary:
            self.note(figures(self._tally, self._tally.rounds / self._tally.wall_s))
            for name, value in final_rows(summary, results):
                self.note(f"{name:<10} {value}")


class Pace:
    """Rounds per second, over the last ten seconds."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._seen: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def tick(self) -> None:
        now = time.monotonic()
        self._seen.append((now, self._tally.rounds))
        while len(self._seen) > 2 and now - self._seen[0][0] > PACE_OVER_S:
            self._seen.popleft()

    @property
    def rounds_per_s(self) -> float:
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) / (ended - began) if ended > began else 0.0


def figures(tally: Tally, rounds_per_s: float) -> str:
    """The state of a batch in one line."""
    total = "?" if tally.total is None else tally.total
    parts = [
        f"{tally.done}/{total} done",
        f"{tally.running} running",
        f"{tally.failed} failed",
        f"{rounds_per_s:.1f} rounds/s",
        f"{short_count(tally.tokens)} tokens",
        f"${tally.cost_usd:.2f}",
    ]
    if tally.eta_s:
        parts.append(f"{short_time(tally.eta_s)} left")
    return ", ".join(parts)


def final_rows(summary: Mapping[str, Any], results: str | None) -> list[tuple[str, str]]:
    """The table at the end: names with their values."""
    usage, command, checks = summary["usage"], summary["command"], summary["checks"]
    rows = [("ending", ENDINGS[summary["ending"]])]
    rows += [(name, str(count)) for name, count in sorted(summary["reasons"].items())]
    if any(checks.values()):
        rows.append(("checks", f"{checks['passed']} passed, {checks['failed']} failed"))
    if command["not_ended"]:
        rows.append(("not ended", str(command["not_ended"])))
    tokens = f"{usage.get('input_tokens', 0):,} in, {usage.get('output_tokens', 0):,} out"
    rows += [
        ("tokens", f"{tokens}, {usage.get('cached_tokens', 0):,} cached"),
        ("cost", f"${usage['cost_usd']:.4f}"),
        *_unlisted_rows(summary),
        ("time", short_time(command["wall_s"])),
    ]
    if results is not None:
        rows.append(("results", results))
    return rows


def _unlisted_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How much of tokens and cost is of runs that the results do not tell of."""
    if summary["unfinished"] is None:
        return [("unfinished", "runs are not counted in these: their journal cannot be read")]
    rows = []
    for name, what in UNLISTED.items():
        runs, usage = summary[name]["runs"], summary[name]["usage"]
        tokens = usage["input_tokens"] + usage["output_tokens"]
        if tokens or usage["cost_usd"]:
            noun = "run" if runs == 1 else "runs"
            used = f"{tokens:,} of the tokens and ${usage['cost_usd']:.4f} of the cost"
            rows.append((name, f"{runs} {noun}{what}: {used}"))
    return rows


def short_count(count: int) -> str:
    """A count in few characters.

    >>> [short_count(n) for n in (950, 12_300, 4_560_000)]
    ['950', '12.3k', '4.6M']
    """
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def short_time(seconds: float) -> str:
    """A duration in few characters.

    >>> [short_time(s) for s in (4.2, 65, 7300)]
    ['4.2 s', '1 min 5 s', '2 h 1 min']
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
