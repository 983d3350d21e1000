"""What a run carries of the batch that it belongs to; read also by those who load no batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNote:
    """What a run of a batch carries as its metadata, to be found again."""

    task_id: str
    task_hash: str
    attempt: int
    retries: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    setup: str | None = None

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> "RunNote | None":
        """The note of a run; None for a run that is not of a batch."""
        try:
            return cls(**metadata)
        except TypeError:
            return None
