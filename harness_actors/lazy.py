"""How a room offers names whose modules are loaded when a name is used, and not before."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loaded_on_use(
    room: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """What a room takes for its ``__getattr__``, its ``__dir__`` and its ``__all__``.

    Args:
        room: The ``__name__`` of the room.
        homes: For each name that it offers, the module of the room that has it.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f"{room}.{homes[name]}"), name)

    return load, lambda: sorted(homes), sorted(homes)
