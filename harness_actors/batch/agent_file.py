"""`agent.yaml`: the model and the three layers of an agent in one document."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_actors.agents import ChatAgent
from harness_actors.batch.agent_contract import contract_in
from harness_actors.batch.agent_document import (
    AgentFields,
    ModelFields,
    SummarizerFields,
    WorkspaceFields,
    read_aside,
    read_document,
    read_judges,
)
from harness_actors.batch.agent_gates import approvals_of, hooks_of, middleware_of, strategies_of
from harness_actors.batch.agent_output import output_of
from harness_actors.batch.agent_sub_agents import sub_agents_of
from harness_actors.compaction.strategies import check_names
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import BadInputError, ConfigError, ModelSetupError
from harness_actors.ports import Agent, Model, Summarizer, Tool
from harness_actors.subagents import held_below

if TYPE_CHECKING:
    from harness_actors.models import Price

LOCAL_MODEL = "local"


@dataclass(frozen=True, kw_only=True)
class LoadedAgent:
    """An agent with the settings and the folder that its file gives it.

    Attributes:
        agent: The agent, or a workflow around it.
        config: Settings of its runs.
        workspace: A folder that each run begins with a copy of; None for an empty one.
    """

    agent: Agent | Workflow
    config: HarnessConfig = field(default_factory=HarnessConfig)
    workspace: str | None = None

    @property
    def innermost(self) -> Agent:
        """The agent itself, without the workflow around it."""
        return self.agent.agent if isinstance(self.agent, Workflow) else self.agent

    @property
    def brings_folder(self) -> bool:
        """Whether its runs work in a folder also where none is named."""
        return self.workspace is not None or bool(self.innermost.tools)


@dataclass(frozen=True, kw_only=True)
class AgentOverrides:
    """What a command line says over any agent file.

    Attributes:
        model: Id of the model; None leaves the file's.
        base_url: Endpoint of the model; None leaves the file's.
        model_settings: Fields of each request, over the file's one by one.
        harness: Settings of the harness, over the file's one by one, `limits` too.
    """

    model: str | None = None
    base_url: str | None = None
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    harness: Mapping[str, Any] = field(default_factory=dict)


def load_agent_file(path: Path, overrides: AgentOverrides | None = None) -> LoadedAgent:
    """The agent that a file describes.

    Args:
        path: A YAML file of one document; its paths and modules are looked for beside it.
        overrides: What takes precedence over it.

    Raises:
        BadInputError: It cannot be read, or a field, a tool or a folder is at fault.
        ConfigError: A setting is out of range, or of a part that is not built yet.
    """
    over = overrides or AgentOverrides()
    given, beside = read_document(path), path.resolve().parent
    contract = contract_in(given.persona.contract, path)
    if "contract" in given.harness:
        raise ConfigError(f"{path}: harness.contract", "belongs to persona; say persona.contract")
    with _settings_of(f"{path}: harness"):
        merged_config(given.harness)
    model = _model(given, over, path)
    judges = {
        name: _aside(judge, name, given, over, f"{path}: persona.judges.{name}")
        for name, judge in read_judges(given.persona.judges, path).items()
    }
    tools = [_find(name, beside, path) for name in given.environment.tools]
    agent = ChatAgent(
        model=model,
        instructions=given.persona.instructions,
        tools=tools,
        name=path.stem,
        hooks=hooks_of(given.persona.hooks, beside, path),
        middleware=middleware_of(given.persona.middleware, beside, path),
        capabilities=given.environment.capabilities,
        judges=judges,
        output_type=output_of(given.persona.output_type, beside, path),
        summarizer=_summarizer(given, over, path),
        strategies=strategies_of(given.persona.strategies, beside, path),
    )
    delegates = sub_agents_of(
        given.persona.sub_agents,
        dict(zip(given.environment.tools, tools, strict=True)),
        lambda model, section: _aside(model, "", given, over, f"{path}: {section}"),
        path,
        beside,
    )
    with _settings_of(f"{path}: persona"):
        customs = held_below(agent, delegates, beside=beside)
        persona = given.persona
        approvals = approvals_of(persona.approvals, persona.autonomy, tools, delegates)
        predicates = {**agent.predicates, **customs}
        agent = replace(agent, sub_agents=delegates, predicates=predicates, approvals=approvals)
    if contract is not None:
        agent = contract.put_to(agent, beside)
    config = merged_config(given.harness, over.harness)
    if config.compaction is not None:
        with _settings_of(f"{path}: harness"):
            check_names(config.compaction.strategies, agent.strategies)
    return LoadedAgent(
        agent=agent,
        config=config if contract is None else replace(config, contract=contract.plain),
        workspace=_template(given.environment.workspace, beside, path),
    )


def _aside(
    model: ModelFields, name: str, given: AgentFields, over: AgentOverrides, source: str
) -> Model:
    """A model that is asked for something of its own; it is where the agent's is, if none says."""
    with _settings_of(source) if over.base_url is None else nullcontext():
        return make_model(
            model.id or name,
            base_url=over.base_url or model.base_url or given.model.base_url,
            # At the agent's endpoint it has the agent's key.
            key_name=model.key_name or (None if model.base_url else given.model.key_name),
            settings=model.settings,
            price=_price(model, None),
            structured_output=model.structured_output,
            bounds=model.bounds,
            source=source,
        )


def _summarizer(given: AgentFields, over: AgentOverrides, path: Path) -> Summarizer | None:
    """Who summarizes long conversations; None where no model is asked for that."""
    if given.persona.summarizer is None:
        return None
    from harness_actors.compaction.chat_summarizer import ChatClientSummarizer

    section = "persona.summarizer"
    fields = read_aside(given.persona.summarizer, SummarizerFields, section, path)
    if fields.id is None:
        raise BadInputError(str(path), (f"{section}: must have the id of a model",))
    model = _aside(fields, fields.id, given, over, f"{path}: {section}")
    return ChatClientSummarizer(model, instructions=fields.instructions)


