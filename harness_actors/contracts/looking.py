"""Looks at each predicate of a contract, on what it is given; whatever fails is a finding."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness_actors.contracts.customs import (
    CustomAnswer,
    CustomPredicate,
    CustomQuestion,
    InThread,
    ask_custom,
    in_own_thread,
)
from harness_actors.contracts.file_findings import (
    FilePredicate,
    is_of_answer,
    of_seen,
    question_of,
)
from harness_actors.contracts.findings import (
    CONFIRMED_BY_MODEL,
    Finding,
    cut,
    ending,
    failed,
    met,
    needs_run,
    no_workspace,
    short,
)
from harness_actors.contracts.judging import (
    EXPECTED,
    MOST_ANSWER_CHARS,
    judge_text,
    read_judgement,
)
from harness_actors.contracts.leaves import (
    AlwaysTrue,
    CommandSucceeds,
    ContainsText,
    Custom,
    FileExists,
    JsonSchemaValid,
    Leaf,
    ModelJudged,
    ToolResultSuccess,
    place_of,
)
from harness_actors.ports import (
    ContractCommands,
    ContractFiles,
    FileQuestion,
    Find,
    Judge,
    ToolResults,
    Validate,
)

LOOK_S = 10.0
"""How long a search in a file, or a check of one, may take."""
MOMENT_S = 0.001
END_S = 10.0
"""How long a command may take beyond its time to be ended with all that it started."""
NOT_RUN = 126
"""Exit statuses from here on are the shell's, and not the command's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What a contract is verified on; None of a part that is not there.

    Attributes:
        workspace: The folder of the run.
        files: Looks into it.
        commands: Runs commands in it.
        answer: The agent's last answer.
        tool_results: What its calls came to.
        judge: Is asked what nothing else can tell.
        customs: Functions by the names that `Custom` predicates have.
        in_thread: Runs those that block.
        now: Seconds since the epoch.
    """

    workspace: Path | None = None
    files: ContractFiles | None = None
    commands: ContractCommands | None = None
    answer: str | None = None
    tool_results: ToolResults | None = None
    judge: Judge | None = None
    customs: Mapping[str, CustomPredicate] = field(default_factory=dict)
    in_thread: InThread = in_own_thread
    now: Callable[[], float] = time.time


class Looks:
    """All looks of one attempt; what is asked twice is looked at once.

    Args:
        grounds: What there is.
        attempt: Which attempt it is, from 1.
        until: When it must be over, by the event loop's clock.
        limit_s: How long it has, for the sentence that says it was not enough.
    """

    def __init__(self, grounds: Grounds, attempt: int, until: float, limit_s: float) -> None:
        self._grounds = grounds
        self._attempt = attempt
        self._until = until
        self._limit_s = limit_s
        self._costly: dict[CommandSucceeds | ModelJudged, Finding] = {}

    async def at_files(self, predicates: Sequence[FilePredicate]) -> list[Finding]:
        """Of all that look at files, or at the answer: at one moment, but for what needs time."""
        files = self._grounds.files
        if files is None:
            return [no_workspace() for _ in predicates]
        told: dict[int, Finding] = {}
        asked: dict[int, FileQuestion] = {}
        for place, predicate in enumerate(predicates):
            if self._grounds.answer is None and is_of_answer(predicate):
                told[place] = needs_run(place_of(None))
            else:
                asked[place] = question_of(predicate, self._grounds.answer or "")
        later: list[int] = []

        async def glance() -> Finding:
            seen = await files.glance(list(asked.values()))
            for place, one in zip(asked, seen, strict=True):
                if one is None:
                    later.append(place)
                else:
                    told[place] = of_seen(predicates[place], one)
            return CONFIRMED_BY_MODEL

        broken = await self._within(LOOK_S, "the workspace", glance) if asked else None
        for place in later:
            told[place] = await self._look(files, predicates[place], asked[place])
        return [told.get(place, broken or no_workspace()) for place in range(len(predicates))]

    async def _look(
        self, files: ContractFiles, predicate: FilePredicate, question: FileQuestion
    ) -> Finding:
        assert isinstance(question, Find | Validate)

        async def look() -> Finding:
            time_s = max(MOMENT_S, min(LOOK_S, self._left()))
            return of_seen(predicate, await files.look(question, time_s=time_s))

        # It ends by itself; the rest is for one that does not.
        return await self._within(LOOK_S, str(predicate), look, spare_s=0.5)

    async def at(self, predicate: Leaf) -> Finding:
        """Of any other one."""
        match predicate:
            case AlwaysTrue():
                return CONFIRMED_BY_MODEL
            case ToolResultSuccess():
                return self._tool_result(predicate)
            case Custom():
                return await self._custom(predicate)
            case FileExists() | ContainsText() | JsonSchemaValid():
                (finding,) = await self.at_files([predicate])
                return finding
            case CommandSucceeds() | ModelJudged():
                if predicate not in self._costly:
                    self._costly[predicate] = await self._at_costly(predicate)
                return self._costly[predicate]

    async def _at_costly(self, predicate: CommandSucceeds | ModelJudged) -> Finding:
        if isinstance(predicate, CommandSucceeds):
            return await self._command(predicate)
        return await self._judged(predicate)

    def _tool_result(self, predicate: ToolResultSuccess) -> Finding:
        results, name = self._grounds.tool_results, predicate.tool_name
        if results is None:
            return needs_run(f"what the tool {name!r} gave")
        try:
            newest = results.newest(name)
        except Exception as error:  # noqa: BLE001 - of this predicate, whatever it is
            return failed(f"the results of {name!r}", error)
        if newest is None:
            return Finding(verdict="unmet", why=f"the tool {name!r} was not called")
        if newest.is_error:
            why = f"the last call of the tool {name!r} failed: {newest.text}"
            return Finding(verdict="unmet", why=cut(why))
        return met("tool_result", newest.call_id, newest.text)

    async def _command(self, predicate: CommandSucceeds) -> Finding:
        commands, name = self._grounds.commands, f"the command {short(predicate.command)}"
        if commands is None:
            return no_workspace()

        async def finding() -> Finding:
            timeout_s = max(MOMENT_S, min(predicate.timeout_s, self._left()))
            end = await commands.run(predicate.command, timeout_s=timeout_s)
            printed = f"; it printed: {ending(end.output)}" if end.output else ""
            if end.exit_code is None:
                why = f"{name} ran past {timeout_s:.3g} s and was killed{printed}"
                return Finding(verdict="unknown", why=cut(why))
            if end.stopped:
                why = f"{name} was killed: {end.stopped}{printed}"
                return Finding(verdict="unknown", why=cut(why))
            if end.exit_code >= NOT_RUN:
                # It was not found, could not be run, or a signal ended it: it found nothing.
                why = f"{name} failed with {end.exit_code}{printed}"
                return Finding(verdict="unknown", why=cut(why))
            if end.exit_code:
                why = f"{name} exited with {end.exit_code}{printed}"
                return Finding(verdict="unmet", why=cut(why))
            return met("command", predicate.command, ending(end.output))

        # What it started is killed within seconds, whatever it does about that.
        return await self._within(predicate.timeout_s, name, finding, spare_s=END_S)

    async def _custom(self, predicate: Custom) -> Finding:
        name, grounds = f"the predicate {predicate.name!r}", self._grounds
        function = grounds.customs.get(predicate.name)
        if function is None:
            return Finding(verdict="unknown", why=f"{name} is not registered here")
        question = CustomQuestion(
            workspace=grounds.workspace,
            answer=grounds.answer,
            arguments=predicate.arguments,
            attempt=self._attempt,
        )

        async def finding() -> Finding:
            answer = await ask_custom(function, question, grounds.in_thread)
            if isinstance(answer, bool):
                answer = CustomAnswer(answer)
            if not (isinstance(answer, CustomAnswer) and isinstance(answer.met, bool)):
                why = f"{name} answered {short(repr(answer))}, which is neither true nor false"
                return Finding(verdict="unknown", why=why)
            if answer.met:
                return met("custom", predicate.name, str(answer.why))
            return Finding(verdict="unmet", why=cut(str(answer.why) or f"{name} does not hold"))

        return await self._within(predicate.timeout_s, name, finding)

    async def _judged(self, predicate: ModelJudged) -> Finding:
        judge, files = self._grounds.judge, self._grounds.files
        answer = self._grounds.answer
        if judge is None or answer is None:
            return needs_run("what a judge finds")
        if files is None and predicate.files:
            return no_workspace()

        async def finding() -> Finding:
            shown = {}
            for path in predicate.files:
                assert files is not None
                read = await files.read(path, MOST_ANSWER_CHARS)
                if not read.holds:
                    # Nobody has judged, so its opposite is not known either.
                    return Finding(verdict="unknown", why=cut(f"nothing to judge: {read.told}"))
                shown[path] = read.told
            text = judge_text(predicate.rubric, answer, shown)
            said: object = await judge.ask(text, model=predicate.model)
            judgement = read_judgement(said) if isinstance(said, str) else None
            if judgement is None:
                why = f"the judge answered neither yes nor no: {short(str(said))}; "
                return Finding(verdict="unknown", why=f"{why}it is to answer with {EXPECTED}")
            is_so, reason = judgement
            if is_so:
                return met("judgement", predicate.model or "", reason)
            why = f"a judge found that it is not so: {reason or predicate.rubric}"
            return Finding(verdict="unmet", why=cut(why))

        return await self._within(predicate.timeout_s, "the judge", finding)

    async def _within(
        self,
        time_s: float,
        what: str,
        look: Callable[[], Awaitable[Finding]],
        *,
        spare_s: float = 0.0,
    ) -> Finding:
        """What a look gives; what it raises, and that its time was up, is a finding.

        Args:
            time_s: How long it may take; less where the whole has less left.
            what: What is looked at, for the sentence.
            look: The look.
            spare_s: What it is given beyond that, to bring to an end what it began.
        """
        left_s = self._left()
        of_all = f"all {self._limit_s:g} s of the verification"
        if left_s <= 0:
            why = f"{what} was not looked at: {of_all} had passed"
            return Finding(verdict="unknown", why=cut(why))
        try:
            async with asyncio.timeout(min(time_s, left_s) + spare_s):
                return await look()
        except TimeoutError:
            late = of_all if left_s < time_s else f"{time_s:g} s"
            return Finding(verdict="unknown", why=cut(f"{what} took longer than {late}"))
        except Exception as error:  # noqa: BLE001 - of this predicate, whatever it is
            return failed(what, error)

    def _left(self) -> float:
        """Seconds that are left of the whole."""
        return self._until - asyncio.get_running_loop().time()
