"""Those who answer the runs of a batch, by `harness ctl run answer`, while it is under fire, and
decide about the calls that wait for approval."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.errors import HarnessError
from harness_actors.messages import Message
from harness_actors.policies import Approve, Refuse
from harness_actors.policies.decisions import Decision, decision_in, decision_text
from harness_actors.records import RunHeading
from harness_actors.stores import JournalReader
from tests.chaos.command import BatchCommand
from tests.chaos.plans import ASK, PAY

LOOK_EVERY_S = 0.5
AT_ONCE = 0.25
"""How often two people answer the same run at the same moment."""
PATIENT = 0.4
"""How often whoever sees a question does not answer it yet."""
ANSWERS_WITHIN_S = 90.0


@dataclass
class Answers:
    """What people said to the questions of a batch, by the text of each, or by what a call that
    they decided about is for.

    Attributes:
        said: All that was said.
        taken: What the command said was taken; of a command that died, nobody knows.
    """

    said: dict[str, list[str]] = field(default_factory=dict)
    taken: dict[str, list[str]] = field(default_factory=dict)

    def faults_in(self, log: Sequence[Message]) -> Iterator[tuple[str, str]]:
        """What is wrong with the answers in a log, each with its kind.

        Each question has one answer, which somebody gave; of those who were told that theirs is
        taken, all gave that one. And each call that waited came out as somebody decided.
        """
        yield from self._wrong_decisions(log)
        results = {str(m.tool_call_id): m.text for m in log if m.role == "tool"}
        for call_id, question in questions_of(log).items():
            given, taken = results.get(call_id), self.taken.get(question, [])
            if given not in self.said.get(question, []):
                yield "unanswered", f"{question!r} has {given!r}, which nobody said"
            elif taken not in ([], [given]):
                yield "doubled", f"{question!r} has {given!r}, and {taken} were taken"

    def _wrong_decisions(self, log: Sequence[Message]) -> Iterator[tuple[str, str]]:
        results = {str(m.tool_call_id): m for m in log if m.role == "tool"}
        for call_id, what in payments_of(log).items():
            result, taken = results.get(call_id), self.taken.get(what, [])
            said = self.said.get(what, [])
            if not any(_follows(result, decision) for decision in said):
                text = None if result is None else result.text
                yield "unanswered", f"{what!r} came to {text!r}, which nobody decided; {said}"
            elif not all(_follows(result, decision) for decision in taken):
                yield "doubled", f"{what!r} came to {result.text!r}, and {taken} were taken"  # type: ignore[union-attr]


def _follows(result: Message | None, decision: str) -> bool:
    """Whether the result of a call may be what a decision about it comes to."""
    if result is None:
        return False
    match decision_in(decision):
        case Refuse(note):
            return result.disposition == "denied" and note in result.text
        case Approve(arguments) if result.disposition == "done":
            by = "nobody else" if arguments is None else arguments["by"]
            return result.text.startswith("paid in ") and result.text.endswith(f" by {by}")
        case _:
            # It has begun, and its process died.
            return result.text == UNKNOWN_OUTCOME


def payments_of(log: Sequence[Message]) -> dict[str, str]:
    """What the calls of a log are for that must be approved of, by the ids of the calls."""
    return {
        call.id: json.loads(call.arguments)["what"]
        for message in log
        for call in message.tool_calls
        if call.name == PAY
    }


def questions_of(log: Sequence[Message]) -> dict[str, str]:
    """What a log asks the user, by the ids of the calls."""
    return {
        call.id: json.loads(call.arguments)["question"]
        for message in log
        for call in message.tool_calls
        if call.name == ASK
    }


class People:
    """Answers what the runs of a batch ask, at random moments.

    Args:
        command: The batch.
        random: Decides when, and whether somebody else does, too.
    """

    def __init__(self, command: BatchCommand, random: Random) -> None:
        self.answers = Answers()
        self._command = command
        self._random = random
        self._count = 0
        self.deciding = 0
        """Decisions about calls that are on their way at this moment."""

    async def keep_answering(self) -> None:
        """Look for questions again and again, until this is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for run_id, questions in (await self._asked()).items():
                if self._random.random() < PATIENT:
                    continue
                people = 2 if self._random.random() < AT_ONCE else 1
                await asyncio.gather(*(self._answer(run_id, questions) for _ in range(people)))

    async def are_waited_for(self) -> bool:
        """Whether a run waits that somebody has answered, or will."""
        return any(one.phase == "waiting" for one in await asyncio.to_thread(self._headings))

    async def until_all_is_answered(self) -> None:
        """Return when it is; somebody must `keep_answering` meanwhile.

        Raises:
            TimeoutError: It is not, for long.
        """
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            # It is another process that says so, in a file.
            while await self._asked():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_EVERY_S)

    async def _asked(self) -> dict[str, list[Mapping[str, Any]]]:
        """The open questions, by run."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for heading in await asyncio.to_thread(self._headings):
            if still_open := [one for one in heading.questions if one["answer"] is None]:
                found[heading.run_id] = still_open
        return found

    def _headings(self) -> list[RunHeading]:
        # It is not made yet, or its cell is being killed.
        with suppress(HarnessError):
            # What others ask, the run at the top of their tree asks.
            return [one for one in JournalReader(self._command.store).headings() if not one.root]
        return []

    async def _answer(self, run_id: str, questions: Sequence[Mapping[str, Any]]) -> None:
        self._count += 1
        lines, words = list[dict[str, str]](), dict[str, str]()
        for one in questions:
            about, answer = one["text"], f"go on, says {self._count}"
            if one.get("kind") == "approval":
                given = json.loads(one["arguments"])
                about, answer = given["what"], decision_text(self._decision(given))
            words[about] = answer
            lines.append({"run": run_id, "question": one["id"], "answer": answer})
        for about, answer in words.items():
            self.answers.said.setdefault(about, []).append(answer)
        decides = any(one.get("kind") == "approval" for one in questions)
        self.deciding += decides
        try:
            taken = await self._say("".join(f"{json.dumps(line)}\n" for line in lines))
        finally:
            self.deciding -= decides
        for about, answer in words.items() if taken else ():
            self.answers.taken.setdefault(about, []).append(answer)

    def _decision(self, given: Mapping[str, Any]) -> Decision:
        """What one of them makes of a call: it is approved of, changed or denied."""
        me = f"person {self._count}."
        match self._random.choice(("approve", "edit", "deny")):
            case "approve":
                return Approve(note=f"as it is, says {me}")
            case "edit":
                return Approve({**given, "by": me})
            case _:
                return Refuse(note=f"not today, says {me}")

    async def _say(self, lines: str) -> bool:
        """Whether the command says that all of it was taken."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "harness_actors", "ctl", "run", "answer", "--file", "-"),
            *("--run-dir", str(self._command.run_dir)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            # None of the batch's own processes, which are struck and counted.
            env={**os.environ, **self._command.variables},
        )
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await process.communicate(lines.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode == 0