def _model(given: AgentFields, over: AgentOverrides, path: Path) -> Model:
    """The model of a file, or the chain of its models; a flag that names one takes its place."""
    if given.models is None:
        return _made(given.model, over, path, "model")
    if over.model is not None:
        return _made(ModelFields(), over, path, "model")
    if over.base_url is not None:
        fault = f"{path} has {len(given.models)} models; name the one that is there by --model"
        raise BadInputError("--base-url", (fault,))
    from harness_actors.models import Fallback, ModelChain

    several = [_made(one, over, path, f"models.{at}") for at, one in enumerate(given.models)]
    with _settings_of(str(path), joined=": "):
        on = given.fallback
        fallback = None if on is None else Fallback(on=tuple(on))  # type: ignore[arg-type]
        chain = ModelChain(several, fallback)
    return chain if len(several) > 1 else several[0]


def _made(given: ModelFields, over: AgentOverrides, path: Path, section: str) -> Model:
    with _settings_of(f"{path}: {section}") if over.base_url is None else nullcontext():
        return make_model(
            over.model or given.id,
            base_url=over.base_url or given.base_url,
            key_name=given.key_name,
            settings={**given.settings, **over.model_settings},
            price=_price(given, over.model),
            structured_output=given.structured_output,
            # Of the file's own model, and of no other one that a flag names.
            bounds=given.bounds if over.model in (None, given.id) else None,
            source=str(path) if section == "model" else f"{path}: {section}",
        )


@contextmanager
def _settings_of(section: str, *, joined: str = ".") -> Iterator[None]:
    """Name the section of the file whose setting is at fault."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{section}{joined}{error.field}", error.problem) from error


def merged_config(*layers: Mapping[str, Any]) -> HarnessConfig:
    """Settings in layers, a later one over an earlier one, `limits` field by field.

    Raises:
        ConfigError: A setting is unknown or out of range.
    """
    settings: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = settings.get(name)
            both = isinstance(value, Mapping) and isinstance(below, Mapping)
            settings[name] = {**below, **value} if both else value  # type: ignore[dict-item]
    return HarnessConfig.from_mapping(settings)


def make_model(
    name: str | None,
    *,
    base_url: str | None = None,
    key_name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    price: "Price | None" = None,
    structured_output: bool | None = None,
    bounds: Mapping[str, Any] | None = None,
    source: str = "--model",
) -> Model:
    """The model of an id: ``local`` is the embedded one, all others speak over HTTP.

    Args:
        name: The id.
        base_url: Endpoint of a model that speaks over HTTP; None for the usual one.
        key_name: The environment variable with its key; None for the usual one.
        settings: Fields of each request, such as ``temperature``.
        price: What its tokens cost; None for the list price. The embedded model is free.
        structured_output: As of `OpenAIModel`; the embedded model has none.
        bounds: `timeout_s` and `max_retries` of a model that speaks over HTTP.
        source: Where the id should have been given, for the error.

    Raises:
        BadInputError: There is no id, or an embedded model of this name.
        ConfigError: The model does not take a setting.
        ModelSetupError: The embedded model is not installed.
    """
    if not name:
        example = "for example --model gpt-4.1-mini, or --model local for the embedded one"
        raise BadInputError(source, (f"no model is named; {example}",))
    if name == LOCAL_MODEL or name.startswith(f"{LOCAL_MODEL}/"):
        if bounds:
            problem = f"{', '.join(bounds)}: the embedded model has none; it is at no provider"
            raise BadInputError(source, (problem,))
        return _local_model(name, settings, source)
    from harness_actors.models import OpenAIModel

    return OpenAIModel(
        name,
        base_url=base_url,
        key_name=key_name,
        settings=settings,
        price=price,
        structured_output=structured_output,
        **(bounds or {}),
    )


def _price(given: ModelFields, asked: str | None) -> "Price | None":
    """The price of the file; that of its own model, and of no other one that a flag names."""
    if given.price is None or asked not in (None, given.id):
        return None
    from harness_actors.models import Price

    return Price(given.price.input, given.price.cached_input, given.price.output)


def _local_model(name: str, settings: Mapping[str, Any] | None, source: str) -> Model:
    from harness_actors.models import LocalModel
    from harness_actors.models.local_server import INSTALL_SERVER, find_weights

    if name not in (LOCAL_MODEL, LocalModel.name):
        known = f"{LOCAL_MODEL!r}, which is {LocalModel.name!r}"
        raise BadInputError(source, (f"no embedded model {name!r}; there is {known}",))
    # Here, where it is told before anything runs, and not by each run.
    find_weights()
    if find_spec("xllamacpp") is None:
        raise ModelSetupError(name, f"not installed: {INSTALL_SERVER}")
    return LocalModel(settings=settings)


def _find(name: str, beside: Path, path: Path) -> Tool:
    from harness_actors.tools import find_tool

    try:
        return find_tool(name, beside=beside)
    except ConfigError as error:
        raise BadInputError(str(path), (f"environment.tools: {error.problem}",)) from error


def _template(workspace: WorkspaceFields | None, beside: Path, path: Path) -> str | None:
    if workspace is None:
        return None
    folder = (beside / workspace.from_).resolve()
    if not folder.is_dir():
        fault = f"environment.workspace.from: there is no folder {str(folder)!r}"
        raise BadInputError(str(path), (fault,))
    return str(folder)
