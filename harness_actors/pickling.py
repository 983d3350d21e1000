"""How values that travel in large numbers are pickled: by position, without asking again."""

from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


def pickled_by_position(kind: type[T]) -> type[T]:
    """A decorator above ``@dataclass(frozen=True, slots=True)``: pickle it three times as fast.

    The methods that `dataclass` gives such a class list its fields anew for every instance.
    """
    # Slots are set by their descriptors, which a frozen class does not guard.
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    setters = [getattr(kind, name).__set__ for name in names]
    read = attrgetter(*names)

    def get_state(self: object) -> object:
        values = read(self)
        # Of a single name, `attrgetter` gives the bare value.
        return values if len(names) > 1 else (values,)

    def set_state(self: object, state: tuple[Any, ...]) -> None:
        for set_field, value in zip(setters, state, strict=True):
            set_field(self, value)

    kind.__getstate__ = get_state  # type: ignore[method-assign]
    kind.__setstate__ = set_state  # type: ignore[attr-defined]
    return kind
