"""The key of a provider: known by name everywhere, by value only where it is used."""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from harness_actors.errors import ModelSetupError

NO_KEY = "none"
"""What is sent where there is no key: your own servers often want none, but clients send one."""


class ProviderKey:
    """One provider's key.

    Args:
        name: The environment variable that holds it.
        given: Its value, if it was given in code.
        required: The provider takes no call without it.

    Attributes:
        name: What the key is called. One that was given in code has a mark of its value in
            its name: two models with keys of their own must not get each other's.
        needed: It must be at hand where the model runs.
        secrets: The value that was given in code, by name; empty after pickling, which
            leaves all values behind.
    """

    def __init__(self, name: str, *, given: str | None, required: bool) -> None:
        self.name = name
        if given:
            self.name = f"{name}#{hashlib.sha256(given.encode()).hexdigest()[:8]}"
        self._required = required or bool(given)
        self.needed = self._required or bool(os.environ.get(name))
        self.secrets: Mapping[str, str] = {self.name: given} if given else {}
        self._handed: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "secrets": {}, "_handed": {}}

    def use(self, keys: Mapping[str, str]) -> None:
        """Take the value in, if it is among those of `keys`."""
        if self.name in keys:
            self._handed[self.name] = keys[self.name]

    def value(self, *, model: str, base_url: str) -> str:
        """The value: as handed in, else from the environment, else as given in code.

        Raises:
            ModelSetupError: It is not at hand and the provider requires it, or it is no key.
        """
        found = (
            self._handed.get(self.name)
            or os.environ.get(self.name)
            or self.secrets.get(self.name)
            or ""
        ).strip()
        if found and not (found.isascii() and found.isprintable()):
            raise ModelSetupError(model, f"the key {self.name} holds characters that no key has")
        if found:
            return found
        if not self._required:
            return NO_KEY
        if "#" in self.name:
            problem = f"the key {self.name} was given in code and has not reached this process"
        else:
            problem = f"no key for {base_url}: set {self.name} in the environment"
        raise ModelSetupError(model, problem)
