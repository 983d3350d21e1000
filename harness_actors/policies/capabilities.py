"""What an agent may work with: tools that need more are not offered."""

from collections.abc import Sequence
from typing import Any

from harness_actors.errors import ConfigError
from harness_actors.ports import Tool

KNOWN: tuple[str, ...] = (
    "artifacts",
    "browser",
    "database",
    "filesystem",
    "network",
    "shell",
    "web_search",
)
"""Capabilities that an agent may have though none of its tools needs them. Others are known once
a tool needs them."""


def checked_capabilities(given: Sequence[str] | None, tools: Sequence[Tool]) -> Any:
    """The capabilities of an agent, sorted; None where it says nothing of them.

    Raises:
        ConfigError: One is unknown, or it is no list of texts.
    """
    if given is None:
        return None
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise ConfigError("capabilities", f"must be a list of names, not {given!r}")
    known = {*KNOWN, *(need for tool in tools for need in needs_of(tool))}
    for name in given:
        if name not in known:
            problem = f"there is no capability {name!r}; there are {', '.join(sorted(known))}"
            raise ConfigError("capabilities", problem)
    return tuple(sorted(set(given)))


def needs_of(tool: Tool) -> tuple[str, ...]:
    """The capabilities that a tool needs; one of a user's own class may not say."""
    needs: tuple[str, ...] = getattr(tool.spec, "needs", ())
    return needs


def offered_tools(agent: Any) -> tuple[Tool, ...]:
    """The tools of an agent that its capabilities allow; all where it says nothing of them."""
    tools: tuple[Tool, ...] = tuple(agent.tools)
    capabilities = getattr(agent, "capabilities", None)
    if capabilities is None:
        return tools
    return tuple(tool for tool in tools if set(needs_of(tool)) <= set(capabilities))
