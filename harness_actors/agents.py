"""What a user hands to the harness: an agent, or a workflow around one, made ready to travel."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.packing import pack
from harness_actors.chat_agent import ARTIFACT_READER as ARTIFACT_READER
from harness_actors.chat_agent import ChatAgent as ChatAgent
from harness_actors.chat_agent import fitted as fitted
from harness_actors.chat_agent import with_hooks as with_hooks
from harness_actors.chat_agent import with_output_type as with_output_type
from harness_actors.compaction.strategies import check_names, check_own, named
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import DEFAULT_EDGES, Workflow
from harness_actors.errors import BadInputError, ConfigError
from harness_actors.executors import Compaction
from harness_actors.messages import Message, check_plain
from harness_actors.models.chain import models_of
from harness_actors.models.prices import check_cost_bounds
from harness_actors.models.windows import window_of
from harness_actors.outputs import OutputType
from harness_actors.policies import Hooks, offered_tools
from harness_actors.ports import Agent, AskingTool, Model, Strategy
from harness_actors.records import MadeWith, RunSpec, WorkspaceSpec
from harness_actors.setups import Setup, setup_of
from harness_actors.state import COMPACTION
from harness_actors.stores.conversations import RequestHead, request_name
from harness_actors.subagents import agent_at, check_held, delegates_of, guidance_of, models_below
from harness_actors.turn.contract_questions import asked_first


@dataclass(frozen=True)
class Program:
    """A workflow made ready to travel: packed once, run many times."""

    workflow: Workflow
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Keys by name, as given in code or found here; others are looked up where they are needed."""

    @classmethod
    def of(cls, agent: Agent | Workflow) -> "Program":
        """The program of an agent, or of a workflow around one.

        Raises:
            ConfigError: Its `output_type` is no type, or the workflow has a compaction of its own
                that would not ask the agent's strategies.
        """
        if isinstance(agent, Workflow):
            # Settings are those of each run: with them, one agent would be several.
            workflow = replace(agent, config=None) if agent.config is not None else agent
        else:
            workflow = Workflow(agent, DEFAULT_EDGES)
        workflow = with_strategies(workflow)
        # What is no type is told here, of agents of the user's own class, too.
        OutputType.of(getattr(workflow.agent, "output_type", None))
        secrets: dict[str, str] = {}
        for model in _models_of(workflow.agent):
            # A Ray of our own does not have them: see `joining.withheld`.
            names = (name for name in getattr(model, "key_names", ()) if os.environ.get(name))
            found = {name: os.environ[name] for name in names}
            secrets |= {**found, **getattr(model, "secrets", {})}
        return cls(workflow, secrets)

    def held_to(
        self,
        config: HarnessConfig,
        *,
        has_workspace: bool,
        beside: Path | None = None,
        source: str = "contract",
    ) -> "Program":
        """This program with the functions that the contract of a run asks by name.

        Args:
            config: The settings of the run.
            has_workspace: It works in a folder.
            beside: A folder whose modules are found as well, before all others.
            source: Where the contract stands, for the error.

        Returns:
            This one where it has them, or where there is no contract.

        Raises:
            BadInputError: The contract is at fault, or no run of this agent could meet it; names
                all fields at fault.
            ConfigError: So it is of an agent below it, whose field is named.
        """
        check_held(self.workflow.agent, has_workspace=has_workspace)
        if config.contract is None:
            return self
        from harness_actors.contracts.plain import contract_of

        agent = self.workflow.agent
        known = getattr(agent, "predicates", None) or {}
        contract = contract_of(config.contract, source=source)
        customs, faults = fitted(agent, contract, has_workspace=has_workspace, beside=beside)
        if not faults.found and customs.keys() - known and not isinstance(agent, ChatAgent):
            faults.add("", "an agent of your own class has its functions as its own `predicates`")
        if faults.found:
            raise BadInputError(source, faults.sentences())
        if not customs.keys() - known:
            return self
        assert isinstance(agent, ChatAgent), "it was looked at above"
        holding = replace(agent, predicates={**known, **customs})
        return Program(replace(self.workflow, agent=holding), self.secrets)

    @cached_property
    def blob(self) -> bytes:
        """The pickled workflow.

        Raises:
            AgentCodeError: A part of it cannot be pickled; names the part.
        """
        return self._packed[1]

    @cached_property
    def code(self) -> str:
        """Hash of the blob."""
        return self._packed[0]

    @cached_property
    def setup(self) -> Setup:
        """What it is made of, settings of its runs left out."""
        return setup_of(self.workflow)

    @cached_property
    def stored(self) -> Mapping[str, bytes]:
        """What the journal is to keep of it, by name: the blob, and what readers may know."""
        head = self._request_head()
        kept = {} if head is None else {request_name(self.code): head.encode()}
        return {self.code: self.blob, **kept}

    def _request_head(self) -> RequestHead | None:
        try:
            return _head_of(self.workflow.agent)
        except Exception:  # noqa: BLE001 - a user's own agent, whose runs will say what is wrong
            return None

    @cached_property
    def _packed(self) -> tuple[str, bytes]:
        return pack(self.workflow)

    def check_bounds(self, config: HarnessConfig, *, budget_usd: float | None = None) -> None:
        """Refuse bounds on cost that would bound nothing, and strategies that are not there.

        Args:
            config: Settings of its runs.
            budget_usd: What runs may cost together.

        Raises:
            ConfigError: Nobody knows what its model costs, or a strategy that is named.
        """
        if config.compaction is not None:
            check_names(config.compaction.strategies, self._strategies)
        bounds = {"limits.cost_usd": config.limits.cost_usd, "budget_usd": budget_usd}
        agent = self.workflow.agent
        for model in (agent.model, *models_below(agent)):
            check_cost_bounds(model, bounds)

    def check_unattended(self, config: HarnessConfig) -> None:
        """Refuse runs that would wait for a user who could never answer.

        Args:
            config: Settings of its runs.

        Raises:
            ConfigError: Its runs are to wait for answers, and the agent has a tool that asks or
                approvals that do, or their contract has open questions.
        """
        tools = offered_tools(self.workflow.agent)
        asking = [f"by {tool.spec.name}" for tool in tools if isinstance(tool, AskingTool)]
        approvals = getattr(self.workflow.agent, "approvals", None)
        if approvals is not None and approvals.may_ask:
            asking.append("whether it may make a call")
        asking += [
            f"what its contract wants to know, {one.text!r}" for one in asked_first(config.contract)
        ]
        if asking and config.on_question == "wait":
            problem = (
                f"the agent may ask its user, {asking[0]}, and without a run_dir its runs "
                "could not be answered later; name one, or set it to deny or fail"
            )
            raise ConfigError("on_question", problem)

    def spec(
        self,
        task: str | Sequence[Message],
        config: HarnessConfig,
        *,
        run_id: str | None = None,
        conversation_id: str | None = None,
        workspace: WorkspaceSpec | None = None,
        metadata: Mapping[str, Any] | None = None,
        made_with: MadeWith | None = None,
    ) -> RunSpec:
        """A run of this program.

        Args:
            task: What is to be done: the text of a user message, or messages.
            config: The run's settings.
            run_id: Its name; made up if None.
            conversation_id: A conversation to continue; a new one if None.
            workspace: Where its tools work.
            metadata: Plain JSON values to find again with the run.
            made_with: What it is made with; None says it of this program under `config`.

        Raises:
            WorkflowError: `metadata` holds something else.
            ConfigError: As `check_bounds`.
        """
        self.check_bounds(config)
        check_plain("metadata", metadata or {})
        run_id = run_id or new_run_id()
        given = self._with_strategies(self.with_window(config))
        return RunSpec(
            run_id=run_id,
            conversation_id=conversation_id or run_id,
            task=(Message.user(task),) if isinstance(task, str) else tuple(task),
            code=self.code,
            config=given,
            edges=self.workflow.edges,
            custom=custom_of(self.workflow, given),
            keys=self._keys(),
            workspace=workspace,
            metadata=dict(metadata or {}),
            made_with=made_with or self.setup.within(config).made_with,
            late_hooks=bool(Hooks.given(getattr(self.workflow.agent, "hooks", None)).post_tool),
        )

    def with_window(self, config: HarnessConfig) -> HarnessConfig:
        """The settings with the window that all models of the agent have, where they say none."""
        if config.max_input_tokens is not None:
            return config
        model = self.workflow.agent.model
        windows = [window_of(one.name) for one in models_of(model)]
        return replace(config, max_input_tokens=min(windows))

    def _with_strategies(self, config: HarnessConfig) -> HarnessConfig:
        """The settings with all strategies by name, where the agent has some of its own."""
        compaction = config.compaction
        if not self._strategies or compaction is None or compaction.strategies is not None:
            return config
        names = tuple(one.name for one in named(None, self._strategies))
        return replace(config, compaction=replace(compaction, strategies=names))

    @property
    def _strategies(self) -> Sequence[Strategy]:
        return getattr(self.workflow.agent, "strategies", None) or ()

    def _keys(self) -> tuple[str, ...]:
        keys: dict[str, None] = {}
        for model in _models_of(self.workflow.agent):
            if getattr(model, "needs_local_host", False):
                keys[EMBEDDED_MODEL_URL] = None
            else:
                keys |= dict.fromkeys(getattr(model, "key_names", ()))
        return tuple(keys)


