"""Which host serves which run, and what each host has of it."""

from collections import deque
from dataclasses import dataclass, field

from harness_actors.coordination.protocol import CUSTOM, QUARANTINE, Slot
from harness_actors.state import AGENT_TURN

LOSSES_BEFORE_QUARANTINE = 2
LOSSES_BEFORE_FAILURE = 3


@dataclass(slots=True)
class Replica:
    """What a host has of a run: its spec, and this many messages of its log.

    Attributes:
        messages: How many.
        plan: Version of the plan that it has; 0 for none.
        is_over: It has let go of what it had, and is sent all of it anew.
    """

    messages: int = 0
    plan: int = 0
    is_over: bool = False


@dataclass(slots=True)
class Router:
    """Spreads runs over the agent turn hosts and keeps each at its own.

    Attributes:
        agent_turns: Number of ordinary agent turn hosts, at least 1.
    """

    agent_turns: int
    _home: dict[str, int] = field(default_factory=dict)
    _load: dict[int, int] = field(default_factory=dict)
    _waiting: deque[str] = field(default_factory=deque)
    _isolated: str | None = None

    def slot_for(self, run_id: str, executor: str, code: str, losses: int, pool: str = "") -> Slot:
        """The host that is to serve the next signal of a run.

        Args:
            run_id: The run.
            executor: Whose turn it is.
            code: Hash of the run's blob if the executor is the user's own, else empty.
            losses: Deaths of executors since the run's last progress.
            pool: Of a child, whose actors serve it; empty of any other run.
        """
        if code:
            return Slot(CUSTOM, code, pool=executor)
        if executor != AGENT_TURN:
            return Slot(executor)
        if losses >= LOSSES_BEFORE_QUARANTINE:
            return Slot(AGENT_TURN, index=QUARANTINE)
        if pool:
            return Slot(AGENT_TURN, pool=pool)
        return Slot(AGENT_TURN, index=self._home_of(run_id))

    def _home_of(self, run_id: str) -> int:
        if run_id not in self._home:
            index = min(range(self.agent_turns), key=lambda at: self._load.get(at, 0))
            self._home[run_id] = index
            self._load[index] = self._load.get(index, 0) + 1
        return self._home[run_id]

    def isolate(self, run_id: str) -> bool:
        """Ask for the quarantine host.

        Returns:
            Whether the run may have it now; otherwise it is handed over by `released`.
        """
        if self._isolated in (None, run_id):
            self._isolated = run_id
            return True
        if run_id not in self._waiting:
            self._waiting.append(run_id)
        return False

    def released(self, run_id: str) -> str | None:
        """The run has left the quarantine host.

        Returns:
            The run that may have it next, or None.
        """
        if run_id in self._waiting:
            self._waiting.remove(run_id)
        if self._isolated != run_id:
            return None
        self._isolated = self._waiting.popleft() if self._waiting else None
        return self._isolated

    def forget(self, run_id: str) -> None:
        """The run is over."""
        index = self._home.pop(run_id, None)
        if index is not None:
            self._load[index] -= 1
