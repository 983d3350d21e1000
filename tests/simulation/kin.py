"""Runs that others have begun: by which calls, how they end, and who is told of that."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.events import ChildEnded, ChildrenStarted
from harness_actors.messages import Message, ToolCall
from harness_actors.records import Entry, RunAdded, RunChanged, RunSpec
from harness_actors.results import HarnessResult
from harness_actors.state import CHILD_RESULTS, CHILDREN_USAGE
from harness_actors.subagents import SubAgentSpec
from tests.simulation.disk import DiskRun
from tests.simulation.held import spec_at
from tests.simulation.ledger import Ledger
from tests.simulation.trees import PlannedDelegation, delegated_in, named_in, report_of

WITH_CALL = "a call that delegates has a child where both are on disk, and else none"
GIVEN = "what a child came to is the result of its call, once"
TOLD = "the end of a child is told to its parent once, in the same commit"
OUTLIVED = "no child outlives its parent"
HELD_TO = "a child is held to what its agent is held to"
BEGINS = "a fork begins with what was said before its call, and no other child with anything"

_NOTE = re.compile(r"\n\n\[\S+ has worked in a copy of your workspace[^\]]*\]")
DISPOSITIONS = {"completed": "done", "timed_out": "timed_out"}
"""Of the result of a call whose child has ended so; else ``"failed"``."""


@dataclass
class Kid:
    """A child.

    Attributes:
        spec: Its own.
        name: The call by which it was begun, by run, message and place.
        told: How often its parent was told that it is over.
        given: The call has its result.
    """

    spec: RunSpec
    name: str
    told: int = 0
    given: bool = False

    @property
    def is_beside(self) -> bool:
        """Whether the run that has begun it goes on beside it."""
        return self.spec.parent is not None and self.spec.parent.background


@dataclass
class Kin:
    """Watches who begins whom, and what is told of ends, by what is on disk.

    Attributes:
        kids: The children, by their ids.
        planned: What models have delegated, by the calls.
        agents: To whom runs delegate.
    """

    ledger: Ledger
    agents: Sequence[SubAgentSpec] = ()
    kids: dict[str, Kid] = field(default_factory=dict)
    planned: dict[str, PlannedDelegation] = field(default_factory=dict)
    _by_name: dict[str, str] = field(default_factory=dict)
    _begun: dict[str, list[str]] = field(default_factory=dict)
    """By run: its children, in their order."""

    # ---- for models -------------------------------------------------------------------

    def said(self, name: str, planned: PlannedDelegation) -> None:
        """A model delegates, by the call of this name."""
        self.planned[name] = planned

    def run_of(self, name: str) -> str:
        """The run whose task has this name."""
        return self._by_name.get(name, name)

    def report_of(self, run_id: str) -> str:
        """What a child says in the end; empty of any other run."""
        kid = self.kids.get(run_id)
        return "" if kid is None else report_of(run_id, self.planned[kid.name])

    def of(self, run_id: str) -> Sequence[str]:
        """The children of a run."""
        return self._begun.get(run_id, ())

    def child_of(self, call: ToolCall) -> str | None:
        """The child that a call has begun; None where there is none."""
        return self._by_name.get(delegated_in(call))

    # ---- on disk ----------------------------------------------------------------------

    def added(self, entry: RunAdded) -> None:
        """A run is on disk."""
        link = entry.spec.parent
        if link is None or entry.again:
            return
        run_id, name = entry.spec.run_id, named_in(entry.spec.task[-1].text)
        if name in self._by_name:
            self.ledger.broken(WITH_CALL, f"{name} begins {self._by_name[name]} and {run_id}")
        self.kids[run_id] = Kid(entry.spec, name)
        self._by_name[name] = run_id
        self._begun.setdefault(link.run_id, []).append(run_id)

    def changed(self, change: RunChanged, log: Sequence[Message]) -> None:
        """A change is on disk, and in its log."""
        for call, result in results_in(log, len(change.delta.messages)):
            if name := delegated_in(call):
                self._result(change, name, result)

    def _result(self, change: RunChanged, name: str, result: Message) -> None:
        """A call that delegates has a result: that is its child's end, or its run is over."""
        child = self._by_name.get(name)
        if change.end is not None or not name.startswith(f"{change.run_id}/"):
            # Who ends a run, or goes on behind one that was cut, only closes its calls.
            return
        if child is None:
            if result.disposition == "done" or result.text == UNKNOWN_OUTCOME:
                self.ledger.broken(WITH_CALL, f"{name} has none, and is {result.text[:80]!r}")
            return
        kid, end = self.kids[child], self.ledger.disk.runs[child].end
        if kid.is_beside:
            if result.disposition != "done" or "Sent out in the background" not in result.text:
                self.ledger.broken(GIVEN, f"{name} is beside, and is {result.text[:80]!r}")
            return
        if end is None:
            self.ledger.broken(GIVEN, f"{name} is {result.text[:80]!r} before {child} ends")
            return
        if kid.given:
            self.ledger.broken(GIVEN, f"{name} is given what {child} came to again")
        kid.given = True
        status = status_of(kid.spec, end)
        right = result.disposition == DISPOSITIONS.get(status, "failed")
        if not right or not says(result.text, kid.spec, end):
            told = f"{child} is {end.status}({end.reason.kind}) with {end.output_text!r}"
            self.ledger.broken(GIVEN, f"{told}, and {name} is {result.disposition} {result.text!r}")

    def asked(self, run_id: str, messages: Sequence[Message]) -> None:
        """A model is asked with this conversation."""
        said = [message.text for message in messages if message.role == "tool"]
        for child in self.of(run_id):
            if self.kids[child].is_beside:
                continue
            times = sum(text.startswith(f"report of {child}:") for text in said)
            if times > 1:
                self.ledger.broken(GIVEN, f"{run_id} is told {times} times what {child} came to")

    # ---- by commits -------------------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> None:
        """Entries are on disk, all at once."""
        changes = [entry for entry in entries if isinstance(entry, RunChanged)]
        self._check_begun(entries, changes)
        ended = {change.run_id for change in changes if change.end is not None}
        told: dict[str, list[ChildEnded]] = {}
        for change in changes:
            for event in change.delta.events:
                if isinstance(event, ChildEnded):
                    told.setdefault(event.run_id, []).append(event)
                    if self.kids[event.run_id].spec.parent.run_id != change.run_id:  # type: ignore[union-attr]
                        self.ledger.broken(TOLD, f"{change.run_id} is told of {event.run_id}")
        for run_id in {*told, *(ended & self.kids.keys())}:
            self._check_told(run_id, told.get(run_id, []), now=run_id in ended)
        for run_id in ended:
            left = [one for one in self.of(run_id) if self.ledger.disk.runs[one].end is None]
            if left:
                self.ledger.broken(OUTLIVED, f"{run_id} is over, and {left} are not")

    def _check_begun(self, entries: Sequence[Entry], changes: Sequence[RunChanged]) -> None:
        added = {
            entry.spec.run_id
            for entry in entries
            if isinstance(entry, RunAdded) and not entry.again and entry.spec.parent is not None
        }
        for change in changes:
            for event in change.delta.events:
                if isinstance(event, ChildrenStarted):
                    for one in event.children:
                        self._check_child(change, one["run_id"], one["call_id"], one["agent"])
                        added.discard(one["run_id"])
        if added:
            self.ledger.broken(WITH_CALL, f"{added} are on disk, and no run has begun them")

    def _check_child(self, change: RunChanged, run_id: str, call_id: str, agent: str) -> None:
        parent, kid = self.ledger.disk.runs[change.run_id], self.kids.get(run_id)
        if kid is None or kid.spec.parent is None:
            self.ledger.broken(WITH_CALL, f"{change.run_id} begins {run_id}, which is not on disk")
            return
        link, above = kid.spec.parent, parent.spec.parent
        path, depth = (agent, 1) if above is None else (f"{above.agent}/{agent}", above.depth + 1)
        if (link.run_id, link.call_id, link.root) != (change.run_id, call_id, parent.spec.root) or (
            (link.agent, link.depth) != (path, depth)
        ):
            self.ledger.broken(WITH_CALL, f"{run_id} stands at {link}, and was begun as {path}")
        log = self.ledger.disk.logs[parent.spec.conversation_id]
        place = next((at for at in range(len(log) - 1, -1, -1) if log[at].tool_calls), -1)
        asking = log[place] if place >= 0 else None
        sent = spec_at(self.agents, path)
        said = [one.encoded for one in log[:place]] if sent.fork else []
        if kid.spec.config.contract != sent.contract or link.typed != (
            sent.output_type is not None
        ):
            self.ledger.broken(HELD_TO, f"{run_id} is held to {kid.spec.config.contract}")
        if [one.encoded for one in kid.spec.task[:-1]] != said or link.forked != len(said):
            self.ledger.broken(BEGINS, f"{run_id} begins with {link.forked} messages of {place}")
        calls = () if asking is None else asking.tool_calls
        call = next((one for one in calls if one.id == call_id), None)
        if call is None or call.name != agent or delegated_in(call) != kid.name:
            self.ledger.broken(WITH_CALL, f"{run_id} is of {kid.name}, and its call is {call}")

    def _check_told(self, run_id: str, told: Sequence[ChildEnded], *, now: bool) -> None:
        kid, end = self.kids[run_id], self.ledger.disk.runs[run_id].end
        link = kid.spec.parent
        assert link is not None, "it is a child"
        kid.told += len(told)
        with_parent = self.ledger.disk.runs[link.run_id].end is not None
        if end is None or not now:
            self.ledger.broken(TOLD, f"{run_id} is told of in another commit than it ends")
        elif kid.told > 1 or (not told and not (with_parent and end.reason.kind == "parent")):
            self.ledger.broken(TOLD, f"{run_id} ends, and was told of {kid.told} times")
        elif told and (told[0].status, told[0].call_id) != (status_of(kid.spec, end), link.call_id):
            self.ledger.broken(TOLD, f"{run_id} is {end.status}({end.reason.kind}): {told[0]}")

    # ---- at the end -------------------------------------------------------------------

    def check_end(self) -> None:
        """All is over: what a run did not have answered, ended with it."""
        for run_id, kid in self.kids.items():
            link, run = kid.spec.parent, self.ledger.disk.runs[run_id]
            assert link is not None, "it is a child"
            parent = self.ledger.disk.runs[link.run_id]
            if run.end is None:
                self.ledger.broken("every run ends", f"{run_id} does not")
            elif not kid.given and not kid.is_beside and self._must_have(parent):
                self.ledger.broken(GIVEN, f"{link.run_id} is done without {run_id}")

    def _must_have(self, parent: DiskRun) -> bool:
        """Whether a run is done, and nobody else has had a hand in its conversation."""
        talk = parent.spec.conversation_id
        others = sum(one.spec.conversation_id == talk for one in self.ledger.disk.runs.values())
        done = parent.end is not None and parent.end.status == "done"
        return done and others == 1 and not parent.spec.custom


