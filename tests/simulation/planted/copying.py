"""Faults in copies of workspaces: who works where, what is known of it, and what is brought in."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from harness_actors.coordination import child_specs
from harness_actors.executors import agent_turn
from harness_actors.executors.agent_turn import AgentTurn
from harness_actors.ports import RunContext
from harness_actors.records import WorkspaceSpec
from harness_actors.signals import ChildStart
from harness_actors.state import CHANGED_FILES
from harness_actors.tools import child_copy
from harness_actors.tools.changes import Change
from harness_actors.tools.merging import Merging, Outcome
from harness_actors.turn import services
from harness_actors.turn.child_copies import CopiesOfRun, note_changes
from tests.simulation.copying import APART, BEGUN, BROUGHT_IN, ON_RECORD
from tests.simulation.planted.bug import Patches, PlantedBug


def _one_copy_for_all_of_a_run() -> Patches:
    return [(child_specs, "child_handle", lambda _child, _agent: "helper-1")]


def _one_place_for_all_runs() -> Patches:
    return [(services, "copies_name", lambda _run_id: "0" * 32)]


def _none_is_made() -> Patches:
    def patched(
        parent: WorkspaceSpec | None, start: ChildStart, handle: str
    ) -> WorkspaceSpec | None:
        return made(parent, replace(start, workspace="shared"), handle)

    made = child_specs._workspace
    return [(child_specs, "_workspace", patched)]


def _it_begins_empty() -> Patches:
    def patched(spec: WorkspaceSpec) -> Path:
        is_new = not Path(spec.path).exists()
        work = make(spec)
        for one in work.iterdir() if is_new else ():
            one.unlink()
        return work

    make = child_copy.make_copy
    return [(child_copy, "make_copy", patched)]


def _made_anew_for_each_turn() -> Patches:
    async def patched(self: AgentTurn, context: RunContext) -> Path | None:
        spec = context.spec.workspace
        if spec is None or spec.base is None:
            return await place(self, context)
        rmtree(Path(spec.path).parent, ignore_errors=True)
        made: Path = await self._services.in_thread(self._services.prepare_workspace, spec)
        return made

    place = AgentTurn._workspace
    return [(AgentTurn, "_workspace", patched)]


def _seen_after_one_turn() -> Patches:
    async def patched(context: RunContext, of: Any) -> None:
        if context.get(CHANGED_FILES) is None:
            await note(context, of)

    note = note_changes
    return [(agent_turn, "note_changes", patched)]


def _whoever_is_at_work() -> Patches:
    return [(CopiesOfRun, "_is_told_of", lambda _self, _handle: True)]


def _all_but_one_file() -> Patches:
    def patched(self: Merging, changes: Sequence[Change]) -> list[Outcome]:
        return [*bring_in(self, changes[:-1]), Outcome(changes[-1].path, "applied")]

    bring_in = Merging.bring_in
    return [(Merging, "bring_in", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "those that a run sends out work in one copy",
        _one_copy_for_all_of_a_run,
        frozenset({APART, BEGUN, BROUGHT_IN, ON_RECORD}),
    ),
    PlantedBug(
        "copies for several runs are in one place",
        _one_place_for_all_runs,
        frozenset({APART, BEGUN, BROUGHT_IN, ON_RECORD}),
    ),
    PlantedBug("no copy is made where one is wished for", _none_is_made, frozenset({APART})),
    PlantedBug("a copy begins empty", _it_begins_empty, frozenset({BEGUN})),
    PlantedBug(
        "a copy is made anew when its run is taken up",
        _made_anew_for_each_turn,
        frozenset({BEGUN}),
    ),
    PlantedBug(
        "what was changed is looked at after one turn", _seen_after_one_turn, frozenset({ON_RECORD})
    ),
    PlantedBug(
        "a copy is brought in whose run is at work", _whoever_is_at_work, frozenset({BROUGHT_IN})
    ),
    PlantedBug(
        "one file of a copy is not brought in", _all_but_one_file, frozenset({APART, BROUGHT_IN})
    ),
)
