"""Hooks of a schedule's agents: they deny and change calls, and what they say is watched."""

from collections import Counter
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from harness_actors.policies import AfterTool, Allow, BeforeTool, Change, Deny, Hooks
from tests.simulation.ledger import Ledger

DENIED_RUNS = "a call that a hook has denied never runs"
ASKED_ONCE = "nobody is asked again about a call whose record is on disk"
AS_CHANGED = "a call is made as the hooks have changed it"

VERDICT = "verdict"
"""The argument by which a hook marks what it lets pass."""


class Judging:
    """Watches the verdicts of a schedule.

    A call is denied or not by its key alone, so whoever asks again is told the same; but each
    verdict has a number of its own.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._spoken: Counter[str] = Counter()
        self._asked_at: dict[str, int] = {}
        self._verdicts: dict[str, int] = {}
        self._judges = False

    def hooks(self) -> Hooks:
        """Those of the agents, which have a say in calls from now on."""
        self._judges = True
        return Hooks(pre_tool=[self._first, self._second], post_tool=self._after)

    def answered(self, place: str) -> None:
        """A model has answered at a place of its run."""
        self._spoken[place] += 1

    def called(self, key: str, given: Mapping[str, Any]) -> None:
        """A tool is called."""
        if self._judges and is_denied(key):
            self._ledger.broken(DENIED_RUNS, f"{key} runs")
        if VERDICT in given and given[VERDICT] != self._verdicts[key]:
            text = f"{key} is made by verdict {given[VERDICT]}, and {self._verdicts[key]} counts"
            self._ledger.broken(AS_CHANGED, text)

    async def _first(self, event: BeforeTool) -> Allow | Change:
        """Mark the call; one that asks has no key."""
        key = _key_of(event.arguments)
        if key is None:
            return Allow()
        spoken = self._spoken[key.rpartition("/")[0]]
        if self._asked_at.get(key) == spoken:
            self._ledger.broken(ASKED_ONCE, f"{key} is asked about twice after one answer")
        self._asked_at[key] = spoken
        self._verdicts[key] = self._verdicts.get(key, 0) + 1
        return Change({**event.arguments, VERDICT: self._verdicts[key]})

    async def _second(self, event: BeforeTool) -> Deny | None:
        key = _key_of(event.arguments)
        if key is not None and event.arguments.get(VERDICT) != self._verdicts[key]:
            self._ledger.broken(AS_CHANGED, f"{key} is asked about without what was changed before")
        return Deny(f"not {key}") if key is not None and is_denied(key) else None

    async def _after(self, event: AfterTool) -> None:
        key = _key_of(event.arguments)
        if key is not None and is_denied(key) and event.disposition not in ("denied", "refused"):
            self._ledger.broken(DENIED_RUNS, f"{key} is {event.disposition}")


def is_denied(key: str) -> bool:
    """Whether the hooks deny a call: one in four."""
    return has_place(key) and crc32(key.encode()) % 4 == 0


def has_place(key: str) -> bool:
    """Whether the key of a call says where in its run it is; others may come again."""
    return key.count("/") == 2


def _key_of(arguments: Any) -> str | None:
    key = arguments.get("key") if isinstance(arguments, dict) else None
    return key if isinstance(key, str) and has_place(key) else None
