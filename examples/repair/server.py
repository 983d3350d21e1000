"""The expert behind a model server: a process that speaks Chat Completions on this machine."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from examples.repair import delegated, long_look
from examples.repair.build import Fix
from examples.repair.expert import expert_reply

FIXES = "REPAIR_FIXES"
"""The environment variable that tells the server where fixes.json is."""


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """The script of the server: what the expert says next."""
    if body.get("model") == long_look.MODEL:
        return long_look.long_reply(body["messages"], known_fixes(), len(json.dumps(body)))
    if body.get("model") == delegated.MODEL:
        # It is not told the fixes.
        return delegated.delegated_reply(body["messages"], body["tools"])
    return expert_reply(body["messages"], known_fixes())


@cache
def known_fixes() -> dict[str, Fix]:
    fixes: dict[str, Fix] = json.loads(Path(os.environ[FIXES]).read_text(encoding="utf-8"))
    return fixes


@contextmanager
def expert_server(fixes: Path, port_file: Path) -> Iterator[str]:
    """Run the server for as long as this is entered, and yield its address.

    A run that was interrupted goes on with the model that it began with, at the same address. So
    the port is kept in a file, and is the same each time.

    Args:
        fixes: The fixes.json of the tasks.
        port_file: Where the port is kept; written if it is not there.

    Raises:
        OSError: It could not start; says what it printed.
    """
    if not port_file.exists():
        port_file.write_text(str(free_port()))
    port = port_file.read_text()
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "harness_actors.testing.loopback", "--until-stdin-closes"),
            *("--script", f"{__name__}:reply", "--port", port),
        ],
        cwd=Path(__file__).parents[2],
        env={**os.environ, FIXES: str(fixes.absolute())},
        # It ends with this process, however this one ends: then its input closes.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Ctrl-C is for this process; the server goes when that has ended.
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        base_url = server.stdout.readline().strip()
        if not base_url:
            said = server.communicate()[1].strip().rpartition("\n")[2]
            raise OSError(f"the expert's server did not start on port {port}: {said}")
        yield base_url
    finally:
        server.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
