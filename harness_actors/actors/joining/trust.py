"""Which Ray is believed, and who may see a token."""

import os
import stat
from collections.abc import Set
from pathlib import Path

from harness_actors.actors.joining.listeners import Users, is_ours
from harness_actors.actors.joining.token import PATH, VALUE, Token
from harness_actors.stores.users import name_of, user_of

TRUST = "HARNESS_TRUST_RAY"
"""Set by ``--trust-ray``: an address that the user gives may be another user's."""
_LONGEST = 300


def trusts_strangers() -> bool:
    """Whether the user has said that a Ray which they name may be another user's."""
    return os.environ.get(TRUST, "").lower() in ("1", "true")


def is_believed(address: str, users: Users, own_clusters: Set[str]) -> bool:
    """Whether a Ray is ours that nobody named: found by a note, or by its processes.

    Args:
        address: ``HOST:PORT`` of its head.
        users: Who listens there.
        own_clusters: The addresses of heads that this user's raylets here have.
    """
    return address in own_clusters if users is None else is_ours(users)


def may_see(token: Token, users: Users) -> bool:
    """Whether a token is shown to who listens at an address that the user named.

    Another user of this machine sees only one that was named for this purpose. With that of
    our own Rays they could run code in those.
    """
    return users is None or is_ours(users) or token.is_for_others


def stranger_problem(users: Users) -> str:
    """What to say of a Ray of another user."""
    return (
        f"it is not yours but {_names(users)}, and what runs there runs as that user, who sees "
        "its keys and files; --trust-ray joins it nevertheless (in a program "
        f"{TRUST}=1), and so does the token of that cluster, in {VALUE} or {PATH}"
    )


def _names(users: Users) -> str:
    if not users:
        return "somebody's who cannot be told"
    return " and ".join(f"{name_of(user)}'s" for user in sorted(users))


def read_own(path: Path) -> str | None:
    """The text of a small file of this user's or root's; None where it is no such file.

    Whatever else lies there is left alone: a link, somebody else's file, a pipe that would
    keep its reader waiting.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(path, flags), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or not is_ours(frozenset({state.st_uid})):
                return None
            return file.read(_LONGEST).decode()
    except (OSError, UnicodeDecodeError):
        return None


def is_our_process(pid: int) -> bool:
    """Whether a process is this user's or root's."""
    user = user_of(pid)
    return user is not None and is_ours(frozenset({user}))
