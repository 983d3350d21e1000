"""Keys that the processes of a Ray of our own do not get in their environments.

Whoever runs as the same user can read the environment of a process, and commands of agents do. So
these keys travel in memory, to the hosts that run agents, and to no other process.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KEY = re.compile(r"(^|_)API_?KEY$", re.IGNORECASE)


def is_key(name: str) -> bool:
    """Whether a variable of this name holds a key.

    >>> [is_key(name) for name in ("OPENAI_API_KEY", "GROQ_APIKEY", "KEYBOARD", "PATH")]
    [True, True, False, False]
    """
    return _KEY.search(name) is not None


def keys_here() -> dict[str, str]:
    """The keys in the environment of this process."""
    return {name: value for name, value in os.environ.items() if value and is_key(name)}


@contextmanager
def keys_withheld() -> Iterator[None]:
    """Let Ray start its processes without keys; this process keeps its own meanwhile."""
    import ray._private.services as services

    plain: Any = services.ConsolePopen

    def start(*arguments: Any, env: Any = None, **options: Any) -> Any:
        given = os.environ if env is None else env
        kept = {name: value for name, value in given.items() if not is_key(name)}
        return plain(*arguments, env=kept, **options)

    # Nothing public says what they get.
    services.ConsolePopen = start  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        services.ConsolePopen = plain  # type: ignore[misc]
