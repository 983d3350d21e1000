"""What an executor sees of a run; what it writes becomes deltas."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from harness_actors.conversation import Conversation
from harness_actors.errors import WorkflowError
from harness_actors.events import Event, TextSink
from harness_actors.executors.observations import Asked, Observations
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, View, Viewer
from harness_actors.ports import Agent
from harness_actors.records import RunSpec
from harness_actors.signals import Outcome, Waiting
from harness_actors.state import (
    MAIL,
    Change,
    Letter,
    StateDelta,
    StateKey,
    Write,
    changed,
    observed_by,
)

T = TypeVar("T")


class DeltaContext:
    """The `RunContext` of one signal: shows copies, collects changes.

    Once the executor's task was cancelled or raised, the `log` handed in holds messages
    that nobody committed: whoever keeps it for later must drop it.

    Args:
        spec: The run.
        agent: Its agent.
        writer_name: Name of the executor in the workflow; it may `set` what it owns.
        reads: The entries that the executor declares.
        values: Plain values of these; what is missing has its default.
        log: The conversation, to which added messages are appended at once; None for an
            executor that does not declare `reads_log`.
        started_at: When the run was first started, in seconds since the epoch.
        send: Posts a delta at once, in the order of the calls, and returns something
            that may be awaited any number of times, or never, until it is on disk.
        recorded: Finds what was observed in a run that is done again, in place of `make`.
        plan: How the log is shown; None for as it is.
        viewer: Keeps what is shown ready from one hop to the next.
        on_tools_started: Called with the names of tools that begin and that no committed entry
            announces.
        on_summary_wanted: Called with what is to be kept, where a summary of the conversation is
            asked for; None where nobody makes one.
        offer: A plan that makes room, with the tokens that it frees; None for none.

    Attributes:
        parking: Whether the run was asked to stop at the next round; set from outside.
        texts: Where the text of answers goes; None where nobody reads it. Set from outside.
        offered: Version of a plan that is offered to the run; 0 for none. Set from outside.
    """

    def __init__(
        self,
        *,
        spec: RunSpec,
        agent: Agent,
        writer_name: str,
        reads: Iterable[StateKey[Any]],
        values: Mapping[str, Any],
        log: Conversation | None,
        started_at: float,
        send: Callable[[StateDelta], Awaitable[None]],
        recorded: Callable[[Asked], Awaitable[Any]] | None = None,
        on_tools_started: Callable[[tuple[str, ...]], None] | None = None,
        on_summary_wanted: Callable[[str], None] | None = None,
        parking: bool = False,
        texts: TextSink | None = None,
        plan: CompactionPlan | None = None,
        viewer: Viewer | None = None,
        offer: tuple[CompactionPlan, int] | None = None,
        offered: int = 0,
    ) -> None:
        self.spec = spec
        self.offer = offer
        self.offered = offered
        self.agent = agent
        self.started_at = started_at
        self.texts = texts
        self._parking = parking
        self._tell_parking: Callable[[], None] | None = None
        self._writer = writer_name
        self._readable = {key.name for key in reads}
        # Its own writes are applied by the rules of the coordinator's state.
        self._values = dict(values)
        self._observed = observed_by(writer_name)
        self._observations: Observations | None = None
        self._recorded = recorded
        self._log = log
        self._send = send
        self._on_tools_started = on_tools_started
        self._on_summary_wanted = on_summary_wanted
        self._writes: list[Write] = []
        self._messages: list[Message] = []
        self._events: list[Event] = []
        self._plan = plan
        self._adopted: CompactionPlan | None = None
        self._viewer = viewer or Viewer()

    @property
    def parking(self) -> bool:
        return self._parking

    @parking.setter
    def parking(self, asked: bool) -> None:
        self._parking = asked
        if asked and self._tell_parking is not None:
            self._tell_parking()

    def take_mail(self, letters: Sequence[Letter]) -> None:
        """The run was told of these, which is on disk with its coordinator."""
        for letter in letters:
            write = Write(MAIL.name, "append", asdict(letter))
            self._values[write.key] = changed(self._values.get(write.key), write)

    def when_parking(self, tell: Callable[[], None] | None) -> None:
        self._tell_parking = tell
        if tell is not None and self._parking:
            tell()

    @property
    def log(self) -> Conversation:
        if self._log is None:
            raise WorkflowError(self._writer, "reads the log without declaring reads_log = True")
        return self._log

    @property
    def plan(self) -> CompactionPlan | None:
        return self._plan

    @property
    def view(self) -> View | None:
        return None if self._plan is None else self._viewer.see(self.log, self._plan)

    def adopt(self, plan: CompactionPlan) -> None:
        self._plan = self._adopted = plan

    def get(self, key: StateKey[T]) -> T:
        if key.name not in self._readable:
            raise WorkflowError(
                self._writer, f"reads {key.name!r} without declaring it; add it to `reads`"
            )
        return key.decode(self._values.get(key.name, key.default))

    def set(self, key: StateKey[T], value: T) -> None:
        self._check_owned(key)
        self._write(key, "set", value)
        self._readable.add(key.name)

    def drop(self, key: StateKey[Any], count: int = 1) -> None:
        self._check_owned(key)
        self._keep(Write(key.name, "drop", count))

    def put(self, key: StateKey[Any], name: str, item: Any) -> None:
        self._check_owned(key)
        self._write(key, "put", item, name)

    def append(self, key: StateKey[Any], item: Any) -> None:
        self._write(key, "append", item)

    def increment(self, key: StateKey[T], amount: T) -> None:
        self._write(key, "increment", amount)

    def _write(
        self, key: StateKey[Any], change: Change, value: Any, name: str | None = None
    ) -> None:
        if key.change != change:
            raise WorkflowError(
                self._writer, f"{key.name!r} changes by {key.change!r}, not by {change!r}"
            )
        try:
            plain = key.encode(value)
        except ValueError as error:
            wanted = getattr(key.type, "__name__", key.type)
            problem = f"gives {key.name!r} {value!r}, which is no {wanted}"
            raise WorkflowError(self._writer, problem) from error
        self._keep(Write(key.name, change, plain if name is None else [name, plain]))

    def _check_owned(self, key: StateKey[Any]) -> None:
        if not key.may_be_set_by(self._writer):
            raise WorkflowError(
                self._writer, f"sets {key.name!r}, which belongs to {key.owner!r} alone"
            )

    def _keep(self, write: Write) -> None:
        self._values[write.key] = changed(self._values.get(write.key), write)
        self._writes.append(write)

    def add_message(self, message: Message) -> None:
        self._messages.append(message)
        if self._log is not None:
            self._log.append(message)

    def emit(self, event: Event) -> None:
        self._events.append(event)

    async def observe(self, kind: str, question: Any, make: Callable[[], Awaitable[Any]]) -> Any:
        if self._observations is None:
            stored = self._values.get(self._observed, ())
            self._observations = Observations(self._writer, stored)
        place, asked = self._observations, self._observations.ask(kind, question)
        if asked not in place:
            answer = await (make() if self._recorded is None else self._recorded(asked))
            self._keep(Write(self._observed, "append", place.take(asked, answer)))
        return place[asked]

    def close_place(self) -> None:
        self._observations = None
        if self._values.get(self._observed):
            self._keep(Write(self._observed, "set", []))

    def flush(self) -> Awaitable[None]:
        delta = self.take()
        return self._send(delta) if delta else _Done()

    def last(self, outcome: Outcome) -> StateDelta:
        """What goes with the executor's answer, by which its place ends.

        Unless it waits for its user: then it goes on in the same one.
        """
        if not isinstance(outcome, Waiting):
            self.close_place()
        return self.take()

    def take(self) -> StateDelta:
        """What was collected since the last flush."""
        delta = StateDelta(
            tuple(self._writes), tuple(self._messages), tuple(self._events), self._adopted
        )
        self._writes, self._messages, self._events, self._adopted = [], [], [], None
        return delta

    def tools_started(self, names: Sequence[str] = ()) -> None:
        if self._on_tools_started is not None:
            self._on_tools_started(tuple(names))

    def want_summary(self, keep: str) -> bool:
        if self._on_summary_wanted is None or not self.spec.is_summarized:
            return False
        self._on_summary_wanted(keep)
        return True


class _Done:
    """Nothing to wait for."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield
