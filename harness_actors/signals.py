"""What one executor tells the next: the messages that travel along the workflow's edges."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from harness_actors.config import ChildWorkspace, HarnessConfig
from harness_actors.messages import check_plain
from harness_actors.pickling import pickled_by_position
from harness_actors.results import LimitKind, Reason, Status, check_reason

TurnEnding = Literal["completed", "text", "rounds", "stalled", "limit", "error"]
"""How a turn ended: `work_complete` succeeded; the model answered without a call;
`max_rounds_per_turn` or a bound of the turn was reached; its rounds came to nothing, and went on
so when the model was told; a bound of the run was reached; an error no retry can help."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RepairTrigger:
    """Begin the next cycle. Of a run that starts, goes on, or is taken up again."""

    resumed: bool = False
    """The run was interrupted: a process died, or its command was stopped."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RepairComplete:
    repairs_made: int = 0


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionComplete:
    repairs_made: int = 0
    tokens: int = 0
    """Tokens of the next request, as far as they are known."""
    plan_updated: bool = False
    tokens_freed: int = 0
    compaction_needed: bool = False


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnComplete:
    """What a turn came to: all that the stop decision judges by."""

    ending: TurnEnding
    text: str = ""
    """The summary given with `work_complete`, or the model's last text."""
    progressed: bool = False
    """A tool other than `work_complete` succeeded in this turn."""
    limit: LimitKind | None = None
    """Which bound was reached, if the turn ended by `limit`."""
    error: Mapping[str, Any] | None = None
    """Kind of reason, type and message, if the turn ended by `error`; of a conversation that does
    not fit its window the message."""
    findings: tuple[str, ...] = ()
    """Why what the agent came to is not accepted, where it says that it is done."""
    stall: str = ""
    """How its last rounds came to nothing, as the model or the user is told; empty where they did
    not."""
    output: Any = None
    """The value that it says it is done with, as plain values, where it fits the type that the
    run is to come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomSignal:
    """A message of a user's own executor; `data` holds plain JSON values."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_plain(f"signal {self.name!r}", self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """The run was asked to stop between two rounds and did; it can be taken up again."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStart:
    """A child that a run is to have.

    Attributes:
        call_id: The tool call whose result its end is.
        agent: Its agent's name among those of its parent's.
        pool: Whose actors serve it.
        task: What it is told.
        config: Its settings, held to what is left of its parent's bounds.
        most_words: How long its answer may be; None for any length.
        model: Name of its model, for people.
        typed: It comes to a value, and not to words.
        background: The run goes on beside it: the result of the call is a handle, at once.
        forked: It begins with the conversation of the run, up to the message of the call.
        workspace: Where it works, as to the workspace of the run.
        copies: The folder in which a copy of that is made; empty where there is to be none.
    """

    call_id: str
    agent: str
    pool: str
    task: str
    config: HarnessConfig
    most_words: int | None = None
    model: str = ""
    typed: bool = False
    background: bool = False
    forked: bool = False
    workspace: ChildWorkspace = "shared"
    copies: str = ""


ChildRequestKind = Literal["list", "status", "wait", "result", "send", "cancel"]


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRequest:
    """What a run asks of those that it has begun beside it; whoever serves them answers.

    Attributes:
        call_id: The tool call whose result the answer is.
        kind: What is asked: which there are; where they stand; that all or any of them end; what
            one came to; to tell one something; or to end some.
        children: Handles; empty for all that there are.
        text: What one is told.
        any: It is enough that one of them ends.
        timeout_s: How long to wait at most, in seconds; None for as long as it takes.
    """

    call_id: str
    kind: ChildRequestKind
    children: tuple[str, ...] = ()
    text: str = ""
    any: bool = False
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The run has asked its user, or has begun children, and goes on in the middle of its turn when
    that has answered, or all of these have ended.

    What it asks is in its state; see `QUESTIONS`. Meanwhile it is at no host.
    """

    children: tuple[ChildStart, ...] = ()
    """Those that it is to have."""
    requests: tuple[ChildRequest, ...] = ()
    """What it asks of those that it has."""

    @property
    def on_user(self) -> bool:
        """It asks its user, and no run below it."""
        return not self.children and not self.requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Yielded:
    """The next request is too large for its model: room is to be made first, and the run goes on in
    the middle of its turn then. What is to fit is in its state; see `PRESSURE`."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The run is over.

    Raises:
        ValueError: The status does not have this reason; see `REASONS`.
    """

    status: Status
    reason: Reason
    output_text: str = ""
    completion_verified: bool = False
    output: Any = None
    """The value of the run, as plain values."""

    def __post_init__(self) -> None:
        # Here, at the executor that made it, and not later at the coordinator.
        check_reason(self.status, self.reason.kind)


Signal = RepairTrigger | RepairComplete | CompactionComplete | TurnComplete | CustomSignal
"""What travels along an edge."""

Outcome = Signal | Parked | Waiting | Yielded | RunEnd
"""What an executor may answer."""

_SIGNALS: dict[str, type[Signal]] = {
    kind.__name__: kind
    for kind in (RepairTrigger, RepairComplete, CompactionComplete, TurnComplete, CustomSignal)
}


def encode_signal(signal: Signal) -> dict[str, Any]:
    """The signal as plain values; `decode_signal` reads them back."""
    # Not `asdict`, which copies what nobody changes.
    values = {f.name: getattr(signal, f.name) for f in fields(signal)}
    for name in ("findings", "stall"):
        if not values.get(name, True):
            del values[name]
    if values.get("output", ...) is None:
        del values["output"]
    return {"kind": type(signal).__name__, **values}


def decode_signal(plain: Mapping[str, Any]) -> Signal:
    """What `encode_signal` wrote.

    Raises:
        KeyError: The kind of signal is unknown.
    """
    given = {name: value for name, value in plain.items() if name != "kind"}
    if "findings" in given:
        given["findings"] = tuple(given["findings"])
    return _SIGNALS[plain["kind"]](**given)
