"""Which agent runs a task, made ready to travel."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from harness_actors.agents import Program, with_contract
from harness_actors.batch.agent_file import LoadedAgent, load_agent_file
from harness_actors.batch.hiding import Hidden
from harness_actors.batch.tasks import Task, with_limits
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import BadInputError, HarnessError
from harness_actors.ports import Agent
from harness_actors.records import RunSpec, WorkspaceSpec
from harness_actors.setups import Setup

ChooseAgent = Callable[[Task], LoadedAgent]
"""Names the agent of a task that names none itself."""


@dataclass(frozen=True, kw_only=True)
class ReadyAgent:
    """An agent packed once for all of its tasks.

    Attributes:
        program: What is sent to the actors.
        config: Settings of its runs, before a task's own limits.
        workspace: A folder that its runs begin with a copy of; None for an empty one.
        may_wait: Its runs can be answered that wait for their user.
    """

    program: Program
    config: HarnessConfig
    workspace: str | None = None
    may_wait: bool = True

    def setup_for(self, task: Task) -> Setup:
        """What a task is run with, its own limits and workspace left out: these are its own."""
        return self.own_setup if self.workspace and not task.workspace else self.bare_setup

    @cached_property
    def own_setup(self) -> Setup:
        """What tasks are run with that take its workspace."""
        return self.program.setup.within(self.config, workspace=self.workspace)

    @cached_property
    def bare_setup(self) -> Setup:
        """What tasks are run with that have a workspace of their own, or none."""
        return self.program.setup.within(self.config)

    def spec(
        self, task: Task, *, run_id: str, folder: Path, hidden: Hidden, note: dict[str, object]
    ) -> RunSpec:
        """A run of a task.

        Args:
            task: What is to be done.
            run_id: Name of the run.
            folder: Where it works, if it needs to.
            hidden: What its commands are not to see then.
            note: Metadata by which the run is found again.
        """
        workspace = None
        if self.works_in_folder(task):
            workspace = WorkspaceSpec(
                path=str(folder),
                source=self.source_for(task),
                covered=None if hidden.folder is None else str(hidden.folder),
                must_be_covered=hidden.required,
            )
        return self.program.spec(
            task.task,
            self.config_for(task),
            run_id=run_id,
            workspace=workspace,
            metadata=note,
            made_with=self.setup_for(task).made_with,
        )

    def config_for(self, task: Task) -> HarnessConfig:
        """The settings of its run: limits and contract are the task's where it has them."""
        config = with_limits(self.config, task.limits)
        return config if task.contract is None else with_contract(config, task.contract or None)

    def held_for(self, task: Task) -> "ReadyAgent":
        """This agent with the functions that the contract of a task asks by name.

        Raises:
            BadInputError: No run of this agent could meet the contract of the task.
            ConfigError: That asks what nobody could answer; or no run of an agent to which it
                delegates could meet what that is held to.
        """
        config = self.config_for(task)
        has_contract = task.contract is not None or self.config.contract is not None
        if has_contract and not self.may_wait:
            self.program.check_unattended(config)
        program = self.program.held_to(
            config,
            has_workspace=self.works_in_folder(task),
            beside=None if task.beside is None else Path(task.beside),
        )
        return self if program is self.program else replace(self, program=program)

    def source_for(self, task: Task) -> str | None:
        """The folder that the workspace of a task begins as a copy of; None for an empty one."""
        source = task.workspace or self.workspace
        return None if source is None else str(Path(source).resolve())

    def works_in_folder(self, task: Task) -> bool:
        """Whether a run of a task has a workspace."""
        # Without tools nothing can come into a folder that was empty.
        source = task.workspace or self.workspace
        return source is not None or bool(self.program.workflow.agent.tools)


