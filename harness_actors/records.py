"""What a journal keeps: runs, their changes, their code, and the processes that serve them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness_actors.config import HarnessConfig
from harness_actors.messages import Message
from harness_actors.pickling import pickled_by_position
from harness_actors.plan import Summary
from harness_actors.results import HarnessResult, Usage
from harness_actors.signals import Signal
from harness_actors.state import COMPACTION, SharedState, StateDelta


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceSpec:
    """Where a run works.

    Attributes:
        path: The folder that the run's tools see; made before the first turn.
        source: A folder that it begins as a copy of; None begins empty.
        covered: A folder around it, of which the commands of the run see nothing else; None
            for none.
        must_be_covered: Where that cannot be done, no command of the run starts.
        base: A second copy of `source`, made with the first and in the same folder, in which nobody
            works; None for none.
        read_only: Our tools write nothing there.
    """

    path: str
    source: str | None = None
    covered: str | None = None
    must_be_covered: bool = False
    base: str | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class FolderId:
    """What tells a folder from another one that is put in its place."""

    device: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "FolderId":
        """That of a folder that was looked at."""
        return cls(found.st_dev, found.st_ino)


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWith:
    """What a run is made with, in names.

    Attributes:
        agent: Name of its agent.
        model: Name of its model.
        setup: Hash of both with the settings; equal set-ups have equal ones.
    """

    agent: str
    model: str
    setup: str


CHILD_MARK = "."
"""In the id of a child, before its number among the children of its parent."""


def id_at_the_top(run_id: str, root: str, question_id: str) -> str:
    """What a question of a run below others is called where its user is asked: at the run at the
    top of its tree.

    >>> id_at_the_top("3f2a.1.2", "3f2a", "q1")
    '1.2.q1'
    """
    return f"{run_id.removeprefix(root + CHILD_MARK)}{CHILD_MARK}{question_id}"


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ParentLink:
    """Where a child stands: a run that another one has begun, and whose end it waits for.

    Attributes:
        run_id: The run that has begun it.
        root: The run at the top of their tree, which nobody has begun.
        call_id: The tool call by which it was begun, and whose result its end is.
        agent: Which of the agents of their program it runs: names from the top, with slashes.
        pool: Whose actors serve it.
        depth: How many runs stand above it, from 1.
        most_words: How long its answer may be; None for any length.
        typed: It comes to a value, and not to words.
        background: The run that has begun it goes on beside it.
        forked: How many messages of its task are the conversation of the run that has begun it.
        forked_from: Which conversation that is; empty where there are none.
        copied: It works in a copy of the workspace of the run that has begun it.
    """

    run_id: str
    root: str
    call_id: str
    agent: str
    pool: str
    depth: int = 1
    most_words: int | None = None
    typed: bool = False
    background: bool = False
    forked: int = 0
    forked_from: str = ""
    copied: bool = False


def child_handle(child: str, agent: str) -> str:
    """What the run that has begun a child calls it, such as ``research-1``.

    Args:
        child: Its id.
        agent: Its agent, with or without those above it.
    """
    return f"{agent.rpartition('/')[2]}-{child.rpartition(CHILD_MARK)[2]}"


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """All that is needed to run a task, and to go on with it in another process.

    Attributes:
        run_id: Unique name of the run.
        conversation_id: The conversation whose log it continues; its own where it is new.
        task: The messages that begin it.
        code: Hash of the blob with its agent and custom executors.
        config: Its settings.
        edges: The workflow: pairs of executor names; the first of a name is its default.
        custom: Names of the executors that are in the blob.
        keys: Names of the secrets that its model needs.
        workspace: Where its tools work; None for none.
        metadata: Plain values of whoever submitted it, such as a batch's task id.
        made_with: Its agent, model and set-up; None for a run of an earlier version.
        late_hooks: It may end some seconds late, for its agent has `post_tool` hooks, which must
            see each result.
        parent: The run that has begun it; None of one that a user has asked for.
    """

    run_id: str
    conversation_id: str
    task: tuple[Message, ...]
    code: str
    config: HarnessConfig
    edges: tuple[tuple[str, str], ...]
    custom: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    workspace: WorkspaceSpec | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    made_with: MadeWith | None = None
    late_hooks: bool = False
    parent: ParentLink | None = None

    @property
    def root(self) -> str:
        """The run at the top of its tree: its own id where it has no parent."""
        return self.run_id if self.parent is None else self.parent.root

    @property
    def said(self) -> tuple[Message, ...]:
        """What it was asked for: its task, without the conversation that a fork begins with."""
        return self.task if self.parent is None else self.task[self.parent.forked :]

    @property
    def replaces_compaction(self) -> bool:
        """Whether a user's own executor stands in the place of `compaction`. Ours is in the blob,
        too, where it asks strategies of the agent's own."""
        settings = self.config.compaction
        asks_own = settings is not None and settings.asks_own_strategies
        return COMPACTION in self.custom and not asks_own

    @property
    def is_summarized(self) -> bool:
        """Whether its conversation is summarized beside it: its settings say so, and its workflow
        has ours to take the plan."""
        settings = self.config.compaction
        taken = any(end == COMPACTION for _, end in self.edges) and not self.replaces_compaction
        return settings is not None and settings.summaries and taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A signal on its way: which executor is to get what next."""

    to: str
    signal: Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeStored:
    """A blob of code, known by its hash; storing it again changes nothing."""

    code: str
    blob: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAdded:
    """A new run, or with `again` an unfinished one that another command takes up."""

    spec: RunSpec
    command: str
    """The command that works on the run; a later one must take it up to continue it."""
    at: float
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChanged:
    """One committed change of a run.

    Attributes:
        run_id: The run.
        version: Version of its state after the change.
        delta: What changed.
        hop: Where the run goes on; None where that did not change.
        losses: Deaths of executors since its last progress.
        end: How it ended, without the transcript; None while it goes on.
        at: Seconds since the epoch.
    """

    run_id: str
    version: int
    delta: StateDelta
    hop: Hop | None
    losses: int
    end: HarnessResult | None
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken:
    """The entries of a run's state at a version, so that loading need not add them up."""

    run_id: str
    version: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """A process that serves the runs of a journal.

    Attributes:
        role: Which actor it is.
        node: The machine: its boot id. A pid means nothing on another one.
        pid: Process id there.
        started: Start time of the process in clock ticks since boot, which tells it
            from a later one with the same pid.
    """

    role: str
    node: str
    pid: int
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryStored:
    """A part of a run's conversation in few words, known by its key; storing it again changes
    nothing."""

    run_id: str
    key: str
    summary: Summary


