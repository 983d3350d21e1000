"""The journal's file is taken away under its cell, and put back in the end."""

import asyncio
import shutil
from pathlib import Path
from random import Random
from typing import Any, Literal

from harness_actors.actors.coordinator.journal_watch import LOOK_EVERY_S
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.simulated.processes import SimulatedProcess
from harness_actors.actors.simulated.ray import SimulatedRay
from harness_actors.errors import ActorLostError, HarnessError, StoreError
from harness_actors.stores import SqliteJournal
from harness_actors.stores.standing import FileId
from tests.simulation.ledger import Ledger
from tests.simulation.user import User

How = Literal["moved", "folder", "older copy", "another"]
"""Where to: aside, with its folder, or aside with a file in its place."""

NOTICED_S = LOOK_EVERY_S + 1.0
"""In which a cell has looked, however slow its calls are."""
ENDED_S = NOTICED_S + 6.0
"""In which its hosts are gone, also those that Ray calls dead before they are."""
TOLD_S = 12.0
"""In which the command that follows runs there has ended."""
UNTIL_S = 60.0

NOTICED = "a cell whose journal is gone stops soon"
NAMED = "a command ends with what happened to its journal"
NOT_ANSWERED = "nothing is answered from a journal that is gone"
AT_ITS_PATH = "what is told as done is on the file at the path"
NOTHING_WORKS = "nothing works for a journal that is gone"


class JournalPlace:
    """The path of a journal, and what is there.

    Args:
        folder: Its folder, which is made a journal of.
        name: Its name there.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._folder = folder
        self._beside = folder.with_name(f"{folder.name}-aside")
        self._beside.mkdir()
        SqliteJournal(self.path).close()
        shutil.copy(self.path, self._beside / "another")
        self.file = FileId.of(self.path)
        """Which one is kept."""
        self._how: How | None = None

    @property
    def is_away(self) -> bool:
        """What is at the path is not the journal that is kept."""
        return self._how is not None

    def take_away(self, how: How) -> None:
        """Have something else, or nothing, at the path."""
        self._how = how
        if how == "folder":
            self._folder.rename(self._beside / "folder")
            return
        other = self._beside / "another"
        if how == "older copy":
            # Without its log it is as it was when that was last moved into it.
            other = Path(shutil.copy(self.path, self._beside / "older"))
        for file in self._files(self._folder):
            file.rename(self._beside / file.name)
        if how != "moved":
            shutil.copy(other, self.path)

    def put_back(self) -> None:
        """Have the journal at its path again, with its log."""
        how, self._how = self._how, None
        if how == "folder":
            (self._beside / "folder").rename(self._folder)
        elif how is not None:
            for file in self._files(self._folder):
                file.unlink()
            for file in self._files(self._beside):
                file.rename(self._folder / file.name)

    def _files(self, folder: Path) -> list[Path]:
        return sorted(folder.glob(f"{self.path.name}*"))

    def remove(self) -> None:
        """Leave nothing of it."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.rmtree(self._beside, ignore_errors=True)


class Striking:
    """Writes to a journal that is taken away in the middle of a commit, where that is due.

    Args:
        committer: What writes.
        mover: Who takes it away.
    """

    def __init__(self, committer: Any, mover: "Mover") -> None:
        self._committer = committer
        self._mover = mover

    def begin_term(self) -> int:
        return int(self._committer.begin_term())

    def forget_processes(self, term: int) -> None:
        self._committer.forget_processes(term)

    def commit(self, term: int, entries: Any) -> Any:
        self._mover.strike("before")
        positions = self._committer.commit(term, entries)
        self._mover.written = True
        self._mover.strike("after")
        return positions


