"""The files of a workspace as contracts look at them, by paths that never leave it."""

import asyncio
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson

from harness_actors.contracts import schema_check
from harness_actors.contracts.schemas import is_quick
from harness_actors.errors import ToolError
from harness_actors.ports import (
    Exists,
    FileFact,
    FileQuestion,
    Find,
    InFile,
    Look,
    Validate,
)
from harness_actors.records import FolderId
from harness_actors.tools import artifact_scan, scan_process
from harness_actors.tools.paths import check_regular, open_to_read, open_workspace
from harness_actors.tools.scanning import scan
from harness_actors.tools.stopping import check_stopped, told_of_its_stop
from harness_actors.tools.texts import MAX_FILE_BYTES, read_bytes
from harness_actors.tools.way import MissingPathError, Root, find_inside

T = TypeVar("T")

QUICK_BYTES = 256_000
"""What is gone through in a thread; more of it is left to a process, which can be stopped."""
EXCERPT_CHARS = 200

_NO_WORKSPACE = FileFact(found="refused", problem="there is no workspace to look into")
_NO_MATCH = "nothing there matches"
_SEARCH = Path(scan_process.__file__)
_CHECK = Path(schema_check.__file__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceFiles:
    """Answers the port `ContractFiles`.

    Attributes:
        folder: The workspace; None for none, and then there are no files.
        id: What it is known by; None where nobody knows, and whatever is there is taken.
    """

    folder: Path | None
    id: FolderId | None = None

    async def glance(self, questions: Sequence[FileQuestion]) -> Sequence[FileFact | Look | None]:
        return await _in_thread(lambda: self._glance(questions))

    async def look(self, question: Find | Validate, *, time_s: float) -> Look:
        return await _in_thread(lambda: self._look(question, time_s))

    async def read(self, path: str, most_chars: int) -> Look:
        return await _in_thread(lambda: self._read(path, most_chars))

    def _glance(self, questions: Sequence[FileQuestion]) -> list[FileFact | Look | None]:
        try:
            with self._root() as root:
                return [_seen(root, question) for question in questions]
        except ToolError as error:
            return [_unseen(question, error) for question in questions]

    def _look(self, question: Find | Validate, time_s: float) -> Look:
        with ExitStack() as opened:
            root = None
            if isinstance(question.where, InFile):
                try:
                    root = opened.enter_context(self._root())
                except ToolError as error:
                    return Look(None, error.text)
            place = opened.enter_context(_opened(root, question.where))
            if isinstance(place, Look):
                return place
            if isinstance(question, Find):
                return _searched(place, question.pattern, time_s)
            return _checked(place, question.schema, time_s)

    def _read(self, path: str, most_chars: int) -> Look:
        try:
            with self._root() as root:
                data = read_bytes(root, path)
        except ToolError as error:
            return Look(None, error.text)
        text = data.decode("utf-8", "replace")
        return Look(True, text if len(text) <= most_chars else f"{text[:most_chars]}\n[cut here]")

    @contextmanager
    def _root(self) -> Iterator[Root]:
        if self.folder is None:
            raise ToolError(_NO_WORKSPACE.problem)
        with open_workspace(self.folder, self.id) as root:
            yield root


async def _in_thread(work: Callable[[], T]) -> T:
    with told_of_its_stop():
        return await asyncio.to_thread(work)


def _seen(root: Root | None, question: FileQuestion) -> FileFact | Look | None:
    """What can be told at once; None where that needs time."""
    check_stopped()
    if isinstance(question, Exists):
        return _NO_WORKSPACE if root is None else _fact(root, question.path)
    is_quick_one = question.is_plain if isinstance(question, Find) else is_quick(question.schema)
    if not is_quick_one:
        return None
    with _opened(root, question.where) as place:
        if isinstance(place, Look):
            return place
        data = os.read(place, QUICK_BYTES + 1)
    if len(data) > QUICK_BYTES:
        return None
    if isinstance(question, Find):
        return _found_at_once(question.pattern, data)
    return _validated_at_once(question.schema, data)


def _unseen(question: FileQuestion, error: ToolError) -> FileFact | Look | None:
    """What can be told where there is no workspace to look into."""
    if isinstance(question, Exists):
        return FileFact(found="refused", problem=error.text)
    return Look(None, error.text) if isinstance(question.where, InFile) else _seen(None, question)


@contextmanager
def _opened(root: Root | None, where: InFile | str) -> Iterator[int | Look]:
    """A descriptor at the beginning of what is meant; or what is there in place of a file."""
    opened = _in_memory(where) if isinstance(where, str) else _open(root, where.path)
    try:
        yield opened
    finally:
        if isinstance(opened, int):
            os.close(opened)


def _open(root: Root | None, path: str) -> int | Look:
    if root is None:
        return Look(None, _NO_WORKSPACE.problem)
    fact = _fact(root, path)
    if fact.found != "file":
        return _no_file(fact)
    try:
        with open_to_read(root, path) as file:
            return os.dup(file.fileno())
    except ToolError as error:
        # Something was put in its place meanwhile.
        return Look(None, error.text)


def _in_memory(text: str) -> int:
    handle = os.memfd_create("answer", os.MFD_CLOEXEC)
    with open(handle, "wb", closefd=False) as memory:
        memory.write(text.encode("utf-8", "replace"))
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _searched(place: int, pattern: str, time_s: float) -> Look:
    question = {
        "module": "artifact_scan",
        "file": place,
        "pattern": pattern,
        "start": 0,
        "end": None,
        "most": 1,
    }
    answers = scan(_SEARCH, question, place, time_s=time_s)
    for answer in answers:
        if "at" in answer:
            before = min(answer["at"], artifact_scan.SHOWN_BEFORE)
            # What it shows of a place has no lines, but signs in place of their ends.
            return Look(True, _line_at(answer["text"], before, "⏎"))
    if answers and "done" in answers[-1]:
        return Look(False, _NO_MATCH)
    return _given_up("the search", answers)


def _checked(place: int, schema: Mapping[str, Any], time_s: float) -> Look:
    size = os.fstat(place).st_size
    if size > MAX_FILE_BYTES:
        return Look(None, f"it has {size:,} bytes, and may have {MAX_FILE_BYTES:,}")
    question = {"file": place, "schema": schema, "path": sys.path}
    answers = scan(_CHECK, question, place, time_s=time_s)
    if answers and "faults" in answers[0]:
        return _verdict(answers[0]["faults"])
    return _given_up("the check", answers)


def _fact(root: Root, path: str) -> FileFact:
    try:
        with find_inside(root, path) as place:
            found = place.stat()
            if found is None:
                return FileFact(found="missing")
            if stat.S_ISDIR(found.st_mode):
                return FileFact(found="folder")
            check_regular(path, found)
            return FileFact(found="file", size_bytes=found.st_size)
    except MissingPathError:
        return FileFact(found="missing")
    except ToolError as error:
        return FileFact(found="refused", problem=error.text)


def _no_file(fact: FileFact) -> Look:
    match fact.found:
        case "missing":
            return Look(False, "there is no such file")
        case "folder":
            return Look(False, "it is a folder")
        case _:
            return Look(None, fact.problem)


def _found_at_once(pattern: str, data: bytes) -> Look:
    text = data.decode("utf-8", "replace")
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        return Look(False, _NO_MATCH)
    return Look(True, _line_at(text, match.start(), "\n"))


def _validated_at_once(schema: Mapping[str, Any], data: bytes) -> Look:
    try:
        return _verdict(schema_check.faults_of(_parsed(data), schema))
    except ValueError as error:
        return Look(False, str(error))
    except schema_check.UntoldError as error:
        return _given_up("the check", [{"broken": str(error)}])


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # It takes a little less than all of JSON, and says less of what is wrong.
        return schema_check.parsed(data)


def _verdict(faults: Sequence[str]) -> Look:
    return Look(False, "; ".join(faults)) if faults else Look(True, "the schema allows it")


def _given_up(what: str, answers: Sequence[Mapping[str, Any]]) -> Look:
    why = answers[-1].get("broken") if answers else None
    return Look(None, f"{what} was given up because {why or 'its process ended'}")


def _line_at(text: str, place: int, end: str) -> str:
    """The line of a place in a text, or what of it is near."""
    start = max(text.rfind(end, 0, place) + 1, place - EXCERPT_CHARS // 2)
    return text[start : start + EXCERPT_CHARS].partition(end)[0].strip()
