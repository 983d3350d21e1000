"""Rays of another user: planted in notes, named, open and with a lock."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from harness_actors.actors.joining.address import find_ray
from tests.attack.attacks import Attack, NotTriedError, Outcome
from tests.joining.other_users import STRANGER, Kind, can_be_another, listener, note

SECRET = "a-token-that-nobody-else-may-see"
KINDS: tuple[Kind, ...] = ("open", "locked")
HOSTS = ("127.0.0.1", "0.0.0.0", "::1", "::")
BY = ("their note", "our note", "given", "RAY_ADDRESS", "found")
WAYS = tuple(product(KINDS, HOSTS, BY))


def lead(tries: int) -> Outcome:
    """Have this user look for a Ray, who has a token, so many times at another user's."""
    if not can_be_another():
        raise NotTriedError("processes of another user need root")
    through: list[str] = []
    for number in range(tries):
        kind, host, by = WAYS[number % len(WAYS)]
        with a_user() as folder, listener(kind, user=STRANGER, host=host, ray=version("ray")) as it:
            port = it.address.rpartition(":")[2]
            address = f"[::1]:{port}" if ":" in host else f"127.0.0.1:{port}"
            joined = _is_joined(folder, address, by)
            heard = it.heard()
        what = f"{kind} on {host}, by {by}"
        if joined:
            through.append(f"joined: {what}")
        if SECRET.encode() in heard:
            through.append(f"shown the token: {what}")
    return Outcome(tries, tuple(through))


def _is_joined(folder: Path, address: str, by: str) -> bool:
    if by in ("their note", "our note"):
        note(folder, address, user=STRANGER if by == "their note" else None)
        found = find_ray(None)
    elif by == "RAY_ADDRESS":
        os.environ["RAY_ADDRESS"] = address
        found = find_ray("auto")
    else:
        found = find_ray(address, is_named=by == "given")
    return found is not None and found.problem is None


@contextmanager
def a_user() -> Iterator[Path]:
    """A user with a token in both of its places, and nothing else set for Ray."""
    before = dict(os.environ)
    with TemporaryDirectory(prefix="harness-attack-") as name:
        folder = Path(name)
        for path in (folder / ".ray" / "auth_token", folder / "harness" / "ray_auth_token"):
            path.parent.mkdir()
            path.write_text(SECRET)
        for variable in [one for one in before if one.startswith("RAY_")]:
            del os.environ[variable]
        places = {"HOME": name, "HARNESS_HOME": f"{name}/harness", "RAY_TMPDIR": name}
        os.environ.update(places)
        try:
            yield folder
        finally:
            os.environ.clear()
            os.environ.update(before)


ATTACKS = (
    Attack(
        name="stranger_ray",
        what="Another user's Ray is joined, or shown this user's token.",
        run=lead,
        tries=400,
        quick=len(WAYS) // 2,
    ),
)