def with_strategies(workflow: Workflow) -> Workflow:
    """A workflow whose compaction asks the strategies of its agent, where that has some.

    Raises:
        ConfigError: They are none, or the workflow has another compaction, or none at all.
    """
    own = check_own(getattr(workflow.agent, "strategies", None) or ())
    if not own:
        return workflow
    if COMPACTION in workflow.executors:
        problem = "the workflow has a compaction of its own, which does not ask them"
        raise ConfigError("strategies", problem)
    if all(end != COMPACTION for _, end in workflow.edges):
        raise ConfigError("strategies", "the workflow has no compaction, which would ask them")
    return replace(workflow, executors={**workflow.executors, COMPACTION: Compaction(own)})


def custom_of(workflow: Workflow, config: HarnessConfig) -> tuple[str, ...]:
    """Names of the executors of a workflow's blob that serve a run.

    Args:
        workflow: As of `with_strategies`.
        config: The run's settings, in which strategies are named.
    """
    names, compaction = tuple(workflow.executors), config.compaction
    asks = compaction is not None and compaction.asks_own_strategies
    if asks or not getattr(workflow.agent, "strategies", None):
        return names
    # Ours in the blob would have nobody to ask.
    return tuple(name for name in names if name != COMPACTION)


def _head_of(agent: Any) -> RequestHead:
    """What stands before the conversation in every request of an agent, and of those below it."""
    from harness_actors.tools.completion import work_complete

    output = OutputType.of(getattr(agent, "output_type", None))
    ending = work_complete if output is None else output.completion(checked=False)
    below, delegates = getattr(agent, "sub_agents", None) or (), delegates_of(agent)
    return RequestHead(
        instructions=str(agent.instructions),
        tools=tuple(tool.spec.as_wire() for tool in (*offered_tools(agent), *delegates)),
        completion=ending.spec.as_wire(),
        asked="" if output is None else output.prompt(agent.model),
        guidance=guidance_of(agent),
        delegates=tuple(tool.spec.name for tool in delegates),
        below={spec.name: _head_of(agent_at(agent, spec.name)) for spec in below},
    )


