"""The token that a Ray asks for: where it is looked for, and ours for a Ray of our own."""

import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness_actors.stores.home import home
from harness_actors.stores.private import OWN, make_own_file, make_own_folder

MODE = "RAY_AUTH_MODE"
VALUE = "RAY_AUTH_TOKEN"
PATH = "RAY_AUTH_TOKEN_PATH"
FOR_KUBERNETES = "RAY_ENABLE_K8S_TOKEN_AUTH"
KUBERNETES_PATH = Path("/var/run/secrets/ray.io/serviceaccount/token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What this user has to show to a Ray.

    Attributes:
        value: The token; None where there is none, or none may be shown. In no text.
        source: Where it comes from, or where it was looked for.
        problem: Why none may be shown or read although one is named; empty else.
        is_for_others: It was named for a cluster, and no Ray that we start has it: it may be
            shown to another user's.
    """

    value: str | None = field(default=None, repr=False)
    source: str
    problem: str = ""
    is_for_others: bool = False


def find_token() -> Token:
    """The token of this user, as Ray itself looks for it.

    Source: Ray 2.60, `AuthenticationTokenLoader`. Unlike Ray, which reads the file for an
    address only where ``RAY_AUTH_MODE=token`` is set, any mode but another one will do.
    """
    mode = os.environ.get(MODE)
    if mode is not None and mode.lower() != "token":
        return Token(source=f"{MODE}={mode}", problem=f"{MODE}={mode} keeps it back; unset {MODE}")
    if value := os.environ.get(VALUE, "").strip():
        return _for_others(Token(value=value, source=VALUE))
    if named := os.environ.get(PATH):
        return _for_others(_read(Path(named), f"{PATH} ({named})"))
    if os.environ.get(FOR_KUBERNETES, "").lower() in ("1", "true"):
        return _read(KUBERNETES_PATH, str(KUBERNETES_PATH))
    default = _default_path()
    if default.exists():
        return _read(default, str(default))
    return Token(source=f"{VALUE}, {PATH} or {default}")


def _for_others(token: Token) -> Token:
    ours = [_read(path, str(path)).value for path in (_default_path(), own_token_path())]
    return replace(token, is_for_others=token.value is not None and token.value not in ours)


def _default_path() -> Path:
    return Path.home() / ".ray" / "auth_token"


def own_token() -> Token | None:
    """The token of the Rays that we start for users who have none; None before the first."""
    if not own_token_path().exists():
        return None
    return _read(own_token_path(), str(own_token_path()))


def own_token_path() -> Path:
    # Not ~/.ray/auth_token, where Ray would write one: from then on, every other Ray of this
    # user would ask for it, too.
    return (home() / "ray_auth_token").absolute()


def make_own_token() -> Path:
    """The file of our own token, written if there is none.

    Raises:
        OSError: It cannot be written.
    """
    path = own_token_path()
    make_own_folder(path.parent)
    if path.exists():
        make_own_file(path)
        return path
    # Linked into its place when it is whole: two commands may do this at the same time.
    whole = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with open(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWN), "w") as file:
        file.write(secrets.token_hex(32))
    try:
        os.link(whole, path)
    except FileExistsError:
        pass  # the other's is as good
    finally:
        whole.unlink()
    return path


def _read(path: Path, source: str) -> Token:
    try:
        value = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return Token(source=source, problem=f"{source} cannot be read ({reason})")
    if not value:
        return Token(source=source, problem=f"{source} is empty")
    return Token(value=value, source=source)
