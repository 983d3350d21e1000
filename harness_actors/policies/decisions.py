"""What a person may decide of a call that waits for approval, and how that is kept as an answer.

An answer of a run is a text. That of an approval is a JSON object, such as
``{"decision": "approve", "arguments": {"order": 17}, "standing": "tool"}``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness_actors.exact_json import finite, no_constant, once, values_in, values_text
from harness_actors.policies.verdicts import REASON_CHARS, arguments_text

Standing = Literal["", "tool", "arguments"]
"""For which later calls of the run a decision stands too: none, those of this tool, or those of
this tool with these arguments."""


@dataclass(frozen=True, slots=True)
class Approve:
    """Make the call.

    Attributes:
        arguments: All of those that it is made with, plain JSON values by name; None for what was
            asked about.
        note: Why, for whoever reads the record; at most `REASON_CHARS` characters.
        standing: For which later calls it stands too. With other arguments it may stand for none.

    Raises:
        ValueError: One of them is of another kind, or too large.
    """

    arguments: Mapping[str, Any] | None = None
    note: str = ""
    standing: Standing = ""

    def __post_init__(self) -> None:
        if self.arguments is not None:
            _arguments(self.arguments)
            if self.standing:
                raise ValueError("a decision that changes the arguments stands for one call alone")
        _check(self.note, self.standing)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not make the call; the model is told so.

    Attributes:
        note: Why, for the model; at most `REASON_CHARS` characters.
        standing: For which later calls it stands too.

    Raises:
        ValueError: One of them is of another kind, or too long.
    """

    note: str = ""
    standing: Standing = ""

    def __post_init__(self) -> None:
        _check(self.note, self.standing)


@dataclass(frozen=True, slots=True)
class Respond:
    """Do not make the call: this is its result, as if the tool had said so.

    Attributes:
        text: What the model reads.

    Raises:
        ValueError: It is no text, or empty.
    """

    text: str

    def __post_init__(self) -> None:
        _check_text(self.text)


Decision = Approve | Refuse | Respond

WORDS: Mapping[str, type[Approve | Refuse]] = {
    "yes": Approve,
    "approve": Approve,
    "no": Refuse,
    "deny": Refuse,
}
"""What may be said in a word, in capitals or not."""

_FIELDS: Mapping[str, frozenset[str]] = {
    "approve": frozenset({"arguments", "note", "standing"}),
    "deny": frozenset({"note", "standing"}),
    "respond": frozenset({"text"}),
}


def decision_text(decision: Decision) -> str:
    """A decision as the answer of a run; `decision_in` reads it.

    Raises:
        ValueError: Its arguments were changed since, to what no call is made with.

    >>> decision_text(Refuse("ask finance first"))
    '{"decision":"deny","note":"ask finance first"}'
    """
    plain: dict[str, Any]
    match decision:
        case Approve(arguments, note, standing):
            plain = {"decision": "approve", "note": note, "standing": standing}
            if arguments is not None:
                plain["arguments"] = values_in(_arguments(arguments))
        case Refuse(note, standing):
            plain = {"decision": "deny", "note": note, "standing": standing}
        case Respond(text):
            plain = {"decision": "respond", "text": text}
    return values_text({name: value for name, value in plain.items() if value != ""})


def decision_in(text: str) -> Decision:
    """The decision that an answer is: one of `WORDS`, or JSON as `decision_text` writes it.

    Raises:
        ValueError: It is none, or one that cannot be taken; says why, for a person.

    >>> decision_in("Yes"), decision_in('{"decision": "deny", "standing": "tool"}')
    (Approve(arguments=None, note='', standing=''), Refuse(note='', standing='tool'))
    """
    if (word := WORDS.get(text.strip().lower())) is not None:
        return word()
    plain = _plain(text)
    if not isinstance(plain, dict):
        raise ValueError(f"{text.strip()!r:.60} is no decision: say yes or no")
    kind = plain.pop("decision", None)
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise ValueError(f"the decision must be one of {', '.join(_FIELDS)}, not {kind!r:.60}")
    if strange := sorted(plain.keys() - _FIELDS[kind]):
        known = ", ".join(sorted(_FIELDS[kind]))
        raise ValueError(f"a decision to {kind} has no field {strange[0]!r:.60}; it has {known}")
    match kind:
        case "approve":
            return Approve(**plain)
        case "deny":
            return Refuse(**plain)
        case _:
            return Respond(plain.get("text", ""))


def _plain(text: str) -> Any:
    """What the JSON of a decision says; None where it is none.

    Raises:
        ValueError: Nobody can tell what it says.
    """
    try:
        return json.loads(
            text, object_pairs_hook=once, parse_constant=no_constant, parse_float=finite
        )
    except (json.JSONDecodeError, RecursionError):
        return None
    except ValueError as error:
        raise ValueError(f"{text.strip()!r:.60} is no decision: {error}") from None


def _arguments(arguments: object) -> str:
    try:
        return arguments_text(arguments)
    except ValueError as error:
        raise ValueError(f"the arguments are {error}") from None


def _check(note: object, standing: object) -> None:
    if not isinstance(note, str):
        raise ValueError(f"the note must be a text, not {note!r:.60}")
    if len(note) > REASON_CHARS:
        problem = f"the note has {len(note):,} characters, and may have {REASON_CHARS:,}"
        raise ValueError(problem)
    if standing not in get_args(Standing):
        raise ValueError(f"a decision stands for 'tool' or for 'arguments', not {standing!r:.60}")


def _check_text(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ValueError("an answer in place of the tool must be a text, and not empty")
