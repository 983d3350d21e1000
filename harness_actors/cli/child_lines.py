"""Lines about runs that the shown ones begin: each is told, and many are folded."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness_actors.cli.live_lines import LiveLines
from harness_actors.events import (
    AgentResponse,
    ChildEnded,
    ChildrenStarted,
    Event,
    RoundCompleted,
    RunEvent,
    RunParked,
    RunResumed,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from harness_actors.printing.plain import one_line
from harness_actors.records import CHILD_MARK

MOST_TOLD = 8
"""Runs begun together of which each is told; of more, those that did not end well."""
_PROMPT = re.compile(r'"prompt"\s*:\s*"((?:[^"\\]|\\.)*)')
_ESCAPED = re.compile(r"\\(.)")
_INDENT = "    "


@dataclass(slots=True)
class _Together:
    """Runs that one run has begun in one message.

    Attributes:
        count: How many they are.
        ended: How those ended that have.
    """

    count: int
    ended: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Used:
    """What one run has used, as far as it was told."""

    model_calls: int = 0
    tool_calls: int = 0

    def __str__(self) -> str:
        counts = ((self.model_calls, "model call"), (self.tool_calls, "tool call"))
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts)


class ChildLines:
    """Tells which runs begin and end below others, and what they do.

    Args:
        live: Keeps a line in place for each while it goes on; None prints lines of what they do.
    """

    def __init__(self, live: LiveLines | None = None) -> None:
        self._live = live
        self._prompts: dict[tuple[str, str], str] = {}
        """By run and call: how the prompt of a call begins that has no result yet."""
        self._together: dict[str, _Together] = {}
        self._used: dict[str, _Used] = {}
        """By run below: only of those whose events come here."""

    def of(self, event: RunEvent, line: str | None = None) -> Iterator[str]:
        """The lines of an event; none of one that is about something else.

        Args:
            event: Of a run, or of one below it.
            line: What is told of it where it stands alone; None for nothing.
        """
        match event.event:
            case ToolCalled(call_id=call_id, arguments=arguments):
                if found := _PROMPT.search(arguments):
                    self._prompts[event.run_id, call_id] = _unescaped(found[1])
            case ToolReturned(call_id=call_id):
                self._prompts.pop((event.run_id, call_id), None)
            case ChildrenStarted():
                yield from self._begun(event, event.event)
            case ChildEnded():
                yield from self._ended(event, event.event)
            case _:
                pass
        if event.path:
            yield from self._done(event, line)

    def _begun(self, event: RunEvent, told: ChildrenStarted) -> Iterator[str]:
        children, run_id = told.children, event.run_id
        self._together[run_id] = _Together(len(children))
        for child in children[: None if self._live else MOST_TOLD]:
            about = self._prompts.get((run_id, child["call_id"]), child["call_id"])
            head = f"{one_line(child['run_id'])} {_named(event, child['agent'])}: {one_line(about)}"
            if self._live is None:
                yield f"{_indent(event)}▸ {head}"
            else:
                self._live.begin(child["run_id"], _cut(head))
        if self._live is None and (more := len(children) - MOST_TOLD) > 0:
            agents = _counted([one["agent"] for one in children])
            yield f"{_indent(event)}▸ and {more} more: {agents} in all"

    def _ended(self, event: RunEvent, told: ChildEnded) -> Iterator[str]:
        # Of a run that is shown from its middle on, it is not known.
        self._prompts.pop((event.run_id, told.call_id), None)
        together = self._together.setdefault(event.run_id, _Together(0))
        together.ended[told.status] += 1
        used = self._used.pop(told.run_id, None)
        if self._live is not None:
            self._live.end(told.run_id)
        if together.count <= MOST_TOLD or told.status != "completed":
            mark = "✓" if told.status == "completed" else "✗"
            took = "" if used is None else f": {used}"
            name = _named(event, told.agent)
            yield f"{_indent(event)}{mark} {told.run_id} {name} {told.status}{took}"
        if together.count > MOST_TOLD and together.ended.total() == together.count:
            ends = ", ".join(f"{count} {status}" for status, count in together.ended.items())
            yield f"{_indent(event)}all {together.count} have ended: {ends}"

    def _done(self, event: RunEvent, line: str | None) -> Iterator[str]:
        """A run below does something."""
        used = self._used.setdefault(event.run_id, _Used())
        match event.event:
            case RoundCompleted(tool_calls=tool_calls):
                used.model_calls += 1
                used.tool_calls += tool_calls
            case RunParked() if self._live is not None:
                self._live.end(event.run_id)
            case _ if line is not None and _is_worth_telling(event.event):
                doing = one_line(line.strip().partition("\n")[0])
                if self._live is not None:
                    self._live.tell(event.run_id, f"{event.run_id} {event.path}", doing)
                elif self._is_told(event.run_id):
                    yield f"{_indent(event)}{event.run_id} {doing}"

    def _is_told(self, run_id: str) -> bool:
        """Whether it is one of few that were begun together."""
        together = self._together.get(run_id.rpartition(CHILD_MARK)[0])
        return together is None or together.count <= MOST_TOLD


def _is_worth_telling(event: Event) -> bool:
    match event:
        case TurnStarted() | RunResumed() | ToolReturned(is_error=False):
            return False
        case AgentResponse(tool_names=names):
            # The last answer is the result of the call by which it was begun.
            return bool(names)
    return True


def _named(event: RunEvent, agent: str) -> str:
    """An agent, with those above it that stand below the run that is shown."""
    return one_line(f"{event.path}/{agent}" if event.path else agent)


def _indent(event: RunEvent) -> str:
    depth = event.path.count("/") + 1 if event.path else 0
    return _INDENT + "  " * depth


def _cut(head: str, most: int = 60) -> str:
    return head if len(head) <= most else f"{head[: most - 2]} …"


def _unescaped(text: str) -> str:
    return " ".join(_ESCAPED.sub(lambda one: " " if one[1] in "nrt" else one[1], text).split())


def _counted(agents: Sequence[str]) -> str:
    return ", ".join(f"{count} × {agent}" for agent, count in Counter(agents).items())
