"""What is known of messages that are no longer shown, as a value."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args

from harness_actors.plan.reference import Reference, UnreadablePlanError, count_in

Priority = Literal["high", "normal", "low"]
Came = Literal["success", "failure", "partial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that was decided.

    Attributes:
        what: It, in one sentence.
        why: Its reason; empty where none was given.
        at: Position of the message that says so.
    """

    what: str
    why: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenItem:
    """Something that is still to be done, or was.

    Attributes:
        what: It; the same words are the same item.
        context: What there is to know of it.
        priority: How much it matters.
        done: It was open before, and is not any more.
    """

    what: str
    context: str = ""
    priority: Priority = "normal"
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What came of a call.

    Attributes:
        tool: Name of the tool.
        came: Whether it succeeded.
        fields: What stays in sight of arguments and result, as text.
        error: Why it failed; empty where it did not.
        at: Position of its result.
    """

    tool: str
    came: Came = "success"
    fields: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is known of messages that are no longer shown.

    Attributes:
        facts: In one sentence each.
        decisions: In the order in which they were made.
        open_items: What is still to be done.
        outcomes: What came of calls, oldest first.
        references: Results that no call brings back: where they are, and what they were.
        current_task: What was being worked on at the end; empty where nothing says so.
        current_plan: The steps that were to follow.
    """

    facts: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    open_items: tuple[OpenItem, ...] = ()
    outcomes: tuple[ToolOutcome, ...] = ()
    references: tuple[Reference, ...] = ()
    current_task: str = ""
    current_plan: tuple[str, ...] = ()

    def as_plain(self) -> dict[str, Any]:
        """The summary as plain values, for the journal; what is empty is left out."""
        plain: dict[str, Any] = _plain(self)
        return plain

    @classmethod
    def from_plain(cls, plain: Any) -> "Summary":
        """What `as_plain` wrote.

        Raises:
            UnreadablePlanError: It is no such thing, or one of a later version.
        """
        try:
            known = _known(plain, cls)
            return cls(
                facts=_each(_text, known.get("facts", ())),
                decisions=_each(_decision, known.get("decisions", ())),
                open_items=_each(_open_item, known.get("open_items", ())),
                outcomes=_each(_outcome, known.get("outcomes", ())),
                references=_each(_reference, known.get("references", ())),
                current_task=_text(known.get("current_task", "")),
                current_plan=_each(_text, known.get("current_plan", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadablePlanError(f"not a summary: {error!r}"[:200]) from error


def _plain(value: Any) -> Any:
    """Lists for tuples and mappings for values, without what is empty and need not be given."""
    if is_dataclass(value):
        return {
            one.name: _plain(given)
            for one in fields(value)
            if (given := getattr(value, one.name)) or not _has_default(one)
        }
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def _has_default(one: Field[Any]) -> bool:
    return one.default is not MISSING or one.default_factory is not MISSING


_Read = TypeVar("_Read")


def _each(read: Callable[[Any], _Read], plain: Any) -> tuple[_Read, ...]:
    if not isinstance(plain, list | tuple):
        raise TypeError(f"must be a list, not {plain!r}")
    return tuple(map(read, plain))


def _known(plain: Any, kind: type[Any]) -> Mapping[str, Any]:
    """A mapping that names nothing but the fields of a class."""
    if not isinstance(plain, Mapping):
        raise TypeError(f"must be a mapping, not {plain!r}")
    if unknown := set(plain) - {one.name for one in fields(kind)}:
        raise ValueError(f"{kind.__name__} has no {min(map(repr, unknown))}")
    return plain


def _text(plain: Any) -> str:
    if not isinstance(plain, str):
        raise TypeError(f"must be a text, not {plain!r}")
    return plain


def _flag(plain: Any) -> bool:
    if not isinstance(plain, bool):
        raise TypeError(f"must be true or false, not {plain!r}")
    return plain


def _one_of(words: tuple[Any, ...], plain: Any) -> Any:
    if plain not in words:
        raise ValueError(f"must be one of {words}, not {plain!r}")
    return plain


def _decision(plain: Any) -> Decision:
    known = _known(plain, Decision)
    return Decision(
        what=_text(known["what"]),
        why=_text(known.get("why", "")),
        at=count_in(known.get("at", 0)),
    )


def _open_item(plain: Any) -> OpenItem:
    known = _known(plain, OpenItem)
    return OpenItem(
        what=_text(known["what"]),
        context=_text(known.get("context", "")),
        priority=_one_of(get_args(Priority), known.get("priority", "normal")),
        done=_flag(known.get("done", False)),
    )


def _outcome(plain: Any) -> ToolOutcome:
    known = _known(plain, ToolOutcome)
    found = known.get("fields", {})
    if not isinstance(found, Mapping):
        raise TypeError(f"must be a mapping, not {found!r}")
    return ToolOutcome(
        tool=_text(known["tool"]),
        came=_one_of(get_args(Came), known.get("came", "success")),
        fields={_text(name): _text(value) for name, value in found.items()},
        error=_text(known.get("error", "")),
        at=count_in(known.get("at", 0)),
    )


def _reference(plain: Any) -> Reference:
    known = _known(plain, Reference)
    return Reference(at=count_in(known["at"]), what=_text(known["what"]))
