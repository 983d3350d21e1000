"""A Python for the commands of a run that cannot import what this project has installed.

The packages of the project's environment include the one with the problems' solutions.

This keeps a command from importing them by accident or by habit. It is no sandbox: a command that
looks for the files on the disk finds them, unless it runs as another user or in a container.
"""

import os
import shlex
import sys
from pathlib import Path


def base_python() -> str:
    """The interpreter that the virtual environment was made from."""
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")


def command_path(folder: Path) -> str:
    """Put `python` and `python3` into a folder.

    Args:
        folder: Where to put them; made if it is not there.

    Returns:
        The value of PATH with which commands find these and the system's programs, and nothing of
        a virtual environment. With it, `python` sees the standard library and the current folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        program = folder / name
        # -E: no PYTHONPATH; -s, -S: no packages of the user or of the base interpreter.
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(base_python())} -E -s -S "$@"\n')
        program.chmod(0o755)
    return os.pathsep.join([str(folder.absolute()), os.defpath])
