"""The programs of checks: as they were when the command began, whatever runs did to them since.

All is looked at once before the first run begins that is to be checked, and again after each check:
a result counts only if nothing that it could have come by was changed before. What was changed
among packages and programs is left out from then on, and the check is made again without it.
"""

import asyncio
import hashlib
import os
import platform
import shlex
import shutil
import sys
import time
from pathlib import Path

from harness_actors.batch import in_checks
from harness_actors.batch.installed import (
    Difference,
    Installed,
    base_interpreter,
    compare,
    package_folders,
    read_installed,
)
from harness_actors.tools.environment import (
    plain_environment,
    program_folders,
    shares_packages,
)

GUARD = "harness_in_checks"
PAUSES = 2
"""Pause between two looks, in their own durations: checks that end meanwhile share the next."""
_SCRIPT_BYTES = 1 << 16

# Whatever the command sets: nothing stands before the standard library.
_OF_GIT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
"""A folder that looks like a repository without files is none: its settings name programs."""
_PYTHON = """\
#!/bin/sh
if [ "${{PYTHONPATH+x}}" ]; then {variable}=$PYTHONPATH; export {variable}; fi
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONPLATLIBDIR
exec {interpreter} -P -s "$@"
"""


class CheckPrograms:
    """What checks run on."""

    def __init__(self) -> None:
        self._folders = program_folders()
        self._packages = () if shares_packages() else package_folders()
        self._begun = Installed()
        self._now = Difference()
        self._one = asyncio.Lock()
        self._next: asyncio.Task[Difference] | None = None
        self._scripts: dict[str, str] = {}
        self._took_s = 0.0
        self.python = ""
        """What `python` is in checks; known when begun."""

    async def begin(self) -> None:
        """Look at what is installed now, if that was not done yet."""
        async with self._one:
            if not self.python:
                self._begun = await self._read()
                self.python = await asyncio.to_thread(_named)
                self._scripts = await asyncio.to_thread(_scripts_of_base, self._folders)

    async def changes(self) -> Difference:
        """What has changed since, by a look that begins after this was called."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._changes())
        return await asyncio.shield(self._next)

    @property
    def known(self) -> Difference:
        """What had changed when somebody last looked."""
        return self._now

    async def _changes(self) -> Difference:
        async with self._one:
            await asyncio.sleep(PAUSES * self._took_s)
            # Who asks from here on needs a look that begins later.
            self._next = None
            self._now = compare(self._begun, await self._read())
            return self._now

    async def _read(self) -> Installed:
        began = time.monotonic()
        found = await asyncio.to_thread(read_installed, self._folders, self._packages)
        self._took_s = time.monotonic() - began
        return found

    def lay_out(self, folder: Path, changed: Difference) -> dict[str, str]:
        """Make a folder of programs for one check; blocks.

        Args:
            folder: It must not be there yet.
            changed: What is to be left out.

        Returns:
            All variables of the check, which finds them by these.
        """
        packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        packages /= "site-packages"
        others = folder / "others"
        for made in (folder / "bin", folder / "real", others, packages):
            made.mkdir(parents=True)
        as_before = bool(self._packages) and not changed.packages
        interpreter = base_interpreter()
        (folder / "pyvenv.cfg").write_text(
            f"home = {interpreter.parent}\n"
            f"include-system-site-packages = {str(as_before).lower()}\n"
        )
        real = folder / "real" / interpreter.name
        real.symlink_to(interpreter)
        if not as_before:
            self._link_packages(packages, changed)
        shutil.copyfile(in_checks.__file__, packages / f"{GUARD}.py")
        shutil.copyfile(in_checks.__file__, others / "sitecustomize.py")
        (packages / f"{GUARD}.pth").write_text(f"import {GUARD}\n")
        python = _PYTHON.format(
            variable=in_checks.PATH_VARIABLE, interpreter=shlex.quote(str(real))
        )
        names = ("python", "python3", f"python3.{sys.version_info[1]}")
        for name, text in {**self._scripts, **dict.fromkeys(names, python)}.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        home = folder / "home"
        home.mkdir()
        path = [str(folder / "bin"), *self._program_folders(folder, changed)]
        variables = {**plain_environment(home, path), **_OF_GIT, "PYTHONPATH": str(others)}
        if changed.caches:
            # Nothing is there: Python compiles what it needs anew.
            variables["PYTHONPYCACHEPREFIX"] = str(folder / "caches")
        return variables

    def _link_packages(self, packages: Path, changed: Difference) -> None:
        for path in self._begun.packages.keys() - changed.packages:
            place = packages / os.path.basename(path)
            if not os.path.lexists(place):
                place.symlink_to(path)

    def _program_folders(self, folder: Path, changed: Difference) -> list[str]:
        """The folders of PATH; for one in which something was changed, links to the rest."""
        touched = {os.path.dirname(path) for path in changed.programs}
        found = []
        for number, name in enumerate(self._folders):
            if name in touched:
                links = folder / f"path-{number}"
                links.mkdir()
                for path in self._begun.programs.keys() - changed.programs:
                    if os.path.dirname(path) == name:
                        (links / os.path.basename(path)).symlink_to(path)
                name = str(links)
            found.append(name)
        return found


def _named() -> str:
    content = hashlib.sha256(base_interpreter().read_bytes()).hexdigest()
    version = platform.python_version()
    return f"{platform.python_implementation()} {version} (sha256 {content[:12]})"


def _scripts_of_base(folders: list[str]) -> dict[str, str]:
    """The programs of the interpreter's packages that are found by their names, for any Python."""
    if shares_packages():
        return {}
    interpreter = base_interpreter()
    known = {str(interpreter.parent / name) for name in (interpreter.name, "python", "python3")}
    found = {}
    for path in sorted(interpreter.parent.iterdir()):
        try:
            with path.open("rb") as file:
                text = file.read(_SCRIPT_BYTES).decode()
        except (OSError, UnicodeDecodeError):
            continue
        first, _, rest = text.partition("\n")
        names_it = first.startswith("#!") and first[2:].strip() in known
        if names_it and shutil.which(path.name, path=os.pathsep.join(folders)):
            found[path.name] = f"#!/usr/bin/env python3\n{rest}"
    return found
