"""The virtual environments of the contenders: made when needed, kept for the next time."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

REQUIREMENTS = Path(__file__).parent / "requirements"
INSTALL_S = 1_800.0


class InstallError(RuntimeError):
    """An environment could not be made; says what the command that failed said last."""


def python_of(environment: str | None) -> Path:
    """The interpreter of an environment, which is made if it is not there or out of date.

    Args:
        environment: Name of its requirements; None is the environment that this runs in.

    Raises:
        InstallError: It could not be made.
    """
    if environment is None:
        return Path(sys.executable)
    folder = cache() / environment
    made_of, wanted = folder / "made-of", _wanted(environment)
    python = folder / "bin" / "python"
    if not made_of.exists() or made_of.read_text() != wanted:
        print(f"making the environment of {environment} in {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        _run([*pip, "--quiet", "--requirement", str(_requirements(environment))])
        made_of.write_text(wanted)
    return python


def cache() -> Path:
    """Where the environments are: ``$HARNESS_BENCH_CACHE``, or a folder of the user's caches."""
    given = os.environ.get("HARNESS_BENCH_CACHE")
    return Path(given) if given else user_cache_path("harness_actors") / "bench-peers"


def versions_of(environment: str | None, distributions: Sequence[str]) -> dict[str, str]:
    """The versions of some distributions: as pinned, or as installed here."""
    if environment is None:
        return {name: version(name) for name in distributions}
    lines = _requirements(environment).read_text().splitlines()
    pins = dict(line.split("==", 1) for line in lines if "==" in line)
    return {name: pins[name] for name in distributions}


def _wanted(environment: str) -> str:
    return f"{sys.version}\n{_requirements(environment).read_text()}"


def _requirements(environment: str) -> Path:
    return REQUIREMENTS / f"{environment}.txt"


def _run(command: Sequence[str]) -> None:
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"not installed within {INSTALL_S:g} s") from None
    if ran.returncode:
        said = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
        lines = said or ran.stderr.strip().splitlines() or [f"{command[:4]} said nothing"]
        raise InstallError(lines[-1])