def results_in(log: Sequence[Message], added: int) -> Iterator[tuple[ToolCall, Message]]:
    """The results among the newest messages of a log, with their calls."""
    first = len(log) - added
    start = next((at for at in range(first - 1, -1, -1) if log[at].role == "assistant"), first)
    calls: dict[str | None, ToolCall] = {}
    for at in range(start, len(log)):
        message = log[at]
        if message.role == "assistant":
            calls = {call.id: call for call in message.tool_calls}
        elif message.role == "tool" and at >= first and message.tool_call_id in calls:
            yield calls[message.tool_call_id], message


def status_of(spec: RunSpec, end: HarnessResult) -> str:
    """How a child has ended, for the one that waits for it."""
    kind, link = end.reason.kind, spec.parent
    unmet = end.contract is not None and not end.contract.satisfied
    if end.status == "done" and (unmet or (link and link.typed and not end.completion_verified)):
        return "failed"
    if end.status == "limit" and kind in ("time", "working_time"):
        return "timed_out"
    if end.status == "failed" and kind in ("executor_lost", "node_lost"):
        return "lost"
    return {"done": "completed", "cancelled": "cancelled"}.get(end.status, "failed")


def says(text: str, spec: RunSpec, end: HarnessResult) -> bool:
    """Whether a result says what a child came to, and how it ended."""
    text = without_notes(text)
    most = None if spec.parent is None else spec.parent.most_words
    words = end.output_text.split()
    said = " ".join(words[:most])
    cut = most is not None and len(words) > most
    if status_of(spec, end) == "completed":
        if spec.parent is not None and spec.parent.typed:
            return text == orjson.dumps(end.output).decode()
        return text == said if not cut else text.startswith(f"{said}\n[Cut to {most} of")
    ending = f" ended {end.status}({end.reason.kind}): "
    return ending in text and end.reason.message in text and said in text


def without_notes(text: str) -> str:
    """A text without what it tells of copies in which others have worked."""
    return _NOTE.sub("", text)


def is_by_kin(change: RunChanged) -> bool:
    """Whether a run that is put aside only ends with its parent, or is told how its own do."""
    if change.end is not None:
        return change.end.reason.kind == "parent"
    told = {write.key for write in change.delta.writes} <= {CHILDREN_USAGE.name, CHILD_RESULTS.name}
    return told and change.hop is None and not change.delta.messages
