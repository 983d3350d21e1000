"""Conversations: one run of each is served at once, and answers what was said to it alone."""

from dataclasses import dataclass, field

from harness_actors.events import InputAwaited, RunParked
from harness_actors.records import RunAdded, RunChanged
from tests.simulation.ledger import Ledger

TALK_ALONE = "a conversation has one run at once"
REFUSED = "what is refused is refused for its reason"


@dataclass(slots=True, eq=False)
class Wish:
    """A user asks for a run to be served.

    Attributes:
        run_id: The run.
        talk: Its conversation.
        others: Runs of its conversation that were served meanwhile.
        waiting: Those that waited for their user meanwhile.
    """

    run_id: str
    talk: str
    others: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)


class Talking:
    """Watches who is served in each conversation, by what is on disk.

    A run is in service from the record of its submission, or of its taking up, until it is
    parked or ends; that of an earlier command is not, until it is taken up again.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._disk = ledger.disk
        self._served: dict[str, tuple[str, str]] = {}
        """By conversation: the run that is in service, and its command."""
        self._waiting: dict[str, str] = {}
        """By conversation: the run that waits for its user."""
        self._wishes: list[Wish] = []

    # ---- on disk ----------------------------------------------------------------------

    def added(self, entry: RunAdded) -> None:
        """A run begins to be served, or belongs to no command any more."""
        talk, run_id = entry.spec.conversation_id, entry.spec.run_id
        if not entry.command:
            self._leaves(talk, run_id)
            return
        other, command = self._served.get(talk, (run_id, entry.command))
        if other != run_id and command == entry.command:
            self._ledger.broken(TALK_ALONE, f"{run_id} begins while {other} is served")
        self._served[talk] = run_id, entry.command
        if self._waiting.get(talk) == run_id:
            del self._waiting[talk]
        for wish in self._wishes:
            self._note(wish)

    def changed(self, change: RunChanged) -> None:
        """A run said something, parked or ended."""
        talk = self._disk.runs[change.run_id].spec.conversation_id
        served = self._served.get(talk)
        if (
            served is not None
            and served[0] != change.run_id
            and served[1] == self._command()
            and change.delta.messages
        ):
            text = f"{change.run_id} speaks while {served[0]} is served"
            self._ledger.broken(TALK_ALONE, text)
        parked = any(isinstance(event, RunParked) for event in change.delta.events)
        if parked or change.end is not None:
            self._leaves(talk, change.run_id)
        if any(isinstance(event, InputAwaited) for event in change.delta.events):
            self._leaves(talk, change.run_id)
            self._waiting[talk] = change.run_id
            for wish in self._wishes:
                self._note(wish)
        elif change.end is not None and self._waiting.get(talk) == change.run_id:
            del self._waiting[talk]

    def _leaves(self, talk: str, run_id: str) -> None:
        if self._served.get(talk, ("", ""))[0] == run_id:
            del self._served[talk]

    def _command(self) -> str:
        host = self._ledger.coordinator
        return "" if host is None else host._command

    # ---- what is asked for ------------------------------------------------------------

    def asks(self, run_id: str, talk: str) -> Wish:
        """A user asks for a run of a conversation to be served."""
        wish = Wish(run_id, talk)
        self._wishes.append(wish)
        self._note(wish)
        return wish

    def done(self, wish: Wish) -> None:
        """It was answered."""
        self._wishes.remove(wish)

    def _note(self, wish: Wish) -> None:
        served = self._served.get(wish.talk)
        if served is not None and served[0] != wish.run_id:
            wish.others.add(served[0])
        waiting = self._waiting.get(wish.talk, wish.run_id)
        if waiting != wish.run_id:
            wish.waiting.add(waiting)

    def was_busy(self, wish: Wish, waiting: str) -> None:
        """It was refused, because another run of its conversation was served, or waited."""
        if waiting and waiting not in wish.waiting:
            text = f"{wish.run_id} is told that {waiting} waits, which does not"
            self._ledger.broken(REFUSED, text)
        elif not waiting and not wish.others:
            text = f"{wish.run_id} is told that its conversation is busy, and nobody is served"
            self._ledger.broken(REFUSED, text)

    def has_moved_on(self, run_id: str, later: str) -> None:
        """It was refused, because another one has continued what it had begun to say."""
        found = self._disk.who_spoke_behind(run_id)
        if found != later:
            text = f"{run_id} is told that {later} spoke after it, and {found or 'nobody'} did"
            self._ledger.broken(REFUSED, text)
