"""What a coordinator and its executor hosts tell one another, and under which names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness_actors.messages import Message
from harness_actors.pickling import pickled_by_position
from harness_actors.plan import CompactionPlan, Summary
from harness_actors.records import RunSpec
from harness_actors.results import Usage
from harness_actors.signals import Outcome, RunEnd, Signal
from harness_actors.state import Letter, StateDelta

QUARANTINE = -1
CUSTOM = "custom"
"""The kind of an actor that hosts an executor of a user's own."""
COMPACTION_WORKER = "compaction_worker"
"""The kind of an actor that puts what runs no longer need to see into few words."""


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """The place of one actor in a cell; the actor in it may be replaced.

    Attributes:
        kind: Name of its kind: of our executor that it hosts, `CUSTOM`, or of what serves beside.
        code: Hash of the blob that a user's own executor comes from; empty for ours.
        index: Which of several; `QUARANTINE` serves one run at a time.
        pool: Whom of its kind it is kept for: for `CUSTOM` the name of the executor, else the
            children that some agents run; empty for all others.
    """

    kind: str
    code: str = ""
    index: int = 0
    pool: str = ""

    @property
    def executor(self) -> str:
        """Name of the executor that it hosts."""
        return self.pool if self.code else self.kind

    @property
    def is_pool(self) -> bool:
        """Whether it is kept for runs that others have begun."""
        return bool(self.pool) and not self.code

    def __str__(self) -> str:
        name = self.pool or self.kind
        if self.index == QUARANTINE:
            return f"{name}[quarantine]"
        return name if self.index == 0 else f"{name}[{self.index}]"


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Offer:
    """A plan that was made in the background.

    Attributes:
        plan: It; made from the one that the run has, or it would not be offered.
        freed_tokens: By how much the next request is smaller.
    """

    plan: CompactionPlan
    freed_tokens: int

    @property
    def as_pair(self) -> tuple[CompactionPlan, int]:
        return self.plan, self.freed_tokens


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Deliver:
    """To a host: serve this signal of a run.

    Attributes:
        signal: What the executor before it answered.
        values: The entries of the state that the executor reads, as plain values.
        log_from: Length of the log that the host is believed to have.
        log: The messages after it.
        started_at: When the run's time began, in seconds since the epoch: when it was submitted
            first, later by its waits for its user.
        parking: The run was asked to stop at the next round.
        spec: The run; None where the host has it already.
        stream: Name of the stream actor that is to be told what the model says; empty where
            nobody reads it.
        plan: How the log is shown; None where the host knows it, or it is shown as it is.
        offer: To whoever makes room, a plan that does; None for none.
        offered: To an agent turn, the version of a plan that is offered; 0 for none.
    """

    signal: Signal
    values: Mapping[str, Any]
    log_from: int
    log: tuple[Message, ...]
    started_at: float
    parking: bool
    spec: RunSpec | None
    stream: str = ""
    plan: CompactionPlan | None = None
    offer: Offer | None = None
    offered: int = 0


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Committed:
    """To a host: its changes of this hop up to number `change` are on disk."""

    change: int


@dataclass(frozen=True, slots=True)
class Park:
    """To a host: stop the run at the next round."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """To a host: do not stop the run at the next round after all."""


@dataclass(frozen=True, slots=True)
class Speak:
    """To a host: tell a stream actor what the model says, from its next answer on."""

    stream: str


@dataclass(frozen=True, slots=True)
class Offered:
    """To an agent turn: there is a plan of this version, which makes room in the window."""

    version: int


@dataclass(frozen=True, slots=True)
class Mail:
    """To an agent turn: what the run is to be told before its next model call.

    Attributes:
        letters: The new ones; they come after those that it has.
    """

    letters: tuple[Letter, ...]


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Summarize:
    """To a worker: make a plan by which less of a run is shown, with a summary of the rest.

    Attributes:
        spec: The run.
        log: Its conversation; what is summarized already is empty.
        plan: How it is shown; None for as it is.
        request_tokens: How large its next request is.
        window_tokens: How large one may be.
        known: Summaries of it that are on disk and in no plan yet, by their keys.
        keep: What its user wants to be kept, in their words.
        asked: Its user has asked for it, so that it is done however full the window is.
    """

    spec: RunSpec
    log: tuple[Message, ...]
    plan: CompactionPlan | None
    request_tokens: int
    window_tokens: int
    known: Mapping[str, Summary]
    keep: str = ""
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """To a host: cancel what it does for the run; nobody waits for an answer."""


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Forget:
    """To a host: the run is over, or goes on elsewhere.

    Attributes:
        end: How it ended, which is on disk; None where it did not, or another host is told.
        turn: Its last turn.
    """

    end: RunEnd | None = None
    turn: int = 0


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Changed:
    """From a host: a change to commit before its answer is there."""

    delta: StateDelta


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Answered:
    """From a host: what the executor came to, with its last change."""

    delta: StateDelta
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ToolsStarted:
    """From a host: tools begin to run that no pending record announced, or an executor of the
    user's own, or a large answer is taken in. Never committed. It has the number of what its host
    said before it, and may come earlier than that.

    Attributes:
        tools: Their names, each once; empty where it is not a tool.
    """

    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryWanted:
    """From an agent turn: the model asks for a summary of the conversation. Never committed, and
    numbered as `ToolsStarted` is.

    Attributes:
        keep: What is to be kept, in its words; empty for nothing of its own.
    """

    keep: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotWanted:
    """From a host: its copy of the log does not fit; send all of it."""


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Summarized:
    """From a worker: a part of the conversation in few words, which is to be kept.

    Attributes:
        key: Hash of what was summarized, and by whom.
        summary: It.
        usage: What was used for it.
    """

    key: str
    summary: Summary
    usage: Usage


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Proposed:
    """From a worker: what came of a job, which is over.

    Attributes:
        offer: A plan; None where too little would be gained, or it failed.
        problem: Why it failed; empty where it did not.
    """

    offer: Offer | None = None
    problem: str = ""


ToWorker = Summarize | Cut
FromWorker = Summarized | Proposed
ToHost = Deliver | Committed | Park | GoOn | Speak | Cut | Forget | Offered | Mail
FromHost = Changed | Answered | ToolsStarted | SummaryWanted | SnapshotWanted


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Envelope:
    """A message between two actors, with what its receiver needs to know it again.

    Attributes:
        run_id: The run that it is about.
        term: Term of the coordinator.
        hop_number: Which hop of the run, or which job for it; answers carry that of what they
            answer. Both are counted together.
        seq: Number within the hop, growing from 1 in each direction; `ToolsStarted` and
            `SummaryWanted` have that of the message before them.
        body: What is said.
    """

    run_id: str
    term: int
    hop_number: int
    seq: int
    body: ToHost | FromHost | ToWorker | FromWorker

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.term, self.hop_number, self.seq)
