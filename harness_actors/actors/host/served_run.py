"""A run as its host knows it: spec, replica of the log, and the hop in progress."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_actors.actors.text.speaking import Speaker
from harness_actors.conversation import Conversation
from harness_actors.executors.context import DeltaContext
from harness_actors.plan import CompactionPlan, Viewer
from harness_actors.records import RunSpec
from harness_actors.state import Letter


@dataclass(slots=True)
class ServedRun:
    """What a host knows of a run: its spec, a replica of its log, and the hop in progress.

    Each hop has an object of its own, so that a cut one, while it ends, still says of
    whatever it posts that it belongs to its own hop.
    """

    spec: RunSpec
    log: Conversation = field(default_factory=Conversation)
    plan: CompactionPlan | None = None
    """How the log is shown; None for as it is."""
    viewer: Viewer = field(default_factory=Viewer)
    hop_number: int = 0
    sent: int = 0
    parking: bool = False
    offered: int = 0
    """Version of a plan that is offered to it; 0 for none."""
    mail: list[Letter] = field(default_factory=list)
    """What it was told of in this hop, and its context does not have yet."""
    context: DeltaContext | None = None
    """None before the hop begins, and when it is over."""
    texts: Speaker | None = None
    """None where nobody reads what the model says."""
    commits: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    """By number of the change: who waits for its commit."""

    def park(self, parking: bool) -> None:
        """It is to stop after its round, or not after all."""
        self.parking = parking
        if self.context is not None:
            self.context.parking = parking

    def offer(self, version: int) -> None:
        """A plan of this version is offered to it."""
        self.offered = version
        if self.context is not None:
            self.context.offered = version

    def take_mail(self, letters: Sequence[Letter]) -> None:
        """It is to be told of these before its next model call."""
        if self.context is None:
            self.mail.extend(letters)
        else:
            self.context.take_mail(letters)

    def speak(self, texts: Speaker | None) -> None:
        """Somebody reads what its model says, by this; None where nobody does any more."""
        self.texts = texts
        if self.context is not None:
            self.context.texts = texts

    def until_committed(self) -> asyncio.Future[None]:
        """Done when the change that was sent last is on disk."""
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.commits[self.sent] = committed
        return committed

    def committed(self, newest: int) -> None:
        """All of its changes up to this one are on disk."""
        for change in [number for number in self.commits if number <= newest]:
            waiting = self.commits.pop(change)
            # Whoever waited may have been cancelled, and the future with it.
            if not waiting.done():
                waiting.set_result(None)
