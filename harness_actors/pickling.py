"""How values that travel in large numbers are pickled: by position, without asking again."""

from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


def pickled_by_position(kind: type[T]) -> type[T]:
    """A decorator above ``@dataclass(frozen=True, slots=True)``: pickle it three times as fast.

    The methods that `dataclass` gives such a class list its fields anew for every instance. The
    last fields are left out where they have their defaults.
    """
    # Slots are set by their descriptors, which a frozen class does not guard.
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    setters = [getattr(kind, name).__set__ for name in names]
    defaults = [field.default for field in fields(kind)]  # type: ignore[arg-type]
    read = attrgetter(*names)
    newest = defaults[-1]

    def get_state(self: object) -> object:
        values = read(self)
        if len(names) == 1:
            # Of a single name, `attrgetter` gives the bare value.
            return (values,)
        if values[-1] is not newest:
            return values
        # So what few instances have costs the others nothing; at least one stays, as an empty state
        # is none.
        count = len(values) - 1
        while count > 1 and values[count - 1] is defaults[count - 1]:
            count -= 1
        return values[:count]

    def set_state(self: object, state: tuple[Any, ...]) -> None:
        for set_field, value in zip(setters, state, strict=False):
            set_field(self, value)
        if (given := len(state)) != len(setters):
            left_out = defaults[given:]
            if given > len(setters) or MISSING in left_out:
                raise ValueError(f"{kind.__name__} was pickled with other fields: {given} of them")
            for set_field, default in zip(setters[given:], left_out, strict=True):
                set_field(self, default)

    kind.__getstate__ = get_state  # type: ignore[method-assign]
    kind.__setstate__ = set_state  # type: ignore[attr-defined]
    return kind


def unpickled_with_defaults(kind: type[T]) -> type[T]:
    """A decorator above ``@dataclass(frozen=True, slots=True)``: what was pickled before its newest
    fields were there gets their defaults. New fields stand last.

    Raises:
        TypeError: When it is unpickled: such a field has no plain default.
    """
    setters = [getattr(kind, field.name).__set__ for field in fields(kind)]  # type: ignore[arg-type]
    defaults = [field.default for field in fields(kind)]  # type: ignore[arg-type]

    def set_state(self: object, state: list[Any]) -> None:
        values = [*state, *defaults[len(state) :]]
        if any(value is MISSING for value in values[len(state) :]):
            raise TypeError(f"{kind.__name__} was pickled without a field that it needs")
        for set_field, value in zip(setters, values, strict=True):
            set_field(self, value)

    kind.__setstate__ = set_state  # type: ignore[attr-defined]
    return kind
