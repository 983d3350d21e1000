"""What runs are made with, and in what two of these differ."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from harness_actors.config import USUAL_WINDOW, HarnessConfig
from harness_actors.coordination.graph import DEFAULT_EDGES, Workflow
from harness_actors.models.chain import ModelChain, models_of, shown_name
from harness_actors.outputs import OutputType
from harness_actors.policies import Hook, Hooks, offered_tools
from harness_actors.policies.hooks import KINDS, hook_name
from harness_actors.ports import Agent, Model, Tool
from harness_actors.records import MadeWith
from harness_actors.subagents import SubAgentSpec

SHOWN_CHARS = 60
HIDDEN = "(hidden)"
NEAR_CHARS = 20
"""How much of a text is shown before the place where it differs from another."""

_SECRET = re.compile(r"key|secret|passw|authori[sz]|credential|bearer|token", re.IGNORECASE)
"""Where the name of a field has this, its text is not shown and is no part of the hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """An agent on a model, with its settings.

    Attributes:
        agent: Name of the agent, which is no part of the hash.
        model: Name of the model.
        parts: All that makes another set-up where it differs, as plain values by dotted
            names: the model with its endpoint and settings, the instructions, what the tools
            declare, the settings of runs, the workflow, the workspace. No key is in it, and
            no code.
        hash: 12 hex digits, the same in every process.
    """

    agent: str
    model: str
    parts: Mapping[str, Any]
    hash: str

    @classmethod
    def of(cls, *, agent: str, model: str, parts: Mapping[str, Any]) -> "Setup":
        """The set-up with these parts."""
        encoded = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
        name = hashlib.sha256(encoded).hexdigest()[:12]
        return cls(agent=agent, model=model, parts=parts, hash=name)

    @property
    def made_with(self) -> MadeWith:
        """What a run remembers of it."""
        return MadeWith(agent=self.agent, model=self.model, setup=self.hash)

    def within(self, config: HarnessConfig, *, workspace: str | None = None) -> "Setup":
        """This workflow under settings, in runs that begin with a copy of a folder."""
        given = dict(_flat("", plain(config.as_mapping())))
        for name in ("stall", "compaction", "sub_agents"):
            if getattr(config, name) is None:
                given[name] = "off"
        # That of the model, where none is given: set-ups from before had this in its place.
        given.setdefault("max_input_tokens", USUAL_WINDOW)
        if workspace is not None:
            given["workspace"] = os.fspath(workspace)
        return Setup.of(agent=self.agent, model=self.model, parts={**self.parts, **given})


def setup_of(workflow: Workflow) -> Setup:
    """What a workflow is made of, settings of its runs left out."""
    agent = workflow.agent
    parts = {
        **_models_parts(agent.model),
        "instructions": agent.instructions,
        **_gates(agent),
        **{f"tools.{tool.spec.name}": _declared(tool) for tool in offered_tools(agent)},
        **{
            f"workflow.executors.{name}": type(executor).__qualname__
            for name, executor in workflow.executors.items()
        },
    }
    if tuple(workflow.edges) != DEFAULT_EDGES:
        # The builder's order says nothing: each name has one successor that counts.
        parts["workflow.edges"] = sorted([start, end] for start, end in workflow.edges)
    return Setup.of(agent=agent.name, model=shown_name(agent.model), parts=parts)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """How the parts of two set-ups differ, a sentence for each part.

    >>> differences({"model": "a", "max_turns": 5}, {"model": "b", "max_turns": 5})
    ("model 'a' → 'b'",)
    """
    names = dict.fromkeys((*now, *before))
    return tuple(
        _difference(name, before.get(name), now.get(name))
        for name in names
        if before.get(name) != now.get(name)
    )


