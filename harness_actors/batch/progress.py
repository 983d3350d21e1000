"""What people and scripts see of a batch while it works, and at its end."""

import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import IO, Any, Protocol

from harness_actors.batch.outcomes import TaskOutcome, Verdict, encode_outcome
from harness_actors.batch.table import final_rows
from harness_actors.batch.tally import Tally
from harness_actors.batch.words import cost_among_others, short_count, short_time
from harness_actors.messages import encode_json
from harness_actors.printing.plain import escaped, json_line, say

PLAIN_EVERY_S = 10.0
PACE_OVER_S = 10.0

ENDED: Mapping[Verdict, str] = {
    "ok": "ok",
    "failed": "failed",
    "check failed": "failed their check",
    "contract unmet": "short of their contract",
    "limit": "at a limit",
    "stalled": "stalled",
    "cancelled": "cancelled",
}
"""How a line of progress says what became of tasks."""

ALWAYS_TOLD = ("ok", "failed")


class Display(Protocol):
    """Shows a batch to somebody."""

    def note(self, text: str) -> None:
        """Something to be told now, such as what is waited for."""
        ...

    def outcome(self, outcome: TaskOutcome) -> None: ...

    def tick(self) -> None:
        """Called about twice a second."""
        ...

    def close(
        self, summary: Mapping[str, Any], results: str | None, run_dir: str | None = None
    ) -> None:
        """The end: the summary, empty if there is none; where the results are, if any; and where
        commands find the runs, if that must be said."""
        ...


def make_display(tally: Tally, *, as_json: bool, out: IO[str] | None = None) -> Display:
    """The display for wherever stdout leads: a terminal, a log, or a script.

    For a script, stderr has the progress: kept in place on a terminal that stdout does not
    lead to as well, and else a line now and then, as in a log.
    """
    stream = sys.stdout if out is None else out
    if as_json:
        return JsonDisplay(stream, _beside(tally, stream))
    if stream.isatty():
        from harness_actors.batch.live import LiveDisplay

        return LiveDisplay(tally)
    return PlainDisplay(tally, stream)


def _beside(tally: Tally, stdout: IO[str]) -> Display:
    if stdout.isatty() or not sys.stderr.isatty():
        return PlainDisplay(tally, sys.stderr)
    from harness_actors.batch.live import LiveDisplay
    from harness_actors.printing.console import PlainConsole

    return LiveDisplay(tally, PlainConsole(stderr=True))


class JsonDisplay:
    """Each outcome as a line of JSON, the summary last, and nothing else on stdout.

    Args:
        out: Where they go.
        beside: Shows the progress elsewhere.
    """

    def __init__(self, out: IO[str], beside: Display) -> None:
        self._out = out
        self._beside = beside

    def note(self, text: str) -> None:
        self._beside.note(text)

    def outcome(self, outcome: TaskOutcome) -> None:
        say(escaped(encode_json(encode_outcome(outcome)).decode()), self._out)
        self._beside.outcome(outcome)

    def tick(self) -> None:
        self._beside.tick()

    def close(
        self, summary: Mapping[str, Any], results: str | None, run_dir: str | None = None
    ) -> None:
        # The table would say once more what the summary does.
        self._beside.close({}, None)
        if summary:
            say(json_line({"summary": summary, "results": results}), self._out)


class PlainDisplay:
    """Lines for a log: one every ten seconds, and the table at the end."""

    def __init__(self, tally: Tally, out: IO[str], *, every_s: float = PLAIN_EVERY_S) -> None:
        self._tally = tally
        self._out = out
        self._every_s = every_s
        self._pace = Pace(tally)
        self._last = time.monotonic()

    def note(self, text: str) -> None:
        say(text, self._out)

    def outcome(self, outcome: TaskOutcome) -> None:
        pass

    def tick(self) -> None:
        self._pace.tick()
        if time.monotonic() - self._last >= self._every_s:
            self._last = time.monotonic()
            self.note(figures(self._tally, self._pace.rounds_per_s))

    def close(
        self, summary: Mapping[str, Any], results: str | None, run_dir: str | None = None
    ) -> None:
        if summary:
            self.note(figures(self._tally, self._tally.rounds / self._tally.wall_s))
            rows = final_rows(summary, results, run_dir)
            width = max(len(name) for name, _ in rows)
            for name, value in rows:
                self.note(f"{name:<{width}}  {value}")


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
    ended = ", ".join(
        f"{tally.verdicts[verdict]} {words}"
        for verdict, words in ENDED.items()
        if verdict in ALWAYS_TOLD or tally.verdicts[verdict]
    )
    parts = [
        f"{tally.done}/{total} done ({ended})",
        f"{tally.running} running",
        *([f"{tally.checking} checking"] if tally.has_checks else []),
        *([f"{tally.waiting} waiting"] if tally.waiting else []),
        f"{rounds_per_s:.1f} rounds/s",
        f"{short_count(tally.tokens)} tokens",
        cost_among_others(tally.cost_usd, digits=2),
    ]
    if tally.eta_s and (tally.running or tally.checking):
        parts.append(f"{short_time(tally.eta_s)} left")
    return ", ".join(parts)
