"""`setups.json`: what the runs of a run directory were made with, by the hashes in its results."""

from pathlib import Path
from typing import Any

import orjson

from harness_actors.batch.durable_files import write_atomically
from harness_actors.batch.results_file import store_error, unreadable
from harness_actors.errors import BadInputError
from harness_actors.records import MadeWith
from harness_actors.setups import Setup


class SetupsFile:
    """The set-ups of a run directory; only the owner of its lock opens them.

    Attributes:
        known: Each of them, by its hash.
    """

    def __init__(self, path: Path) -> None:
        """Read the file, if there is one.

        Raises:
            BadInputError: It is none of ours, or cannot be read.
        """
        self.path = path
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            self.known: dict[str, Setup] = {}
            return
        except OSError as error:
            raise unreadable(path, error) from error
        try:
            stored = orjson.loads(content)["setups"].items()
            self.known = {name: Setup(hash=name, **one) for name, one in stored}
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            problem = "not the set-ups of a batch; remove it or take another run directory"
            raise BadInputError(str(path), (problem,)) from error

    def add(self, setup: Setup) -> None:
        """Note a set-up, on disk before anything is run with it.

        Raises:
            StoreError: It could not be written.
        """
        if setup.hash in self.known:
            return
        self.known[setup.hash] = setup
        plain: dict[str, Any] = {
            one.hash: {"agent": one.agent, "model": one.model, "parts": one.parts}
            for one in self.known.values()
        }
        text = orjson.dumps({"setups": plain}, option=orjson.OPT_INDENT_2) + b"\n"
        try:
            write_atomically(self.path, [text])
        except OSError as error:
            raise store_error(self.path, error) from error

    def made_with(self, setup: str | None) -> MadeWith | None:
        """The names of a set-up; None where it is not known."""
        found = None if setup is None else self.known.get(setup)
        return None if found is None else found.made_with
