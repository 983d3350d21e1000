"""The state of a run: named entries, and the changes that executors make to them.

Values in a `SharedState` are plain JSON values; a `StateKey` gives an entry its type
at the executor that reads or writes it. So the coordinator can own the state of any
workflow, and the journal can be read, without the code of either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import add
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from harness_actors.conversation import Conversation
from harness_actors.errors import WorkflowError
from harness_actors.events import Event
from harness_actors.messages import Message
from harness_actors.pickling import pickled_by_position
from harness_actors.plan import CompactionPlan

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

Change = Literal["set", "append", "increment", "drop", "put"]


@dataclass(frozen=True, slots=True)
class StateKey(Generic[T]):
    """Names an entry of the state, its type, its owner and how it changes.

    Attributes:
        name: Dotted name, unique in a workflow; ours begin with ``harness.``.
        type: The type of the value; of one item where `change` is ``"append"`` or ``"put"``.
        owner: Name of the executor that may `set` it, or `put` items; anyone may `append` or
            `increment`.
        change: The one way in which it changes. `increment` adds numbers, and mappings
            or dataclasses of numbers field by field. `put` gives one item of a mapping another
            value, and costs the same however many there are. Who may `set` a list may also `drop`
            the first of its items, which does so, too.
        default: The plain value of a run that has not written it yet.
        also_set_by: Other executors that may `set` it. A run is with one executor at a
            time, so they never write at once.
        leaves_out_none: What is None within a value is not written: so a value has the same bytes
            where it has nothing of what was added to its type later.
    """

    name: str
    type: Any
    owner: str
    change: Change = "set"
    default: Any = None
    also_set_by: tuple[str, ...] = ()
    leaves_out_none: bool = False

    def may_be_set_by(self, executor: str) -> bool:
        """Whether the executor of this name is an owner."""
        return executor == self.owner or executor in self.also_set_by

    def encode(self, value: T) -> Any:
        """The plain JSON value of `value`.

        Raises:
            ValueError: It is of another type, and can be none of it: a list may stand for a tuple.
        """
        if type(value) is self.type and self.type in _PLAIN:
            return value
        adapter, omits = _adapter(self.type), self.leaves_out_none
        try:
            return adapter.dump_python(value, mode="json", warnings="error", exclude_none=omits)
        except ValueError:
            checked = adapter.validate_python(value)
            return adapter.dump_python(checked, mode="json", exclude_none=omits)

    def decode(self, plain: Any) -> T:
        """The value of a plain JSON value, checked against the type."""
        if plain is None:
            return None  # type: ignore[return-value]
        if type(plain) is self.type and self.type in _PLAIN:
            return plain  # type: ignore[no-any-return]
        if self.change == "append":
            item = _adapter(self.type)
            return tuple(item.validate_python(entry) for entry in plain)  # type: ignore[return-value]
        if self.change == "put":
            item = _adapter(self.type)
            return {name: item.validate_python(entry) for name, entry in plain.items()}  # type: ignore[return-value]
        return _adapter(self.type).validate_python(plain)  # type: ignore[no-any-return]


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    # Only executors need it: importing the package must not cost pydantic.
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


_PLAIN = frozenset((int, bool))
"""Types whose values are plain as they are."""


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Write:
    """One change to one entry, as a plain value; of a `drop`, how many items; of a `put`, the name
    of an item and its value, as a list."""

    key: str
    change: Change
    value: Any


@pickled_by_position
@dataclass(frozen=True, slots=True)
class StateDelta:
    """What an executor changed: entries, messages for the log, and events.

    Deltas of one run are applied in the order in which they were made.
    """

    writes: tuple[Write, ...] = ()
    messages: tuple[Message, ...] = ()
    events: tuple[Event, ...] = ()
    plan: CompactionPlan | None = None
    """How the conversation is shown from here on; None where that does not change."""

    def __bool__(self) -> bool:
        return bool(self.writes or self.messages or self.events or self.plan)


@dataclass(slots=True)
class SharedState:
    """The state of one run, owned by the coordinator that serves it.

    Attributes:
        values: Plain JSON values by key name.
        log: The conversation; a run that continues one begins with its messages.
        version: How many deltas were applied.
        plan: How the conversation is shown to its model; None for as it is.
    """

    values: dict[str, Any] = field(default_factory=dict)
    log: Conversation = field(default_factory=Conversation)
    version: int = 0
    plan: CompactionPlan | None = None

    def apply(self, delta: StateDelta) -> None:
        """Apply one delta; the version grows by 1.

        Raises:
            WorkflowError: An entry is changed in a way that its value does not allow, or a plan
                does not follow the one that there is; nothing of the delta is applied.
        """
        if delta.plan is not None and not delta.plan.follows(self.plan):
            raise WorkflowError("plan", f"version {delta.plan.version} does not follow {self.plan}")
        fresh: dict[str, Any] = {}
        for write in delta.writes:
            old = fresh[write.key] if write.key in fresh else self.values.get(write.key)
            fresh[write.key] = changed(old, write)
        self.values.update(fresh)
        self.log.extend(delta.messages)
        if delta.plan is not None:
            self.plan = delta.plan
        self.version += 1


def changed(old: Any, write: Write) -> Any:
    """What an entry is after a change.

    Args:
        old: What it was; None where it had no value.
        write: The change.

    Raises:
        WorkflowError: It has a value that cannot change so.
    """
    match write.change:
        case "increment":
            return _sum(old, write)
        case "set":
            return write.value
        case "append":
            if not isinstance(old, list | tuple | None):
                raise WorkflowError(write.key, f"cannot append to {old!r}")
            return [*(old or ()), write.value]
        case "drop":
            if not isinstance(old, list | tuple | None) or not isinstance(write.value, int):
                raise WorkflowError(write.key, f"cannot drop {write.value!r} of {old!r}")
            return list(old or ())[max(0, write.value) :]
        case "put":
            item = write.value
            if not isinstance(old, Mapping | None) or not _is_item(item):
                raise WorkflowError(write.key, f"cannot put {item!r} into {old!r}")
            return {**(old or {}), item[0]: item[1]}


def _is_item(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str)


def _sum(old: Any, write: Write) -> Any:
    new = write.value
    if old is None:
        return new
    if type(old) is type(new) is int:
        return old + new
    try:
        # Plain values: their mappings are no others.
        if isinstance(old, dict) and isinstance(new, dict):
            if list(old) == list(new):
                # As most often, and in every round: values of one type have the same names.
                return dict(zip(old, map(add, old.values(), new.values()), strict=True))
            total = dict(old)
            for name, more in new.items():
                total[name] = total.get(name, 0) + more
            return total
        if isinstance(old, int | float) and isinstance(new, int | float):
            return old + new
    except TypeError:
        pass  # a field that is not a number: told below like everything else that cannot be added
    raise WorkflowError(write.key, f"cannot add {new!r} to {old!r}")
