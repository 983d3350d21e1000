"""Connecting this process to a Ray that is up, or starting one for it."""

import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import ray
import ray._private.worker  # see `_processes`
from ray._private.services import canonicalize_bootstrap_address, find_node_ids
from ray._raylet import (  # type: ignore[attr-defined]  # compiled, without types
    AuthenticationTokenLoader,
    Config,
    GcsClient,
)
from ray.core.generated.gcs_pb2 import GcsNodeInfo  # type: ignore[attr-defined]  # generated

from harness_actors.actors.joining.address import ELSE, Found, find_ray, shared_folder
from harness_actors.actors.joining.connection import Connection, OwnRay
from harness_actors.actors.joining.current import connected, current_connection
from harness_actors.actors.joining.listeners import is_ours
from harness_actors.actors.joining.probe import ask, nothing_for, users_at
from harness_actors.actors.joining.quiet import keep_quiet, raylet_named, sigterm_kept
from harness_actors.actors.joining.token import (
    MODE,
    PATH,
    find_token,
    make_own_token,
    own_token,
    own_token_path,
)
from harness_actors.actors.joining.withheld import keys_withheld
from harness_actors.actors.processes import mark_of
from harness_actors.errors import CellError
from harness_actors.records import ProcessMark
from harness_actors.stores.private import OWN_FOLDER, tighten

NAMESPACE = "harness_actors"
OBJECT_STORE_BYTES = 150_000_000
"""Ours carries messages of some kilobytes, not data; the default takes 30 % of the memory."""
NODE_S = 3.0
"""How long a raylet of this machine may take to be known to its head."""
QUICK_SHUTDOWN = {"RAY_task_events_shutdown_flush_timeout_ms": "300"}
"""Where the head is dead, ``ray.shutdown()`` waits for 5 s to tell it what nobody looks at."""

AS_USUAL = {"RAY_worker_niceness": "0"}
"""Ray has its workers stand behind all else on the machine, for they compute. Ours carry messages
that others wait for, and have what computes, the commands of agents, stand behind them."""


def connect(address: str | None, *, is_named: bool = True) -> Connection:
    """Connect this process to a Ray, and start one if there is none to join.

    Blocks for about 5 s where one is started. Nothing is written to the terminal.

    Args:
        address: None or ``"auto"``: the Ray that this process is connected to, else the one
            of ``RAY_ADDRESS``, else a live one on this machine, else one of our own;
            ``"local"``: one of our own; else ``"HOST:PORT"``. A process that is connected
            stays with what it has, whatever the address.
        is_named: The user gave the address. One that was found on this machine may lead to
            a Ray of this user's or root's alone.

    Returns:
        The connection that this process has now.

    Raises:
        CellError: There is no Ray at the address, or it cannot be joined; within 5 s.
    """
    if ray.is_initialized() and not _is_dead():
        return current_connection()
    keep_quiet()
    found = find_ray(address, is_named=is_named)
    if found is None:
        own = _start_own()
        return connected(replace(own, processes=_processes()))
    found.check()
    _join(found)
    joined = connected(None)
    # When it comes back it must be ours again, whoever may have its port by then.
    joined.is_named = found.is_named and not found.is_ours
    return joined


def _is_dead() -> bool:
    """Whether the Ray that this process is connected to has ended; if so, it is left.

    Raises:
        CellError: It was not us who connected this process.
    """
    known = current_connection()
    if known.problem is None:
        host, _, port = known.address.rpartition(":")
        if ask(host.strip("[]"), int(port), nothing_for).verdict != "closed":
            return False
        known.lose("nobody answers there any more")
    if not known.is_ours:
        problem = "this process is connected to it, but it has ended; call ray.shutdown() first"
        raise CellError(f"Ray at {known.address!r}", problem)
    known.leave()
    return True


def _join(found: Found) -> None:
    is_own = found.token == own_token()
    path = own_token_path() if is_own else None
    is_shown = found.token.value is not None
    try:
        with sigterm_kept(), raylet_named(), _environment(path, is_shown=is_shown):
            check_user(found)
            _check_node(found)
            ray.init(
                address=found.address,
                namespace=NAMESPACE,
                configure_logging=False,
                log_to_driver=False,
            )
            try:
                check_user(found)
            except CellError:
                ray.shutdown()
                raise
    except CellError:
        raise
    except Exception as error:  # noqa: BLE001 - Ray raises what its layers raise, RuntimeError for one
        problem = f"{_first_line(error)}; look at `ray status` there, {ELSE}"
        raise CellError(f"Ray at {found.address!r} ({found.source})", problem) from None


