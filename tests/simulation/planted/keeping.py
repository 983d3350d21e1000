"""Faults in how long results are kept, named and read."""

import hashlib
from collections.abc import Iterable
from typing import Any

from harness_actors.ports import Artifact, ToolContext
from harness_actors.ports.artifacts import pieces_of
from harness_actors.stores import artifacts
from harness_actors.stores.artifacts import FolderArtifacts
from harness_actors.turn import artifacts as long_results
from harness_actors.turn import execution
from tests.simulation.artifacts import BELOW_CAP, OWN, SHORT, WHOLE
from tests.simulation.planted.bug import Patches, PlantedBug


def _one_folder_for_all() -> Patches:
    return [(artifacts, "_folder_name", lambda conversation_id: "all")]


def _named_and_not_kept() -> Patches:
    def patched(self: FolderArtifacts, pieces: Iterable[bytes]) -> Artifact:
        whole = b"".join(pieces)
        digest = hashlib.sha256(whole).hexdigest()
        return Artifact(id=f"a{digest[:10]}", size_bytes=len(whole))

    return [(FolderArtifacts, "put", patched)]


def _only_the_beginning_is_kept() -> Patches:
    def patched(text: str) -> Any:
        return (piece[:1_000] for piece in pieces_of(text))

    return [(long_results, "pieces_of", patched)]


def _others_clean_up() -> Patches:
    put = FolderArtifacts.put

    def patched(self: FolderArtifacts, pieces: Iterable[bytes]) -> Artifact:
        made = put(self, pieces)
        for path in self._path.iterdir():
            if not path.name.startswith(made.id):
                path.unlink()
        return made

    return [(FolderArtifacts, "put", patched)]


def _no_cap() -> Patches:
    return [(FolderArtifacts, "_room", lambda self, folder, but="": 1 << 60)]


def _fenced_results_stay_long() -> Patches:
    async def patched(result: Any, tool: str, context: ToolContext) -> Any:
        return result if tool == "effect" else await long_results.keep_large(result, tool, context)

    return [(execution, "keep_large", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "conversations keep their long results in one folder",
        _one_folder_for_all,
        frozenset({OWN}),
    ),
    PlantedBug(
        "a long result is named and not kept",
        _named_and_not_kept,
        frozenset({WHOLE}),
    ),
    PlantedBug(
        "of a long result the beginning is kept",
        _only_the_beginning_is_kept,
        frozenset({WHOLE}),
    ),
    PlantedBug(
        "a long result takes the place of those before it",
        _others_clean_up,
        frozenset({WHOLE}),
    ),
    PlantedBug(
        "long results have no cap",
        _no_cap,
        frozenset({BELOW_CAP}),
    ),
    PlantedBug(
        "what may not run twice answers as long as it likes",
        _fenced_results_stay_long,
        frozenset({SHORT}),
    ),
)
