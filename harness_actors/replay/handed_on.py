"""The calls of a run that its user answered, or runs of their own, as its journal has them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from harness_actors.events import ChildrenStarted
from harness_actors.messages import ToolCall
from harness_actors.ports import AskedQuestion, Delegation
from harness_actors.records import StoredChange
from harness_actors.replay.recording import RecordedChild, Recording
from harness_actors.signals import ChildRequest, TurnComplete
from harness_actors.state import CHILD_RESULTS, CHILD_WAITS, QUESTIONS
from harness_actors.subagents.spec import BESIDE
from harness_actors.turn.questions import ASKED

CallPlace = tuple[int, str]
"""A call of a run: by how many answers its model had given with the one that asks for it, and by
its id, which comes again in other answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOn:
    """What became of such calls.

    Attributes:
        asked: The calls that asked the user, and what.
        delegated: The calls that began runs, and what of these their own run sees; and those that
            asked something of such.
        not_begun: The calls that began no run when their neighbours did: they had been refused.
    """

    asked: Mapping[CallPlace, tuple[ToolCall, AskedQuestion]]
    delegated: Mapping[CallPlace, tuple[ToolCall, Delegation | ChildRequest]]
    not_begun: Collection[CallPlace]

    @classmethod
    def in_recording(cls, recording: Recording) -> "HandedOn":
        """Those of a run."""
        asked: dict[CallPlace, tuple[ToolCall, AskedQuestion]] = {}
        delegated: dict[CallPlace, tuple[ToolCall, Delegation | ChildRequest]] = {}
        not_begun: set[CallPlace] = set()
        answers, calls = 0, dict[str, ToolCall]()
        for change in recording.changes:
            for message in change.delta.messages:
                if message.role == "assistant":
                    answers, calls = answers + 1, {call.id: call for call in message.tool_calls}
            for call_id, question in _asked(change):
                # An executor in the place of the agent turn may ask by none.
                if (call := calls.get(call_id)) is not None:
                    asked[answers, call_id] = call, question
            if (refused := _not_asked(change)) is not None and refused[0] in calls:
                asked[answers, refused[0]] = calls[refused[0]], refused[1]
            begun = [child for child in children_of(change) if child["call_id"] in calls]
            for child in begun:
                call = calls[child["call_id"]]
                delegated[answers, call.id] = call, _delegation(child, recording)
            if begun:
                names = {calls[child["call_id"]].name for child in begun} | recording.delegates
                ids = {child["call_id"] for child in begun}
                not_begun |= {(answers, one) for one in _passed_over(ids, names, calls.values())}
            for call_id in _answered(change):
                if (call := calls.get(call_id)) is not None and call.name in BESIDE:
                    delegated[answers, call_id] = call, asked_of_children(call)
        return cls(asked=asked, delegated=delegated, not_begun=not_begun)


def children_of(change: StoredChange) -> Iterator[Mapping[str, str]]:
    """The runs that a change says were begun; see `ChildrenStarted`."""
    for event in change.delta.events:
        if isinstance(event, ChildrenStarted):
            yield from event.children


def _passed_over(
    begun: Collection[str], names: Collection[str], calls: Iterable[ToolCall]
) -> set[str]:
    """The neighbours of calls that began runs which could have, and did not.

    Args:
        begun: Those that did.
        names: The tools by which runs are begun.
        calls: The calls of their message, in their order.
    """
    left: set[str] = set()
    delegating = {*names, *BESIDE}
    for delegates, group in groupby(calls, key=lambda call: call.name in delegating):
        wave = list(group)
        if delegates and any(call.id in begun for call in wave):
            left |= {call.id for call in wave if call.id not in begun and call.name not in BESIDE}
    return left


def _delegation(told: Mapping[str, str], recording: Recording) -> Delegation:
    child = recording.children.get(told["run_id"], RecordedChild())
    return Delegation(
        agent=told["agent"],
        pool="",
        task="",
        most_words=child.most_words,
        contract=child.contract,
        typed=child.typed,
        background=bool(told.get("background")),
        workspace="copy" if child.copied else "shared",
    )


def asked_of_children(call: ToolCall) -> ChildRequest:
    """What a call asked; how it was answered is on record."""
    return ChildRequest(call_id=call.id, kind="list")


def _answered(change: StoredChange) -> Iterator[str]:
    for write in change.delta.writes:
        if write.key == CHILD_RESULTS.name and write.change == "append":
            yield write.value["call_id"]
        elif write.key == CHILD_WAITS.name:
            yield from (wait["call_id"] for wait in write.value or ())


def _not_asked(change: StoredChange) -> tuple[str, AskedQuestion] | None:
    """The call that would have asked, and what, where a turn has ended because it must not."""
    signal = None if change.hop is None else change.hop.signal
    error = signal.error if isinstance(signal, TurnComplete) else None
    if error is None or error.get("type") != ASKED or "call_id" not in error:
        return None
    return error["call_id"], AskedQuestion(text=error["question"])


def _asked(change: StoredChange) -> Iterator[tuple[str, AskedQuestion]]:
    for write in change.delta.writes:
        questions = QUESTIONS.decode(write.value) if write.key == QUESTIONS.name else None
        for one in () if questions is None else questions.asked:
            # An approval is of a call that asks for nothing itself.
            if one.call is None:
                yield one.call_id, AskedQuestion(text=one.text, options=one.options, why=one.why)
