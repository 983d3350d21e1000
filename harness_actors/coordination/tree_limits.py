"""The bounds of a run hold for all that it has begun: what they use together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_actors.config import Limits
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import limit_reached
from harness_actors.results import LimitKind, Usage
from harness_actors.state import CHILDREN_USAGE, USAGE, StateDelta
from harness_actors.turn.bounds import is_spent


@dataclass(eq=False)
class TreeLimits:
    """Adds up what trees of runs use, by what is committed, and ends them where it is too much.

    Each run of a tree that is served may make one model call more than its bounds allow.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        dispatch: Tells their hosts.
    """

    _runs: Mapping[str, ActiveRun]
    _dispatch: Dispatch
    _used: dict[str, Usage] = field(default_factory=dict, init=False)
    """By the run at the top: of trees that have more runs in service than that one."""
    _joined: dict[str, set[str]] = field(default_factory=dict, init=False)
    """The children that are counted there, in service or not."""

    def joined(self, child: ActiveRun) -> None:
        """A child is in service."""
        root = child.spec.root
        if root not in self._used and (top := self._runs.get(root)) is not None:
            self._used[root] = _used_by(top)
        if root in self._used and child.spec.run_id not in self._joined.setdefault(root, set()):
            self._joined[root].add(child.spec.run_id)
            self._used[root] += _used_by(child)

    def left(self, run: ActiveRun) -> None:
        """A run is in service no longer; at the top of its tree, nobody is."""
        self._used.pop(run.spec.run_id, None)
        self._joined.pop(run.spec.run_id, None)

    def charge(self, run: ActiveRun, delta: StateDelta) -> None:
        """A run made a change."""
        if not self._used or run.spec.root not in self._used:
            return
        for write in delta.writes:
            if write.key == USAGE.name:
                self._used[run.spec.root] += Usage(**write.value)

    def close_if_spent(self, run: ActiveRun, tree: list[ActiveRun], effects: Effects) -> None:
        """Let the runs of a tree end after the rounds that they are in, where its bounds are
        reached.

        Args:
            run: The run that has used something.
            tree: The runs of its tree that are in service.
            effects: What is to be done.
        """
        used = self._used.get(run.spec.root)
        top = self._runs.get(run.spec.root)
        if used is None or top is None or (kind := reached(top.spec.config.limits, used)) is None:
            return
        for one in tree:
            # Of its calls the one at the top knows itself, and may still say what came of them.
            spared = one is top and kind == "tool_calls"
            if one.closing is None and not spared:
                one.closing = limit_reached(kind, top)
                self._dispatch.stop_at_round(one, effects)

    def has(self, run: ActiveRun) -> bool:
        """Whether a run is one of several of a tree in service."""
        return bool(self._used) and run.spec.root in self._used


def reached(limits: Limits, used: Usage) -> LimitKind | None:
    """The bound that a tree has reached; None where it has reached none."""
    if used.model_calls >= limits.model_calls:
        return "model_calls"
    if limits.tokens is not None and used.tokens >= limits.tokens:
        return "tokens"
    if limits.cost_usd is not None and is_spent(used.cost_usd, limits.cost_usd):
        return "cost"
    if limits.tool_calls is not None and used.tool_calls >= limits.tool_calls:
        return "tool_calls"
    return None


def _used_by(run: ActiveRun) -> Usage:
    values = run.state.values
    own = Usage(**values.get(USAGE.name, {}))
    return own + Usage(**values.get(CHILDREN_USAGE.name, {}))
