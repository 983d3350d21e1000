"""The small edits of a module: what an engineer could forget, or get the wrong way round."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

NEXT = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SHOWN_CHARS = 80

Change = tuple[str, ast.AST]
"""What an edit does, for people; and what stands there then."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a module.

    Attributes:
        number: Which of the module's it is, from 0.
        line: Where, from 1.
        what: What it does, for people.
        functions: Qualified names of the functions that it is in, the outermost first.
    """

    number: int
    line: int
    what: str
    functions: tuple[str, ...]


def edits(source: str) -> list[Edit]:
    """All edits of a module, in the order of its text."""
    return [edit for edit, _, _ in _edited(ast.parse(source))]


def edited(source: str, number: int) -> ast.Module:
    """A module after one of its edits.

    Raises:
        IndexError: It has none of this number.
    """
    tree = ast.parse(source)
    for edit, place, new in _edited(tree):
        if edit.number == number:
            place.put(new)
            return ast.fix_missing_locations(copy.deepcopy(tree))
    raise IndexError(number)


def edited_text(source: str, number: int) -> str:
    """The text of a module after one of its edits; whatever the edit is not about stays as it is.

    Raises:
        IndexError: It has none of this number.
    """
    for edit, place, new in _edited(ast.parse(source)):
        if edit.number == number:
            return _put_into(source, place.node, new)
    raise IndexError(number)


def _put_into(source: str, old: ast.AST, new: ast.AST) -> str:
    lines = source.encode().split(b"\n")
    first, last = old.lineno - 1, old.end_lineno - 1  # type: ignore[attr-defined]
    start, end = old.col_offset, old.end_col_offset  # type: ignore[attr-defined]
    words = ast.unparse(ast.fix_missing_locations(new))
    is_whole = isinstance(new, ast.stmt)
    words = words.replace("\n", f"\n{' ' * start}") if is_whole else f"({words})"
    lines[first : last + 1] = [lines[first][:start] + words.encode() + lines[last][end:]]
    return b"\n".join(lines).decode()


def _edited(tree: ast.Module) -> Iterator[tuple[Edit, "_Place", ast.AST]]:
    """Each edit, with its place and what is put there."""
    number = 0
    for place in list(_places(tree, ())):
        for what, new in changes(place.node):
            line = getattr(place.node, "lineno", 0)
            yield Edit(number, line, what, place.functions), place, new
            number += 1


@dataclass(frozen=True, slots=True)
class _Place:
    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    functions: tuple[str, ...]

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(node: ast.AST, functions: tuple[str, ...], around: str = "") -> Iterator[_Place]:
    """The nodes within functions, but not what is evaluated where those are defined."""
    for field, value in ast.iter_fields(node):
        if field in ("decorator_list", "args", "returns", "annotation") and not isinstance(
            node, ast.Call
        ):
            continue
        listed = isinstance(value, list)
        for index, child in enumerate(value if listed else [value]):
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, FUNCTIONS):
                name = f"{around}{child.name}"
                yield from _places(child, (*functions, name), f"{name}.<locals>.")
                continue
            if isinstance(child, ast.ClassDef):
                yield from _places(child, functions, f"{around}{child.name}.")
                continue
            if functions:
                yield _Place(child, node, field, index if listed else None, functions)
            yield from _places(child, functions, around)


@singledispatch
def changes(node: ast.AST) -> Iterator[Change]:
    """What could stand in the place of a node."""
    return iter(())


@changes.register
def _(node: ast.Expr) -> Iterator[Change]:
    if not isinstance(node.value, ast.Constant | ast.Yield):
        yield _dropped(node)


@changes.register
def _(node: ast.Assign | ast.AugAssign) -> Iterator[Change]:
    # Without a plain name, what follows would fail at once.
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    flat = [t for target in targets for t in getattr(target, "elts", [target])]
    if isinstance(node, ast.AugAssign) or not all(isinstance(t, ast.Name) for t in flat):
        yield _dropped(node)


@changes.register
def _(node: ast.Delete | ast.Raise) -> Iterator[Change]:
    yield _dropped(node)


@changes.register
def _(node: ast.If) -> Iterator[Change]:
    for value in (True, False):
        test = ast.Constant(value)
        new = ast.If(test=test, body=node.body, orelse=node.orelse)
        yield f"take {_text(node.test)} for {value}", new


@changes.register
def _(node: ast.IfExp) -> Iterator[Change]:
    for always in (node.body, node.orelse):
        yield f"take {_text(always)} for {_text(node)}", always


@changes.register
def _(node: ast.BoolOp) -> Iterator[Change]:
    for position, value in enumerate(node.values):
        rest = [*node.values[:position], *node.values[position + 1 :]]
        new = rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
        yield f"leave {_text(value)} out of {_text(node)}", new


@changes.register
def _(node: ast.Compare) -> Iterator[Change]:
    if len(node.ops) == 1 and (other := NEXT.get(type(node.ops[0]))) is not None:
        new = ast.Compare(left=node.left, ops=[other()], comparators=node.comparators)
        yield f"move the bound of {_text(node)}", new


@changes.register
def _(node: ast.Call) -> Iterator[Change]:
    for position, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            rest = [*node.keywords[:position], *node.keywords[position + 1 :]]
            new = ast.Call(func=node.func, args=node.args, keywords=rest)
            yield f"leave {keyword.arg}= out of {_text(node)}", new
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in ("min", "max") and len(node.args) > 1:
        for value in node.args:
            yield f"take {_text(value)} for {_text(node)}", value
    if name in ("sorted", "list", "dict", "set") and len(node.args) == 1 and not node.keywords:
        yield f"take {_text(node.args[0])} for {_text(node)}", node.args[0]


@changes.register
def _(node: ast.Break) -> Iterator[Change]:
    yield "go on instead of breaking off", ast.Continue()


@changes.register
def _(node: ast.Continue) -> Iterator[Change]:
    yield "break off instead of going on", ast.Break()


@changes.register
def _(node: ast.BinOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Add | ast.Sub) and not isinstance(node.left, ast.Constant):
        yield f"take {_text(node.left)} for {_text(node)}", node.left


@changes.register
def _(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield f"take {not node.value} for {node.value}", ast.Constant(not node.value)


def _dropped(node: ast.AST) -> Change:
    return f"leave out {_text(node)}", ast.Pass()


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