def check_user(found: Found) -> None:
    """Make sure that whom Ray connects to is who was asked.

    Ray takes another address of this machine for ``localhost``, and time goes by.
    """
    address = canonicalize_bootstrap_address(found.address) or found.address
    host, _, port = address.rpartition(":")
    try:
        users = users_at(host.strip("[]"), int(port))
    except OSError:
        return  # Ray says so, too
    if users != found.answer.users and not (found.is_ours and is_ours(users)):
        raise CellError(
            f"Ray at {found.address!r} ({found.source})",
            f"at {address} somebody else listens; {ELSE}",
        )


def _check_node(found: Found) -> None:
    """Make sure that this machine is a node of it, for which Ray itself would wait a minute."""
    until = time.monotonic() + NODE_S
    client = GcsClient(address=canonicalize_bootstrap_address(found.address))
    while True:
        if here := set(find_node_ids()):  # type: ignore[no-untyped-call]
            nodes = client.get_all_node_info(timeout=NODE_S, state_filter=GcsNodeInfo.ALIVE)
            if here & {node.hex() for node in nodes}:
                return
        if time.monotonic() > until:
            raise CellError(
                f"Ray at {found.address!r} ({found.source})",
                "this machine is no node of it; run the command on one, or make this machine "
                f"one with `ray start --address={found.address}`, or use --address local",
            )
        time.sleep(0.2)


def _start_own() -> OwnRay:
    token_path: Path | None = None
    if find_token().value is None:
        try:
            token_path = make_own_token()
        except OSError as error:
            raise CellError(
                "the token of a Ray of our own",
                f"{own_token_path()} cannot be written ({error.strerror or error}); set "
                "HARNESS_HOME to a folder that you may write to",
            ) from None
    started: Future[None] = Future()
    own = OwnRay()
    # The kernel ends Ray's processes with the thread that started them: this one stays for as
    # long as they are to live, and ends if the start fails, so that none of them is left.
    threading.Thread(
        target=_keep_own, args=(own, token_path, started), name="ray-keeper", daemon=True
    ).start()
    try:
        started.result()
    except Exception as error:  # noqa: BLE001 - as above
        raise CellError("a Ray of our own", f"{_first_line(error)}; {_remedy(error)}") from None
    return own


def _keep_own(own: OwnRay, token_path: Path | None, started: "Future[None]") -> None:
    try:
        with (
            sigterm_kept(),
            raylet_named(),
            keys_withheld(),
            _unless_given(AS_USUAL),
            _environment(token_path),
        ):
            ray.init(
                address="local",
                namespace=NAMESPACE,
                configure_logging=False,
                log_to_driver=False,
                _temp_dir=str(own_folder() / "ray"),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
            )
    except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
        with suppress(Exception):
            ray.shutdown()
        started.set_exception(error)
        return
    started.set_result(None)
    own.release.wait()


def own_folder() -> Path:
    """Where a Ray of our own keeps its files, for this user alone.

    Ray opens its folders to everybody, its sockets among them, and whoever can write there can
    put others in their place.

    Raises:
        OSError: It cannot be made.
    """
    base = shared_folder().absolute()
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"ray-{os.geteuid()}"
    with suppress(FileExistsError):
        folder.mkdir(OWN_FOLDER)
    state = folder.lstat()
    if stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid():
        tighten(folder, OWN_FOLDER)
        return folder
    # Somebody else was there first, which must keep nobody from their runs.
    return Path(mkdtemp(prefix=f"{folder.name}-", dir=base))


def _processes() -> tuple[ProcessMark, ...]:
    """Those of the head that was just started, as this process is their parent."""
    # Nothing public tells them.
    node: Any = ray._private.worker._global_node
    started = ((name, one.process.pid) for name, all_ in node.all_processes.items() for one in all_)
    return tuple(mark_of(pid, name) for name, pid in started)


@contextmanager
def _environment(token_path: Path | None, *, is_shown: bool = True) -> Iterator[None]:
    """Let Ray take the token of a file, or else the one that the user has, or none.

    Ray reads the variables once, when it connects; what the user runs later from this process
    must not find ours.
    """
    before = {name: os.environ.get(name) for name in (MODE, PATH, *QUICK_SHUTDOWN)}
    os.environ.update(QUICK_SHUTDOWN)
    if token_path is not None:
        os.environ[PATH] = str(token_path)
    if not is_shown:
        os.environ[MODE] = "disabled"
    elif MODE not in os.environ and (token_path is not None or find_token().value is not None):
        # By itself, Ray does not show a token at an address that was given.
        os.environ[MODE] = "token"
    # It remembers both, from an earlier connection of this process.
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _unless_given(variables: Mapping[str, str]) -> Iterator[None]:
    """Have some variables in the environment, as far as the user has not set them."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _remedy(error: BaseException) -> str:
    """What to do where no Ray of our own could be started."""
    if "AF_UNIX path length" in str(error):
        # Its sockets lie in there, and the paths of sockets are short.
        return "set RAY_TMPDIR to a shorter folder"
    return "look at the free memory and disk of this machine"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else repr(error)
