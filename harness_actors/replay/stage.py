"""The visit in progress, as far as those need to know of it who stand in for others."""

from harness_actors.replay.tape import Tape


class Stage:
    """Where stand-ins act.

    Attributes:
        tape: What the journal answers; None outside the agent turn.
    """

    def __init__(self) -> None:
        self.tape: Tape | None = None

    def open_tape(self) -> Tape:
        assert self.tape is not None, "only the agent turn asks"
        return self.tape