def _models_of(agent: Agent) -> Iterator[Model]:
    """All models that runs of an agent may ask: its own, its judges, its summarizer's, and those of
    the agents to which it delegates."""
    yield from models_of(agent.model)
    yield from (getattr(agent, "judges", None) or {}).values()
    if (model := getattr(getattr(agent, "summarizer", None), "model", None)) is not None:
        yield from models_of(model)
    for model in models_below(agent):
        yield from models_of(model)


def settings_of(
    agent: Agent | Workflow,
    config: HarnessConfig | None,
    fields: Mapping[str, Any] | None = None,
) -> HarnessConfig:
    """The settings of an agent's runs.

    Args:
        agent: The agent, or a workflow, which may have been built with a config.
        config: The config of whoever runs it; None for that of the workflow.
        fields: Single settings over it, by name.

    Raises:
        ConfigError: Workflow and caller have different configs, or a setting is out of range.
    """
    if config is not None and not isinstance(config, HarnessConfig):
        raise ConfigError("config", f"must be HarnessConfig(...), not {config!r}")
    built = agent.config if isinstance(agent, Workflow) else None
    if None not in (built, config) and built != config:
        problem = (
            "the workflow was built with another config; give it to HarnessWorkflowBuilder or "
            "here, and single settings over it by name, such as max_turns=5"
        )
        raise ConfigError("config", problem)
    base, given = config or built, HarnessConfig.from_mapping(fields or {})
    if base is not None:
        given = replace(base, **{name: getattr(given, name) for name in fields or {}})
    return with_contract(given, given.contract)


def with_contract(config: HarnessConfig, contract: object) -> HarnessConfig:
    """The settings with a contract in place of theirs.

    Args:
        config: The settings.
        contract: A `TaskContract`, or its plain values; None for none.

    Raises:
        BadInputError: Something is wrong with it; names all fields at fault.
        ConfigError: It is no contract.
    """
    held = replace(config, contract=contract)  # type: ignore[arg-type]
    if held.contract is None:
        return held
    from harness_actors.contracts.plain import contract_of

    # All that was left out is in it then, and equal contracts are equal.
    return replace(held, contract=contract_of(held.contract).as_plain())


def new_run_id() -> str:
    """A name for a run, unique everywhere: 12 hex digits."""
    return uuid4().hex[:12]


def check_task(message: object) -> None:
    """Refuse what is no task.

    Raises:
        BadInputError: It is empty, or neither a text nor messages.
    """
    if isinstance(message, str):
        if message.strip():
            return
        problem = "the task is empty"
    elif not isinstance(message, Sequence):
        problem = f"must be a text or a list of `Message`s, not {message!r}"
    elif strange := [part for part in message if not isinstance(part, Message)]:
        problem = f"must be a list of `Message`s, such as Message.user(...); not {strange[0]!r}"
    elif not message:
        problem = "the list of messages is empty"
    else:
        return
    raise BadInputError("message", (problem,))
