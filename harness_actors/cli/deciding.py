"""How a person decides of a call line by line, at a terminal or in a script."""

from collections.abc import Iterator, Mapping
from typing import Literal

from harness_actors.cli.shown_calls import asked_line, call_lines, is_cut, plain_arguments, until
from harness_actors.exact_json import values_in
from harness_actors.policies.decisions import Approve, Decision, Refuse, Respond, decision_text
from harness_actors.policies.shown_arguments import taken_from_shown
from harness_actors.printing.plain import json_line, one_line
from harness_actors.results import OpenQuestion

Step = Literal["choice", "note", "arguments", "answer"]

WANTED: Mapping[Step, str] = {
    "choice": "y/n/e/a/t/s",
    "note": "why not",
    "arguments": "arguments",
    "answer": "in its place",
}
KEYS = (
    "y approve, n deny, e edit the arguments, a answer in its place",
    "t approve, always this tool; s approve, always this tool with these arguments",
)
VIEW = "v view all of it"


class Deciding:
    """Takes line after line until one of them, or several, are a decision.

    Args:
        question: The approval that is asked for.

    Attributes:
        told: What is to be said before the next line, about the one that was taken.
    """

    def __init__(self, question: OpenQuestion) -> None:
        self._asked = question
        self._step: Step = "choice"
        self.told: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        """What the next line is to be, in a word or two."""
        return WANTED[self._step]

    def put(self) -> Iterator[str]:
        """What is asked, and by which keys it is answered, in lines."""
        yield asked_line(self._asked.id, self._asked.path, self._asked.text)
        yield from self._call()
        if self._asked.why:
            yield f"    {one_line(self._asked.why)}"
        if self._asked.expires_at is not None:
            yield f"    {until(self._asked.expires_at)}"
        yield from self._keys()

    def take(self, typed: str | None) -> str | None:
        """The decision that a line completes, as an answer; None where there is none yet.

        A word is taken as its key is. `n` and `e` may be followed by the note and the arguments.

        Args:
            typed: The line; None for one that could not be read, of which it was said why.
        """
        self.told = ()
        if typed is None:
            return None
        text = typed.strip()
        try:
            decision = self._chosen(text) if self._step == "choice" else self._completed(text)
            return None if decision is None else decision_text(decision)
        except ValueError as error:
            self.told = (f"{error}",)
            return None

    def _chosen(self, text: str) -> Decision | None:
        key, blank, rest = text.partition(" ")
        match key.lower(), rest.strip():
            case "n", note if blank:
                return Refuse(note)
            case "e", arguments if blank:
                return self._edited(arguments)
            # What begins with a word may go on to say something else, such as "yes, but".
            case "y" | "yes" | "approve", "":
                return Approve()
            case "t" | "tool", "":
                return Approve(standing="tool")
            case "s" | "same", "":
                return Approve(standing="arguments")
            case "n" | "no" | "deny", "":
                self._step, self.told = "note", ("why, for the model; nothing need be said",)
            case "e" | "edit", "":
                now = json_line(plain_arguments(self._asked.arguments), ensure_ascii=False)
                self.told = (f"now: {now}", "all of them in a line of JSON; nothing goes back")
                self._step = "arguments"
            case "a" | "answer", "":
                self._step, self.told = "answer", ("what the tool would say; nothing goes back",)
            case "v" | "view", "":
                self.told = (*self._call(whole=True), *self._keys())
            case _:
                self.told = tuple(self._keys())
        return None

    def _completed(self, text: str) -> Decision | None:
        if self._step == "note":
            return Refuse(text)
        if text:
            return self._edited(text) if self._step == "arguments" else Respond(text)
        self._step, self.told = "choice", tuple(self._keys())
        return None

    def _edited(self, text: str) -> Approve:
        """The approval with the arguments that were typed.

        Raises:
            ValueError: They are none, or no whole ones; says why.
        """
        arguments = _object(text)
        name = taken_from_shown(plain_arguments(self._asked.arguments), arguments)
        if name is not None:
            raise ValueError(f"{name!r} was cut where it is shown: give it whole, or approve it")
        return Approve(arguments)

    def _call(self, *, whole: bool = False) -> Iterator[str]:
        for line in call_lines(self._asked.tool or "", self._asked.arguments, whole=whole):
            yield f"    {line}"

    def _keys(self) -> Iterator[str]:
        yield from KEYS
        if is_cut(self._asked.tool or "", self._asked.arguments):
            yield VIEW


def _object(text: str) -> dict[str, object]:
    """Arguments as they are typed.

    Raises:
        ValueError: They are none; says why.
    """
    try:
        arguments = values_in(text)
    except ValueError as error:
        raise ValueError(f"that is no JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise ValueError('the arguments must be an object, such as {"order": 17}')
    return arguments
