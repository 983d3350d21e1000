"""What really happened in a schedule, written down outside of what is tested."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.simulated.loop import SimulatedLoop
from harness_actors.actors.simulated.processes import SimulatedProcess, current_process
from harness_actors.events import RunEvent
from harness_actors.records import CHILD_MARK
from tests.simulation.disk import Disk

PROMPT_S = 1.5


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken.

    Attributes:
        invariant: Its name.
        text: By what.
        at: Virtual time, in seconds.
    """

    invariant: str
    text: str
    at: float


@dataclass(slots=True, kw_only=True)
class Happening:
    """A model call, a tool call, or a step that an executor served.

    Attributes:
        run_id: The run.
        what: The name of the tool or the executor, or ``"model"``.
        key: Of a tool call: which it is, by run, message and place.
        process: Where.
        begun_at: When, in virtual seconds.
        ended_at: When it ended; None while it has not, or where its process died.
        ending: How.
        number: Of a step: its number, if it was the run's newest when it began; else 0.
        let_go: Of a tool call that goes on: it was told to end, and nobody waits for it.
    """

    run_id: str
    what: str
    process: SimulatedProcess
    begun_at: float
    key: str = ""
    ended_at: float | None = None
    ending: str = ""
    number: int = 0
    let_go: bool = False

    @property
    def is_open(self) -> bool:
        """It goes on at this moment."""
        return self.ended_at is None and not self.process.gone


@dataclass(slots=True)
class Request:
    """Something that a user asked of a run.

    Attributes:
        run_id: The run.
        what: ``"resume"``, or how it is to stop.
        asked_at: In virtual seconds.
        done_at: When it was acknowledged; None where it was not.
        in_vain: It was to park the run, and was told that nobody serves it.
    """

    run_id: str
    what: str
    asked_at: float
    done_at: float | None = None
    in_vain: bool = False

    def is_open_at(self, at: float) -> bool:
        """It may have come to be done at this time or later."""
        return self.done_at is None or self.done_at >= at


def root_of(run_id: str) -> str:
    """The run at the top of the tree of one."""
    return run_id.partition(CHILD_MARK)[0]


def is_below(run_id: str, other: str) -> bool:
    """Whether a run is one of those below another."""
    return run_id.startswith(f"{other}{CHILD_MARK}")


@dataclass
class Ledger:
    """All that happened, oldest first.

    Attributes:
        models: Model calls.
        tools: Tool calls.
        steps: Steps that executors served.
        effects: Keys of calls, in the order in which their effects happened.
        told: What drivers were told by `wait_for_news`.
        requests: What users asked of runs.
        prompt: Messages arrive soon and once, and no process is stopped: so whatever should
            not go on is over after `PROMPT_S`.
        calm: The same, but processes may be stopped.
        harmed: Processes that were stopped, or called dead while they lived.
        slow_s: What slow blocking calls have taken so far, in seconds.
    """

    loop: SimulatedLoop
    disk: Disk
    trace: Callable[[str, str], None] | None = None
    models: list[Happening] = field(default_factory=list)
    tools: list[Happening] = field(default_factory=list)
    steps: list[Happening] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    told: list[RunEvent] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    prompt: bool = True
    calm: bool = True
    harmed: set[SimulatedProcess] = field(default_factory=set)
    slow_s: float = 0.0
    violations: list[Violation] = field(default_factory=list)
    coordinator: CoordinatorHost | None = None
    """The newest that has begun its term."""
    coordinator_process: SimulatedProcess | None = None
    coordinator_since: float = 0.0
    term: int = 0
    """Its term."""

    def broken(self, invariant: str, text: str) -> None:
        """A promise is broken: nothing that follows matters."""
        self.violations.append(Violation(invariant, text, self.loop.time()))
        self.note("!", f"BROKEN: {invariant}: {text}")
        self.loop.halt()

    def requests_of(self, run_id: str) -> list[Request]:
        """What users asked that concerns a run: of itself, of its tree, or of one above it."""
        root = root_of(run_id)
        return [
            request
            for request in self.requests
            if root_of(request.run_id) == root
            and (
                request.run_id == run_id
                or request.what != "cancel"
                or is_below(run_id, request.run_id)
            )
        ]

    def note(self, who: object, what: str) -> None:
        if self.trace is not None:
            self.trace(str(who), what)

    def begin(self, among: list[Happening], run_id: str, what: str, key: str = "") -> Happening:
        process = current_process()
        begun = Happening(
            run_id=run_id, what=what, key=key, process=process, begun_at=self.loop.time()
        )
        among.append(begun)
        if self.trace is not None:
            self.trace(repr(process), f"{run_id}: {what} {key} begins")
        return begun

    def end(self, happening: Happening, ending: str) -> None:
        happening.ended_at, happening.ending = self.loop.time(), ending
        if self.trace is not None:
            what = f"{happening.run_id}: {happening.what} {happening.key} {ending}"
            self.trace(repr(happening.process), what)
