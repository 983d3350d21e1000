"""A contract in a file, YAML or JSON, with the line of each of its fields."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from harness_actors.contracts.contract import TaskContract
from harness_actors.contracts.plain import Faults, read_contract
from harness_actors.errors import BadInputError
from harness_actors.exact_json import once
from harness_actors.given_file import read_given
from harness_actors.messages import MOST_LEVELS

MOST_BYTES = 1_000_000
MOST_VALUES = 50_000
"""Of a file, with what its aliases stand for."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HALVES = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MERGE = "tag:yaml.org,2002:merge"


class LoadedContract:
    """A contract with what is known of its file.

    Attributes:
        path: The file.
        contract: What it describes.
        lines: The line of each field, from 1.
    """

    def __init__(self, path: Path, contract: TaskContract, lines: dict[str, int]) -> None:
        self.path = path
        self.contract = contract
        self.lines = lines

    def refuse(self, faults: Faults) -> None:
        """Raise what was found of it later.

        Raises:
            BadInputError: There is a fault.
        """
        if faults.found:
            raise BadInputError(str(self.path), faults.sentences(self.lines))


def load_contract(path: Path) -> LoadedContract:
    """The contract of a file; one whose name ends in `.json` is JSON, any other is YAML.

    Args:
        path: The file, UTF-8, of at most `MOST_BYTES`.

    Raises:
        BadInputError: It cannot be read, or something is wrong with the contract; names line and
            field of each fault.
    """
    text = _read(path)
    plain, lines = (_json if path.suffix.lower() == ".json" else _yaml)(path, text)
    contract, faults = read_contract(plain)
    if contract is None:
        raise BadInputError(str(path), faults.sentences(lines))
    return LoadedContract(path, contract, lines)


def lines_of(text: str) -> dict[str, int]:
    """The line of each field of a YAML document, from 1; none where it is not to be taken apart."""
    try:
        return _composed(text)[1]
    except yaml.YAMLError:
        return {}


def _read(path: Path) -> str:
    try:
        data = read_given(path, MOST_BYTES, "contract")
    except OSError as error:
        raise BadInputError(str(path), (f"it cannot be read: {error.strerror}",)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInputError(str(path), (f"line {line}: it is not UTF-8",)) from None


def _json(path: Path, text: str) -> tuple[Any, dict[str, int]]:
    try:
        # For its lines alone. Outside of texts a tab is a blank, and inside JSON has none; halves
        # of characters are no YAML.
        _, lines = _composed(_HALVES.sub("?", text.replace("\t", " ")))
    except _RefusedError as error:
        raise BadInputError(str(path), (_told(error),)) from None
    except yaml.YAMLError:
        # What is JSON is YAML but for oddities, and what is neither is told below.
        lines = {}
    try:
        plain = json.loads(text, object_pairs_hook=once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise BadInputError(str(path), (f"line {error.lineno}: no JSON: {error.msg}",)) from None
    except ValueError as error:
        raise BadInputError(str(path), (str(error),)) from None
    except RecursionError:
        raise BadInputError(str(path), (_too_deep(),)) from None
    return plain, lines


def _yaml(path: Path, text: str) -> tuple[Any, dict[str, int]]:
    try:
        return _composed(text)
    except yaml.MarkedYAMLError as error:
        raise BadInputError(str(path), (_told(error),)) from None
    except yaml.YAMLError as error:
        raise BadInputError(str(path), (f"no YAML: {' '.join(str(error).split())}",)) from None


def _told(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    line = "" if mark is None else f"line {mark.line + 1}: "
    what = "" if isinstance(error, _RefusedError) else "no YAML: "
    return line + what + " ".join(filter(None, (error.context, error.problem)))


class _RefusedError(yaml.MarkedYAMLError):
    """It is YAML, and no contract."""


def _composed(text: str) -> tuple[Any, dict[str, int]]:
    """The values of a document, and the line of each.

    Raises:
        yaml.YAMLError: It is none.
    """
    # The parser of C goes down by recursion, without a bound of its own: depth comes first.
    _check_extent(text)
    node = yaml.compose(text, Loader=_Loader)
    document = _Document()
    plain = None if node is None else document.value("", node)
    return plain, document.lines


def _check_extent(text: str) -> None:
    depth, left = 0, MOST_VALUES
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_LEVELS:
            raise _fault(_too_deep(), event.start_mark)
        left -= isinstance(event, yaml.NodeEvent)
        if left < 0:
            raise _fault(_too_many(), event.start_mark)


class _Document:
    """Makes plain values of nodes, and remembers their lines."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self._scalars = yaml.constructor.SafeConstructor()
        self._left = MOST_VALUES
        self._depth = 0

    def value(self, at: str, node: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _fault(_too_many(), node.start_mark)
        if self._depth > MOST_LEVELS:
            # An alias may stand for what it is in.
            raise _fault(_too_deep(), node.start_mark)
        self.lines[at] = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._depth += 1
        try:
            if isinstance(node, yaml.SequenceNode):
                each = enumerate(node.value)
                return [self.value(f"{at}[{place}]", item) for place, item in each]
            return dict(self._pairs(at, node))
        finally:
            self._depth -= 1

    def _pairs(self, at: str, node: Any) -> Iterator[tuple[Any, Any]]:
        seen: dict[Any, int] = {}
        for key, item in node.value:
            if key.tag == _MERGE:
                raise _fault("merging by << is not taken in a contract", key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise _fault("the name of a field must be a text", key.start_mark)
            # `yes` and 17 are names, and neither true nor a number.
            name = key.value
            if name in seen:
                problem = f"{name!r:.60} is given twice, in line {seen[name]} before"
                raise _fault(problem, key.start_mark)
            seen[name] = key.start_mark.line + 1
            below = f"{at}.{name}" if at else name
            found = self.value(below, item)
            self.lines[below] = key.start_mark.line + 1
            yield name, found

    def _scalar(self, node: Any) -> Any:
        try:
            return self._scalars.construct_object(node)
        except ValueError as error:
            # A date that is none, or a number of thousands of digits.
            raise _fault(str(error).partition(":")[0], node.start_mark) from None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _too_deep() -> str:
    return f"it is nested more than {MOST_LEVELS} levels deep"


def _too_many() -> str:
    return f"it has more than {MOST_VALUES:,} values"


def _fault(problem: str, mark: Any) -> _RefusedError:
    return _RefusedError(problem=problem, problem_mark=mark)
