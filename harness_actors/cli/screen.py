"""What a run looks like to whoever gave the command: a person, or a script."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol

from harness_actors.cli.ctl.events import as_plain
from harness_actors.cli.event_lines import EventLines
from harness_actors.events import (
    AgentResponse,
    Event,
    InputAwaited,
    RunEvent,
    TextDelta,
    TextGap,
    encode_event,
)
from harness_actors.printing.plain import json_line, printable, say
from harness_actors.results import HarnessResult, encode_result

Shown = RunEvent | TextDelta | TextGap


class Screen(Protocol):
    """Shows runs, one after the other.

    Attributes:
        wants_text: All that happens is of use here: also what is not on disk yet, the text of
            answers while the model says it and calls whose tools begin, and what runs do that the
            shown one has begun.
        lines: Where notes for a person go.
    """

    wants_text: bool
    lines: EventLines

    def show(self, item: Shown) -> None: ...

    def end(self, result: HarnessResult) -> None:
        """A run is over."""

    def cut(self) -> None:
        """Nothing more comes of the run that is being shown."""


class JsonLines:
    """A JSON object a line on stdout: events, pieces of text, and results.

    Each has a ``type``; that of a result is ``result``.
    """

    wants_text = True

    def __init__(self, lines: EventLines) -> None:
        self.lines = lines

    def show(self, item: Shown) -> None:
        self._print(as_plain(item) if isinstance(item, RunEvent) else encode_event(item))

    def end(self, result: HarnessResult) -> None:
        self._print({"type": "result", **encode_result(result)})

    def cut(self) -> None:
        """Its events have told."""

    def _print(self, plain: Mapping[str, Any]) -> None:
        say(json_line(plain))


class JsonResult:
    """The result as a JSON object on stdout, and nothing before it."""

    wants_text = False

    def __init__(self, lines: EventLines) -> None:
        self.lines = lines

    def show(self, item: Shown) -> None:
        """Whoever asks for no more than the result waits for it."""

    def end(self, result: HarnessResult) -> None:
        say(json_line(encode_result(result)))

    def cut(self) -> None:
        """There is no result."""


@dataclass(eq=False)
class Terminal:
    """Answers on stdout, and all the rest on stderr.

    Where stdout is a terminal an answer is written as the model says it, else in one piece,
    when it is final: what reads it is a program.

    Args:
        lines: What happens, line by line.
        of_interest: Of which events a line is shown; None for all.
        ending: Tell how each run ended, and not only of those that did not end well; a run that
            asks has not ended.
        live: Write answers as the model says them; None: where stdout is a terminal.
    """

    # Without the text, too: with it, a call is told when its tool begins.
    wants_text = True

    lines: EventLines
    _: KW_ONLY
    of_interest: Callable[[Event], bool] | None = None
    ending: bool = True
    live: bool | None = None
    _answer: tuple[int, int, int] | None = field(default=None, init=False)
    _written: str = field(default="", init=False)
    """Of the newest answer; empty where a part of it is missing."""
    _missed: bool = field(default=False, init=False)
    """A part of the newest answer is missing, which the event that tells of it begins with."""
    _column: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._live = sys.stdout.isatty() if self.live is None else self.live
        self.lines.before_line = self._break

    def show(self, item: Shown) -> None:
        match item:
            case TextDelta() if self._live:
                self._write(item)
            case TextGap(missed=missed) if self._live:
                self._break()
                much = "some" if missed is None else f"{missed:,} characters of"
                self.lines.note(f"  ({much} text did not get here in time)")
                self._written, self._missed = "", True
            case RunEvent():
                self._show_event(item)

    def end(self, result: HarnessResult) -> None:
        self._break()
        self.lines.clear()
        if self.ending or result.status not in ("done", "awaiting_input"):
            self.lines.end(result)
        answer = result.output_text.strip()
        if answer and answer != self._written.strip():
            # A value alone is what was asked for: a program may read it.
            value = result.output_plain
            say(result.output_text if value is None else json_line(value))
        self._answer, self._written = None, ""

    def cut(self) -> None:
        self._break()
        self.lines.clear()
        self._answer, self._written = None, ""

    def _show_event(self, item: RunEvent) -> None:
        event = item.event
        if item.path:
            self.lines.show(item)
            if isinstance(event, InputAwaited):
                self._break()
                self.lines.rest()
            return
        if isinstance(event, InputAwaited):
            # Whoever asks or says how to answer says what.
            self._break()
            self.lines.rest()
            return
        if isinstance(event, AgentResponse) and self._written:
            # It was there to read before it was an event.
            self._break()
            return
        # The last answer is told at the end.
        stands_in = self._missed and isinstance(event, AgentResponse) and event.tool_names
        self._missed = self._missed and not isinstance(event, AgentResponse)
        if stands_in or self.of_interest is None or self.of_interest(event):
            self._break()
            self.lines.show(item)
        else:
            self.lines.seen = True

    def _write(self, delta: TextDelta) -> None:
        answer = (delta.turn, delta.round, delta.attempt)
        if answer != self._answer:
            self._break()
            if delta.attempt > 1:
                self.lines.note("  the answer broke off, and begins again")
            self._answer, self._written = answer, ""
        # It may be the same terminal.
        self.lines.rest()
        sys.stdout.write(printable(delta.text))
        sys.stdout.flush()
        self._written += delta.text
        self._column = len(delta.text.rpartition("\n")[2])

    def _break(self) -> None:
        """End the line that text stands in: what follows may go to the same terminal."""
        if self._column:
            print(flush=True)
            self._column = 0
