"""Who is compared: by name, with what starts it and the environment that it needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to hold the conversations.

    Attributes:
        label: What the table calls it.
        entry: Its coroutine, as ``module:function`` below this package.
        environment: Name of its requirements; None for the environment of this project.
        distributions: Whose versions are told beside its figures.
        prefix: Of the names of the tools that it is given, where it has tools of these names.
        delegates: Its coroutine where conversations delegate; empty where it is not compared.
    """

    label: str
    entry: str
    environment: str | None
    distributions: tuple[str, ...]
    prefix: str = ""
    delegates: str = ""

    @property
    def command(self) -> Sequence[str]:
        """What Python is given to be it, without the work."""
        return ("-m", "benchmarks.peers.contend", f"benchmarks.peers.{self.entry}")

    @property
    def delegating(self) -> "Contender":
        """The same one, where conversations delegate."""
        return replace(self, entry=self.delegates)


def _peer(
    name: str,
    *distributions: str,
    entry: str = "contend",
    label: str = "",
    delegates: bool = False,
) -> Contender:
    module = name.replace("-", "_")
    return Contender(
        label=label or name,
        entry=f"scripts.{module}:{entry}",
        environment=name,
        distributions=(*distributions, "openai"),
        delegates=f"scripts.delegate_{module}:contend" if delegates else "",
    )


BASELINE = "asyncopenai"

CONTENDERS: Mapping[str, Contender] = MappingProxyType(
    {
        BASELINE: Contender(
            label="loop over AsyncOpenAI",
            entry="hand_written:contend",
            environment=None,
            distributions=("openai",),
            delegates="hand_written:delegate",
        ),
        "ray": Contender(
            label="harness_actors on Ray",
            entry="harnessed:on_ray",
            environment=None,
            distributions=("harness_actors", "ray", "openai"),
            delegates="harnessed:on_ray",
        ),
        "local": Contender(
            label="harness_actors, local",
            entry="harnessed:in_one_process",
            environment=None,
            distributions=("harness_actors", "openai"),
            delegates="harnessed:in_one_process",
        ),
        "openai-agents": _peer("openai-agents", "openai-agents", delegates=True),
        "pydantic-ai": _peer("pydantic-ai", "pydantic-ai-slim", delegates=True),
        "langgraph": _peer("langgraph", "langgraph", "langchain"),
        "langgraph-sqlite": _peer(
            "langgraph",
            "langgraph",
            "langchain",
            "langgraph-checkpoint-sqlite",
            entry="contend_with_checkpoints",
            label="langgraph, checkpoints",
        ),
        "agent-framework": _peer(
            "agent-framework", "agent-framework-core", "agent-framework-openai"
        ),
        "autogen-agentchat": _peer("autogen-agentchat", "autogen-agentchat"),
        "inspect-ai": _peer("inspect-ai", "inspect_ai", delegates=True),
        "deepagents": _peer("deepagents", "deepagents", "langgraph", delegates=True),
    }
)


def _killed(label: str, module: str, environment: str, *distributions: str) -> Contender:
    return Contender(
        label=label,
        entry=f"scripts.killed_{module}",
        environment=environment,
        distributions=distributions,
    )


SURVIVORS: Mapping[str, Contender] = MappingProxyType(
    {
        "local": Contender(
            label="harness_actors, local",
            entry="harnessed:be_killed",
            environment=None,
            distributions=("harness_actors",),
        ),
        "langgraph": _killed(
            "langgraph, SQLite checkpoints",
            "langgraph:contend",
            "langgraph",
            *("langgraph", "langgraph-checkpoint-sqlite"),
        ),
        "deepagents": _killed(
            "deepagents, SQLite checkpoints",
            "langgraph:contend_deep",
            "deepagents",
            *("deepagents", "langgraph", "langgraph-checkpoint-sqlite"),
        ),
        "pydantic-ai": _killed(
            "pydantic-ai, DBOS steps",
            "pydantic_ai:contend",
            "pydantic-ai-dbos",
            *("pydantic-ai-slim", "dbos"),
        ),
        "openai-agents": _killed(
            "openai-agents, SQLite session",
            "openai_agents:contend",
            "openai-agents",
            "openai-agents",
        ),
        "agent-framework": _killed(
            "agent-framework, file checkpoints",
            "agent_framework:contend",
            "agent-framework",
            "agent-framework-core",
        ),
        "inspect-ai": _killed(
            "inspect-ai, retry from the log", "inspect_ai:contend", "inspect-ai", "inspect_ai"
        ),
    }
)
"""Those that keep something by which a second process can go on."""


