"""What each Python of a check does before all else; a copy of this file is put into its packages.

Other Pythons than the check's own find it as `sitecustomize`.

What is installed is found before what lies in the workspace, wherever `sys.path` has that: test
runners put it first. And the discovery of `unittest` enters packages in which there are tests, and
no others, which it would import. This file imports nothing of the project, and runs on the
interpreter that commands get.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

PATH_VARIABLE = "HARNESS_CHECK_PATH"
"""What the command of a check had set as PYTHONPATH: it comes after what is installed."""
NOT_INSTALLED = frozenset({"conftest", "test", "tests"})
"""Names that belong to the workspace, though some package or the library has them, too."""


CUSTOMS = frozenset({"sitecustomize", "usercustomize"})
"""Modules that Python looks for when it starts, the last of all."""
DISCOVERY = "unittest.loader"
"""The module that looks for tests."""


class Installed:
    """Finds top modules where packages are installed, and there alone.

    Args:
        path: Where that is; None where it is not known yet.
    """

    def __init__(self, path: list[str] | None) -> None:
        self._path = path

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name == DISCOVERY:
            return _found_with_tests(PathFinder.find_spec(name, path))
        if path is not None or name in NOT_INSTALLED:
            return None
        if self._path is None and name in CUSTOMS:
            # By now all folders of packages are known, and nothing of the workspace is.
            self._path = list(sys.path)
            sys.path += _others()
        spec = PathFinder.find_spec(name, self._path)
        if spec is None and name in CUSTOMS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        # Without a loader it is a namespace, which may have parts elsewhere.
        return None if spec is None or spec.loader is None else spec


def _found_with_tests(spec: ModuleSpec | None) -> ModuleSpec | None:
    """The module of discovery, which leaves out what has no tests as soon as it is there."""
    if spec is None or spec.loader is None:
        return spec
    execute = spec.loader.exec_module

    def exec_module(module: Any) -> None:
        execute(module)
        find = module.TestLoader._find_test_path

        def find_test_path(self: Any, full_path: str, pattern: str, *more: Any) -> Any:
            if os.path.isdir(full_path) and not _has_tests(full_path, pattern):
                return None, False
            return find(self, full_path, pattern, *more)

        module.TestLoader._find_test_path = find_test_path

    spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def _has_tests(folder: str, pattern: str) -> bool:
    # Here, for every Python of a check begins with this file, and few look for tests.
    from fnmatch import fnmatch

    return any(fnmatch(name, pattern) for _, _, names in os.walk(folder) for name in names)


def _others() -> list[str]:
    """Where else modules are looked for: beside the script, or in the current folder."""
    if sys.flags.isolated or not getattr(sys.flags, "safe_path", False):
        # It needs none, or Python itself puts it first.
        return []
    script = sys.argv[0] if sys.argv else ""
    is_script = script not in ("", "-c", "-m") and os.path.isfile(script)
    first = os.path.dirname(os.path.realpath(script)) if is_script else os.getcwd()
    given = "" if sys.flags.ignore_environment else os.environ.get(PATH_VARIABLE, "")
    return [first, *(os.path.abspath(entry) for entry in given.split(os.pathsep) if entry)]


# After the finders of modules that are part of the interpreter.
_KNOWN = list(sys.path) if __name__ == "sitecustomize" else None
sys.meta_path.insert(len(sys.meta_path) - 1, Installed(_KNOWN))
