"""What code of the user prints in a run: shown at once, or told of at the end."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.log_lines import LogLines

if TYPE_CHECKING:
    from harness_actors.events import RunEvent, TextDelta, TextGap

    Heard = RunEvent | TextDelta | TextGap


class Printed:
    """What is printed in one run that a command shows.

    Args:
        lines: Where to.
        shown: Show it at once.
        whose: What its lines begin with, where several runs are shown.
    """

    def __init__(self, lines: EventLines, *, shown: bool, whose: str = "") -> None:
        self._lines = lines
        self._shown = shown
        self._whose = whose
        self._log: Path | None = None
        self._known = 0
        self._live: LogLines | None = None

    def begin(self, store: Path | None, run_id: str, *, new: bool = True) -> None:
        """The run is known by now, and so where its log is.

        Args:
            store: Its journal; None where nothing is kept.
            run_id: The run.
            new: It has begun in this command; else what it printed before is not shown.
        """
        from harness_actors.stores.logs import log_of

        if store is None:
            return
        self._log = log_of(store, run_id)
        self._known = 0 if new else _size(self._log)
        if self._shown:
            self._live = LogLines(self._log, self._lines, skipped=self._known, whose=self._whose)

    def before(self, item: "Heard") -> None:
        """What a tool has printed is shown before what came of it."""
        from harness_actors.events import RunEvent, ToolReturned

        match item:
            case RunEvent(event=ToolReturned(), path="") if self._live is not None:
                self._live.show_all()

    def after(self, item: "Heard") -> None:
        """What a tool prints is shown after the line that says it begins."""
        from harness_actors.events import RunEvent, ToolCalled

        match item:
            case RunEvent(event=ToolCalled(tool_name=tool), path="") if self._live is not None:
                self._live.begin(tool)

    async def end(self) -> None:
        """The run is over: show what is left."""
        if self._live is not None:
            await self._live.close()

    def tell(self) -> bool:
        """Say where it is, if there is something that was not shown; whether there was."""
        hidden = self._log is not None and not self._shown and _size(self._log) > self._known
        if hidden:
            self._lines.tell(f"your code printed something: {self._log}; -v shows it at once")
        return hidden


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # nothing was printed yet, or somebody has removed it
