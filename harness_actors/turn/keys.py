"""The resource keys of a call, and the call while it holds them in its tree."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from os.path import join, normpath, realpath
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.exact_json import values_in
from harness_actors.ports import ResourceLocks, ToolSpec
from harness_actors.records import WorkspaceSpec
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, not_begun
from harness_actors.turn.outcomes import ToolFailure, ToolOutcome

LONG_ARGUMENTS = 100_000
"""Characters above which arguments are not read in the event loop: its tool reads them in a
thread, and here they would hold up all runs of the process."""

FILE = "file:"
"""With which the key of a file begins, such as those of the shipped tools."""

NOT_LOCKED = "The call was not made:"


def arguments_in(text: str) -> dict[str, Any] | None:
    """The arguments of a call by name; None of what is no JSON object."""
    try:
        given = values_in(text)
    except ValueError:
        return None
    return given if isinstance(given, dict) else None


def filled(template: str, given: dict[str, Any]) -> str | None:
    """A resource key; None where the arguments do not say it.

    Of a file it is the same, however its path is spelled.

    >>> filled("file:{path}", {"path": "./src//notes.md"})
    'file:src/notes.md'
    """
    try:
        key = template.format_map(given)
    except Exception:  # noqa: BLE001 - a template of a user meets arguments of a model
        return None
    return FILE + normpath(key.removeprefix(FILE)) if key.startswith(FILE) else key


def keys_touched(spec: ToolSpec, arguments: str) -> frozenset[str]:
    """What a call touches, as far as it can be known: of arguments that are left out, by their
    defaults. Of what its tool would refuse nothing is known.

    >>> spec = ToolSpec(name="refund", description="", parameters={}, resource_keys=("crm:{who}",))
    >>> sorted(keys_touched(spec, '{"who": 7}'))
    ['crm:7']
    """
    given = arguments_in(arguments)
    if given is None:
        return frozenset()
    known = _defaults(spec.parameters) | given
    keys = (filled(template, known) for template in spec.resource_keys)
    return frozenset(key for key in keys if key is not None)


def _defaults(parameters: Any) -> dict[str, Any]:
    found = parameters.get("properties", {}) if isinstance(parameters, dict) else {}
    return {
        name: schema["default"]
        for name, schema in found.items()
        if isinstance(schema, dict) and "default" in schema
    }


class HeldKeys:
    """Makes calls while they hold their keys in the tree of their run.

    Args:
        locks: Keeps the calls of a tree apart.
        root: The run at its top.
        in_thread: Runs a blocking function.
        workspace: Where the run works; None for nowhere.
    """

    def __init__(
        self,
        locks: ResourceLocks,
        root: str,
        in_thread: Callable[..., Awaitable[Any]],
        workspace: WorkspaceSpec | None = None,
    ) -> None:
        self._locks, self._root, self._in_thread = locks, root, in_thread
        self._workspace = workspace

    async def make(
        self,
        plan: PlannedCall,
        due: Due,
        make: Callable[[], Awaitable[ToolOutcome]],
    ) -> ToolOutcome:
        """Wait until nobody holds the keys of a call, and make it.

        Args:
            plan: The call; there is a tool.
            due: When it must have begun: of its own time nothing passes while it waits.
            make: Makes it.

        Returns:
            What comes of it; that it was not made, where its keys were not free in time or
            cannot be locked.
        """
        assert plan.tool is not None, "nobody holds keys for what is not made"
        spec = plan.tool.spec
        try:
            async with asyncio.timeout(due.seconds):
                keys = await self._keys_of(spec, plan.given.arguments)
                held = self._locks.held(self._root, keys, reads=spec.effect == "read_only")
                await held.__aenter__()
        except TimeoutError:
            return not_begun(due)
        except ToolError as error:
            return ToolFailure(text=f"{NOT_LOCKED} {error.text}.")
        try:
            return await make()
        finally:
            await held.__aexit__(None, None, None)

    async def _keys_of(self, spec: ToolSpec, arguments: str) -> Collection[str]:
        if len(arguments) <= LONG_ARGUMENTS:
            keys: Collection[str] = keys_touched(spec, arguments)
        else:
            keys = await self._in_thread(keys_touched, spec, arguments)
        if (workspace := self._workspace) is None:
            return keys
        return {_resolved(key, workspace.path) if key.startswith(FILE) else key for key in keys}


def _resolved(key: str, workspace: str) -> str:
    """The key of a file by where it is: by whatever way, and in a copy another one."""
    try:
        return FILE + realpath(join(workspace, key.removeprefix(FILE)))
    except ValueError:  # a path with a zero byte, which no tool takes
        return key
