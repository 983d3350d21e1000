"""Types of outputs, as users write them; in a module, so that processes of tests find them."""

import time
from dataclasses import dataclass, field

from pydantic import BaseModel, Field, field_validator


class Line(BaseModel):
    name: str
    usd: float = 0


class Report(BaseModel):
    """What came of it."""

    total: int = Field(ge=0)
    lines: list[Line] = []

    @field_validator("total")
    @classmethod
    def _is_even(cls, total: int) -> int:
        if total % 2:
            raise ValueError("a total is even")
        return total


@dataclass
class Place:
    city: str
    people: int = 0
    near: "list[Place]" = field(default_factory=list)


class Faulty(BaseModel):
    """Its validator has a bug."""

    total: int

    @field_validator("total")
    @classmethod
    def _look_up(cls, total: int) -> int:
        if total == 13:
            raise KeyError("no such total")
        return total


class Slow(BaseModel):
    """Its validator takes its time."""

    seconds: float

    @field_validator("seconds")
    @classmethod
    def _wait(cls, seconds: float) -> float:
        time.sleep(seconds)
        return seconds


SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer", "minimum": 0}, "note": {"type": "string"}},
    "required": ["total"],
    "additionalProperties": False,
}