class Mover:
    """Takes the journal of a schedule away, now and then, and looks what becomes of its cell.

    Args:
        seed: Of the schedule.
        place: The journal's.
        ray: Where its cells are.
        user: Who has it.
        ledger: Told what is done.
    """

    def __init__(
        self, seed: int, place: JournalPlace, ray: SimulatedRay, user: User, ledger: Ledger
    ) -> None:
        self.place = place
        self.written = False
        """The last commit is in the journal that is kept."""
        self._chance = chance = Random(f"{seed}/moves")
        self._ray = ray
        self._user = user
        self._ledger = ledger
        self._left = chance.choice((1, 1, 2, 3))
        self._due: str | None = None
        self._number = 0
        self._later(0.2 + chance.expovariate(1 / 3.0), self._begin)

    def _begin(self) -> None:
        if self.place.is_away or self._ledger.loop.time() > UNTIL_S:
            return
        self._left -= 1
        when = self._chance.choice(("now", "now", "before", "after"))
        if when == "now":
            self._take_away()
        else:
            self._due = when

    def strike(self, when: str) -> None:
        """A commit is about to be written, or is."""
        if self._due == when and not self.place.is_away:
            self._due = None
            self._take_away()

    def _take_away(self) -> None:
        how: How = self._chance.choice(("moved", "folder", "older copy", "another"))
        self.place.take_away(how)
        self._user.there.clear()
        self._ledger.note("!", f"the journal is taken away ({how})")
        self._number += 1
        number, since = self._number, self._ledger.loop.time()
        back_s = self._chance.choice((0.3, 3.0, 8.0, 20.0)) * (0.5 + self._chance.random())
        self._later(back_s, self._put_back, since)
        host, process = self._ledger.coordinator, self._ledger.coordinator_process
        if host is not None and process is not None:
            self._later(NOTICED_S, self._look, number, process)
        self._later(TOLD_S, self._look_at_command, number, self._user._driver)
        for _ in range(self._chance.choice((0, 0, 1, 2))):
            self._later(3.0 * self._chance.random(), self._attach, number)

    def _put_back(self, since: float) -> None:
        self._check_work(since)
        self.place.put_back()
        self._user.there.set()
        self._ledger.note("!", "the journal is back")
        if self._left > 0:
            self._later(0.2 + self._chance.expovariate(1 / 3.0), self._begin)

    def calm(self) -> None:
        """From here on it is where it was."""
        self._left, self._due = 0, None

    # ---- what must be meanwhile -------------------------------------------------------

    def _is_away_still(self, number: int) -> bool:
        return self.place.is_away and number == self._number

    def _look(self, number: int, process: SimulatedProcess) -> None:
        ledger, host = self._ledger, self._ledger.coordinator
        if host is None or ledger.coordinator_process is not process or process.gone:
            return
        if not self._is_away_still(number) or process in ledger.harmed:
            return
        if not host.is_broken:
            ledger.broken(NOTICED, f"{process!r} serves on")
        elif not isinstance(host.failure, StoreError | ActorLostError):
            ledger.broken(NAMED, f"{process!r} has stopped for {host.failure!r}")

    def _look_at_command(self, number: int, driver: SimulatedProcess | None) -> None:
        ledger = self._ledger
        if driver is None or driver.gone or not self._is_away_still(number) or not ledger.calm:
            return
        if self._user._driver is driver and ledger.coordinator_process not in ledger.harmed:
            ledger.broken(NAMED, f"{driver!r} does not end")

    def _check_work(self, since: float) -> None:
        ledger, late = self._ledger, since + ENDED_S
        for work in (*ledger.models, *ledger.tools):
            if work.begun_at > late and work.process not in ledger.harmed and ledger.calm:
                text = f"{work.run_id}: {work.what} begins {work.begun_at - since:.1f} s after"
                ledger.broken(NOTHING_WORKS, text)

    def _attach(self, number: int) -> None:
        runtime = self._user.runtime
        if runtime is not None and self._is_away_still(number):
            self._ledger.loop.create_task(self._serve(runtime.coordinator, number))

    async def _serve(self, coordinator: Any, number: int) -> None:
        try:
            async with asyncio.timeout(10.0):
                await self._ray.network.call(coordinator, "call", "serve")
        except (UnreachableError, HarnessError, TimeoutError):
            return
        if self._is_away_still(number):
            self._ledger.broken(NOT_ANSWERED, "a command that attaches is served")

    def _later(self, seconds: float, call: Any, *arguments: Any) -> None:
        loop = self._ledger.loop
        loop.call_later(seconds, call, *arguments, context=loop.world.context)
