"""Types whose annotations are texts, in a module that processes of runs cannot import."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import BaseModel


@dataclass
class Leaf:
    name: str


@dataclass
class Tree:
    leaves: list[Leaf]
    below: list[Tree] = field(default_factory=list)


class Basket(BaseModel):
    trees: list[Fruit] = []


class Fruit(BaseModel):
    name: str
