"""Hooks around the calls of a schedule: they deny, change and replace, and are watched."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from zlib import crc32

from harness_actors.events import HookFailed
from harness_actors.messages import Message
from harness_actors.policies import (
    AfterTool,
    Allow,
    Ask,
    BeforeTool,
    Change,
    Deny,
    Hook,
    Hooks,
    Replace,
)
from harness_actors.ports import ToolSet
from harness_actors.records import RunChanged
from harness_actors.turn.call_gates import WITHHELD
from tests.simulation.disk import DiskRun
from tests.simulation.gated_calls import HEARD, has_place, key_in, key_of, mood_of, results_in
from tests.simulation.ledger import Ledger
from tests.simulation.places import is_here

DENIED_RUNS = "a call that a hook has denied never runs"
ASKED_ONCE = "nobody is asked again about a call whose record is on disk"
AS_CHANGED = "a call is made as the hooks have changed it"
TOLD_OF = "hooks hear of each result before it is on disk, and not again"
AS_REPLACED = "a result is what hooks have made of it"
UNSEEN = "a result that a hook had to look at, and has not, is on record nowhere"
CAPABLE = "a tool that needs more than its agent may is not offered, and never runs"

VERDICT = "verdict"
"""The argument by which a hook marks what it lets pass."""
PATIENCE_S = 0.7
"""How long a hook may take that hangs."""
STERN = (*("allow",) * 8, "deny", "ask", "raise", "hang", "nonsense", "replace")
"""Moods of a hook that denies where it fails; `ask` of one whose run lets nobody be asked."""
MILD = (*("allow",) * 8, "raise", "hang")
"""Moods of one that allows then."""
REPLACING = ("leave", "replace")
LOOKING = {
    "done": (*("look",) * 5, "raise"),
    **dict.fromkeys(("failed", "timed_out"), ("look", "look", "raise")),
}
"""Moods of a hook that looks at a result, by what became of the call; of others it only looks."""
SHELL = "shell"
NEEDING = frozenset({"command", "thread"})
"""Kinds of tools that need it."""


class Judging:
    """Watches the hooks around the calls of a schedule.

    A call is denied or not by its key alone, so whoever asks again is told the same; but each
    verdict has a number of its own.

    Args:
        ledger: Where it is written down.
        seed: That of the schedule.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self._ledger = ledger
        self._seed = seed
        self._spoken: Counter[str] = Counter()
        self._asked_at: dict[str, int] = {}
        self._on_record: dict[str, int] = {}
        self._verdicts: dict[str, int] = {}
        self._heard: dict[str, str | None] = {}
        """What was made of each result; None where that was left as it is."""
        self._numbers = count(1)
        self._results: set[str] = set()
        self._judges = self._is_moody = False
        self._may_use: Sequence[str] | None = None
        self._asks_nobody: frozenset[str] = frozenset()

    def hooks(self, *, moody: bool, asks_nobody: frozenset[str]) -> Hooks:
        """Those of the agents, which have a say in calls from now on.

        Args:
            moody: They also fail and hang, and have a say in results.
            asks_nobody: Runs in which no user is asked anything.
        """
        self._judges, self._is_moody, self._asks_nobody = True, moody, asks_nobody
        if not moody:
            return Hooks(pre_tool=[self._first, self._second], post_tool=self._after)
        stern = Hook(self._stern, timeout_s=PATIENCE_S)
        mild = Hook(self._mild, timeout_s=PATIENCE_S, on_error="allow")
        after = Hook(self._after, on_error="deny")
        return Hooks(pre_tool=[self._first, stern, mild, self._second], post_tool=after)

    def capabilities(self, *, limited: bool) -> Sequence[str] | None:
        """Those of the agents; None for all."""
        self._may_use = () if limited else None
        return self._may_use

    # ---- what happens -----------------------------------------------------------------

    def answered(self, place: str) -> None:
        """A model has answered at a place of its run."""
        self._spoken[place] += 1

    def offered(self, tools: ToolSet) -> None:
        """A model is asked, and may call these."""
        if self._may_use is None:
            return
        if beyond := NEEDING.intersection(spec.name for spec in tools.specs):
            self._ledger.broken(CAPABLE, f"{sorted(beyond)} are offered")

    def called(self, kind: str, key: str, given: Mapping[str, Any]) -> None:
        """A tool is called."""
        if self._may_use is not None and kind in NEEDING:
            self._ledger.broken(CAPABLE, f"{kind} of {key} runs")
        if not self._judges or not has_place(key):
            return
        if self._denies(key):
            self._ledger.broken(DENIED_RUNS, f"{key} runs")
        if given.get(VERDICT) != self._verdicts.get(key):
            text = f"{key} is made by verdict {given.get(VERDICT)}, and {self._verdicts.get(key)}"
            self._ledger.broken(AS_CHANGED, f"{text} counts")

    def changed(self, run: DiskRun, change: RunChanged, log: Sequence[Message]) -> None:
        """A change of a run is on disk, and in its log."""
        if not self._judges:
            return
        for message in change.delta.messages:
            for call in message.tool_calls:
                key = key_of(call)
                if key is not None and key in self._asked_at:
                    self._on_record[key] = self._asked_at[key]
        if not self._is_moody:
            return
        failures = [event for event in change.delta.events if isinstance(event, HookFailed)]
        unheard = {event.call_id for event in failures}
        unseen = {event.call_id for event in failures if event.kind == "post_tool"}
        for key, result in results_in(log, len(change.delta.messages)):
            # The time of its run may be over, so that nothing is left for a hook.
            if result.disposition in HEARD and result.tool_call_id not in unheard:
                self._check_result(key, result)
            if result.tool_call_id in unseen and result.text not in WITHHELD.values():
                self._ledger.broken(UNSEEN, f"{key} has the result {result.text[:80]!r}")
            self._results.add(key)

    def _check_result(self, key: str, result: Message) -> None:
        if key not in self._heard:
            self._ledger.broken(TOLD_OF, f"{key} is {result.disposition}, and no hook knows it")
        elif (said := self._heard[key]) is not None and result.text != said:
            text = f"{key} has the result {result.text[:80]!r}, and hooks have said {said!r}"
            self._ledger.broken(AS_REPLACED, text)

    # ---- hooks ------------------------------------------------------------------------

    async def _first(self, event: BeforeTool) -> Allow | Change:
        """Mark the call; one that asks has no key."""
        key = key_in(event.arguments)
        if key is None:
            return Allow()
        if not is_here(self._ledger, event.run_id):
            return Change({**event.arguments, VERDICT: self._verdicts.get(key)})
        spoken = self._spoken[key.rpartition("/")[0]]
        if self._on_record.get(key) == spoken:
            self._ledger.broken(ASKED_ONCE, f"{key} is asked about twice after one answer")
        self._asked_at[key] = spoken
        self._verdicts[key] = self._verdicts.get(key, 0) + 1
        return Change({**event.arguments, VERDICT: self._verdicts[key]})

    async def _stern(self, event: BeforeTool) -> Any:
        key = key_in(event.arguments)
        match None if key is None else self._stern_mood(key):
            case "deny":
                return Deny(f"never {key}")
            case "ask":
                return Ask(f"may {key} be made?")
            case "raise":
                raise ValueError(f"what is {key}?")
            case "hang":
                await asyncio.Event().wait()
            case "nonsense":
                return True
            case "replace":
                return Replace(f"instead of {key}")
        return None

    async def _mild(self, event: BeforeTool) -> None:
        key = key_in(event.arguments)
        match None if key is None else mood_of(self._seed, "mild", key, MILD):
            case "raise":
                raise ValueError(f"what is {key}?")
            case "hang":
                await asyncio.Event().wait()

    async def _second(self, event: BeforeTool) -> Deny | None:
        key = key_in(event.arguments)
        if key is not None and event.arguments.get(VERDICT) != self._verdicts.get(key):
            self._ledger.broken(AS_CHANGED, f"{key} is asked about without what was changed before")
        return Deny(f"not {key}") if key is not None and is_denied(key) else None

    async def _after(self, event: AfterTool) -> Replace | None:
        key = key_in(event.arguments)
        if key is None:
            return None
        if self._denies(key) and event.disposition not in ("denied", "refused"):
            self._ledger.broken(DENIED_RUNS, f"{key} is {event.disposition}")
        if key in self._results:
            # Who is called dead and lives on, or has not heard that the run's time is over, ends
            # a call that others have closed since.
            if is_here(self._ledger, event.run_id):
                self._ledger.broken(TOLD_OF, f"{key} is told of again")
            return None
        self._heard[key] = None
        moods = LOOKING.get(event.disposition, ("look",))
        if self._is_moody and mood_of(self._seed, "looking", key, moods) == "raise":
            raise ValueError(f"what is the result of {key}?")
        if self._is_moody and mood_of(self._seed, "after", key, REPLACING) == "replace":
            text = f"done {key} as {event.disposition} {next(self._numbers)}"
            self._heard[key] = text
            return Replace(text)
        return None

    def _denies(self, key: str) -> bool:
        return is_denied(key) or (self._is_moody and self._stern_mood(key) != "allow")

    def _stern_mood(self, key: str) -> str:
        mood = mood_of(self._seed, "stern", key, STERN)
        asks = mood == "ask" and key.partition("/")[0] not in self._asks_nobody
        return "allow" if asks else mood


def is_denied(key: str) -> bool:
    """Whether the hooks deny a call: one in four."""
    return has_place(key) and crc32(key.encode()) % 4 == 0
