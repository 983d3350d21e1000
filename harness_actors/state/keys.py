"""The entries of a run's state that are ours: names, types and owners."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness_actors.results import Usage
from harness_actors.state.kin import ChangedFiles, ChildResult, ChildWait, Letter
from harness_actors.state.shared import StateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call of the log that has no result yet."""

    call_id: str
    tool_name: str
    idempotent: bool
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnProgress:
    """Where the turn in progress stands; what a turn needs to go on after a pause."""

    rounds: int = 0
    progressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidDone:
    """How the agent has said that it is done, while its gates are asked whether it is.

    Attributes:
        ending: By the tool for it, or by a text.
        text: The summary given with that tool; empty where it is the newest text of the log.
        stall: How its last rounds came to nothing; empty where they did not.
        output: The value that it says it is done with.
    """

    ending: Literal["completed", "text"]
    text: str = ""
    stall: str = ""
    output: Any = None


QuestionKind = Literal["question", "approval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that waits for approval, as it is shown.

    Attributes:
        tool: What it calls.
        arguments: What it would be made with, as a JSON object; of very long ones, with long texts
            shortened.
        expires_at: Until when it may be decided, in seconds since the epoch; None for no end.
        default: The answer that counts from then on; None where it does not expire.
    """

    tool: str
    arguments: str
    expires_at: float | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an agent asks its user.

    Attributes:
        id: Unique in its run, and short enough to be typed.
        call_id: The tool call by which it was asked, whose result its answer is; or which is to
            be approved.
        text: The question.
        options: The answers that may be given; empty where any may.
        why: What the answer is needed for; empty where the model did not say.
        call: What is to be approved; None of a question. Its answer is then a decision, as
            `policies.decisions` has it.
    """

    id: str
    call_id: str
    text: str
    options: tuple[str, ...] = ()
    why: str = ""
    call: AskedCall | None = None

    @property
    def kind(self) -> QuestionKind:
        """Whether something is asked, or a call is to be approved."""
        return "question" if self.call is None else "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingAnswer:
    """What was decided of a call for later ones of its run, too.

    Attributes:
        tool: Name of the tool.
        answer: The decision, as an answer has it.
        arguments: What stands for the arguments of the calls that it is of; empty for all.
    """

    tool: str
    answer: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The questions of one message of the model.

    Attributes:
        asked: In its order.
        held: Ids of the calls of that message that have not begun: the questions, and all that
            stands after the first of them. They are open, and not lost. None is held any more
            once the run goes on.
    """

    asked: tuple[Question, ...]
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What the newest verification of a run's contract came to.

    Attributes:
        attempt: Which attempt to be done it was of, from 1.
        at: When it was, in seconds since the epoch.
        satisfied: Nothing was missing.
        marks: Five characters for each requirement, in the order of the contract: the letter of
            its status, and what tells its entry in the ledger from an earlier one. With them the
            next verification need not be sent the ledger to know what has changed.
    """

    attempt: int
    at: float
    satisfied: bool
    marks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """What is known of a request that is too large for its model.

    Attributes:
        window_tokens: How large a request may be.
        request_tokens: How large it was, the provider's counts included.
        overhead_tokens: Of that, prompt and tools, as we count them.
        plan: Version of the plan by which it was shown; 0 for none.
        policies: What the results of the agent's tools are worth later, as plain values of
            `ToolPolicy` by name.
        waits: Nobody has tried to make room since.
        refused: Its provider has refused it.
        largest: Position of the largest message that was left; None where nobody has looked.
        largest_tokens: Its size.
    """

    window_tokens: int
    request_tokens: int
    overhead_tokens: int
    plan: int = 0
    policies: Mapping[str, Any] = field(default_factory=dict)
    waits: bool = True
    refused: bool = False
    largest: int | None = None
    largest_tokens: int = 0


REPAIR = "repair"
COMPACTION = "compaction"
AGENT_TURN = "agent_turn"
STOP_DECISION = "stop_decision"
COORDINATOR = "coordinator"

TURN_COUNT: StateKey[int] = StateKey("harness.turn_count", int, AGENT_TURN, "increment", 0)
TURNS_MADE: StateKey[int] = StateKey("harness.turns_made", int, COORDINATOR, "set", 0)
"""Answers of an executor of the user's own that stands in the place of the agent turn, which
need not count its turns. Runs of other workflows do not have it."""
TURN: StateKey[TurnProgress | None] = StateKey("harness.turn", TurnProgress | None, AGENT_TURN)
"""The turn in progress; None between turns."""
TURN_BEGAN: StateKey[Usage | None] = StateKey("harness.turn_began", Usage | None, AGENT_TURN)
"""What the run had used when its turn began. Only runs that bound their turns have it."""
SAID_DONE: StateKey[SaidDone | None] = StateKey("harness.said_done", SaidDone, AGENT_TURN)
"""The turn in progress has only its gates to pass: its last round is on disk, and no model is asked
for it again. Only runs with gates at their end have it."""
OPEN_CALLS: StateKey[tuple[OpenCall, ...]] = StateKey(
    "harness.open_calls", tuple[OpenCall, ...], AGENT_TURN, "set", [], (REPAIR,)
)
"""Calls whose start was committed and whose result was not. Repair takes out those that it
closes; what it leaves is idempotent and is run again."""
USAGE: StateKey[Usage] = StateKey("harness.usage", Usage, AGENT_TURN, "increment", {})
REQUEST_TOKENS: StateKey[int] = StateKey("harness.request_tokens", int, AGENT_TURN, "increment", 0)
"""Tokens of the next request: the newest request and its answer as the provider counted
them, and what was added to the log since. Whoever adds a message adds its tokens here, so
that pressure is measured without the log."""
PARKING: StateKey[bool] = StateKey("harness.parking", bool, COORDINATOR, "set", False)
"""The run was asked to park and has not done so yet. On disk, so that the request outlives
the coordinator that it was made to."""
BUDGET: StateKey[float | None] = StateKey("harness.budget", float | None, COORDINATOR)
"""What all runs of the command may cost together, in US dollars; None for no bound. The
coordinator holds them to it, and keeps it with each run so that it outlives itself."""
QUESTIONS: StateKey[Questions | None] = StateKey(
    "harness.questions", Questions | None, AGENT_TURN, leaves_out_none=True
)
"""Those of the message whose calls are being made; None where it has none."""
QUESTIONS_ASKED: StateKey[int] = StateKey(
    "harness.questions_asked", int, AGENT_TURN, "increment", 0
)
ANSWERS: StateKey[dict[str, str]] = StateKey("harness.answers", str, COORDINATOR, "put", {})
"""What was answered, by the id of the question. Written before anybody takes the run up. Earlier
versions `set` all of it with each answer."""
STANDING: StateKey[tuple[StandingAnswer, ...]] = StateKey(
    "harness.standing", StandingAnswer, AGENT_TURN, "append"
)
"""Decisions that stand for later calls, the oldest first. Only runs that have such have it."""
WAITING_SINCE: StateKey[float | None] = StateKey("harness.waiting_since", float | None, COORDINATOR)
"""Since when the run has waited for its user, in seconds since the epoch; None where it does
not."""
WAITED_S: StateKey[float] = StateKey("harness.waited_s", float, COORDINATOR, "increment", 0.0)
"""How long it has waited for its user before, which is not counted as its time."""
CHILDREN: StateKey[int] = StateKey("harness.children", int, COORDINATOR, "increment", 0)
"""How many children it has begun; they are numbered by it. Only runs that have some have it, and
the next three."""
AWAITED: StateKey[int] = StateKey("harness.awaited", int, COORDINATOR, "set", 0)
"""For how many children, or answers of those that serve them, it began to wait; 0 where it waits
for none."""
CHILD_RESULTS: StateKey[tuple[ChildResult, ...]] = StateKey(
    "harness.child_results", ChildResult, COORDINATOR, "append", None, (AGENT_TURN,)
)
"""How those have ended that it waits for, until their results are in the log."""
BESIDE: StateKey[dict[str, str]] = StateKey("harness.beside", str, COORDINATOR, "put", {})
"""The children that it has begun beside it, by their handles: how each has ended, and empty while
it is at work. Only runs that have such have it, and the next two."""
CHILD_WAITS: StateKey[tuple[ChildWait, ...]] = StateKey(
    "harness.child_waits", tuple[ChildWait, ...], COORDINATOR
)
"""Calls that wait for some of those; nothing where none does."""
MAIL: StateKey[tuple[Letter, ...]] = StateKey(
    "harness.mail", Letter, COORDINATOR, "append", None, (AGENT_TURN,)
)
"""What it has not been told yet, the oldest first. A child that is told something has it, too."""
ASKED_BELOW: StateKey[dict[str, Any]] = StateKey("harness.asked_below", Any, COORDINATOR, "put", {})
"""Of the run at the top of a tree: what runs below it ask their user, by the ids of these. The
questions have ids of their own there, and the `path` of who asks; None where somebody has been
answered. Only runs below which somebody has asked have it."""
CHILDREN_USAGE: StateKey[Usage] = StateKey(
    "harness.children_usage", Usage, COORDINATOR, "increment", {}
)
"""What those have used that have ended, with all below them. It is not in `USAGE`."""
BRIEFER: StateKey[bool] = StateKey("harness.briefer", bool, AGENT_TURN, "set", False)
"""A child was asked for a shorter answer, which is done once."""
TOOL_USAGE: StateKey[dict[str, int]] = StateKey(
    "harness.tool_usage", dict[str, int], AGENT_TURN, "set", {}
)
"""Calls of each tool, by name. Only runs of agents that have them counted have it."""
STALLED_ROUNDS: StateKey[int] = StateKey("harness.stalled_rounds", int, AGENT_TURN, "set", 0)
"""Rounds in a row that came to nothing, from the one after which the model was told. Only runs
that were told so have it."""
UNJUDGED: StateKey[bool] = StateKey("harness.unjudged", bool, AGENT_TURN, "set", False, (REPAIR,))
"""Repair has closed calls of the newest round, and nobody has looked yet whether that round came
to something. Only runs that were repaired have it."""
PRESSURE: StateKey[Pressure | None] = StateKey(
    "harness.pressure", Pressure | None, AGENT_TURN, "set", None, (COMPACTION,)
)
"""The newest request that was too large. Only runs whose window was full have it."""
OFFERED: StateKey[int] = StateKey("harness.offered", int, AGENT_TURN, "set", 0)
"""Version of the newest plan for which the turn has waited because it was offered. Only runs that
were offered one in a turn have it."""
SIDE_USAGE: StateKey[Usage] = StateKey("harness.side_usage", Usage, COORDINATOR, "increment", {})
"""What was used for summaries of the conversation, which is in `USAGE`, too. Only runs of which
some were made have it."""
VERIFIED: StateKey[Verified | None] = StateKey("harness.verified", Verified | None, AGENT_TURN)
"""Only runs with a contract have it, from their first attempt to be done."""
CHANGED_FILES: StateKey[ChangedFiles | None] = StateKey(
    "harness.changed_files", ChangedFiles | None, AGENT_TURN
)
"""Only children that work in a copy have it."""
COVERAGE: StateKey[dict[str, dict[str, Any]]] = StateKey(
    "harness.coverage", dict[str, Any], AGENT_TURN, "put", {}
)
"""The ledger of a run's contract: of each requirement its status, notes and evidence, as it was
last looked at. It is changed one item at a time, and no executor is sent it."""
NUDGES: StateKey[int] = StateKey("harness.nudges", int, STOP_DECISION, "set", 0)
"""Nudges since the last progress."""
REPAIRS: StateKey[int] = StateKey("harness.repairs", int, REPAIR, "increment", 0)
CONTRACT = "contract"
"""The kind of the observation that each verification of a contract is."""
OBSERVED = "harness.observed."
"""Before the name of an executor: what it observed in the place that it is in, each as a mapping
of kind, question, number and answer. Only runs whose executors observe have such entries."""
STARTED: StateKey[bool] = StateKey("harness.started", bool, REPAIR, "set", False)


def turns_of(values: Mapping[str, Any]) -> int:
    """Turns that a run has had, by the entries of its state: whoever counted them."""
    return max(values.get(TURN_COUNT.name) or 0, values.get(TURNS_MADE.name) or 0)


def observed_by(executor: str) -> str:
    """The entry of what an executor observed."""
    return OBSERVED + executor
