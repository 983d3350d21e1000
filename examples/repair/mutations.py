"""Single small faults that can be put into a Python function.

The syntax tree says where a fault may go; the fault itself is a change of a few characters of the
source, so that the rest of the file keeps its layout and comments.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Kind = Literal["comparison", "arithmetic", "integer", "boolean"]

# What an operator is written as, and what may be written in its place.
COMPARISONS: dict[type[ast.cmpop], tuple[str, list[str]]] = {
    ast.Lt: ("<", ["<=", ">"]),
    ast.LtE: ("<=", ["<", ">="]),
    ast.Gt: (">", [">=", "<"]),
    ast.GtE: (">=", [">", "<="]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, list[str]]] = {
    ast.Add: ("+", ["-"]),
    ast.Sub: ("-", ["+"]),
    ast.Mult: ("*", ["+"]),
    ast.Div: ("/", ["*"]),
    ast.FloorDiv: ("//", ["*"]),
    ast.Mod: ("%", ["*"]),
    ast.Pow: ("**", ["*"]),
}
BOOLEAN: dict[type[ast.boolop], tuple[str, list[str]]] = {
    ast.And: ("and", ["or"]),
    ast.Or: ("or", ["and"]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One fault in one source."""

    kind: Kind
    line: int
    """Line of the fault, counted from 1."""
    source: str
    """The whole source with the fault in it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes `[start, stop)` of the source become `text`."""

    kind: Kind
    start: int
    stop: int
    text: str


def mutations(source: str, function: str) -> list[Mutation]:
    """List every single fault that can be put into a function's body.

    Args:
        source: A module that defines `function` at its top level.
        function: The name of the function to put a fault into; its docstring is left alone.

    Returns:
        The faults, in the order of the source. Each one still compiles.

    >>> [m.source for m in mutations("def f(a):\\n    return a + 2\\n", "f")][0]
    'def f(a):\\n    return a - 2\\n'
    """
    data = source.encode()
    found = []
    for edit in sorted(edits(source, function), key=lambda edit: (edit.start, edit.text)):
        changed = (data[: edit.start] + edit.text.encode() + data[edit.stop :]).decode()
        line = data[: edit.start].count(b"\n") + 1
        if compiles(changed):
            found.append(Mutation(kind=edit.kind, line=line, source=changed))
    return found


def edits(source: str, function: str) -> Iterator[Edit]:
    """Yield the changes of `mutations`, in no particular order."""
    at = Positions(source)
    for statement in body_without_docstring(ast.parse(source), function):
        for node in ast.walk(statement):
            match node:
                case ast.Compare():
                    operands = pairwise([node.left, *node.comparators])
                    for (left, right), op in zip(operands, node.ops, strict=True):
                        yield from at.operator(left, right, "comparison", *COMPARISONS[type(op)])
                case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
                    if type(node.op) in ARITHMETIC:
                        old_and_new = ARITHMETIC[type(node.op)]
                        yield from at.operator(left, right, "arithmetic", *old_and_new)
                case ast.BoolOp():
                    for left, right in pairwise(node.values):
                        yield from at.operator(left, right, "boolean", *BOOLEAN[type(node.op)])
                case ast.Constant(value=bool() as value):
                    yield at.whole(node, "boolean", str(not value))
                case ast.Constant(value=int() as value):
                    yield at.whole(node, "integer", str(value + 1))
                    if value > 0:
                        yield at.whole(node, "integer", str(value - 1))


class Positions:
    """Where the nodes of a source are, in bytes: the unit in which `ast` counts columns."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def whole(self, node: ast.expr, kind: Kind, new: str) -> Edit:
        """Replace a whole node."""
        return Edit(kind, self._start(node), self._stop(node), new)

    def operator(
        self, left: ast.expr, right: ast.expr, kind: Kind, old: str, new: list[str]
    ) -> Iterator[Edit]:
        """Replace the operator between two nodes by each of `new`."""
        offset = self._stop(left)
        gap = self._data[offset : self._start(right)].decode()
        # Beside the operator there may be brackets, and a comment, which might repeat it: where
        # there are two of them, neither is touched.
        if gap.count(old) == 1:
            start = offset + len(gap[: gap.index(old)].encode())
            yield from (Edit(kind, start, start + len(old), each) for each in new)

    def _start(self, node: ast.expr) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _stop(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset


def body_without_docstring(module: ast.Module, function: str) -> list[ast.stmt]:
    """The statements of a top-level function, without its docstring."""
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == function:
            has_docstring = ast.get_docstring(statement, clean=False) is not None
            return statement.body[1:] if has_docstring else statement.body
    raise ValueError(f"no function {function!r} at the top level of the source")


def compiles(source: str) -> bool:
    """Whether Python accepts the source."""
    try:
        compile(source, "solution.py", "exec")
    except SyntaxError:
        return False
    return True
