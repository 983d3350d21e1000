"""The loopback server in a process of its own, for benchmarks and examples."""

import subprocess
import sys
from typing import Any, Self
from urllib.request import urlopen

import orjson


class LoopbackProcess:
    """A `LoopbackServer` in another process, for as long as it is entered.

    It ends with this process, however this one ends: its standard input closes then.

    Args:
        script: Its script, as ``module:function``, found from the current folder too.
        latency_s: Seconds that each answer takes.
        piece_s: Seconds between the pieces of a streamed answer; see `LoopbackServer`.
        key: The key that it takes; None takes any.

    Raises:
        OSError: It could not start; says what it printed.
    """

    def __init__(
        self,
        script: str = "harness_actors.testing.scripts:says_ok",
        *,
        latency_s: float = 0.0,
        piece_s: float | None = None,
        key: str | None = None,
    ) -> None:
        self._command = [
            *(sys.executable, "-m", "harness_actors.testing.loopback", "--until-stdin-closes"),
            *("--script", script, "--latency", str(latency_s)),
            *(() if piece_s is None else ("--piece", str(piece_s))),
            *(() if key is None else ("--key", key)),
        ]
        self.base_url = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C in the terminal is for the command; the server goes when that has ended.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().decode().strip()
        if not self.base_url:
            _, said = self._process.communicate()
            lines = said.decode("utf-8", "replace").strip().splitlines()
            raise OSError(f"the loopback server did not start: {lines[-1] if lines else 'no word'}")
        return self

    def __exit__(self, *_: object) -> None:
        # Closes its standard input, at which it stops, and reads what it still says.
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def stats(self) -> dict[str, Any]:
        """Its counts, as `LoopbackServer.stats`."""
        with urlopen(self.base_url.removesuffix("/v1") + "/stats") as answer:
            counts: dict[str, Any] = orjson.loads(answer.read())
        return counts