def _finisher(name: str, *distributions: str, entry: str, prefix: str = "") -> Contender:
    return Contender(
        label=f"{name}, with a check" if entry == "checked" else name,
        entry=f"scripts.finish_{name.replace('-', '_')}:{entry}",
        environment=name,
        distributions=(*distributions, "openai"),
        prefix=prefix,
    )


DEFAULTS, CHECKED = "defaults", "checked"


def _finishers(entry: str) -> Mapping[str, Contender]:
    """One coroutine of everybody's script."""
    return MappingProxyType(
        {
            "openai-agents": _finisher("openai-agents", "openai-agents", entry=entry),
            "pydantic-ai": _finisher("pydantic-ai", "pydantic-ai-slim", entry=entry),
            "langgraph": _finisher("langgraph", "langgraph", "langchain", entry=entry),
            "agent-framework": _finisher(
                "agent-framework", "agent-framework-core", "agent-framework-openai", entry=entry
            ),
            "deepagents": _finisher(
                "deepagents", "deepagents", "langchain", entry=entry, prefix="task_"
            ),
            "inspect-ai": _finisher("inspect-ai", "inspect_ai", entry=entry),
        }
    )


FINISHERS: Mapping[str, Mapping[str, Contender]] = MappingProxyType(
    {entry: _finishers(entry) for entry in (DEFAULTS, CHECKED)}
)
"""Those that do tasks that can be checked: as they come, and with a check of the user's own."""


def _summarizer(name: str, module: str, environment: str, *distributions: str) -> Contender:
    return Contender(
        label=name,
        entry=f"scripts.stalls_{module}:contend",
        environment=environment,
        distributions=distributions,
    )


EARLY, AS_IT_COMES = "early", "local"

SUMMARIZERS: Mapping[str, Contender] = MappingProxyType(
    {
        EARLY: Contender(
            label="harness_actors, soft=0.6",
            entry="read_by_harness:early",
            environment=None,
            distributions=("harness_actors",),
        ),
        AS_IT_COMES: Contender(
            label="harness_actors",
            entry="read_by_harness:as_it_comes",
            environment=None,
            distributions=("harness_actors",),
        ),
        "langchain": _summarizer(
            "langchain", "langchain", "langgraph", "langchain", "langgraph", "openai"
        ),
        "deepagents": _summarizer(
            "deepagents", "deepagents", "deepagents", "deepagents", "langchain", "openai"
        ),
        "inspect-ai": _summarizer("inspect-ai", "inspect_ai", "inspect-ai", "inspect_ai", "openai"),
        "agent-framework": _summarizer(
            "agent-framework",
            "agent_framework",
            "agent-framework",
            *("agent-framework-core", "agent-framework-openai", "openai"),
        ),
        "pydantic-ai": _summarizer(
            "pydantic-ai",
            "pydantic_ai",
            "pydantic-ai-harness",
            *("pydantic-ai-slim", "pydantic-ai-harness", "openai"),
        ),
    }
)
"""Those that have a model summarize a conversation that outgrows its window."""


def chosen(
    names: str | None, contenders: Mapping[str, Contender] = CONTENDERS
) -> dict[str, Contender]:
    """Those of a list with commas, in the order of the table; all where it is None.

    Raises:
        ValueError: A name is nobody's.
    """
    if names is None:
        return dict(contenders)
    wanted = {name.strip() for name in names.split(",")} - {""}
    if unknown := wanted - set(contenders):
        raise ValueError(f"no contender {sorted(unknown)}; there are {', '.join(contenders)}")
    return {name: contender for name, contender in contenders.items() if name in wanted}