def plain(value: Any) -> Any:
    """A value as JSON has it, the same for equal values in every process; Nones are left out."""
    match value:
        case bool() | str() | None:
            return value
        case int():
            return value if abs(value) < 1 << 63 else str(value)
        case float():
            # As `0` in one file and `0.0` in another.
            return int(value) if value.is_integer() else value
        case Mapping():
            items = ((str(name), plain(item)) for name, item in value.items())
            return {name: _hidden(name, item) for name, item in items if item is not None}
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted((plain(item) for item in value), key=orjson.dumps)
        case Enum():
            return plain(value.value)
        case os.PathLike():
            return os.fspath(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return plain(asdict(value))
        case _:
            # Its own words may hold an address in memory.
            return f"<{type(value).__qualname__}>"


def _models_parts(model: Model) -> dict[str, Any]:
    """A model, and after it the others of its chain by their numbers."""
    first, *others = models_of(model)
    parts = _model_parts(first)
    for number, other in enumerate(others, 2):
        parts |= {f"models.{number}.{name}": part for name, part in _model_parts(other).items()}
    if isinstance(model, ModelChain):
        parts["fallback"] = list(model.fallback.on)
    return parts


def _model_parts(model: Model) -> dict[str, Any]:
    parts = {"model": model.name, "model.kind": type(model).__qualname__}
    if url := getattr(model, "base_url", None):
        parts["model.base_url"] = _shown_url(str(url))
    settings = getattr(model, "settings", None)
    if isinstance(settings, Mapping):
        parts |= _flat("model.settings.", plain(settings))
    return parts


def _gates(agent: Agent) -> dict[str, Any]:
    """Hooks, middleware, capabilities, approvals and what else bounds it, as far as it has any."""
    parts: dict[str, Any] = {}
    hooks = Hooks.given(getattr(agent, "hooks", None))
    for kind in KINDS:
        if asked := hooks.of(kind):
            parts[f"hooks.{kind}"] = [_declared_hook(hook) for hook in asked]
    if members := getattr(agent, "middleware", ()):
        parts["middleware"] = [
            {"kind": hook_name(member), **_settings(member)} for member in members
        ]
    capabilities = getattr(agent, "capabilities", None)
    if capabilities is not None:
        parts["capabilities"] = plain(set(capabilities))
    if (approvals := getattr(agent, "approvals", None)) is not None:
        parts["approvals"] = plain(approvals)
    if (output := OutputType.of(getattr(agent, "output_type", None))) is not None:
        parts["output_type"] = plain(output.schema)
    for name, judge in (getattr(agent, "judges", None) or {}).items():
        parts |= {f"judges.{name}.{part}": one for part, one in _model_parts(judge).items()}
    if (summarizer := getattr(agent, "summarizer", None)) is not None:
        parts["summarizer"] = str(getattr(summarizer, "name", type(summarizer).__name__))
    if strategies := getattr(agent, "strategies", None):
        parts["strategies"] = [one.name for one in strategies]
    for spec in getattr(agent, "sub_agents", None) or ():
        parts[f"sub_agents.{spec.name}"] = _declared_spec(spec)
    return parts


def _declared_spec(spec: SubAgentSpec) -> Any:
    """An agent to which another one delegates."""
    shown = {part.name: getattr(spec, part.name) for part in fields(spec)}
    below = {one.name: _declared_spec(one) for one in spec.sub_agents}
    model = None if spec.model is None else _models_parts(spec.model)
    output = None if spec.output_type is None else spec.output_type.schema
    if spec.workspace == "shared":
        # As set-ups have it from before there was another one.
        del shown["workspace"]
    return plain({**shown, "model": model, "output_type": output, "sub_agents": below})


def _declared_hook(hook: Hook) -> Any:
    declared = {"function": hook.name, "timeout_s": hook.timeout_s, "on_error": hook.on_error}
    return hook.name if hook == Hook(hook.function) else plain(declared)


def _settings(member: Any) -> dict[str, Any]:
    if not is_dataclass(member) or isinstance(member, type):
        return {}
    shown = [part.name for part in fields(member) if part.compare]
    return dict(plain({name: getattr(member, name) for name in shown}))


def _shown_url(url: str) -> str:
    """An endpoint without what may be secret in it: a login, a query."""
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))


def _declared(tool: Tool) -> dict[str, Any]:
    """What a tool's spec says of it, to the model and to the harness."""
    spec = tool.spec
    declared: dict[str, Any] = plain(
        {
            "description": spec.description,
            "parameters": spec.parameters,
            "effect": spec.effect,
            "idempotent": spec.idempotent,
            "resource_keys": spec.resource_keys,
            "timeout_s": spec.timeout_s,
        }
    )
    return declared


def _hidden(name: str, value: Any) -> Any:
    return HIDDEN if isinstance(value, str) and _SECRET.search(name) else value


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield prefix + name, value


def _difference(name: str, before: Any, now: Any) -> str:
    if before is None:
        return f"{name} {_shown(now)} is new" if not isinstance(now, Mapping) else f"{name} is new"
    if now is None:
        return f"{name} is gone"
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return f"{name}: " + ", ".join(differences(before, now))
    start = _first_difference(before, now)
    return f"{name} {_shown(before, start)} → {_shown(now, start)}"


def _first_difference(before: Any, now: Any) -> int:
    """Where two long texts begin to differ; 0 for what is short."""
    if not (isinstance(before, str) and isinstance(now, str)):
        return 0
    if max(len(before), len(now)) <= SHOWN_CHARS:
        return 0
    pairs = enumerate(zip(before, now, strict=False))
    at = next((place for place, (one, other) in pairs if one != other), min(len(before), len(now)))
    return max(0, at - NEAR_CHARS)


def _shown(value: Any, start: int = 0) -> str:
    if not isinstance(value, str):
        text = orjson.dumps(value).decode()
        return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
    cut = value[start : start + SHOWN_CHARS]
    before, after = "…" if start else "", "…" if start + SHOWN_CHARS < len(value) else ""
    return repr(f"{before}{cut}{after}")
