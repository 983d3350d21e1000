"""How text leaves the host that makes it: gathered, bounded, and never waited for."""

import asyncio
import logging
from collections.abc import Callable
from itertools import count

from harness_actors.actors.hosted import Reach, Reached
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.text.streams import KEPT_CHARS, RunOver, Spoken, TextStreams
from harness_actors.errors import ActorLostError
from harness_actors.events import Event

logger = logging.getLogger(__name__)

GATHER_S = 0.25
"""Between two calls while an answer goes on. A call costs as much as reading dozens of tokens,
and a reader sees no difference."""
RETRY_S = 0.2
WAITING_CHARS = KEPT_CHARS
"""Characters of one run that wait to be sent, at most; more is dropped."""


class Speaker:
    """The `TextSink` of one hop of a run.

    Args:
        sender: What posts its text.
        run_id: The run.
        hop: Term and number of the hop, which no other process says anything under.
    """

    def __init__(self, sender: "TextSender", run_id: str, hop: tuple[int, int]) -> None:
        self.run_id = run_id
        self._sender = sender
        self._hop = hop
        self._answer = (*hop, 0)
        self._place = (0, 0)
        self._said = False
        self._texts: list[str] = []
        self._chars = 0
        self._dropped = 0
        self._sealed: list[Spoken] = []
        self.waits = False
        """It is among those that have something to send."""
        self.closed = False

    def begin(self, turn: int, round: int) -> None:
        self._seal()
        self._answer = (*self._hop, next(self._sender.numbers))
        self._place = (turn, round)
        self._said = False

    def say(self, text: str) -> None:
        # Called for each token: no task, no call, no await.
        if self.closed or not text:
            return
        if self._chars + len(text) > WAITING_CHARS:
            self._seal()
            self._dropped += len(text)
            return
        self._texts.append(text)
        self._chars += len(text)
        if not self.waits:
            self._sender.wake(self, urgent=not self._said)
        self._said = True

    def end(self) -> None:
        if self._said and not self.closed:
            self._seal(ended=True)
            self._sender.wake(self, urgent=True)

    def announce(self, turn: int, round: int, event: Event) -> None:
        if self.closed:
            return
        if self._place != (turn, round):
            # Somebody began to read after the answer.
            self.begin(turn, round)
        self._seal()
        self._sealed.append(Spoken(self.run_id, self._answer, turn, round, "", event=event))
        self._sender.wake(self, urgent=True)

    def close(self) -> None:
        """Say nothing any more; what waits is sent."""
        self.closed = True

    def lost(self, chars: int) -> None:
        """What was taken did not arrive."""
        self._dropped += chars

    def take(self) -> list[Spoken]:
        """What is to be sent."""
        self._seal()
        taken, self._sealed = self._sealed, []
        self._chars = 0
        return taken

    def _seal(self, *, ended: bool = False) -> None:
        if not self._texts and not (ended and self._said):
            return
        self._sealed.append(
            Spoken(
                run_id=self.run_id,
                answer=self._answer,
                turn=self._place[0],
                round=self._place[1],
                text="".join(self._texts),
                dropped=self._dropped,
                ended=ended,
            )
        )
        self._texts.clear()
        self._dropped = 0


class TextSender:
    """Posts what the runs of a host say, with one call in flight at most.

    The first piece of an answer and its end leave at once; in between, what comes in
    `GATHER_S` goes as one. What cannot be sent is dropped, and counted.

    Args:
        reach: Finds the stream actor.
        unwanted: Told of runs that nobody reads any more.
    """

    def __init__(self, reach: Reach, unwanted: Callable[[str], None]) -> None:
        self._reach = reach
        self._unwanted = unwanted
        self._stream = ""
        self._target: Reached | None = None
        self._waiting: list[Speaker] = []
        self._over: list[RunOver] = []
        self._spoke: set[str] = set()
        self._urgent = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._closed = False
        self.numbers = count(1)
        """Numbers for the answers that are begun here."""

    def follow(self, stream: str) -> None:
        """Post to the stream actor of this name from now on."""
        if stream != self._stream:
            self._stream, self._target = stream, None

    def speaker(self, run_id: str, hop: tuple[int, int]) -> Speaker:
        """What takes the text of a hop of a run."""
        self._spoke.add(run_id)
        return Speaker(self, run_id, hop)

    def over(self, run_id: str) -> None:
        """A run is over, or goes on elsewhere."""
        if run_id in self._spoke:
            self._spoke.discard(run_id)
            self._over.append(RunOver(run_id))
            self._begin()

    def wake(self, speaker: Speaker, *, urgent: bool) -> None:
        """A speaker has something to send."""
        if urgent:
            self._urgent.set()
        if not speaker.waits:
            speaker.waits = True
            self._waiting.append(speaker)
            self._begin()

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        if self._sending is not None:
            self._sending.cancel()

    def _begin(self) -> None:
        if self._sending is None and not self._closed:
            self._sending = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._waiting or self._over:
                self._urgent.clear()
                await self._send()
                try:
                    async with asyncio.timeout(GATHER_S):
                        await self._urgent.wait()
                except TimeoutError:
                    pass  # nothing hurries: what has gathered goes
        finally:
            self._sending = None

    async def _send(self) -> None:
        speakers, self._waiting = self._waiting, []
        over, self._over = self._over, []
        taken: list[tuple[Speaker, Spoken]] = []
        for speaker in speakers:
            speaker.waits = False
            taken.extend((speaker, spoken) for spoken in speaker.take())
        try:
            if self._target is None:
                self._target = await self._reach(self._stream)
            batch: list[Spoken | RunOver] = [spoken for _, spoken in taken]
            for run_id in await self._target.call(TextStreams.receive, [*batch, *over]):
                self._unwanted(run_id)
        except (UnreachableError, ActorLostError):
            self._target = None
            for speaker, spoken in taken:
                speaker.lost(spoken.dropped + len(spoken.text))
            await asyncio.sleep(RETRY_S)
        except Exception:
            # A fault of ours, there; runs go on without their text.
            logger.exception("%d pieces of text were not taken", len(taken))
