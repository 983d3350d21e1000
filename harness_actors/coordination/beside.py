"""Runs that others have begun beside them: what those ask of them, and are told of their ends."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.ports import Clock
from harness_actors.records import CHILD_MARK, RunSpec, child_handle
from harness_actors.results import Usage
from harness_actors.signals import ChildRequest
from harness_actors.state import (
    BESIDE,
    CHILD_RESULTS,
    CHILD_WAITS,
    COORDINATOR,
    MAIL,
    USAGE,
    WAITED_S,
    ChildResult,
    ChildStatus,
    Letter,
    StateDelta,
    Write,
    is_waiting,
)
from harness_actors.subagents.letters import told_before

STARTED = (
    "Sent out in the background as {handle}. Go on with other work: what it comes to is told to "
    "you when it has ended."
)
NOBODY = "Nobody is at work in the background."
AT_WORK = "Still at work for you in the background: {handles}."
_UNKNOWN = "There is no agent {handle!r} in the background; there are {known}."
_WENT = "{handle} has ended before: {status}."
_ASIDE = "{handle} was put aside, and nobody has taken it up again yet."
_ASKS = "{handle} waits for an answer of its user, and goes on when it has that."
_FOLLOWS = " What it came to follows, if you have not been told yet."


class Family(Protocol):
    """Whoever knows which runs have begun which others."""

    def cancel(self, child: ActiveRun, effects: Effects) -> None:
        """End a run, because the one that has begun it wants that."""

    def aside(self, run: ActiveRun, child_id: str) -> ActiveRun | None:
        """A child of a run that was put aside, though that is in service; None where it was not."""


@dataclass(eq=False)
class Beside:
    """Answers what runs ask of those beside them, and has them told of ends.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        changes: Writes down what becomes of them.
        dispatch: Tells their hosts.
        clock: Tells the time.
        family: Ends those that are no longer wanted.
    """

    _runs: Mapping[str, ActiveRun]
    _changes: RunChanges
    _dispatch: Dispatch
    _clock: Clock
    _family: Family
    _due: list[tuple[float, str]] = field(default_factory=list, init=False)
    """When waits are over, by the run that waits."""

    # ---- what runs ask ----------------------------------------------------------------

    def answers(
        self, run: ActiveRun, requests: Sequence[ChildRequest], effects: Effects
    ) -> tuple[list[ChildResult], list[Mapping[str, Any]]]:
        """What comes of what a run asks.

        Returns:
            The answers that are there, and the waits that are still to be over, as plain values.
        """
        answers: list[ChildResult] = []
        waits: list[Mapping[str, Any]] = []
        for request in requests:
            answer = self._unknown(run, request) or self._answer(run, request, effects)
            if answer is None:
                timeout_s = request.timeout_s
                until = None if timeout_s is None else self._clock.now() + timeout_s
                wanted = request.children or tuple(self._at_work(run))
                waits.append(_plain_wait(request, wanted, until, run))
            else:
                answers.append(answer)
        # What a later call of the same message has ended is waited for no longer.
        over, left = _parted(waits, _known(run))
        return [*answers, *(_settled(wait, _known(run)) for wait in over)], left

    def _unknown(self, run: ActiveRun, request: ChildRequest) -> ChildResult | None:
        known = _known(run)
        for handle in request.children:
            if handle not in known:
                text = _UNKNOWN.format(handle=handle, known=", ".join(known) or "none")
                return _answer(request.call_id, text, "failed")
        return None

    def _answer(
        self, run: ActiveRun, request: ChildRequest, effects: Effects
    ) -> ChildResult | None:
        match request.kind:
            case "list":
                return _answer(request.call_id, self._listed(run))
            case "status":
                return _answer(request.call_id, self._standing(run, request.children[0]))
            case "result":
                return _answer(request.call_id, self._came_to(run, request.children[0]))
            case "send":
                return self._send(run, request, effects)
            case "cancel":
                return self._cancel(run, request, effects)
            case "wait":
                return self._over(run, request)

    def _listed(self, run: ActiveRun) -> str:
        known = _known(run)
        lines = (f"{one}: {status or self._where(run, one)}" for one, status in known.items())
        return "\n".join(lines) or NOBODY

    def _standing(self, run: ActiveRun, handle: str) -> str:
        child = self._child(run, handle)
        if child is None:
            return _went(run, handle) if _known(run)[handle] else self._put_aside(run, handle)
        used = Usage(**child.state.values.get(USAGE.name, {}))
        quiet_s = max(0.0, self._clock.now() - child.changed_at)
        return (
            f"{handle} is {self._where(run, handle)}; {quiet_s:.0f} s since something came of it, "
            f"{child.losses} restarts in a row, {used.model_calls} model calls, "
            f"{used.tool_calls} tool calls, {used.input_tokens + used.output_tokens} tokens"
        )

    def _where(self, run: ActiveRun, handle: str) -> str:
        child = self._child(run, handle)
        if child is None:
            return "waiting for its user" if self._asks(run, handle) else "put aside"
        if child.waits_for_children:
            return "waiting for its own agents"
        if child.slot is None:
            return "waiting for its turn"
        return f"at work ({child.slot.executor})"

    def _came_to(self, run: ActiveRun, handle: str) -> str:
        status = _known(run)[handle]
        if not status:
            return f"{handle} is still {self._where(run, handle)}, and you are told when it ends."
        letters = run.state.values.get(MAIL.name) or ()
        if any(letter["sender"] == handle for letter in letters):
            return f"{handle} {status}.{_FOLLOWS}"
        return told_before(run.state.log, handle, _known(run)) or f"{handle} {status}."

    def _send(self, run: ActiveRun, request: ChildRequest, effects: Effects) -> ChildResult:
        handle = request.children[0]
        child = self._child(run, handle)
        if child is None:
            text = _went(run, handle) if _known(run)[handle] else self._put_aside(run, handle)
            return _answer(request.call_id, text, "failed")
        self.post(child, Letter(sender="", status=None, text=request.text), effects)
        return _answer(request.call_id, f"{handle} reads it before it goes on.")

    def _cancel(self, run: ActiveRun, request: ChildRequest, effects: Effects) -> ChildResult:
        lines = []
        for handle in request.children:
            child = self._child(run, handle) or self._aside(run, handle)
            if child is None:
                lines.append(_went(run, handle))
            else:
                self._family.cancel(child, effects)
                lines.append(f"{handle} was cancelled.")
        return _answer(request.call_id, "\n".join(lines))

    def _over(self, run: ActiveRun, request: ChildRequest) -> ChildResult | None:
        wanted = request.children or tuple(self._at_work(run))
        if not wanted:
            return _answer(request.call_id, NOBODY)
        wait = _plain_wait(request, wanted, None, run)
        return _settled(wait, _known(run)) if _is_over(wait, _known(run)) else None

    # ---- what they are told -----------------------------------------------------------

    def post(self, run: ActiveRun, letter: Letter, effects: Effects) -> None:
        """A run is to be told something before its next model call."""
        write = Write(MAIL.name, "append", asdict(letter))
        self._changes.change(run, StateDelta((write,)), effects)
        self._dispatch.mail(run, (letter,), effects)

    def remind(self, run: ActiveRun, effects: Effects) -> None:
        """A run is shown less of its conversation: it is told who is still at work."""
        if left := ", ".join(self._at_work(run)):
            text = AT_WORK.format(handles=left)
            self.post(run, Letter(sender=COORDINATOR, status=None, text=text), effects)

    def ended(self, parent: ActiveRun, child: RunSpec, came_to: ChildResult) -> list[Write]:
        """A child is over: what is written of that with its parent."""
        handle = handle_of(child)
        letter = Letter(sender=handle, status=came_to.status, text=came_to.text)
        writes = [
            Write(BESIDE.name, "put", [handle, came_to.status]),
            Write(MAIL.name, "append", asdict(letter)),
        ]
        # Of thousands that nobody waits for, each end costs the same.
        if waits := parent.state.values.get(CHILD_WAITS.name):
            known = {**_known(parent), handle: came_to.status}
            over, left = _parted(waits, known)
            if over:
                writes += [_result(_settled(wait, known)) for wait in over]
                writes.append(Write(CHILD_WAITS.name, "set", left or None))
        return writes

    def tell(self, parent: ActiveRun, writes: Iterable[Write], effects: Effects) -> None:
        """Tell the host of a run what was written down for it."""
        letters = tuple(Letter(**one.value) for one in writes if one.key == MAIL.name)
        if letters:
            self._dispatch.mail(parent, letters, effects)

    # ---- waits ------------------------------------------------------------------------

    def watch(self, run: ActiveRun) -> None:
        """A run waits; it is looked at when the first of its waits is over."""
        waits = run.state.values.get(CHILD_WAITS.name) or ()
        times = [due for wait in waits if (due := _due(run, wait)) is not None]
        if times:
            heapq.heappush(self._due, (min(times), run.spec.run_id))

    @property
    def next_due(self) -> float | None:
        """When the next wait is over, in seconds since the epoch; None for never."""
        while self._due and not self._waits_until(*self._due[0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def _waits_until(self, at: float, run_id: str) -> bool:
        run = self._runs.get(run_id)
        if run is None:
            return False
        return any(_due(run, wait) == at for wait in run.state.values.get(CHILD_WAITS.name) or ())

    def overdue(self, answered: Callable[[ActiveRun, Sequence[Write]], None]) -> None:
        """Answer the calls that have waited long enough.

        Args:
            answered: Told of each run with such, and what is to be written of it.
        """
        now = self._clock.now()
        while self._due and self._due[0][0] <= now:
            _, run_id = heapq.heappop(self._due)
            run = self._runs.get(run_id)
            if run is None:
                continue
            waits = run.state.values.get(CHILD_WAITS.name) or ()
            late = [wait for wait in waits if (_due(run, wait) or now + 1) <= now]
            if not late:
                continue
            left = [wait for wait in waits if wait not in late]
            writes = [_result(_settled(wait, _known(run))) for wait in late]
            writes.append(Write(CHILD_WAITS.name, "set", left or None))
            answered(run, writes)
            self.watch(run)

    # ---- who there is -----------------------------------------------------------------

    def _child(self, run: ActiveRun, handle: str) -> ActiveRun | None:
        """A child that is in service."""
        return self._runs.get(self._id_of(run, handle))

    def _id_of(self, run: ActiveRun, handle: str) -> str:
        return f"{run.spec.run_id}{CHILD_MARK}{handle.rpartition('-')[2]}"

    def _aside(self, run: ActiveRun, handle: str) -> ActiveRun | None:
        return self._family.aside(run, self._id_of(run, handle))

    def _asks(self, run: ActiveRun, handle: str) -> bool:
        """Whether a child was put aside until its user has answered, or the user of one below."""
        child = self._aside(run, handle)
        return child is not None and is_waiting(child.state.values)

    def _put_aside(self, run: ActiveRun, handle: str) -> str:
        """That a child is not over, and not in service."""
        return (_ASKS if self._asks(run, handle) else _ASIDE).format(handle=handle)

    def _at_work(self, run: ActiveRun) -> Iterable[str]:
        return (handle for handle, status in _known(run).items() if not status)


def handle_of(child: RunSpec) -> str:
    """What the run that has begun a child calls it, where that goes on beside it."""
    assert child.parent is not None, "it is a child"
    return child_handle(child.run_id, child.parent.agent)


def started(child: RunSpec) -> ChildResult:
    """What the call comes to at once by which a child was begun beside its run."""
    assert child.parent is not None, "it is a child"
    text = STARTED.format(handle=handle_of(child))
    return _answer(child.parent.call_id, text)


def _due(run: ActiveRun, wait: Mapping[str, Any]) -> float | None:
    """When a call of a run has waited long enough, in seconds since the epoch; None for never.

    While its tree waits for its user, its time stands still.
    """
    if (until := wait.get("until")) is None:
        return None
    waited_s: float = run.state.values.get(WAITED_S.name, 0.0) - wait.get("waited_s", 0.0)
    return float(until) + waited_s


def _known(run: ActiveRun) -> Mapping[str, str]:
    return run.state.values.get(BESIDE.name) or {}


def _went(run: ActiveRun, handle: str) -> str:
    """That a child is not in service."""
    status = _known(run)[handle]
    return _WENT.format(handle=handle, status=status) if status else _ASIDE.format(handle=handle)


def _answer(call_id: str, text: str, status: ChildStatus = "completed") -> ChildResult:
    return ChildResult(call_id=call_id, run_id="", status=status, text=text)


def _result(result: ChildResult) -> Write:
    return Write(CHILD_RESULTS.name, "append", asdict(result))


def _plain_wait(
    request: ChildRequest, wanted: Sequence[str], until: float | None, run: ActiveRun
) -> dict[str, Any]:
    waited_s = run.state.values.get(WAITED_S.name, 0.0)
    return {
        "call_id": request.call_id,
        "children": list(wanted),
        "any": request.any,
        "until": until,
        # What its run has waited for its user before; of most it is nothing.
        **({"waited_s": waited_s} if waited_s and until is not None else {}),
    }


def _is_over(wait: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    ended = (bool(known.get(handle)) for handle in wait["children"])
    return any(ended) if wait["any"] else all(ended)


def _parted(
    waits: Sequence[Mapping[str, Any]], known: Mapping[str, str]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Those that are over, and those that are not."""
    over = [wait for wait in waits if _is_over(wait, known)]
    return over, [wait for wait in waits if wait not in over]


def _settled(wait: Mapping[str, Any], known: Mapping[str, str]) -> ChildResult:
    """What a call comes to that has waited."""
    lines = [f"{one}: {known.get(one) or 'still at work'}" for one in wait["children"]]
    return _answer(wait["call_id"], "\n".join(lines))
