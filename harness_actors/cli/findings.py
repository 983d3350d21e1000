"""What `harness doctor` looks at, one function per thing."""

import asyncio
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from harness_actors.errors import CellError, HarnessError

State = Literal["ok", "missing", "note"]

GIB = 1 << 30
NEEDED_PYTHON = (3, 11)
ENOUGH_FILES = 4096
ENOUGH_SHM_BYTES = GIB // 4
ENOUGH_DISK_BYTES = GIB
ENOUGH_MEMORY_BYTES = 2 * GIB
CONNECT_S = 3.0
IMPORT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: The thing.
        state: ``ok``; ``missing``; or ``note``: it works, with less than one may want.
        found: What there is.
        fix: How to get what is missing; empty where nothing is.
        essential: Without it no run works at all.
    """

    what: str
    state: State
    found: str
    fix: str = ""
    essential: bool = False


def examine(base_url: str | None = None) -> list[Finding]:
    """Look at everything; nothing is started and nothing is changed.

    Args:
        base_url: The endpoint to try; None takes that of the environment, or OpenAI's.
    """
    looks: list[Callable[[], Finding]] = [
        look_at_python,
        look_at_ray,
        look_at_live_ray,
        look_at_key,
        lambda: look_at_endpoint(base_url),
        look_at_embedded_server,
        look_at_embedded_weights,
        look_at_token_counts,
        look_at_journal,
        look_at_workspaces,
        look_at_open_files,
        look_at_shared_memory,
        look_at_machine,
    ]
    return [look() for look in looks]


def look_at_python() -> Finding:
    found, good = ".".join(map(str, sys.version_info[:3])), sys.version_info >= NEEDED_PYTHON
    fix = "install Python 3.11 or later"
    return _judged("Python", found, good=good, fix=fix, else_="missing", essential=True)


def look_at_ray() -> Finding:
    """Ray is imported in a process of its own, as a broken one may take its process along."""
    fix = "pip install 'ray>=2.60,<3'; or run with --runtime local"
    try:
        there = version("ray")
    except PackageNotFoundError:
        return Finding(what="Ray", state="missing", found="not installed", fix=fix, essential=True)
    imported = subprocess.run(
        [sys.executable, "-c", "import ray"], capture_output=True, text=True, timeout=IMPORT_S
    )
    good = imported.returncode == 0
    lines = imported.stderr.strip().splitlines()
    found = there if good else f"{there}, but: {lines[-1] if lines else 'cannot be imported'}"
    return _judged("Ray", found, good=good, fix=fix, else_="missing", essential=True)


def look_at_live_ray() -> Finding:
    """Which Ray commands would join, and whether it lets us in; none is joined or started."""
    from harness_actors.actors.joining.address import find_ray

    what, own = "Ray that is up", "none; each command starts its own"
    try:
        found = find_ray(None)
    except CellError as error:
        fix = f"{error.problem}; or unset RAY_ADDRESS"
        return Finding(what=what, state="missing", found=error.what, fix=fix)
    if found is None:
        return Finding(what=what, state="ok", found=own)
    named = f"{found.address} ({found.source})"
    if found.problem is not None:
        fix = f"{found.problem}" + ("; or unset RAY_ADDRESS" if _is_named() else "")
        return Finding(what=what, state="missing", found=f"{named} cannot be joined", fix=fix)
    token = "" if found.token.value is None else f", with the token of {found.token.source}"
    return Finding(what=what, state="ok", found=f"{named}, will be joined{token}")


def _is_named() -> bool:
    return bool(os.environ.get("RAY_ADDRESS"))


def look_at_key() -> Finding:
    if os.environ.get("OPENAI_API_KEY"):
        return Finding(what="API key", state="ok", found="OPENAI_API_KEY is set")
    fix = "export OPENAI_API_KEY=…; or use --model local, or an endpoint of your own"
    return Finding(what="API key", state="note", found="OPENAI_API_KEY is not set", fix=fix)


def look_at_endpoint(base_url: str | None) -> Finding:
    """Whether somebody answers there; any HTTP status is an answer."""
    url = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    try:
        request = Request(f"{url.rstrip('/')}/models", headers={"User-Agent": "harness"})
        with urlopen(request, timeout=CONNECT_S):
            pass
    except HTTPError as answered:
        # Without a key most say 401, which is an answer like any other.
        answered.close()
    except (URLError, OSError, ValueError) as error:
        problem = getattr(error, "reason", error)
        fix = "check the address, the network and HTTPS_PROXY; or use --model local"
        found = f"{urlsplit(url).netloc or url}: {problem}"
        return Finding(what="model endpoint", state="note", found=found, fix=fix)
    return Finding(what="model endpoint", state="ok", found=url)


def look_at_embedded_server() -> Finding:
    from harness_actors.models.local_server import INSTALL_SERVER

    return _package("embedded model", "xllamacpp", INSTALL_SERVER)


def look_at_embedded_weights() -> Finding:
    from harness_actors.models.local_server import INSTALL_WEIGHTS, find_weights

    try:
        found = find_weights().name
    except HarnessError:
        found = "not installed"
        return Finding(what="its weights", state="note", found=found, fix=INSTALL_WEIGHTS)
    return Finding(what="its weights", state="ok", found=found)


def look_at_token_counts() -> Finding:
    """Tokens are counted without a network, from files in the package."""
    from harness_actors.models import counter_for

    try:
        count = asyncio.run(counter_for("gpt-4o").count("hello world"))
    except (HarnessError, OSError) as error:
        fix = "install harness_actors again: its rank files are damaged"
        return Finding(what="token counts", state="missing", found=str(error), fix=fix)
    return Finding(what="token counts", state="ok", found=f"offline ({count} for two words)")


def look_at_journal() -> Finding:
    """Whether the folder of the journals takes a database with a write-ahead log."""
    from harness_actors.stores.home import home
    from harness_actors.stores.private import make_own_folder

    folder = home()
    fix = "set HARNESS_HOME to a folder on a local disk with room"
    try:
        make_own_folder(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".doctor-") as trial:
            mode = _journal_mode(Path(trial) / "trial.db")
        free = shutil.disk_usage(folder).free
    except (OSError, sqlite3.Error) as error:
        found = f"{folder}: {error}"
        return Finding(what="journal", state="missing", found=found, fix=fix, essential=True)
    has_log, room = mode == "wal", free >= ENOUGH_DISK_BYTES
    found = f"{folder}, {free / GIB:.0f} GiB free" + ("" if has_log else f", mode {mode}")
    else_: State = "note" if has_log else "missing"
    return _judged("journal", found, good=has_log and room, fix=fix, else_=else_, essential=True)


def look_at_workspaces() -> Finding:
    """Whether a command of one run of a batch sees the workspaces of the others; it is tried."""
    from harness_actors.batch.hiding import HIDE_VARIABLE, hiding
    from harness_actors.tools.supervision.trial import hides_workspaces

    what, seen = "workspaces", "commands of a run see those of others"
    try:
        asked = hiding()
        if asked == "never":
            found = f"{seen}: {HIDE_VARIABLE}=never"
            return Finding(what=what, state="note", found=found, fix=f"unset {HIDE_VARIABLE}")
        if asyncio.run(hides_workspaces(required=asked == "always")):
            return Finding(what=what, state="ok", found="hidden from the commands of other runs")
    except (HarnessError, OSError) as error:
        fix = f"unset {HIDE_VARIABLE}: then commands start all the same"
        return Finding(what=what, state="missing", found=str(error), fix=fix)
    try:
        asyncio.run(hides_workspaces(required=True))
        fix = f"run as root, or set {HIDE_VARIABLE}=always (no sudo in commands then)"
    except OSError as error:
        fix = f"run as root with CAP_SYS_ADMIN; a user namespace: {error.strerror}"
    found = f"{seen}: without CAP_SYS_ADMIN, or where mounts are refused, nothing is hidden"
    return Finding(what=what, state="note", found=found, fix=fix)


def look_at_open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Commands raise the soft limit to the hard one by themselves.
    good = hard == resource.RLIM_INFINITY or hard >= ENOUGH_FILES
    fix = f"ulimit -Hn {ENOUGH_FILES} (as root), for many runs at once"
    return _judged("open files", f"{soft} to {hard}", good=good, fix=fix)


def look_at_shared_memory() -> Finding:
    place = Path("/dev/shm")
    if not place.is_dir():
        return Finding(what="/dev/shm", state="note", found="not there", fix=_SHM_FIX)
    size = shutil.disk_usage(place).free
    found = f"{size / GIB:.1f} GiB free"
    return _judged("/dev/shm", found, good=size >= ENOUGH_SHM_BYTES, fix=_SHM_FIX)


def look_at_machine() -> Finding:
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found, good = f"{cores} cores, {memory / GIB:.1f} GiB memory", memory >= ENOUGH_MEMORY_BYTES
    return _judged("machine", found, good=good, fix="2 GiB or more; with less use --runtime local")


_SHM_FIX = "Ray keeps objects there: in Docker use --shm-size=1g; Ray falls back to /tmp"


def _judged(
    what: str, found: str, *, good: bool, fix: str, else_: State = "note", essential: bool = False
) -> Finding:
    """How something was found, with what to do about it where that is not good."""
    if good:
        return Finding(what=what, state="ok", found=found, essential=essential)
    return Finding(what=what, state=else_, found=found, fix=fix, essential=essential)


def _package(what: str, name: str, fix: str) -> Finding:
    if find_spec(name) is None:
        return Finding(what=what, state="note", found="not installed", fix=fix)
    return Finding(what=what, state="ok", found=f"{name} {version(name)}")


def _journal_mode(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        connection.execute("CREATE TABLE trial (x)")
        return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
    finally:
        connection.close()
