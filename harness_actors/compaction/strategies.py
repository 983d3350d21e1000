"""The strategies of a run: the shipped ones, which take the oldest first, and an agent's own."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction

from harness_actors.compaction.groups import STEPS, Group
from harness_actors.config import STRATEGIES
from harness_actors.conversation import Conversation
from harness_actors.errors import ConfigError, error_facts
from harness_actors.plan import Shown
from harness_actors.plan.view import with_calls
from harness_actors.ports import Candidate, Strategy

PIECE = 200
"""Groups that are made candidates in one go."""


@dataclass(frozen=True, slots=True)
class OldestFirst:
    """A shipped strategy: all may be shown so, the oldest first.

    Args:
        action: What becomes of them, which is also its name.
    """

    action: str

    @property
    def name(self) -> str:
        return self.action

    def choose(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates


SHIPPED = tuple(map(OldestFirst, STRATEGIES))


def step_of(strategy: Strategy) -> int:
    """What becomes of what it names, a place in `STEPS`."""
    return 1 + STRATEGIES.index(strategy.action)


def named(names: Sequence[str] | None, own: Sequence[Strategy]) -> tuple[Strategy, ...]:
    """The strategies of a run, in the order in which they have their turn.

    Args:
        names: As settings have them; None for all that there are.
        own: The agent's own; with the same action, they have their turn before the shipped ones.

    Returns:
        The milder ones first. Names that nobody knows are left out: see `check_names`.
    """
    known = {one.name: one for one in (*own, *SHIPPED)}
    found = [known[name] for name in (known if names is None else names) if name in known]
    return tuple(sorted(found, key=step_of))


def check_own(own: object) -> tuple[Strategy, ...]:
    """The strategies of an agent, as it was given them.

    Raises:
        ConfigError: They are no list; one is none, has the name of another, or does what nobody
            knows.
    """
    if isinstance(own, str) or not isinstance(own, Iterable):
        raise ConfigError("strategies", f"must be a list of strategies, not {own!r:.80}")
    given = tuple(own)
    names: list[object] = list(STRATEGIES)
    for one in given:
        if isinstance(one, type) or not callable(getattr(one, "choose", None)):
            problem = f"must have a name, an action and a method choose, and {one!r:.80} has not"
            raise ConfigError("strategies", problem)
        name, action = getattr(one, "name", None), getattr(one, "action", None)
        if not isinstance(name, str) or not name or name in names:
            problem = f"must each have a name of its own, none of {', '.join(STRATEGIES)}"
            raise ConfigError("strategies", f"{problem}, not {name!r:.80}")
        if action not in STRATEGIES:
            problem = f"action of {name!r} must be one of {', '.join(STRATEGIES)}, not {action!r}"
            raise ConfigError("strategies", problem)
        if iscoroutinefunction(one.choose):
            raise ConfigError("strategies", f"choose of {name!r} must answer at once, not be async")
        names.append(name)
    return given


def check_names(names: Sequence[str] | None, own: Sequence[Strategy]) -> None:
    """Refuse settings that name a strategy which is not there.

    Raises:
        ConfigError: One is not.
    """
    known = [*STRATEGIES, *(one.name for one in own)]
    if missing := [name for name in names or () if name not in known]:
        problem = f"there is no strategy {missing[0]!r}; there are {', '.join(known)}"
        raise ConfigError("compaction.strategies", problem)


class Choosing:
    """Asks a strategy which groups may be taken, and in which order.

    Args:
        log: The conversation.
        shown: What the results of tools are worth.
    """

    def __init__(self, log: Conversation, shown: Shown) -> None:
        self._log, self._shown = log, shown
        self.problems: list[tuple[str, str]] = []
        """Names of strategies that failed, and how: room is made without them."""

    def ask(
        self, strategy: Strategy, groups: Sequence[Group]
    ) -> Generator[None, None, Sequence[Group]]:
        """Ask it, in pieces.

        Returns:
            Those that it names, in its order; none where it fails.
        """
        if isinstance(strategy, OldestFirst):
            # They are not even looked at.
            return groups
        step = step_of(strategy)
        may_be = {group.start: group for group in groups if group.step < step}
        candidates: list[Candidate] = []
        for place, group in enumerate(may_be.values()):
            if place % PIECE == 0:
                yield
            candidates.append(self._candidate(group))
        try:
            starts = [_start_of(one, may_be) for one in strategy.choose(tuple(candidates))]
        except Exception as error:  # noqa: BLE001 - whatever a user's own code raises
            facts = error_facts(error)
            self.problems.append((strategy.name, f"{facts['type']}: {facts['message']}"))
            return ()
        return [may_be[start] for start in dict.fromkeys(starts)]

    def _candidate(self, group: Group) -> Candidate:
        return Candidate(
            start=group.start,
            tokens=group.tokens,
            action=STEPS[group.step],
            messages=tuple(with_calls(self._log, group.start, group.end)),
            shown=self._shown,
        )


def _start_of(chosen: object, may_be: Mapping[int, Group]) -> int:
    """Where what was chosen begins.

    Raises:
        ValueError: It is none of those that could be chosen.
    """
    if not isinstance(chosen, Candidate) or chosen.start not in may_be:
        raise ValueError(f"must choose of the candidates that it is given, not {chosen!r:.80}")
    return chosen.start
