"""From flags to an agent."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from harness_actors.errors import BadInputError

if TYPE_CHECKING:
    from harness_actors.batch.agent_file import AgentOverrides, LoadedAgent
    from harness_actors.batch.agents import Agents
    from harness_actors.batch.tasks import Task
    from harness_actors.ports import Model

GENERAL_INSTRUCTIONS = (
    "You do the task that the user gives you, step by step, until it is done. "
    "Use your tools to look and to act; do not guess what you can look up."
)


@dataclass(frozen=True, kw_only=True)
class AgentFlags:
    """What the flags say about the agent; None where a flag was not given.

    Attributes:
        address: Which Ray; actors of one that was there before may have keys of their own.
    """

    agent: Path | None = None
    model: str | None = None
    base_url: str | None = None
    settings: tuple[str, ...] = ()
    workspace: Path | None = None
    contract: Path | None = None
    max_turns: int | None = None
    token_limit: int | None = None
    cost_limit: float | None = None
    time_limit: float | None = None
    working_limit: float | None = None
    budget: float | None = None
    on_question: str | None = None
    address: str | None = None

    def load(self, *, with_tools: bool) -> "LoadedAgent":
        """The agent of ``--agent``, or a general one on ``--model``.

        Args:
            with_tools: Give a general agent the coding tools.

        Raises:
            BadInputError: A file or a flag is at fault, no model is named, or there is no
                key for it.
            ConfigError: A setting is out of range or of a part that is not built.
        """
        loaded = self._loaded(with_tools)
        self._check_key(loaded)
        if self.contract is None:
            return loaded
        from harness_actors.batch.agent_contract import with_contract_file

        has_workspace = self.workspace is not None or loaded.brings_folder
        return with_contract_file(loaded, self.contract, has_workspace=has_workspace)

    def load_file(self, path: Path) -> "LoadedAgent":
        """The agent of a file, under these flags; whether it has a key is not looked at.

        Raises:
            HarnessError: As `load`.
        """
        from harness_actors.batch.agent_file import load_agent_file

        if path not in self._files:
            loaded = load_agent_file(path, self.overrides)
            self._check_bounds(loaded, f"{path}: harness.limits.cost_usd")
            self._files[path] = loaded
        return self._files[path]

    def agents(self, *, needed: bool) -> "Agents":
        """The agents of a batch: files that tasks name are read under the same flags.

        One without a key is refused where a task needs it: what is done asks no model.

        Args:
            needed: Some tasks name no agent of their own.

        Raises:
            HarnessError: As `load`, and where an agent cannot be sent to another process.
        """
        from harness_actors.batch.agents import Agents

        kinds = (False, True) if needed else ()
        loaded = {with_tools: self._loaded(with_tools) for with_tools in kinds}
        workspace = self.workspace_folder()

        def choose(task: "Task") -> "LoadedAgent":
            return loaded[workspace is not None or task.workspace is not None]

        lacking = any(map(self._key_fault, (*loaded.values(), *self._files.values())))
        check = self._check_key if lacking else None
        agents = Agents(
            choose,
            load=self.load_file,
            check=check,
            workspace=workspace,
            budget_usd=self.budget,
        )
        agents.pack(*loaded.values())
        return agents

    def workspace_folder(self) -> str | None:
        """The folder of ``--workspace``.

        Raises:
            BadInputError: It is not a folder.
        """
        if self.workspace is None:
            return None
        if not self.workspace.is_dir():
            raise BadInputError("--workspace", (f"there is no folder {str(self.workspace)!r}",))
        return str(self.workspace.resolve())

    @cached_property
    def overrides(self) -> "AgentOverrides":
        """What the flags say over any agent file.

        Raises:
            BadInputError: A ``-M`` is not of the form ``KEY=VALUE``.
        """
        from harness_actors.batch.agent_file import AgentOverrides

        limits = {
            "tokens": self.token_limit,
            "cost_usd": self.cost_limit,
            "time_s": self.time_limit,
            "working_s": self.working_limit,
        }
        single = {"max_turns": self.max_turns, "on_question": self.on_question}
        harness: dict[str, Any] = {
            name: value for name, value in single.items() if value is not None
        }
        if given := {name: value for name, value in limits.items() if value is not None}:
            harness["limits"] = given
        return AgentOverrides(
            model=self.model,
            base_url=self.base_url,
            model_settings=dict(map(_setting, self.settings)),
            harness=harness,
        )

    @cached_property
    def _files(self) -> "dict[Path, LoadedAgent]":
        """The agents of the files that were read."""
        return {}

    def _loaded(self, with_tools: bool) -> "LoadedAgent":
        if self.agent is not None:
            return self.load_file(self.agent)
        loaded = self._general(with_tools)
        self._check_bounds(loaded, "")
        return loaded

    def _check_key(self, loaded: "LoadedAgent") -> None:
        """Refuse what would fail each run.

        Raises:
            BadInputError: There is no key for its model.
        """
        if fault := self._key_fault(loaded):
            raise BadInputError("--model", (fault,))

    def _key_fault(self, loaded: "LoadedAgent") -> str:
        """Why the model of an agent cannot be asked; empty where it can."""
        from harness_actors.models.chain import models_of

        for model in (one for several in _models_of(loaded) for one in models_of(several)):
            secrets = getattr(model, "secrets", {})
            for name in getattr(model, "key_names", ()):
                if not (os.environ.get(name) or secrets.get(name) or self._joins_a_ray()):
                    fault = f"no key for {model.name!r}: set {name} in the environment"
                    return f"{fault}, or take --model local"
        return ""

    def _check_bounds(self, loaded: "LoadedAgent", setting: str) -> None:
        """Refuse what would bound no run, before anything is run.

        Args:
            loaded: The agent.
            setting: Where its file bounds what a run may cost.
        """
        from harness_actors.models.prices import fault_of, unbounding

        bounds = {
            "--budget": self.budget,
            "--cost-limit": self.cost_limit,
            setting: loaded.config.limits.cost_usd,
        }
        for model in _models_of(loaded):
            if (name := unbounding(model, bounds)) is not None:
                advice = "use --token-limit, or say model.price in an --agent file"
                raise BadInputError(name, (f"{fault_of(model)}; {advice}",))

    def _joins_a_ray(self) -> bool:
        named = self.address not in (None, "auto", "local")
        return named or bool(os.environ.get("RAY_ADDRESS"))

    def _general(self, with_tools: bool) -> "LoadedAgent":
        from harness_actors.agents import ChatAgent
        from harness_actors.batch.agent_file import LoadedAgent, make_model, merged_config
        from harness_actors.tools import coding_tools

        model = make_model(
            self.model, base_url=self.base_url, settings=self.overrides.model_settings
        )
        agent = ChatAgent(
            model=model,
            instructions=GENERAL_INSTRUCTIONS,
            tools=coding_tools() if with_tools else (),
        )
        return LoadedAgent(agent=agent, config=merged_config(self.overrides.harness))


def _models_of(loaded: "LoadedAgent") -> "Iterator[Model]":
    """The models of an agent, and of those to which it delegates."""
    from harness_actors.subagents import models_below

    yield loaded.innermost.model
    yield from models_below(loaded.innermost)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadInputError("-M", (f"must be KEY=VALUE, such as temperature=0, not {text!r}",))
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError:
        return name, value
    except RecursionError:
        raise BadInputError("-M", (f"{name}: it is nested too deep",)) from None
