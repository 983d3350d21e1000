"""The workflow: which executor follows which, and the code of the user's own ones."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from harness_actors.config import HarnessConfig
from harness_actors.errors import ConfigError, WorkflowError
from harness_actors.ports import Agent, Executor
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION

Edges = tuple[tuple[str, str], ...]

DEFAULT_EDGES: Edges = (
    (REPAIR, COMPACTION),
    (COMPACTION, AGENT_TURN),
    (AGENT_TURN, STOP_DECISION),
    (STOP_DECISION, REPAIR),
)
BUILT_IN = (REPAIR, COMPACTION, AGENT_TURN, STOP_DECISION)
ENTRY = REPAIR


@dataclass(frozen=True)
class Workflow:
    """An agent with the graph that its runs go through.

    Attributes:
        agent: The agent.
        edges: Pairs of executor names. An answer goes to the first successor.
        executors: The user's own executors by name, those that replace ours included.
        config: Settings of its runs; None for the defaults, or those of whoever runs it.

    Raises:
        WorkflowError: The graph cannot run: a name is unknown, `repair` leads nowhere,
            or an executor is never reached.
    """

    agent: Agent
    edges: Edges = DEFAULT_EDGES
    executors: Mapping[str, Executor] = field(default_factory=dict)
    config: HarnessConfig | None = None

    def __post_init__(self) -> None:
        known = {*BUILT_IN, *self.executors}
        for edge in self.edges:
            for name in edge:
                if name not in known:
                    raise WorkflowError(name, "not registered; call .register(name, executor)")
        reached, at = set(), ENTRY
        while at not in reached:
            reached.add(at)
            at = successor(self.edges, at)
        for name in self.executors:
            if name not in reached:
                raise WorkflowError(name, "no edge leads to it from 'repair'")
        if STOP_DECISION not in reached:
            raise WorkflowError(STOP_DECISION, "never reached, so no run would end")


def successor(edges: Edges, name: str) -> str:
    """Who gets what `name` answers.

    Raises:
        WorkflowError: No edge begins at `name`.
    """
    for start, end in edges:
        if start == name:
            return end
    raise WorkflowError(name, "no edge leads on from it")


class HarnessWorkflowBuilder:
    """Puts a workflow together from our executors and the user's own.

    Args:
        agent: The agent that its runs have.
        config: Settings of its runs. Where the workflow is run, single fields may be given
            over them, but no other config.

    Raises:
        ConfigError: Something else is given as agent or config.

    >>> from harness_actors.testing import ScriptedModel, an_agent
    >>> HarnessWorkflowBuilder(an_agent()).build().edges[0]
    ('repair', 'compaction')
    """

    def __init__(self, agent: Agent, config: HarnessConfig | None = None) -> None:
        if not hasattr(agent, "model"):
            raise ConfigError("agent", f"must be a ChatAgent, not {agent!r}")
        if config is not None and not isinstance(config, HarnessConfig):
            raise ConfigError("config", f"must be HarnessConfig(...), not {config!r}")
        self._agent = agent
        self.config = config
        self._edges: dict[str, str] = dict(DEFAULT_EDGES)
        self._executors: dict[str, Executor] = {}

    def register(self, name: str, executor: Executor) -> Self:
        """Make an executor known under a name; it needs an edge to be reached.

        Raises:
            WorkflowError: The name is taken.
        """
        if name in BUILT_IN or name in self._executors:
            raise WorkflowError(name, "this name is taken; use .replace(name, executor)")
        _check_executor(name, executor)
        self._executors[name] = executor
        return self

    def add_edge(self, start: str, end: str) -> Self:
        """Send what `start` answers to `end`, in place of where it went before."""
        self._edges[start] = end
        return self

    def insert_after(self, name: str, executor: Executor) -> Self:
        """Put an executor, known by its own `name`, after `name`.

        Raises:
            WorkflowError: Nothing leads on from `name`, or the executor's name is taken.
        """
        end = successor(tuple(self._edges.items()), name)
        # Without a name it is known by its class: the name that is given is its neighbour's.
        _check_executor(getattr(executor, "name", type(executor).__name__), executor)
        self.register(executor.name, executor)
        return self.add_edge(name, executor.name).add_edge(executor.name, end)

    def replace(self, name: str, executor: Executor) -> Self:
        """Put an executor in the place of the one called `name`.

        Raises:
            WorkflowError: There is none of that name.
        """
        if name not in BUILT_IN and name not in self._executors:
            raise WorkflowError(name, "not registered, so there is nothing to replace")
        _check_executor(name, executor)
        self._executors[name] = executor
        return self

    def build(self) -> Workflow:
        """The workflow, to be given to `AgentHarness` in place of an agent.

        Raises:
            WorkflowError: The graph cannot run.
        """
        edges = tuple(self._edges.items())
        return Workflow(self._agent, edges, dict(self._executors), self.config)


def _check_executor(name: str, executor: object) -> None:
    if isinstance(executor, type) or not all(
        hasattr(executor, part) for part in ("name", "reads", "reads_log", "handle")
    ):
        problem = f"must be an executor with name, reads, reads_log and handle, not {executor!r}"
        raise WorkflowError(name, problem)
    handle = executor.handle  # type: ignore[attr-defined]
    if inspect.isroutine(handle) and not inspect.iscoroutinefunction(inspect.unwrap(handle)):
        raise WorkflowError(name, "its handle must be an async function: async def handle(…)")
