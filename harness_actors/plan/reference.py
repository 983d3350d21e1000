"""Where a result is that can be had by no call, and what makes plain values no plan."""

from dataclasses import dataclass
from typing import Any


class UnreadablePlanError(ValueError):
    """Plain values are no plan, or one of a later version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A result in a range that is not shown and can be had by no call: where it is, and what it
    was."""

    at: int
    what: str

    @classmethod
    def from_plain(cls, plain: Any) -> "Reference":
        """That of plain values.

        Raises:
            KeyError, TypeError, ValueError: They are none.
        """
        return cls(at=count_in(plain["at"]), what=str(plain["what"]))


def count_in(value: Any) -> int:
    """A plain value that must be a whole number of at least 0.

    Raises:
        ValueError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"must be a count, not {value!r}")
    return value
