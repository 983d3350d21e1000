"""The actors beside the executors: what a model is asked by, and what is read while it is said."""

import asyncio
from random import Random

from harness_actors.actors.hosted import Hosted, Place, Reach
from harness_actors.actors.kinds import EMBEDDED_MODEL, STREAMS
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.runtime import TextCursor, Texts
from harness_actors.actors.simulated.processes import SimulatedProcess, current_process
from harness_actors.actors.text.streams import Spoken, TextStreams
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import ActorLostError, CellError
from tests.simulation.ledger import Ledger

GONE = "a side actor is gone before another has its place"
REPLACED = "a side actor that is gone is replaced"
SPARED = "a side actor that does not start stops no cell"
IN_ORDER = "what is read is what was said, and gaps are told"

SIDE = (EMBEDDED_MODEL, STREAMS)
BACK_WITHIN_S = 12.0
"""Where nothing is slow or stopped: until a death is seen, and the next one serves."""
AGAIN_S = 0.5
WORDS = 40


class Beside:
    """Watches the side actors of all cells of a schedule.

    Args:
        ledger: Where it is written down.
        refusals: How many hosts of the model do not start, one after the other.
    """

    def __init__(self, ledger: Ledger, refusals: int) -> None:
        self.ledger = ledger
        self.refusals = refusals
        self._begun: dict[Slot, list[SimulatedProcess]] = {}

    def begins(self, slot: Slot) -> None:
        """An actor begins to live in this process."""
        process = current_process()
        if process.parent is not None and process.parent.gone:
            # Its coordinator began to start it when it was called dead; nobody knows of it.
            return
        on_disk = {mark for _, mark in self.ledger.disk.processes}
        before = self._begun.setdefault(slot, [])
        for other in before:
            if not other.gone and other.mark in on_disk:
                self.ledger.broken(GONE, f"{process!r} begins while {other!r} lives")
        before.append(process)
        self._look_later(slot, process)

    def cell_stopped(self, why: Exception) -> None:
        """A coordinator has given up."""
        if isinstance(why, CellError | ActorLostError) and str(why).startswith(SIDE):
            self.ledger.broken(SPARED, str(why))

    def _look_later(self, slot: Slot, process: SimulatedProcess) -> None:
        loop = self.ledger.loop
        loop.call_later(1.0, self._look, slot, process, context=loop.world.context)

    def _look(self, slot: Slot, process: SimulatedProcess) -> None:
        """Look whether it lives, and when it does not, whether the next one comes."""
        if not process.gone:
            self._look_later(slot, process)
            return
        loop, cell = self.ledger.loop, self.ledger.coordinator_process
        loop.call_later(
            BACK_WITHIN_S, self._look_for_next, slot, process, cell, context=loop.world.context
        )

    def _look_for_next(
        self, slot: Slot, process: SimulatedProcess, cell: SimulatedProcess | None
    ) -> None:
        host, now = self.ledger.coordinator, self.ledger.coordinator_process
        if host is None or cell is None or now is not cell or process.parent is not cell:
            return
        harmed = cell.gone or cell in self.ledger.harmed or host.is_broken
        served = slot in host._seats._seats
        if self.ledger.prompt and served and not harmed and self._begun[slot][-1] is process:
            self.ledger.broken(REPLACED, f"nobody has the place of {process!r}")


class WatchedStreams(TextStreams):
    """The shipped stream actor, whose beginning is written down."""

    def __init__(self, beside: Beside, place: Place) -> None:
        super().__init__(monotonic=place.clock.monotonic)
        beside.begins(place.slot)


class SimulatedModel(Hosted):
    """A model that a cell hosts."""

    def __init__(self, beside: Beside, place: Place) -> None:
        self._beside = beside
        beside.begins(place.slot)

    async def ready(self) -> None:
        if self._beside.refusals:
            self._beside.refusals -= 1
            raise CellError(EMBEDDED_MODEL, "it finds no memory")

    async def answer(self, question: str) -> str:
        await asyncio.sleep(0.05)
        return f"answer to {question}"


async def ask_hosted_model(reach: Reach, url: str, run_id: str, ledger: Ledger) -> None:
    """Ask the model of a cell until it answers, as whoever has its address does."""
    while True:
        try:
            actor = await reach(url.removeprefix("http://").removesuffix("/v1"))
            answer = await actor.call(SimulatedModel.answer, run_id)
        except (UnreachableError, ActorLostError):
            await asyncio.sleep(AGAIN_S)
            continue
        if answer != f"answer to {run_id}":
            ledger.broken("no run sees another's state", f"{run_id} gets the {answer!r}")
        return


def words_of(run_id: str) -> str:
    """What a model says in each of its answers in a run, while it makes it."""
    return "".join(f"{run_id} says {number}. " for number in range(WORDS))


def whole_answer_of(run_id: str) -> str:
    """The text of an answer that calls no tool; told in one piece where it was not streamed."""
    return f"[{run_id}] says so"


class Reader:
    """What somebody reads of one run, held against what is said in it.

    In calm weather alone: else what is told to be lost may have arrived, and arrive twice.
    """

    def __init__(self, run_id: str, ledger: Ledger) -> None:
        self._run_id = run_id
        self._said = words_of(run_id)
        self._ledger = ledger
        self._answer: tuple[int, int, int] | None = None
        self._at = 0
        # Whoever begins to read may do so in the middle of an answer.
        self._gap = True
        self.cursor: TextCursor | None = None

    def take(self, texts: Texts) -> None:
        """Read on."""
        self.cursor = texts.cursor
        self._gap |= texts.missed != 0
        for spoken in texts.spoken:
            self._take_piece(spoken)
            self._gap = False

    def _take_piece(self, spoken: Spoken) -> None:
        if spoken.text == whole_answer_of(self._run_id) or spoken.text.startswith("{"):
            return
        if spoken.answer != self._answer:
            self._answer, self._at = spoken.answer, 0
        if self._gap or spoken.dropped:
            at = self._said.find(spoken.text, self._at)
        else:
            at = self._at if self._said.startswith(spoken.text, self._at) else -1
        if self._ledger.calm and (at < 0 or spoken.run_id != self._run_id):
            text = f"{self._run_id} at {self._at}: {spoken.text[:40]!r}, gap: {self._gap}"
            self._ledger.broken(IN_ORDER, text)
        self._at = max(at, 0) + len(spoken.text)


def chosen_refusals(chance: Random) -> int:
    """How often the hosted model of a schedule does not start."""
    return chance.choice((0,) * 9 + (1, 2, 4))
