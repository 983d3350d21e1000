"""The environment of commands: explicit, without keys, and without our own packages.

A command sees no variable of the harness, so no key in one. Its `python` is not the
harness's: it cannot import what is installed beside the harness. This keeps a run honest,
it is no wall: a command may still name any interpreter or file by its path.
"""

import os
import site
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def command_environment(
    home: Path,
    variables: Mapping[str, str],
    *,
    path: Sequence[str] = (),
    bare_python: bool = False,
) -> dict[str, str]:
    """All variables that a command gets.

    Args:
        home: The workspace; its HOME.
        variables: Added to the others, or in place of them.
        path: Folders to look for programs in before all others.
        bare_python: See `python_folder`.
    """
    folders = (*path, str(python_folder(bare=bare_python)), *program_folders())
    return {**plain_environment(home, folders), **variables}


def plain_environment(home: Path, path: Sequence[str]) -> dict[str, str]:
    """The variables that every command has.

    Args:
        home: Its HOME.
        path: The folders of its PATH.
    """
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join(path),
        "TERM": "dumb",
        "TMPDIR": tempfile.gettempdir(),
        # An edit within a second that keeps a file's size would be missed by Python:
        # its compiled files are compared by size and whole seconds.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }


def python_folder(*, bare: bool = False) -> Path:
    """A folder with `python` and `python3` for commands.

    They are the interpreter that the harness's virtual environment was made of, with
    what is installed there.

    Args:
        bare: The standard library alone. It is so in any case where the harness sees
            the interpreter's packages, because it is installed among them.
    """
    interpreter = Path(sys._base_executable)  # type: ignore[attr-defined]
    bare = bare or shares_packages()
    tag = sha256(f"{interpreter}:{bare}".encode()).hexdigest()[:16]
    place = _cache_folder() / f"python-{tag}"
    if not _is_as_made(place, interpreter, bare=bare):
        # Where a command has changed it. Another process may do the same at the moment.
        with suppress(OSError):
            place.rename(place.with_name(f"{place.name}.{token_hex(4)}.changed"))
        _make_python(place, interpreter, bare=bare)
    return place / "bin"


def shares_packages() -> bool:
    """Whether the harness sees the packages of the interpreter that commands get."""
    base = site.getsitepackages([sys.base_prefix, sys.base_exec_prefix])
    return bool({os.path.realpath(entry) for entry in base} & set(map(os.path.realpath, sys.path)))


def program_folders() -> list[str]:
    """Folders of PATH in which commands find the system's programs."""
    own = {os.path.join(sys.prefix, "bin"), os.path.dirname(sys.executable)}
    # Of an interpreter that was not installed into a virtual environment, the folder
    # may be /usr/bin; it stays.
    hidden = own if sys.prefix != sys.base_prefix else set()
    folders = os.environ.get("PATH", SYSTEM_PATH).split(os.pathsep)
    return [folder for folder in folders if os.path.isabs(folder) and folder not in hidden]


@cache
def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    folder = user_cache_path("harness_actors")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="harness_actors-"))
    if not os.access(folder, os.W_OK):
        return Path(tempfile.mkdtemp(prefix="harness_actors-"))
    return folder


PYTHONS = ("python", "python3")


def _settings(interpreter: Path) -> str:
    """With them it is a virtual environment into which nothing was installed."""
    return f"home = {interpreter.parent}\ninclude-system-site-packages = false\n"


def _is_as_made(place: Path, interpreter: Path, *, bare: bool) -> bool:
    """Whether a folder holds what `_make_python` put there, and nothing else."""
    try:
        if set(os.listdir(place)) != ({"bin", "pyvenv.cfg"} if bare else {"bin"}):
            return False
        if bare and (place / "pyvenv.cfg").read_text() != _settings(interpreter):
            return False
        links = {name: os.readlink(place / "bin" / name) for name in os.listdir(place / "bin")}
    except OSError:
        return False
    return links == dict.fromkeys(PYTHONS, str(interpreter))


def _make_python(place: Path, interpreter: Path, *, bare: bool) -> None:
    # Made beside and put in place at once: several processes may do it together.
    fresh = place.with_name(f"{place.name}.{token_hex(4)}")
    (fresh / "bin").mkdir(parents=True)
    for name in PYTHONS:
        (fresh / "bin" / name).symlink_to(interpreter)
    if bare:
        (fresh / "pyvenv.cfg").write_text(_settings(interpreter))
    try:
        fresh.rename(place)
    except OSError:
        # Another process was first, and its folder is the same.
        for part in (*(fresh / "bin").iterdir(), *fresh.glob("*.cfg")):
            part.unlink()
        (fresh / "bin").rmdir()
        fresh.rmdir()