class Agents:
    """The agents of a batch: the one of the batch, and those of files that tasks name.

    Args:
        choose: Names the agent of tasks that name none.
        load: Reads an agent file.
        check: Refuses an agent whose model cannot be asked now; None where all can.
        workspace: A folder for tasks and agents that name none; None for an empty one.
        budget_usd: What all runs may cost together; None for no bound.
        may_wait: Runs can be answered that wait for their user.
    """

    def __init__(
        self,
        choose: ChooseAgent,
        *,
        load: Callable[[Path], LoadedAgent] = load_agent_file,
        check: Callable[[LoadedAgent], None] | None = None,
        workspace: str | None = None,
        budget_usd: float | None = None,
        may_wait: bool = True,
    ) -> None:
        self._budget_usd = budget_usd
        self._may_wait = may_wait
        self._choose = choose
        self._load = load
        self._check = check
        self._workspace = workspace
        self._ready: dict[int, tuple[LoadedAgent, ReadyAgent]] = {}
        self._files: dict[str, LoadedAgent] = {}

    @classmethod
    def of(
        cls,
        agent: Agent | Workflow,
        config: HarnessConfig,
        *,
        workspace: str | None = None,
        budget_usd: float | None = None,
        may_wait: bool = True,
    ) -> "Agents":
        """One agent for all tasks that name none.

        Raises:
            ConfigError: A bound on its cost would bound nothing, or it may wait where nobody
                could answer.
            AgentCodeError: A part of it cannot be sent to another process.
        """
        loaded = LoadedAgent(agent=agent, config=config)
        agents = cls(
            lambda _: loaded, workspace=workspace, budget_usd=budget_usd, may_wait=may_wait
        )
        agents.pack(loaded)
        return agents

    def pack(self, *agents: LoadedAgent) -> None:
        """Pack agents before anything runs, so that what cannot travel is told at once.

        Raises:
            AgentCodeError: A part of one cannot be sent to another process.
        """
        for loaded in agents:
            _ = self._made_ready(loaded).program.blob

    def for_task(self, task: Task) -> ReadyAgent:
        """The agent of a task.

        Raises:
            HarnessError: Its agent file is at fault, the agent cannot be packed, a bound on
                its cost would bound nothing, or it may wait where nobody could answer.
        """
        return self._made_ready(self._loaded(task))

    @property
    def can_all_be_asked(self) -> bool:
        """No task needs to be looked at by `check` before it is begun."""
        return self._check is None

    def check(self, task: Task) -> None:
        """Refuse a task that needs a model which cannot be asked now.

        Raises:
            HarnessError: It says why; or its agent file is at fault.
        """
        if self._check is not None:
            self._check(self._loaded(task))

    def contract_faults(self, task: Task) -> tuple[str, ...]:
        """Why no run could meet the contract that a task has of its own; empty where one could.

        What else is wrong with its agent is not told here.
        """
        if not task.contract:
            return ()
        try:
            agent = self.for_task(task)
        except HarnessError:
            return ()
        try:
            agent.held_for(task)
        except BadInputError as error:
            return tuple(f"contract.{fault}" for fault in error.faults)
        return ()

    def setup_for(self, task: Task) -> Setup | None:
        """What a task is run with; None where its agent file is at fault."""
        try:
            return self.for_task(task).setup_for(task)
        except HarnessError:
            return None

    def source_for(self, task: Task) -> str | None:
        """As of `ReadyAgent`; None, too, where the task's agent file is at fault."""
        try:
            return self.for_task(task).source_for(task)
        except HarnessError:
            return None

    def work_in_folder(self, task: Task) -> bool:
        """Whether runs of a task have a workspace; so, too, where its agent file is at fault."""
        try:
            return self.for_task(task).works_in_folder(task)
        except HarnessError:
            return True

    def have(self, setups: Collection[str]) -> bool:
        """Whether all of these are set-ups of the agents so far."""
        ours = {
            setup.hash
            for _, ready in self._ready.values()
            for setup in (ready.own_setup, ready.bare_setup)
        }
        return ours.issuperset(setups)

    def secrets(self) -> dict[str, str]:
        """Keys that were given in code, of all agents so far, by name."""
        return {
            name: value
            for _, ready in self._ready.values()
            for name, value in ready.program.secrets.items()
        }

    def _loaded(self, task: Task) -> LoadedAgent:
        if task.agent is None:
            return self._choose(task)
        if task.agent not in self._files:
            self._files[task.agent] = self._load(Path(task.agent))
        return self._files[task.agent]

    def _made_ready(self, loaded: LoadedAgent) -> ReadyAgent:
        # By identity: agents need not be hashable. The agent is kept, so its id stays its own.
        if id(loaded) not in self._ready:
            program = Program.of(loaded.agent)
            program.check_bounds(loaded.config, budget_usd=self._budget_usd)
            if not self._may_wait:
                # A task may lift the contract of its agent, and with it the questions of that.
                program.check_unattended(replace(loaded.config, contract=None))
            # What no run could meet is told now; whether one has a workspace is its task's matter.
            program = program.held_to(loaded.config, has_workspace=True)
            workspace = loaded.workspace or self._workspace
            ready = ReadyAgent(
                program=program,
                config=loaded.config,
                workspace=workspace,
                may_wait=self._may_wait,
            )
            self._ready[id(loaded)] = (loaded, ready)
        return self._ready[id(loaded)][1]
