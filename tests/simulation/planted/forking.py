"""Faults in runs that begin with the conversation of another one."""

from collections.abc import Iterable

from harness_actors.coordination import children
from harness_actors.messages import Message
from harness_actors.stores.artifacts import FolderArtifacts
from tests.simulation.artifacts import WHOLE
from tests.simulation.kin import BEGINS
from tests.simulation.planted.bug import Patches, PlantedBug


def _with_the_call() -> Patches:
    def patched(log: Iterable[Message]) -> tuple[Message, ...]:
        return tuple(log)

    return [(children, "before_calls", patched)]


def _from_disk_alone() -> Patches:
    """What came with the message of the call is not seen."""

    def patched(log: Iterable[Message]) -> tuple[Message, ...]:
        messages = tuple(log)
        spoken = [at for at, one in enumerate(messages) if one.role == "assistant"]
        return messages[: spoken[-2] if len(spoken) > 1 else 0]

    return [(children, "before_calls", patched)]


def _brings_nothing() -> Patches:
    return [(FolderArtifacts, "take", lambda self, conversation_id, texts: None)]


BUGS = (
    PlantedBug("a fork begins with the call that began it", _with_the_call, frozenset({BEGINS})),
    PlantedBug("a fork begins a round too early", _from_disk_alone, frozenset({BEGINS})),
    PlantedBug("a fork has nothing of the long results", _brings_nothing, frozenset({WHOLE})),
)
