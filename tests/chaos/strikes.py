"""One disturbance of a batch, and what is known of it."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from harness_actors.actors.processes import is_alive
from harness_actors.records import ProcessMark
from harness_actors.tools.processes import list_processes
from tests.chaos.command import BatchCommand
from tests.chaos.kinds import Kind
from tests.chaos.logs import ToolLine, now, read_tool_log
from tests.chaos.model import WatchedModel
from tests.chaos.plans import AGENTS
from tests.chaos.rays import RayByHand

FOUND_WITHIN_S = 60.0
GONE_WITHIN_S = 90.0
LEFT_WITHIN_S = 90.0
"""How long a driver may take to leave that has lost its Ray."""
TITLES = {
    "raylet": ("raylet",),
    "gcs": ("gcs_server",),
    "ray_agent": ("ray::RuntimeEnvAgent", "ray::DashboardAgent"),
}
"""How processes of Ray call themselves, by role."""
TICK_S = 0.01
AMID_CHILDREN_S = 0.2
"""How long after children were seen at work they may be struck."""
DECIDES_FOR_S = 1.0
"""How long after a decision was begun it may be struck; a command takes about as long for it."""
PAUSE_S = (0.0, 2.0)
"""How long a user takes to give the same command again."""
AWAY_S = (0.0, 15.0)
"""How long a user takes to start a Ray again; a command gives its head up in between."""


class ChaosError(Exception):
    """The batch does not do what it must; says what was waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A disturbance.

    Attributes:
        kind: Its kind.
        at: When the signal was sent, in seconds as `now` tells them.
        since: What recovery is counted from: that, or, where nothing goes on without it, when
            the command was given again.
        gone_at: When the last process that it was to bring down was gone.
        struck: Pids that got the signal.
        replaced: Pids of hosts whose runs go on elsewhere.
        affected: The tasks in flight that had to go on elsewhere.
    """

    kind: Kind
    at: float
    since: float
    gone_at: float
    struck: frozenset[int]
    replaced: frozenset[int]
    affected: frozenset[str]


class Striker:
    """Strikes the processes of a batch.

    Args:
        command: The batch.
        model: Its model.
        random: Decides what is left to chance.
        ray: The Ray that the command joins; None where it starts its own.
        deciding: How many decisions about calls are on their way.
        patience: How many times as long everything may take.
    """

    def __init__(
        self,
        command: BatchCommand,
        model: WatchedModel,
        random: Random,
        ray: RayByHand | None,
        deciding: Callable[[], int] = lambda: 0,
        patience: float = 1.0,
    ) -> None:
        self._found_within_s = patience * FOUND_WITHIN_S
        self._gone_within_s = patience * GONE_WITHIN_S
        self._left_within_s = patience * LEFT_WITHIN_S
        self._deciding = deciding
        self._command = command
        self._model = model
        self._random = random
        self._ray = ray

    async def strike(self, kind: Kind) -> Strike:
        """Strike, and return when what was to go down is gone.

        Raises:
            ChaosError: It does not go down, or there is nothing to be struck.
        """
        marks = await self._cell(kind)
        struck = await self._in_the_middle(kind, marks) or self._targets(kind, marks)
        replaced = [m for m in marks if _goes_down(m, kind, struck)]
        affected = self._affected(kind, replaced, marks)
        for pid in struck:
            with suppress(ProcessLookupError):
                os.kill(pid, kind.signal)
        at = since = now()
        if kind.ends_command:
            await self._left(kind)
            await asyncio.sleep(self._random.uniform(*PAUSE_S))
            if self._random.random() < 0.5:
                tear(self._command, self._random)
            since = at if kind.leaves_cell else now()
            self._command.start()
        elif kind.scope == "ray" and self._ray is not None:
            # As whoever has started it does; the command is left alone.
            await asyncio.sleep(self._random.uniform(*AWAY_S))
            await self._ray.start_again()
            since = now()
        await self._gone(replaced)
        return Strike(
            kind=kind,
            at=at,
            since=since,
            gone_at=at if kind.leaves_cell else now(),
            struck=frozenset(struck),
            replaced=frozenset(mark.pid for mark in replaced),
            affected=affected,
        )

    async def _cell(self, kind: Kind) -> list[ProcessMark]:
        """The living processes of the cell, once what is to be struck is among them."""
        role = kind.role if kind.scope in ("seat", "cell") else "coordinator"
        # A wave is looked for at the agent turns, which come up after their coordinator.
        roles = {role, "agent_turn"} if kind.amid == "wave" else {role}
        found: list[ProcessMark] = []
        deadline = now() + self._found_within_s
        # What outlived its Ray is no cell that could be struck once more.
        while not _all_play(found, roles) or not self._targets(kind, found):
            if self._command.has_ended:
                raise ChaosError(f"the command ended before {kind.name} could be struck")
            if now() > deadline:
                raise ChaosError(f"no {role} came up within {self._found_within_s:.0f} s")
            await asyncio.sleep(TICK_S)
            found = await asyncio.to_thread(self._command.living)
        return found

    async def _in_the_middle(self, kind: Kind, marks: Sequence[ProcessMark]) -> list[int]:
        """Return in the moment for which a kind is; with whom to strike, where that follows.

        Raises:
            ChaosError: It does not come.
        """
        deadline = now() + self._found_within_s
        while kind.amid != "any":
            if self._command.has_ended or now() > deadline:
                raise ChaosError(f"no {kind.amid} was there to be struck")
            await asyncio.sleep(TICK_S)
            if kind.amid == "approval" and self._deciding():
                await asyncio.sleep(self._random.uniform(0, DECIDES_FOR_S))
                if self._deciding():
                    return []
            elif kind.amid == "children" and self._model.in_flight(kind.role):
                await asyncio.sleep(self._random.uniform(0, AMID_CHILDREN_S))
                if self._model.in_flight(kind.role):
                    return []
            elif kind.amid == "wave":
                hosts = [mark.pid for mark in marks if _plays(mark, "agent_turn")]
                if open_in := waves_in(read_tool_log(self._command.tool_log), hosts):
                    return [open_in[-1]] if kind.role == "agent_turn" else []
        return []

    def _targets(self, kind: Kind, marks: Sequence[ProcessMark]) -> list[int]:
        if kind.scope == "driver":
            return [self._command.pid]
        if kind.scope == "ray":
            pids = self._ray.pids() if self._ray else self._command.others()
            return self._of_ray(kind.role, pids)
        # Of a role that several play, such as agent turns, a random one.
        return [self._random.choice([m.pid for m in marks if _plays(m, kind.role)])]

    def _of_ray(self, role: str, pids: Sequence[int]) -> list[int]:
        if role == "ray":
            return list(pids)
        if role == "ray_agent":
            # Its title is written over its environment, by which the others are found.
            raylets = self._of_ray("raylet", pids)
            pids = [one.pid for one in list_processes().values() if one.parent in raylets]
        playing = [pid for pid in pids if _title(pid).startswith(TITLES[role])]
        return playing and [self._random.choice(playing)]

    def _affected(
        self, kind: Kind, replaced: Iterable[ProcessMark], marks: Iterable[ProcessMark]
    ) -> frozenset[str]:
        flying = self._model.in_flight()
        if kind.scope == "seat":
            flying = self._model.in_flight(kind.role if kind.role in AGENTS else "")
        if kind.scope != "seat" or sum(_plays(mark, kind.role) for mark in marks) == 1:
            return flying
        # One agent turn of several: those that it served last.
        pids = {mark.pid for mark in replaced}
        last = {line.task: line.pid for line in read_tool_log(self._command.tool_log)}
        return frozenset(task for task in flying if last.get(task) in pids)

    async def _left(self, kind: Kind) -> None:
        """Return when the driver has gone, killed or by itself."""
        try:
            status = await self._command.finish(within_s=self._left_within_s)
        except TimeoutError:
            raise ChaosError(
                f"{self._left_within_s:.0f} s after {kind.name} was killed, the command still runs"
            ) from None
        if status == 0:
            raise ChaosError(f"the command says that all is done, but {kind.name} was killed")

    async def _gone(self, marks: Sequence[ProcessMark]) -> None:
        deadline = now() + self._gone_within_s
        while left := [mark for mark in marks if is_alive(mark)]:
            if now() > deadline:
                pids = ", ".join(f"{mark.role} {mark.pid}" for mark in left)
                raise ChaosError(f"not gone after {self._gone_within_s:.0f} s: {pids}")
            await asyncio.sleep(TICK_S)


def _all_play(marks: Sequence[ProcessMark], roles: Collection[str]) -> bool:
    """Whether each role has somebody who plays it."""
    return all(any(_plays(mark, role) for mark in marks) for role in roles)


def waves_in(lines: Iterable[ToolLine], hosts: Collection[int]) -> list[int]:
    """The hosts, of these, in which several calls of one run are at work that only read."""
    at_work = dict[tuple[int, str], set[str]]()
    for line in lines:
        if line.sort != "look" or line.pid not in hosts:
            continue
        beside = at_work.setdefault((line.pid, line.run_id), set())
        if line.begins:
            beside.add(line.call_id)
        else:
            beside.discard(line.call_id)
    return [pid for (pid, _), beside in at_work.items() if len(beside) > 1]


def tear(command: BatchCommand, random: Random) -> None:
    """Leave a torn last line in the results, as a driver does that dies while it writes one."""
    path = command.results_path
    lines = path.read_bytes().splitlines() if path.exists() else []
    if lines:
        # Half of a line that is not there yet: its task has another id.
        torn = lines[-1].replace(b'"id":"t', b'"id":"torn', 1)
        with path.open("ab") as file:
            file.write(torn[: random.randrange(1, len(torn))])


def _title(pid: int) -> str:
    """The name of a process's program, or what it calls itself; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0].rpartition("/")[2]
    except OSError:
        return ""


def _goes_down(mark: ProcessMark, kind: Kind, struck: Sequence[int]) -> bool:
    if kind.scope == "seat":
        return mark.pid in struck
    return not kind.leaves_cell


def _plays(mark: ProcessMark, role: str) -> bool:
    """Whether a process has a role; `agent_turn[1]` has that of an agent turn.

    Not the quarantine: only a run's own doing may bring that down three times.
    """
    name, _, index = mark.role.partition("[")
    return name == role and index != "quarantine]"
