"""Lines about runs that the shown ones begin: each is told, and many are folded."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness_actors.events import ChildEnded, ChildrenStarted, RunEvent, ToolCalled, ToolReturned
from harness_actors.printing.plain import one_line

MOST_TOLD = 8
"""Runs begun together of which each is told; of more, those that did not end well."""
_PROMPT = re.compile(r'"prompt"\s*:\s*"((?:[^"\\]|\\.)*)')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(slots=True)
class _Together:
    """Runs that one run has begun in one message.

    Attributes:
        count: How many they are.
        ended: How those ended that have.
    """

    count: int
    ended: Counter[str] = field(default_factory=Counter)


class ChildLines:
    """Tells which runs begin and end below others."""

    def __init__(self) -> None:
        self._prompts: dict[tuple[str, str], str] = {}
        """By run and call: how the prompt of a call begins that has no result yet."""
        self._together: dict[str, _Together] = {}

    def of(self, event: RunEvent) -> Iterator[str]:
        """The lines of an event; none of one that is about something else."""
        match event.event:
            case ToolCalled(call_id=call_id, arguments=arguments):
                if found := _PROMPT.search(arguments):
                    self._prompts[event.run_id, call_id] = _unescaped(found[1])
            case ToolReturned(call_id=call_id):
                self._prompts.pop((event.run_id, call_id), None)
            case ChildrenStarted():
                yield from self._begun(event.run_id, event.event)
            case ChildEnded():
                yield from self._ended(event.run_id, event.event)
            case _:
                pass

    def _begun(self, run_id: str, event: ChildrenStarted) -> Iterator[str]:
        children = event.children
        self._together[run_id] = _Together(len(children))
        for child in children[:MOST_TOLD]:
            about = self._prompts.get((run_id, child["call_id"]), child["call_id"])
            yield f"    ▸ {child['run_id']} {child['agent']}: {one_line(about)}"
        if (more := len(children) - MOST_TOLD) > 0:
            yield f"    ▸ and {more} more: {_counted([one['agent'] for one in children])} in all"

    def _ended(self, run_id: str, event: ChildEnded) -> Iterator[str]:
        # Of a run that is shown from its middle on, it is not known.
        self._prompts.pop((run_id, event.call_id), None)
        together = self._together.setdefault(run_id, _Together(0))
        together.ended[event.status] += 1
        if together.count <= MOST_TOLD or event.status != "completed":
            mark = "✓" if event.status == "completed" else "✗"
            yield f"    {mark} {event.run_id} {event.agent} {event.status}"
        if together.count > MOST_TOLD and together.ended.total() == together.count:
            told = ", ".join(f"{count} {status}" for status, count in together.ended.items())
            yield f"    all {together.count} have ended: {told}"


def _unescaped(text: str) -> str:
    return " ".join(_ESCAPED.sub(lambda one: " " if one[1] in "nrt" else one[1], text).split())


def _counted(agents: Sequence[str]) -> str:
    return ", ".join(f"{count} × {agent}" for agent, count in Counter(agents).items())
