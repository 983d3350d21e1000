"""The shipped tools by name, and tools of the user's by module and function."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from harness_actors.errors import ConfigError
from harness_actors.ports import Tool
from harness_actors.tools.asking import ask_user
from harness_actors.tools.command import run_command
from harness_actors.tools.compacting import compact_conversation
from harness_actors.tools.completion import work_complete
from harness_actors.tools.files import create_directory, edit_file, read_file, write_file
from harness_actors.tools.function import FunctionTool, tool
from harness_actors.tools.search import find_files, grep_files, list_directory


def coding_tools() -> tuple[Tool, ...]:
    """All tools that read, change and run what is in a workspace."""
    return (
        read_file,
        write_file,
        edit_file,
        list_directory,
        grep_files,
        find_files,
        create_directory,
        run_command,
    )


def find_tool(name: str, beside: Path | None = None) -> Tool:
    """A tool by the name that an agent file gives it.

    Args:
        name: That of a shipped tool, or ``module:function``; the function may be
            decorated with `@tool` or plain.
        beside: A folder whose modules are found as well, before all others.

    Raises:
        ConfigError: There is no such tool; says what there is. Or its module cannot be
            imported; says why.
    """
    shipped = _shipped()
    if ":" not in name:
        if name in shipped:
            return shipped[name]
        known = ", ".join(sorted(shipped))
        raise ConfigError(
            "tools", f"no tool {name!r}; there are {known}, and your own as module:function"
        )
    module, found = _module_and_object(name, beside)
    return _as_tool(name, module, found)


def find_object(name: str, beside: Path | None = None) -> Any:
    """What a file names as ``module:name``; None where its module has no such thing.

    Args:
        name: The name.
        beside: As of `find_tool`.

    Raises:
        ConfigError: Its module cannot be imported; says why. Or it names none.
    """
    if ":" not in name:
        raise ConfigError("name", f"{name!r} must be given as module:name")
    return _module_and_object(name, beside)[1]


def _module_and_object(name: str, beside: Path | None) -> tuple[object, Any]:
    module_name, _, path = name.partition(":")
    module = _import(name, module_name, beside)
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return module, found


def _shipped() -> Mapping[str, Tool]:
    ours = (*coding_tools(), ask_user, compact_conversation, work_complete)
    return {found.spec.name: found for found in ours}


def _as_tool(name: str, module: object, found: Any) -> Tool:
    if hasattr(found, "spec") and hasattr(found, "run"):
        known: Tool = found
        return known
    if callable(found):
        return tool(found)
    tools = sorted(key for key, value in vars(module).items() if isinstance(value, FunctionTool))
    there = f"its tools are {', '.join(tools)}" if tools else "it has no function made by @tool"
    problem = "has no such function" if found is None else "is no function"
    raise ConfigError("tools", f"{name!r} {problem}; {there}")


def _import(name: str, module_name: str, beside: Path | None) -> object:
    try:
        with _searched_first(name, module_name, beside):
            return import_module(module_name)
    except ModuleNotFoundError as error:
        where = "the Python path" if beside is None else f"the Python path or in {str(beside)!r}"
        missing = f"no module {error.name!r} on {where}"
        raise ConfigError("tools", f"{name!r} cannot be imported: {missing}") from error
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        # Whatever the user's module does when it is imported is its fault.
        problem = f"{type(error).__name__}: {error}"
        raise ConfigError("tools", f"{name!r} cannot be imported: {problem}") from error


@contextmanager
def _searched_first(name: str, module_name: str, beside: Path | None) -> Iterator[None]:
    if beside is None:
        yield
        return
    folder = beside.resolve()
    top = module_name.partition(".")[0]
    if (folder / f"{top}.py").is_file() or (folder / top).is_dir():
        _check_free(name, top, folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _check_free(name: str, top: str, folder: Path) -> None:
    """Refuse a module whose name another one has: the import would give that one."""
    taken = sys.modules.get(top)
    if taken is None:
        return
    files = [getattr(taken, "__file__", None), *getattr(taken, "__path__", ())]
    places = [Path(file).resolve() for file in files if file]
    if not any(place.is_relative_to(folder) for place in places):
        where = f" from {str(places[0])!r}" if places else ""
        raise ConfigError(
            "tools",
            f"{name!r}: another module {top!r}{where} is loaded already; rename the one in "
            f"{str(folder)!r}",
        )
