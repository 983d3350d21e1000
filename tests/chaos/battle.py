"""A batch under fire, from its start to the verdict."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.checks import Findings, check
from tests.chaos.command import BatchCommand
from tests.chaos.kinds import Kind, with_those_before
from tests.chaos.logs import now, read_tool_log
from tests.chaos.memory import MemoryDeaths, small_memory
from tests.chaos.model import WatchedModel
from tests.chaos.people import People
from tests.chaos.plans import make_plans
from tests.chaos.rays import RayByHand
from tests.chaos.recovery import Delays, are_settled, recoveries, still_away
from tests.chaos.strikes import ChaosError, Strike, Striker

BACK_WITHIN_S = 90.0
END_WITHIN_S = 300.0
APART = (0.0, 2.0)
"""Work between two strikes, in steps for each run in flight."""
HASTY = 0.2
"""Share of the strikes that do not wait until those before are recovered from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a batch is.

    Attributes:
        runs: Its tasks. A tenth of them ask their users, a tenth make calls that somebody must
            approve of, and a tenth read in waves. Where kinds are about it, three tenths delegate.
        at_once: How many of them at once.
        patient: How many of them go on until all has happened; the others come and go.
        rounds: The fewest and the most answers of a run before its last.
    """

    runs: int = 100
    at_once: int = 50
    patient: int = 25
    rounds: tuple[int, int] = (10, 25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a batch.

    Attributes:
        kinds: The kinds that it met, in order.
        findings: What is broken, if anything.
        delays: Recovery, by kind.
        overlapping: Strikes on top of the one before, or on which the next one came; no figure
            of theirs is among the delays.
        wall_s: How long it took.
        folder: What it left, for a look; None where it was removed.
        memory: How the processes ended that took too much memory; None where none did.
    """

    kinds: tuple[str, ...]
    findings: Findings
    delays: dict[str, Delays]
    overlapping: int
    wall_s: float
    folder: Path | None
    memory: MemoryDeaths | None = None

    @property
    def is_clean(self) -> bool:
        return not self.findings.broken


PRESSED_BULK = 1_500
"""Bytes of the result of each call, where windows are to be full."""


