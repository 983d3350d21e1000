"""A capable model that misbehaves by seeded draws, behind a loopback server.

It comes back to work when it is told what would bring a real model back, and by nothing else. What
is done it looks up on the disk. Draws are of the seed, the task and how far that is, so that every
client gets the same faults, however often it asks.
"""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

import orjson

from harness_actors.testing.asked import is_message, names_any, offered_in, text_of, told_to
from harness_actors.testing.checkable import NOTES, CheckableTask, Step
from harness_actors.testing.faults import (
    SERVER_ERROR,
    BreakOff,
    Fault,
    Refuse,
    Slow,
    rate_limited,
)
from harness_actors.testing.loopback import LoopbackServer
from harness_actors.testing.scripted import Reply

ModelFault = Literal[
    "stops", "claims", "wanders", "garbles", "unknown_tool", "empty", "narrates", "repeats"
]
ProviderFault = Literal["rate_limit", "server_error", "cut", "stall"]
Misbehaviour = ModelFault | ProviderFault
F = TypeVar("F", ModelFault, ProviderFault)

MODEL_FAULTS: tuple[ModelFault, ...] = get_args(ModelFault)
PROVIDER_FAULTS: tuple[ProviderFault, ...] = get_args(ProviderFault)
MISBEHAVIOURS: tuple[Misbehaviour, ...] = (*MODEL_FAULTS, *PROVIDER_FAULTS)

