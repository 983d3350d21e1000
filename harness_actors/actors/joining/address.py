"""Which Ray a command uses, who answers there, and why it cannot be joined."""

import os
import platform
import re
import tempfile
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from harness_actors.actors.joining.listeners import Users, is_ours
from harness_actors.actors.joining.probe import Answer, ask
from harness_actors.actors.joining.token import MODE, PATH, VALUE, Token, find_token, own_token
from harness_actors.actors.joining.trust import (
    is_believed,
    is_our_process,
    may_see,
    read_own,
    stranger_problem,
    trusts_strangers,
)
from harness_actors.errors import BadInputError, CellError

RAY_ADDRESS = "RAY_ADDRESS"
FORM = "give HOST:PORT of its head, such as 10.0.0.1:6379"
HOST = re.compile(r"[\w.:%-]+")
"""A name, or an address of IPv4 or IPv6, which may name an interface after ``%``."""
ELSE = "start one with `ray start --head`, or use --address local for a Ray of our own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A Ray that a command would join, and whether it can.

    Attributes:
        address: ``HOST:PORT``, an IPv6 host in brackets.
        source: What named it: ``--address``, ``RAY_ADDRESS`` or the file that did.
        answer: Who answers there.
        token: What is shown there.
        is_named: The user gave the address; else it was found on this machine.
    """

    address: str
    source: str
    answer: Answer
    token: Token
    is_named: bool

    @property
    def is_ours(self) -> bool:
        """It is this user's, or root's, and on this machine."""
        return is_ours(self.answer.users)

    @property
    def problem(self) -> str | None:
        """Why it cannot be joined and what to do; None where it can."""
        answer = self.answer
        match answer.verdict:
            case "closed" | "silent" | "unreachable" | "stranger":
                return f"no Ray answers there ({answer.detail}); {FORM}, {ELSE}"
            case _ if self._is_strangers:
                return stranger_problem(answer.users)
            case "locked":
                return _token_problem(self.token)
            case "ray":
                return _version_problem(answer) or _mode_problem(self.token, answer.users)
            case "unknown":
                return None

    @property
    def _is_strangers(self) -> bool:
        """It is another user's, and nothing was said that lets us join it."""
        if self.answer.users is None:
            return False
        is_allowed = trusts_strangers() or self.token.value is not None
        return not (self.is_ours or (self.is_named and is_allowed))

    def check(self) -> None:
        """
        Raises:
            CellError: It cannot be joined.
        """
        if self.problem is not None:
            raise CellError(f"Ray at {self.address!r} ({self.source})", self.problem)


def find_ray(address: str | None, *, is_named: bool = True) -> Found | None:
    """The Ray that an address stands for, asked who it is; nothing is started.

    Takes 3.5 s at most.

    Args:
        address: See `connect`. What this process is connected to is not looked at.
        is_named: See `connect`.

    Returns:
        None where it takes one of our own: by ``"local"``, or for lack of a live one that
        is this user's or root's.

    Raises:
        CellError: It is not an address, or none of a kind that we can join.
    """
    named, source = _named(address)
    if not named:
        return _left_behind()
    if named == "local":
        return None
    return _asked(named, source, is_named=is_named)


def check_form(address: str | None) -> None:
    """Judge an address by its form alone; nobody is asked, and nothing is started.

    Args:
        address: See `connect`.

    Raises:
        BadInputError: It is not an address, or none of a kind that we can join; `find_ray` has a
            `CellError` for this, and for all that is found out by asking.
    """
    named, source = _named(address)
    if named in ("", "local"):
        return
    try:
        _host_and_port(named, source)
    except CellError as error:
        raise BadInputError(source, (f"{named!r} cannot be used: {error.problem}",)) from None


def _named(address: str | None) -> tuple[str, str]:
    """The address that counts, empty where none is named, and what names it."""
    source = "--address"
    if address in (None, "", "auto"):
        address, source = os.environ.get(RAY_ADDRESS, "").strip(), RAY_ADDRESS
    return ("" if address in (None, "auto") else address), source


def note_path() -> Path:
    """Where ``ray start`` notes its address; the note stays when that Ray dies."""
    return shared_folder() / "ray" / "ray_current_cluster"


def shared_folder() -> Path:
    """Where Ray keeps its files, those of all users by default."""
    # As Ray does it, which looks at TMPDIR as little.
    return Path(os.environ.get("RAY_TMPDIR") or _system_folder())


def _system_folder() -> str:
    return "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()


