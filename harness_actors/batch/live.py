"""The batch on a terminal: a bar with its figures, kept in place."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from harness_actors.batch.causes import cause_of, ending_of
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.progress import Pace, figures
from harness_actors.batch.table import final_rows
from harness_actors.batch.tally import Tally
from harness_actors.printing.console import PlainConsole
from harness_actors.printing.plain import one_line

GOOD, BAD = "green", "red"


class LiveDisplay:
    """Redraws two lines, and prints notes and failures above them."""

    def __init__(self, tally: Tally, console: Console | None = None) -> None:
        self._tally = tally
        self._pace = Pace(tally)
        self._console = console or PlainConsole()
        self._live = Live(
            self._drawn(),
            console=self._console,
            auto_refresh=False,
            # What a script is to read stays on stdout.
            redirect_stdout=not self._console.stderr,
        )
        self._live.start()

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)
        self._draw()

    def outcome(self, outcome: TaskOutcome) -> None:
        if not outcome.ok:
            self.note(f"{one_line(outcome.id)}: {describe(outcome)}")

    def tick(self) -> None:
        self._pace.tick()
        self._draw()

    def close(
        self, summary: Mapping[str, Any], results: str | None, run_dir: str | None = None
    ) -> None:
        self._draw()
        self._live.stop()
        if not summary:
            return
        table = Table(show_header=False, box=None)
        for name, value in final_rows(summary, results, run_dir):
            table.add_row(
                escape(name), escape(value), style=None if name != "ending" else _colour(summary)
            )
        self._console.print(table)

    def _draw(self) -> None:
        self._live.update(self._drawn(), refresh=True)

    def _drawn(self) -> Table:
        tally = self._tally
        drawn = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=tally.total or None, completed=tally.done, width=40)
        drawn.add_row(bar)
        drawn.add_row(figures(tally, self._pace.rounds_per_s))
        return drawn


def describe(outcome: TaskOutcome) -> str:
    """Why a task did not end well, in one line."""
    return f"{ending_of(outcome)} {cause_of(outcome)}".strip()


def _colour(summary: Mapping[str, Any]) -> str:
    all_ok = summary["verdicts"].get("ok", 0) == summary["tasks"]
    return GOOD if all_ok and summary["ending"] == "complete" else BAD
