"""The lines of a conversation, answered one after the other."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from harness_actors.cli.asking import forget_typed_ahead
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.interrupts import Interrupts
from harness_actors.cli.printed import Printed
from harness_actors.cli.questions import Choosing, dialogue, resume_command, tell_waiting
from harness_actors.cli.screen import Screen
from harness_actors.cli.typed_lines import PROMPT
from harness_actors.cli.window_use import WindowUse
from harness_actors.printing.plain import one_line

if TYPE_CHECKING:
    from harness_actors.cli.deciding import Deciding
    from harness_actors.events import RunEvent, TextDelta, TextGap
    from harness_actors.harness import AgentHarness
    from harness_actors.results import HarnessResult

    Stream = AsyncGenerator[RunEvent | HarnessResult | TextDelta | TextGap]

COMPACT = "/compact"
"""The line that asks for a summary."""


class Answers:
    """Answers lines, one after the other.

    Args:
        harness: Whose conversation it is.
        lines: Where notes go.
        screen: Where answers go.
        runtime: What the runs run on: ``"ray"`` or ``"local"``.
        verbose: Show what code of the user prints.

    Attributes:
        all_done: Each answer came to its end, or was cut on purpose.
    """

    def __init__(
        self,
        harness: "AgentHarness",
        lines: EventLines,
        screen: Screen,
        runtime: str,
        *,
        verbose: bool = False,
    ) -> None:
        self._harness = harness
        self._lines = lines
        self._screen = screen
        self._runtime = runtime
        self._verbose = verbose
        self._told = False
        """Where it prints was said once, which is enough for a conversation."""
        self._run_id = ""
        self._window = WindowUse(harness.window_tokens)
        self._waiting: HarnessResult | None = None
        """What was asked, and waits for the next line."""
        self._asked: Choosing | Deciding | None = None
        """How the first of it is answered, line by line."""
        self.all_done = True

    @property
    def is_asked(self) -> bool:
        """The next line answers a question."""
        return self._waiting is not None

    def prompt(self) -> str:
        """What stands before the next line."""
        if self._waiting is None or self._asked is None:
            return PROMPT
        return f"{self._waiting.questions[0].id} {self._asked.wanted}".rstrip() + PROMPT

    def dropped(self) -> None:
        """A line was dropped, by Ctrl-C."""
        if self._waiting is not None:
            self._asked = dialogue(self._waiting.questions[0])
            run_id = one_line(self._waiting.run_id)
            self._lines.tell(f"run {run_id} waits: type the answer, or leave it by /new or /exit")

    def leave_open(self) -> None:
        """Leave what was asked unanswered, if anything was."""
        if self._waiting is not None:
            assert self._harness.store is not None, "the run is in it"
            tell_waiting(self._waiting, self._harness.store, self._lines, self._runtime)
            self._waiting, self._asked, self.all_done = None, None, False

    async def answer(self, said: str) -> None:
        """Answer one line, or take it for the answer to what was asked.

        Ctrl-C cuts the answer; twice, it leaves the command.
        """
        if self._waiting is None or self._asked is None:
            wanted = self._screen.wants_text
            stream = self._harness.run_stream(said, text=wanted, children=wanted)
        elif (answer := self._asked.take(said)) is not None:
            question_id = self._waiting.questions[0].id
            stream = self._answered(self._waiting.run_id, {question_id: answer})
        else:
            for line in self._asked.told:
                self._lines.note(line)
            return
        await self._show(stream)

    async def _answered(self, run_id: str, answers: Mapping[str, str]) -> "Stream":
        """A run with the answer to its question; without, where that was not taken."""
        from harness_actors.errors import AnswerError

        wanted = self._screen.wants_text
        resume = partial(self._harness.resume_stream, run_id, text=wanted, children=wanted)
        try:
            async with aclosing(resume(answers=answers)) as stream:
                async for item in stream:
                    yield item
        except AnswerError as error:
            # Too long, or somebody else has answered, or ended the run.
            self._lines.note(f"{error}")
            async with aclosing(resume()) as stream:
                async for item in stream:
                    yield item

    async def _show(self, stream: "Stream") -> None:
        from harness_actors.errors import RunParkedError

        self._waiting = self._asked = None
        printed = Printed(self._lines, shown=self._verbose)
        try:
            with Interrupts(self._cutting(), _leaving()) as interrupts:
                result = await self._follow(stream, interrupts, printed)
        except RunParkedError:
            self._tell_cut()
            return
        except asyncio.CancelledError:
            if self._run_id:
                self._tell_cut()
            raise
        finally:
            await printed.end()
        self._screen.end(result)
        if line := self._window.line:
            self._lines.tell(f"{line}; {COMPACT} makes room")
        self._told = self._told or printed.tell()
        if result.status == "awaiting_input":
            self._put(result)
        else:
            self.all_done = self.all_done and result.ok

    def _put(self, waiting: "HarnessResult") -> None:
        """Say what is asked: the first of what is open, for the next line is the answer to it."""
        first = waiting.questions[0]
        if first.kind == "approval":
            forget_typed_ahead()
        self._waiting, self._asked = waiting, dialogue(first)
        for line in self._asked.put():
            self._lines.tell(line)

    def _tell_cut(self) -> None:
        self._screen.cut()
        if not self._run_id or self._harness.store is None:
            # It was cut before anything was told of it.
            self._lines.note("cut")
            return
        command = resume_command(self._harness.store, [self._run_id], self._runtime)
        self._lines.note(f"cut; {command} would go on with it")

    async def _follow(
        self,
        stream: "Stream",
        interrupts: Interrupts,
        printed: Printed,
    ) -> "HarnessResult":
        from harness_actors.results import HarnessResult

        self._run_id = ""
        result: HarnessResult | None = None
        async with aclosing(stream):
            async for item in stream:
                if isinstance(item, HarnessResult):
                    result = item
                    continue
                if not self._run_id:
                    # Starting Ray may have taken the signals.
                    interrupts.arm()
                    self._run_id = self._harness.run_id or item.run_id
                    printed.begin(self._harness.store, self._run_id)
                printed.before(item)
                self._screen.show(item)
                self._window.take(item)
                printed.after(item)
        assert result is not None, "a stream of a run ends with its result"
        return result

    def _cutting(self) -> Callable[[], None]:
        cuts: list[asyncio.Task[None]] = []

        def cut() -> None:
            cuts.append(asyncio.create_task(self._harness.park(now=True)))

        return cut


def _leaving() -> Callable[[], None]:
    command = asyncio.current_task()
    assert command is not None

    def leave() -> None:
        command.cancel()

    return leave
