"""What the results of tools are worth later."""

from collections.abc import Iterable, Mapping

from harness_actors.plan import ToolPolicy
from harness_actors.ports import ToolSpec

BY_NAME: Mapping[str, ToolPolicy] = {
    "read_file": ToolPolicy(durability="replayable"),
    "list_directory": ToolPolicy(durability="ephemeral"),
    "write_file": ToolPolicy(durability="anchoring", keep=("path", "success")),
    "web_search": ToolPolicy(durability="non_replayable"),
    "http_request": ToolPolicy(durability="non_replayable", keep=("status_code", "url")),
    "run_command": ToolPolicy(durability="anchoring", keep=("exit_code", "command")),
    "calculate": ToolPolicy(durability="replayable"),
}
"""Of tools that say nothing of it. Source: the reference's table of defaults."""


def policies_of(tools: Iterable[ToolSpec]) -> dict[str, ToolPolicy]:
    """The policies of those tools whose results are not just `anchoring`.

    What a tool declares counts; else its name, where that is a usual one; else what else it
    declares: what reads, and gives the same again, is replayable.
    """
    found = {spec.name: _policy(spec) for spec in tools}
    return {name: policy for name, policy in found.items() if policy != ToolPolicy()}


def _policy(spec: ToolSpec) -> ToolPolicy:
    if spec.durability is not None:
        return ToolPolicy(durability=spec.durability, keep=spec.keep)
    if (usual := BY_NAME.get(spec.name)) is not None:
        return ToolPolicy(durability=usual.durability, keep=spec.keep or usual.keep)
    if spec.effect == "read_only":
        durability = "ephemeral" if spec.volatile or spec.polled else "replayable"
        return ToolPolicy(durability=durability, keep=spec.keep)  # type: ignore[arg-type]
    return ToolPolicy(keep=spec.keep)
