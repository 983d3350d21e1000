"""Resource keys on a simulated machine: freed when the process is gone that holds them."""

from dataclasses import dataclass

from harness_actors.actors.simulated.processes import SimulatedProcess, current_process


@dataclass(eq=False, slots=True)
class SimulatedHeld:
    """A key that a process holds."""

    process: SimulatedProcess
    reads: bool
    _beside: "list[SimulatedHeld]"

    def release(self) -> None:
        # What is gone reaches nothing any more, and has nothing either.
        if not self.process.gone:
            self._beside.remove(self)


class SimulatedKeys:
    """The keys that all processes of a simulated machine share, as files would have them."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], list[SimulatedHeld]] = {}

    def take(self, root: str, key: str, *, reads: bool) -> SimulatedHeld | None:
        """See `KeyFiles.take`."""
        beside = self._held.setdefault((root, key), [])
        beside[:] = [one for one in beside if not one.process.gone]
        if beside and not (reads and all(one.reads for one in beside)):
            return None
        held = SimulatedHeld(current_process(), reads, beside)
        beside.append(held)
        return held