class Battle:
    """One batch and its disturbances.

    Args:
        folder: Where everything goes.
        kinds: What is to happen, in this order; all under a joined Ray, or none.
        size: How large the batch is.
        seed: What is left to chance depends on it, but for the machine's own timing.
        hasty: Share of the strikes that come on top of those before.
        poison: How the tool of one run crashes its process, ``segfault`` or ``memory``; empty
            for no such run.
        keep: Leave the folder as it is, also when nothing is wrong.
        patience: How many times as long everything may take, on a machine that is busy.
        tell: Called with a word on what happens.
    """

    def __init__(
        self,
        folder: Path,
        kinds: Sequence[Kind],
        *,
        size: Size,
        seed: int,
        hasty: float = HASTY,
        poison: str = "",
        keep: bool = False,
        patience: float = 1.0,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._kinds = with_those_before(kinds)
        self._size = size
        self._seed = seed
        self._poison = poison
        self._keep = keep
        self._patience = patience
        self._back_within_s = patience * BACK_WITHIN_S
        self._end_within_s = patience * END_WITHIN_S
        self._tell = tell
        self._random = Random(f"battle:{seed}")
        # Apart from the others, of which the machine's timing decides how many are drawn.
        haste = Random(f"haste:{seed}")
        # Nothing comes on top of the last one.
        self._hasty = [bool(kind.after) or haste.random() < hasty for kind in self._kinds[1:]]
        self._hasty.append(False)
        self._strikes: list[Strike] = []
        self._measured: list[tuple[str, list[float]]] = []
        self._memory: MemoryDeaths | None = None

    async def fight(self) -> Verdict:
        """Run the batch to its end under fire, and look at what it left."""
        began = now()
        pressed = any(kind.pressed for kind in self._kinds)
        delegating = any(kind.delegating for kind in self._kinds)
        agent = "pressed_agent" if pressed else "delegating_agent" if delegating else "agent"
        plans = make_plans(
            self._size.runs,
            seed=self._seed,
            rounds=self._size.rounds,
            log=str(self._folder / "tools.log"),
            poison=self._poison,
            patient=self._size.patient,
            asking=max(1, self._size.runs // 10),
            paying=max(1, self._size.runs // 10),
            waving=max(1, self._size.runs // 10),
            delegating=max(1, self._size.runs * 3 // 10) if delegating else 0,
            bulk=PRESSED_BULK if pressed else 0,
        )
        async with AsyncExitStack() as stack:
            ray = None
            if any(kind.joined for kind in self._kinds):
                ray = await stack.enter_async_context(RayByHand())
            # The Ray of a command leaves much behind when it is killed.
            own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hc")))
            # After the command's end nothing is left in it.
            memory = stack.enter_context(small_memory()) if self._poison == "memory" else None
            model = WatchedModel(self._folder / "model.log", seed=self._seed)
            await stack.enter_async_context(model)
            variables = ray.variables if ray else {"RAY_TMPDIR": str(own)}
            command = BatchCommand(
                self._folder,
                model.base_url,
                plans,
                at_once=self._size.at_once,
                address="auto" if ray else "local",
                agent=f"{agent}.yaml",
                variables={**variables, **(memory.variables if memory else {})},
            )
            stack.push_async_callback(command.clean_up)
            findings = await self._to_the_end(command, model, ray)
            if memory is not None:
                self._memory = memory.deaths(read_tool_log(command.tool_log))
        return self._verdict(findings, now() - began)

    async def _to_the_end(
        self, command: BatchCommand, model: WatchedModel, ray: RayByHand | None
    ) -> Findings:
        problem = ""
        command.start()
        people = People(command, Random(f"people:{self._seed}"))
        answering = asyncio.ensure_future(people.keep_answering())
        try:
            striker = Striker(
                command, model, self._random, ray, lambda: people.deciding, self._patience
            )
            await self._strike_all(command, model, striker)
            model.released = True
            status = await self._finish(command, people)
            # With a run that is poisoned, not every task can have ended well.
            if status != (1 if self._poison else 0):
                problem = f"the command ended with status {status}"
        except (ChaosError, TimeoutError) as error:
            problem = str(error) or f"the batch did not end within {self._end_within_s:.0f} s"
            await command.clean_up()
        finally:
            await _cancelled(answering)
        findings = check(command, self._strikes, model.asked, people.answers)
        if problem:
            # Before what follows from it.
            findings.broken.insert(0, ("lost", f"{problem}; it said: {command.said()[-2000:]}"))
        return findings

    async def _finish(self, command: BatchCommand, people: People) -> int:
        """Wait for the command to end, and give it again for as long as runs of it ask."""
        while True:
            status = await command.finish(within_s=self._end_within_s)
            if status != 1 or not await people.are_waited_for():
                return status
            await people.until_all_is_answered()
            command.start()

    async def _strike_all(
        self, command: BatchCommand, model: WatchedModel, striker: Striker
    ) -> None:
        hasty = False
        for number, kind in enumerate(self._kinds):
            steps = self._random.uniform(*APART) * (len(model.in_flight()) or self._size.at_once)
            if not hasty:
                await self._reached(command, model, len(model.distinct) + max(1, round(steps)))
            # Any moment, not only those at which a model was just asked.
            await asyncio.sleep(self._random.uniform(0, 0.3))
            strike = await striker.strike(kind)
            self._strikes.append(strike)
            after, hasty = hasty, self._hasty[number]
            told = "and on at once"
            if not hasty:
                found = await self._recovered(strike, command, model)
                told = _told(found)
                if not after:
                    self._measured.append((kind.name, found))
            self._tell(f"{number + 1}/{len(self._kinds)} {kind.name}: {told}")

    async def _reached(self, command: BatchCommand, model: WatchedModel, steps: int) -> None:
        """Return when so many steps of all runs were asked for."""
        before = -1
        while len(model.distinct) < steps:
            if command.has_ended:
                raise ChaosError("the command ended before its work was done")
            if len(model.distinct) == before:
                raise ChaosError(f"no run made a step for {self._back_within_s:.0f} s")
            before = len(model.distinct)
            await self._wait(
                model,
                lambda: len(model.distinct) != before or command.has_ended,  # noqa: B023
            )

    async def _recovered(
        self, strike: Strike, command: BatchCommand, model: WatchedModel
    ) -> list[float]:
        """Return when the runs that a strike touched are back, and go on.

        Raises:
            ChaosError: They do not come back.
        """
        await self._wait(model, lambda: not still_away(strike, model) or command.has_ended)
        if missing := still_away(strike, model):
            raise ChaosError(
                f"{self._back_within_s:.0f} s after {strike.kind.name}, {len(missing)} runs have "
                f"not asked their model again: {', '.join(sorted(missing)[:5])}"
            )
        # A run whose process dies twice within a call waits for the one quarantine host: what
        # is measured is one death.
        await self._wait(model, lambda: are_settled(strike, model) or command.has_ended)
        return list(recoveries(strike, model.asked).values())

    async def _wait(self, model: WatchedModel, holds: Callable[[], bool]) -> None:
        """Return when something holds, or after the longest time that it may take."""
        try:
            async with asyncio.timeout(self._back_within_s):
                await model.until(holds)
        except TimeoutError:
            return

    def _verdict(self, findings: Findings, wall_s: float) -> Verdict:
        by_kind: dict[str, list[float]] = {}
        for name, found in self._measured:
            by_kind.setdefault(name, []).extend(found)
        kept = self._keep or bool(findings.broken)
        if not kept:
            shutil.rmtree(self._folder, ignore_errors=True)
        return Verdict(
            kinds=(self._poison,) * bool(self._poison)
            + tuple(strike.kind.name for strike in self._strikes),
            findings=findings,
            delays={name: Delays(seconds=tuple(found)) for name, found in by_kind.items()},
            overlapping=len(self._strikes) - len(self._measured),
            wall_s=wall_s,
            folder=self._folder if kept else None,
            memory=self._memory,
        )


async def _cancelled(task: asyncio.Future[None]) -> None:
    """End a task that does not end by itself; raise what it failed with before."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _told(seconds: Sequence[float]) -> str:
    if not seconds:
        return "touched no run"
    runs = "run" if len(seconds) == 1 else "runs"
    return f"{len(seconds)} {runs} back, the last after {max(seconds):.2f} s"