SAYS_REPEATED = re.compile(
    r"repeat(s|ed|ing|edly|ition)\b|\bthe same (calls?|tools?|things?|answers?|results?)\b"
    r"|\bin circles\b|\bno progress\b|\bover and over\b|\bagain and again\b",
    re.IGNORECASE,
)
"""What tells a model that it repeats itself. Not "do not repeat": that is said to anybody."""
IN_BRACKETS = re.compile(r"\[([^\[\]]{1,100})\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNames:
    """What the tools are called in the harness that asks; `complete` may be one that it lacks."""

    write: str = "write_file"
    read: str = "read_file"
    edit: str = "edit_file"
    run: str = "run_command"
    complete: str = "work_complete"


@dataclass(slots=True)
class _Play:
    """Where one task is."""

    task: CheckableTask
    read: set[int] = field(default_factory=set)
    spent: set[tuple[Misbehaviour, int]] = field(default_factory=set)
    active: ModelFault | None = None
    useless: int = 0
    most_useless: int = 0
    calls: int = 0
    asked: bytes = b""
    """The messages that were answered last."""
    answer: Reply | None = None
    is_cut: bool = False
    """The answer to the request that is being answered will not arrive."""
    was_heard: bool = True

    def progress(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """The first step that is not done; their number when all are."""
        results = [text_of(message) for message in messages if message["role"] == "tool"]
        is_over = not self.task.missing
        for number, step in enumerate(self.task.steps):
            if step.deed == "read":
                if any(step.shown_by[0] in text for text in results):
                    self.read.add(number)
                if number not in self.read and not is_over:
                    return number
            elif not step.is_done(self.task.folder):
                return number
        return len(self.task.steps)


class FallibleModel:
    """What a `LoopbackServer` answers as a fallible model; see `fallible_server`.

    Args:
        tasks: The tasks that it may be asked for.
        rates: How likely each fault is at each step, 0.0 to 1.0; what is not named never is.
        seed: Of the draws.
        tools: What the tools of the client are called.
        wander_calls: Useless calls of a model that wanders or repeats and is not told so.
        stall_s: How long a provider that stalls keeps its answer back.

    Attributes:
        occurred: The faults that were met, as task, step and fault, in order.

    Raises:
        ValueError: A fault is unknown, a rate out of range, or two tasks have one name.
    """

    def __init__(
        self,
        tasks: Iterable[CheckableTask],
        rates: Mapping[Misbehaviour, float] | None = None,
        *,
        seed: int = 0,
        tools: ToolNames | None = None,
        wander_calls: int = 80,
        stall_s: float = 30.0,
    ) -> None:
        self._rates = dict(rates or {})
        for fault, rate in self._rates.items():
            if fault not in MISBEHAVIOURS or not 0.0 <= rate <= 1.0:
                known = ", ".join(MISBEHAVIOURS)
                raise ValueError(f"rates: {fault!r}: {rate!r}; 0.0 to 1.0 for one of {known}")
        given = list(tasks)
        self._plays = {task.name: _Play(task) for task in given}
        if len(self._plays) < len(given):
            raise ValueError("tasks: two have the same name")
        self._seed = seed
        self._tools = tools or ToolNames()
        self._wander_calls = wander_calls
        self._stall_s = stall_s
        self.occurred: list[tuple[str, int, Misbehaviour]] = []

    def calls(self, task: str) -> int:
        """Requests for a task so far, those that met a fault of the provider included."""
        return self._plays[task].calls

    def useless_calls(self, task: str) -> int:
        """The most useless calls that it made for a task before it was brought back."""
        return self._plays[task].most_useless

    def draws(self, fault: Misbehaviour, task: str, step: int) -> bool:
        """Whether a fault is met at a step of a task: always the same."""
        drawn = random.Random(f"{self._seed}/{task}/{step}/{fault}").random()
        return drawn < self._rates.get(fault, 0.0)

    def faults(self, number: int, body: Any) -> Fault | None:
        """What the provider does with a request; it refuses one that it cannot understand."""
        if problem := self._problem(body):
            return Refuse(400, "invalid_request", problem)
        play = self._play_of(body["messages"])
        assert play is not None, "it was looked for"
        play.calls += 1
        step = play.progress(body["messages"])
        fault = self._first(play, PROVIDER_FAULTS, step)
        if fault is not None:
            self._note(play, fault, step)
        match fault:
            case "rate_limit":
                return rate_limited(0)
            case "server_error":
                return SERVER_ERROR
            case "cut":
                play.is_cut = True
                return BreakOff("in_body")
            case "stall":
                return Slow(self._stall_s)
        return None

    def reply(self, body: dict[str, Any]) -> Reply:
        """What the model says to a request that `faults` let through."""
        messages = body["messages"]
        play = self._play_of(messages)
        assert play is not None, "faults refuses others"
        asked = orjson.dumps(messages)
        # Whoever asks the same again gets the same, but after an empty answer that was heard: a
        # real model that is asked once more seldom has nothing to say twice.
        is_asked_anew = play.active == "empty" and play.was_heard
        if play.answer is None or asked != play.asked or is_asked_anew:
            play.answer = self._answer(play, messages, offered_in(body))
        play.asked, play.was_heard, play.is_cut = asked, not play.is_cut, False
        return play.answer

    def _answer(
        self, play: _Play, messages: list[dict[str, Any]], offered: frozenset[str]
    ) -> Reply:
        step = play.progress(messages)
        if play.active is not None and self._is_over(play, told_to(messages, play.task)):
            play.active = None
        if play.active is None:
            # Nobody claims to be done before anything is, and at the end it is true.
            claims = 0 < step < len(play.task.steps)
            drawable = [fault for fault in MODEL_FAULTS if fault != "claims" or claims]
            if fault := self._first(play, drawable, step):
                self._note(play, fault, step)
                play.active, play.useless = fault, 0
        if play.active is None:
            return self._work(play, step, offered)
        return self._misbehave(play, play.active, step, offered)

    def _is_over(self, play: _Play, told: list[tuple[str, str]]) -> bool:
        """Whether the active fault ends at what was told since the model spoke last."""
        texts = [text for _, text in told]
        match play.active:
            case "stops" | "narrates":
                return any(role != "tool" for role, _ in told)
            case "garbles" | "unknown_tool":
                return bool(told)
            case "claims":
                missing = play.task.missing
                return not missing or any(names_any(text, missing) for text in texts)
            case "wanders" | "repeats":
                is_told = any(SAYS_REPEATED.search(text) for text in texts)
                return is_told or play.useless >= self._wander_calls
        return True

    def _misbehave(
        self, play: _Play, fault: ModelFault, step: int, offered: frozenset[str]
    ) -> Reply:
        match fault:
            case "stops":
                return Reply.text("That is a good start. I leave it there for now.")
            case "claims":
                return self._finish("Everything is done and checked.", offered)
            case "empty":
                return Reply.text("")
            case "narrates":
                return Reply.text("Now I go on with the next step of the task.")
            case "wanders" | "repeats":
                note = NOTES[play.useless % len(NOTES) if fault == "wanders" else 0]
                play.useless += 1
                play.most_useless = max(play.most_useless, play.useless)
                return Reply.call(self._tools.read, {"path": note})
        right = self._work(play, step, offered)
        if not right.asked:
            # The last word is no call, where the client has no tool for it.
            return right
        ((name, arguments),) = right.asked
        if fault == "garbles":
            return Reply.call(name, arguments[: len(arguments) // 2])
        return Reply.call(f"{name}_v2", arguments)

    def _work(self, play: _Play, number: int, offered: frozenset[str]) -> Reply:
        """What a capable model does next."""
        if number == len(play.task.steps):
            return self._finish("All steps of the task are done.", offered)
        step: Step = play.task.steps[number]
        return Reply.call(getattr(self._tools, step.deed), step.arguments)

    def _finish(self, summary: str, offered: frozenset[str]) -> Reply:
        if self._tools.complete in offered:
            return Reply.call(self._tools.complete, {"summary": summary})
        return Reply.text(summary)

    def _first(self, play: _Play, faults: Iterable[F], step: int) -> F | None:
        """The first fault that is met at a step and was not yet."""
        for fault in faults:
            if (fault, step) not in play.spent and self.draws(fault, play.task.name, step):
                return fault
        return None

    def _note(self, play: _Play, fault: Misbehaviour, step: int) -> None:
        play.spent.add((fault, step))
        self.occurred.append((play.task.name, step, fault))

    def _play_of(self, messages: Iterable[Mapping[str, Any]]) -> _Play | None:
        """By the name in brackets in what the user said."""
        for message in messages:
            if message["role"] == "user":
                for name in IN_BRACKETS.findall(text_of(message)):
                    if name in self._plays:
                        return self._plays[name]
        return None

    def _problem(self, body: Any) -> str | None:
        """Why a request cannot be answered; None where it can."""
        if not isinstance(body, dict):
            return "the body must be an object"
        messages, tools = body.get("messages"), body.get("tools", [])
        if not isinstance(messages, list) or not all(map(is_message, messages)):
            return "messages must be a list of objects with a role, and a text or parts as content"
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            return "tools must be a list of objects"
        play = self._play_of(messages)
        if play is None:
            return "no user message names a task of this server in brackets, such as [task-1]"
        deeds = {"read", *(step.deed for step in play.task.steps)}
        needed = {str(getattr(self._tools, deed)) for deed in deeds}
        if missing := sorted(needed - offered_in(body)):
            return f"tools must have {', '.join(missing)}; other names are given to the server"
        return None


def fallible_server(model: FallibleModel, *, keep: int = 0) -> LoopbackServer:
    """A server that answers as this model; to be entered with ``async with``.

    Args:
        model: The model.
        keep: How many of the last requests are kept in `LoopbackServer.seen`.
    """
    return LoopbackServer(model.reply, faults=model.faults, keep=keep)