Entry = CodeStored | RunAdded | RunChanged | SnapshotTaken | ProcessMark | SummaryStored


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as the journal knows it.

    Attributes:
        spec: What was asked for.
        command: The command that worked on it last.
        added_at: When it was first submitted, in seconds since the epoch.
        state: Its state, the conversation's log included.
        hop: Where it goes on; None before its first change.
        losses: Deaths of executors since its last progress.
        end: How it ended; None while it is unfinished.
        summaries: Parts of its conversation in few words that are in no plan yet, by their keys.
    """

    spec: RunSpec
    command: str
    added_at: float
    state: SharedState
    hop: Hop | None
    losses: int
    end: HarnessResult | None
    summaries: Mapping[str, Summary] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChange:
    """One committed change of a run, with its place in the journal.

    Attributes:
        position: Journal position, unique among all changes of the journal.
        at: When it was committed, in seconds since the epoch.
        version: Version of the run's state after it; they count up from 1.
        delta: What changed, with its messages and events.
        hop: Where the run went on; None where that did not change.
        losses: Deaths of executors since the run's last progress.
    """

    position: int
    at: float
    version: int
    delta: StateDelta
    hop: Hop | None
    losses: int


RunPhase = Literal["running", "parked", "waiting", "ended"]
"""Whether a command works on a run, or would on its resume; nobody does; it waits for answers of
its user, or to be taken up with them; or it is over."""


TOLD_OF_QUESTIONS = (
    *("id", "text", "options", "why", "path", "kind", "tool", "arguments", "expires_at"),
)
"""What is told of a question to whoever may answer it; `path` of those of runs below the one that
is asked about, and the last four of approvals alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeading:
    """What a list of runs shows of one: read without its state.

    Attributes:
        run_id: The run.
        conversation_id: The conversation that it belongs to.
        added_at: When it was first submitted, in seconds since the epoch.
        metadata: Plain values of whoever submitted it.
        end: How it ended; None while it is unfinished.
        command: The command that works on it, or worked on it last; empty where it is
            parked and no command has taken it up again.
        changed_at: When its newest change was committed, or it was submitted last.
        turns: Turns that were started.
        rounds: Model calls that were answered.
        usage: What it has used.
        workspace: Where an unfinished run works; None for nowhere, and where it is over.
        questions: What a run asks that waits for its user, and what those below it ask while
            others of its tree go on: plain values of each question with,
            under ``answer``, what was answered, or None. Of an approval that nobody has given in
            time it is what counts from then on, and ``expired`` is true. Empty of any other run.
        others_go_on: What it asks is asked below it, where others of its tree go on, or can.
        root: Of a child, the run at the top of its tree; empty of any other.
    """

    run_id: str
    conversation_id: str
    added_at: float
    metadata: Mapping[str, Any]
    end: HarnessResult | None
    command: str = ""
    changed_at: float = 0.0
    turns: int = 0
    rounds: int = 0
    usage: Usage = field(default_factory=Usage)
    workspace: str | None = None
    questions: tuple[Mapping[str, Any], ...] = ()
    others_go_on: bool = False
    root: str = ""

    @property
    def open_questions(self) -> tuple[dict[str, Any], ...]:
        """What it asks that is not answered, as `InputAwaited` has it."""
        return tuple(
            {name: question[name] for name in TOLD_OF_QUESTIONS if name in question}
            for question in self.questions
            if question["answer"] is None
        )

    @property
    def is_answered(self) -> bool:
        """Nothing that it asks is open: if it waits, then for nothing more than to be taken up."""
        return all(question["answer"] is not None for question in self.questions)

    @property
    def phase(self) -> RunPhase:
        """Where it stands. A journal cannot know whether its processes still live."""
        if self.end is not None:
            return "ended"
        if self.questions and not self.others_go_on:
            return "waiting"
        return "running" if self.command else "parked"
