"""Tasks whose truth is on the disk: what a fallible model is given to do, and what tells."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["write", "edit", "find"]
Deed = Literal["write", "read", "edit", "run"]
KINDS: Sequence[Kind] = ("write", "edit", "find")
NOTES = tuple(f"notes/{number}.txt" for number in range(1, 6))
"""Files that no task needs."""

CHECK = """for file in part-*.txt; do
  grep -q 'state: fixed' "$file" || { echo failed > report.txt; cat report.txt; exit 1; }
done
echo passed > report.txt; cat report.txt
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call that a capable model makes for a task.

    Attributes:
        deed: The tool, by what it does.
        arguments: Of the call.
        output: The file that shows it, or for a reading step the one that it is for.
        shown_by: Any of these texts is the file's whole content; in a reading step the text that
            the conversation has when the file was read.
    """

    deed: Deed
    arguments: Mapping[str, Any]
    output: str
    shown_by: tuple[str, ...]

    def is_done(self, folder: Path) -> bool:
        """Whether the disk shows it; never of a reading step, which leaves nothing there."""
        if self.deed == "read":
            return False
        try:
            text = (folder / self.output).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return False
        return text in self.shown_by


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckableTask:
    """A task in a folder of its own.

    Attributes:
        name: By which a request tells whose it is; it stands in the prompt in brackets.
        prompt: The user's message.
        steps: What a capable model does, in order.
        given: Files that are there before, by name.
        folder: Where it is done, the workspace of the run.
    """

    name: str
    prompt: str
    steps: tuple[Step, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    folder: Path

    def prepare(self) -> None:
        """Make its folder with what is given."""
        notes = {name: f"Nothing of use in {name}.\n" for name in NOTES}
        for name, text in {**notes, **self.given}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    @property
    def missing(self) -> list[str]:
        """The files that are not as they should be, by a look at the disk; none when it is done."""
        last = {step.output: step for step in self.steps if step.deed != "read"}
        return [name for name, step in last.items() if not step.is_done(self.folder)]


def checkable_task(
    name: str, folder: Path, *, kind: Kind = "write", size: int = 6
) -> CheckableTask:
    """A task of some kind, with as many steps as `size`.

    Args:
        name: Its name; the contents follow from it.
        folder: Where it is to be done.
        kind: Write files with given contents; check, edit and check again; find and report.
        size: Steps, at least 3.

    Raises:
        ValueError: The kind is unknown, or the size is too small.
    """
    if kind not in KINDS or size < 3:
        raise ValueError(f"a task is one of {KINDS} with 3 steps or more, not {kind!r}, {size!r}")
    words = [hashlib.sha256(f"{name}/{at}".encode()).hexdigest()[:8] for at in range(size)]
    made = {"write": _writing, "edit": _editing, "find": _finding}[kind](words)
    prompt, steps, given = made
    return CheckableTask(
        name=name, prompt=f"[{name}] {prompt}", steps=steps, given=given, folder=folder
    )


Made = tuple[str, tuple[Step, ...], dict[str, str]]


def _writing(words: Sequence[str]) -> Made:
    files = {f"file-{at}.txt": f"content {word}" for at, word in enumerate(words)}
    wanted = "; ".join(f"{name}: {text}" for name, text in files.items())
    steps = tuple(_write(name, text) for name, text in files.items())
    return f"Write these files with these contents: {wanted}.", steps, {}


def _editing(words: Sequence[str]) -> Made:
    names = [f"part-{at}.txt" for at in range(len(words) - 2)]
    edits = [
        Step(
            deed="edit",
            arguments={"path": name, "old_text": "broken", "new_text": "fixed"},
            output=name,
            shown_by=("state: fixed",),
        )
        for name in names
    ]
    check = {"command": "sh check.sh"}
    first = Step(deed="run", arguments=check, output="report.txt", shown_by=("failed", "passed"))
    last = Step(deed="run", arguments=check, output="report.txt", shown_by=("passed",))
    given = {"check.sh": CHECK, **dict.fromkeys(names, "state: broken\n")}
    prompt = "Run `sh check.sh`, fix what is broken in the parts, and run it until it passes."
    return prompt, (first, *edits, last), given


def _finding(words: Sequence[str]) -> Made:
    codes = {f"source-{at}.txt": f"code {word}" for at, word in enumerate(words[:-1])}
    reads = [
        Step(deed="read", arguments={"path": name}, output="report.txt", shown_by=(code,))
        for name, code in codes.items()
    ]
    report = _write("report.txt", "\n".join(codes.values()))
    prompt = f"Find the code in each of {', '.join(codes)} and write them to report.txt, in order."
    return prompt, (*reads, report), {name: f"{code}\n" for name, code in codes.items()}


def _write(name: str, text: str) -> Step:
    arguments = {"path": name, "content": f"{text}\n"}
    return Step(deed="write", arguments=arguments, output=name, shown_by=(text,))
