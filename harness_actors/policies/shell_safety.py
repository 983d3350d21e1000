"""`ShellSafety`: middleware that does not let commands run that would ruin the machine."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_actors.errors import ConfigError
from harness_actors.policies.dangerous import danger_of
from harness_actors.policies.middleware import NextTool, ToolInvocation
from harness_actors.policies.pattern_bounds import checked_pattern
from harness_actors.policies.shell_words import MOST_CHARS
from harness_actors.policies.verdicts import Deny


@dataclass(frozen=True)
class ShellSafety:
    """Denies commands that remove or overwrite what is not the run's, or stop the machine.

    A seat belt, not a wall: it saves from mistakes, and whoever wants to get past it can, by a
    script in a file for one. What an agent must not be able to do needs a container or a user of
    its own.

    Attributes:
        patterns: Regular expressions of commands to deny, too; each repeat in them must have an
            upper bound.
        tools: The tools whose argument ``command`` is looked at.

    Raises:
        ConfigError: A pattern is none, or could take for ever.
    """

    patterns: Sequence[str] = ()
    tools: Sequence[str] = ("run_command",)
    _denied: "re.Pattern[str] | None" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("patterns", "tools"):
            if not isinstance(getattr(self, name), list | tuple):
                raise ConfigError(f"ShellSafety.{name}", "must be a list of texts")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        checked = [checked_pattern("ShellSafety.patterns", pattern) for pattern in self.patterns]
        denied = re.compile("|".join(checked)) if checked else None
        object.__setattr__(self, "_denied", denied)

    async def around_tool(self, call: ToolInvocation, next: NextTool) -> str | Deny:
        """Let a call pass, or say why not."""
        if call.tool_name in self.tools and (danger := self._danger(call)):
            return Deny(f"The command was not run: {danger}.")
        return await next(call)

    def _danger(self, call: ToolInvocation) -> str:
        given = call.parsed()
        command = given.get("command") if isinstance(given, dict) else None
        if not isinstance(command, str):
            return ""  # the tool says what is wrong with it
        if self._denied is not None and self._denied.search(command, 0, MOST_CHARS):
            return "commands of its form are not allowed here"
        return danger_of(command)

    def __reduce__(self) -> tuple[Any, ...]:
        return (ShellSafety, (self.patterns, self.tools))
