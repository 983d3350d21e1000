"""Answers as they are given to a command: in words, or in a file."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness_actors.errors import BadInputError
from harness_actors.exact_json import no_constant, once

FILE, TEXT, ARGUMENTS = "--file", "TEXT", "--arguments"
STANDARD_INPUT = "-"
MOST_TEXT_BYTES = 1_000_000
"""Of a file with one answer, or of a line of one with many: no answer has more characters."""
MOST_MAPPING_BYTES = 2_000_000
MOST_FAULTS = 10
KEYS = frozenset({"run", "question", "answer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """One answer.

    Attributes:
        question: The id of what it answers; empty for the only question that is open.
        text: The answer.
        run: The run, or the beginning of its id.
    """

    run: str
    question: str
    text: str


def given_answers(run_id: str, words: list[str], file: Path | None) -> list[GivenAnswer]:
    """What the arguments of a command answer.

    Args:
        run_id: The run; empty where a file names them.
        words: What follows it: the id of a question and the answer, or one of them.
        file: The answer to the named question, or, where none is named, many answers.

    Raises:
        BadInputError: It is not clear what is answered by what, or a file is at fault.
    """
    match words:
        case [question] if run_id and file is not None:
            return [GivenAnswer(run=run_id, question=question, text=_text_in(file))]
        case [] if run_id and file is not None:
            return [
                GivenAnswer(run=run_id, question=question, text=text)
                for question, text in _mapping_in(file).items()
            ]
        case [] if file is not None:
            return list(_lines_in(file))
        case [text] if run_id and file is None:
            return [GivenAnswer(run=run_id, question="", text=_given(text))]
        case [question, text] if file is None:
            return [GivenAnswer(run=run_id, question=question, text=_given(text))]
        case []:
            raise BadInputError(TEXT, ("give the answer, or --file with it",))
        case _ if file is not None:
            raise BadInputError(FILE, ("give the answer there or as an argument, not both",))
        case _:
            raise BadInputError(TEXT, ("put an answer of several words in quotes",))


def given_arguments(given: str) -> dict[str, Any]:
    """Arguments of a call, as they are given to a command: JSON, ``@FILE``, or ``-``.

    Raises:
        BadInputError: The file cannot be read, or they are no JSON object.
    """
    is_file = given.startswith("@") or given == STANDARD_INPUT
    file = Path(given.removeprefix("@"))
    text = _read(file, MOST_TEXT_BYTES) if is_file else _given(given, ARGUMENTS)
    source = f"{ARGUMENTS} {given}" if is_file else ARGUMENTS
    try:
        found = json.loads(text, parse_constant=no_constant, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise BadInputError(source, (f"it is no JSON: {error}",)) from None
    except RecursionError:
        raise BadInputError(source, ("it is nested too deep",)) from None
    except ValueError as error:
        raise BadInputError(source, (f"{error}",)) from None
    if not isinstance(found, dict):
        problem = 'the arguments must be an object, such as {"order": 17}'
        raise BadInputError(source, (problem,))
    return found


def _given(text: str, source: str = TEXT) -> str:
    if source == TEXT and text == STANDARD_INPUT:
        return _text_in(Path(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInputError(source, ("it is not UTF-8",)) from None
    return text


def _text_in(file: Path) -> str:
    """One answer: what a file holds, but for the end of its last line."""
    return _read(file, MOST_TEXT_BYTES).removesuffix("\n").removesuffix("\r")


def _mapping_in(file: Path) -> dict[str, str]:
    """Answers to one run, JSON or YAML: by the ids of its questions."""
    text = _read(file, MOST_MAPPING_BYTES)
    try:
        found = _json_or_yaml(text)
    except ValueError as error:
        raise BadInputError(_named(file), (str(error),)) from None
    except (yaml.YAMLError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = "" if place is None else f" in line {place.line + 1}"
        raise BadInputError(_named(file), (f"it is neither JSON nor YAML{where}",)) from None
    if not isinstance(found, dict) or not found:
        problem = "it must map the ids of questions to answers, such as `q1: yes`"
        raise BadInputError(_named(file), (problem,))
    faults = [
        f"the answer to {key!r} must be a text, not {value!r:.60}"
        for key, value in found.items()
        if not isinstance(key, str) or not isinstance(value, str)
    ]
    if faults:
        raise BadInputError(_named(file), tuple(faults[:MOST_FAULTS]))
    return found


def _json_or_yaml(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError:
        # As texts all of them: `yes` and `17` are answers, and neither true nor a number.
        return yaml.load(text, Loader=_OnceLoader)


class _OnceLoader(yaml.BaseLoader):
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        once([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        return super().construct_mapping(node, deep=deep)


def _lines_in(file: Path) -> Iterator[GivenAnswer]:
    """Answers to many runs: a JSON object a line, read whole before anything is answered."""
    faults: list[str] = []
    answered: dict[tuple[str, str], int] = {}
    found: list[GivenAnswer] = []
    for number, line in enumerate(_read(file, None).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            answer = _line(line)
            first = answered.setdefault((answer.run, answer.question), number)
            if first != number:
                raise ValueError(f"answered in line {first} before")
            found.append(answer)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            if len(faults) == MOST_FAULTS:
                break
    if faults:
        raise BadInputError(_named(file), tuple(faults))
    if not found:
        raise BadInputError(_named(file), ("there is no answer in it",))
    yield from found


def _line(line: str) -> GivenAnswer:
    """An answer of such a line; `question` may be missing where one is open.

    Raises:
        ValueError: What is wrong with it.
    """
    try:
        plain = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError:
        raise ValueError("it is no JSON") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(plain, dict):
        raise ValueError('it must be {"run": …, "question": …, "answer": …}')
    if strange := sorted(map(str, plain.keys() - KEYS)):
        raise ValueError(f"there is no field {strange[0]!r:.60}; there are run, question, answer")
    plain = {"question": "", **plain}
    for name in ("run", "question", "answer"):
        if not isinstance(plain.get(name), str):
            raise ValueError(f"{name} must be a text")
    if not plain["run"]:
        raise ValueError("run is empty")
    return GivenAnswer(run=plain["run"], question=plain["question"], text=plain["answer"])


def _read(file: Path, most_bytes: int | None) -> str:
    try:
        if str(file) == STANDARD_INPUT:
            content = b"" if sys.stdin is None else _some(sys.stdin.buffer, most_bytes)
        else:
            with file.open("rb") as opened:
                content = _some(opened, most_bytes)
    except OSError as error:
        problem = f"it cannot be read: {error.strerror or error}"
        raise BadInputError(_named(file), (problem,)) from None
    if most_bytes is not None and len(content) > most_bytes:
        problem = f"it has more than {most_bytes:,} bytes; keep what is long elsewhere and name it"
        raise BadInputError(_named(file), (problem,))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8, at byte {error.start}"
        raise BadInputError(_named(file), (problem,)) from None


def _some(file: Any, most_bytes: int | None) -> bytes:
    content: bytes = file.read() if most_bytes is None else file.read(most_bytes + 1)
    return content


def _named(file: Path) -> str:
    return "standard input" if str(file) == STANDARD_INPUT else str(file)