def _left_behind() -> Found | None:
    note = note_path()
    # Ray lets everybody write there, and a note can name whom it likes.
    noted = read_own(note)
    if noted is None:
        return None
    try:
        found = _asked(noted.strip(), str(note), is_named=False)
    except CellError:
        return None  # half written, or by something else
    if not is_believed(found.address, found.answer.users, _addresses_of_raylets()):
        return None
    match found.answer.verdict:
        case "ray" | "locked" | "unknown":
            return found
        case "silent" if found.address in _addresses_of_raylets():
            return found  # it lives, and is stopped or has too much to do
        case _:
            return None  # it is dead, and somebody else may have its port now


def _asked(address: str, source: str, *, is_named: bool) -> Found:
    host, port = _host_and_port(address, source)
    name = f"{f'[{host}]' if ':' in host else host}:{port}"
    token, clusters = find_token(), frozenset() if is_named else _addresses_of_raylets()

    def shown(users: Users) -> Token:
        if may_see(token, users) if is_named else is_believed(name, users, clusters):
            return token
        problem = f"that of {token.source} is not shown to another user's"
        return replace(token, value=None, problem=token.problem or problem)

    # An open one of another user sees none at all.
    answer = ask(host, port, lambda users: _at_once(shown(users), users))
    used = shown(answer.users)
    if not is_ours(answer.users) and answer.users is not None:
        if answer.verdict == "locked" and used.value is not None:
            answer = ask(host, port, lambda users: shown(users).value)
            used = shown(answer.users)
        elif answer.verdict == "ray":
            used = replace(used, value=None)
    own = own_token() if answer.verdict == "locked" and _is_mine(answer.users) else None
    if own is not None and own.value is not None:
        # One that another command started; ours is shown to nobody but this user.
        second = ask(host, port, lambda users: own.value if _is_mine(users) else None)
        if second.verdict == "ray":
            used, answer = own, second
    return Found(address=name, source=source, answer=answer, token=used, is_named=is_named)


def _at_once(token: Token, users: Users) -> str | None:
    return token.value if users is None or is_ours(users) else None


def _is_mine(users: Users) -> bool:
    return users == frozenset({os.geteuid()})


def _host_and_port(address: str, source: str) -> tuple[str, int]:
    what = f"Ray at {address!r} ({source})"
    scheme, found, _ = address.partition("://")
    if found and scheme == "ray":
        raise CellError(
            what,
            "this is an address of Ray Client, through which no cell can be served; "
            f"run the command on a node of that cluster, and {FORM}",
        )
    if found and scheme in ("http", "https"):
        raise CellError(what, f"this is the address of a dashboard, for `ray job`; {FORM}")
    if found:
        raise CellError(what, f"addresses of the kind {scheme}:// are not supported; {FORM}")
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    numbered = port.isascii() and port.isdigit() and 0 < int(port) < 65536
    if not HOST.fullmatch(host) or not numbered:
        raise CellError(what, f"this is not HOST:PORT; {FORM}, or `auto` or `local`")
    return host, int(port)


def _addresses_of_raylets() -> set[str]:
    """The addresses that the raylets of this user, or of root, on this machine were told."""
    option = b"--gcs-address="
    told = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if words[0].endswith(b"/raylet") and is_our_process(int(entry.parent.name)):
            told |= {w.removeprefix(option).decode() for w in words if w.startswith(option)}
    return told


def _token_problem(token: Token) -> str:
    if token.problem:
        return f"it asks for a token, and {token.problem}"
    get = (
        f"put the token of that cluster (`ray get-auth-token` on its head prints it) into a file "
        f"and name that in {PATH}, or set {VALUE}"
    )
    if token.value is None:
        return f"it asks for a token, and there is none in {token.source}; {get}"
    return f"it refuses the token of {token.source}, which is that of another cluster; {get}"


def _mode_problem(token: Token, users: Users) -> str | None:
    """Ray refuses to go without a token where it was told to use one, also where none is asked."""
    if users is not None and not is_ours(users):
        return None  # it is told otherwise, see `connect`
    if token.value is not None or os.environ.get(MODE, "").lower() != "token":
        return None
    why = token.problem or f"there is no token in {token.source}"
    return f"{MODE} is set to token, but {why}; set {PATH}, or unset {MODE}"


def _version_problem(answer: Answer) -> str | None:
    if answer.ray is None or answer.python is None:
        return None
    ours = version("ray"), platform.python_version()
    # Ray's own rule: patches of Python may differ where this says so.
    level = os.environ.get("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "patch")
    parts = 2 if level == "minor" else 3
    theirs_python, ours_python = answer.python.split(".")[:parts], ours[1].split(".")[:parts]
    if answer.ray == ours[0] and theirs_python == ours_python:
        return None
    return (
        f"it runs Ray {answer.ray} on Python {answer.python}, and this is Ray {ours[0]} on Python "
        f"{ours[1]}; both must be the same, so use an environment with those, or --address local"
    )
