"""Runs that work in copies of a workspace: planned, and watched.

Folders and files are real, in memory: each call that touches them is one step of the schedule.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import orjson

from harness_actors.events import TurnCompleted
from harness_actors.messages import Message
from harness_actors.ports import ToolContext
from harness_actors.records import CHILD_MARK, RunChanged, WorkspaceSpec
from harness_actors.state import CHANGED_FILES
from harness_actors.subagents import SubAgentSpec
from harness_actors.subagents.spec import OF_COPIES, has_copies
from harness_actors.tools.child_copy import changed_files
from harness_actors.tools.workspace import prepare_workspace
from tests.simulation.held import spec_at
from tests.simulation.kin import Kin, results_in
from tests.simulation.ledger import Ledger, root_of
from tests.simulation.trees import PlannedDelegation
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, Workload

BEGUN = "a copy begins as the workspace that it is of, once"
APART = "what is written in a workspace is there alone, and stays"
ON_RECORD = "what a run has changed in its copy is on record"
BROUGHT_IN = "what is brought in of a copy is all that was changed there, when its run is over"

SHARE = 0.4
"""Of the schedules with trees."""
HOMELESS = 0.05
"""Share of the runs of these that have no workspace."""
SOMETIMES = ("run_task", "scout")
"""Agents that may work in copies; the helper does."""
TAKEN = ("Taken as they are in the copy:", "There already:")
NONE = "has changed no file in its copy"
IN_MEMORY = Path("/dev/shm")


def plan_copies(workload: Workload, seed: int) -> Workload:
    """The workload of a seed, in which some of those that are delegated to may work in copies."""
    chance = Random(f"{seed}/copies")
    if not workload.sub_agents or chance.random() >= SHARE:
        return workload
    names = {"helper", *(name for name in SOMETIMES if chance.random() < 0.4)}
    specs = _in_copies(workload.sub_agents, names)
    if not has_copies(specs):
        # All of these are forks.
        return workload
    runs = {name: _writing(chance, run) for name, run in workload.runs.items()}
    homeless = frozenset(name for name in runs if chance.random() < HOMELESS)
    return replace(workload, runs=runs, sub_agents=specs, copying=True, homeless=homeless)


def _in_copies(specs: Sequence[SubAgentSpec], names: set[str]) -> tuple[SubAgentSpec, ...]:
    """The agents, at each depth, of which these work in copies, unless they are forks."""
    return tuple(
        replace(
            one,
            workspace="copy" if one.name in names and not one.fork else "shared",
            sub_agents=_in_copies(one.sub_agents, names),
        )
        for one in specs
    )


def _writing(chance: Random, run: PlannedRun) -> PlannedRun:
    return replace(run, rounds=_rounds(chance, run.rounds, reads=False))


def _rounds(
    chance: Random, rounds: Sequence[PlannedRound], *, reads: bool
) -> tuple[PlannedRound, ...]:
    """The rounds of a run, with calls that write, and that bring in what others have written."""
    found: list[PlannedRound] = []
    handles: list[str] = []
    for planned in rounds:
        if not reads and chance.random() < 0.4:
            writes = (PlannedTool("write", 0.0) for _ in range(chance.choice((1, 1, 2))))
            found.append(PlannedRound(tuple(writes), 0.02))
        calls = tuple(_below(chance, call, reads=reads) for call in planned.calls)
        found.append(replace(planned, calls=calls))
        sent = [c.to.agent for c in calls if c.to is not None and not (c.to.given or c.to.flaw)]
        handles += [f"{agent}-{len(handles) + at}" for at, agent in enumerate(sent, 1)]
        while handles and chance.random() < 0.5:
            # Perhaps of one that is at work still.
            asks = (_asking(chance, handles) for _ in range(chance.choice((1, 1, 2))))
            found.append(PlannedRound(tuple(asks), chance.choice((0.0, 0.1, 1.0))))
    return tuple(found)


def _below(chance: Random, call: PlannedTool, *, reads: bool) -> PlannedTool:
    if call.to is None or call.to.given:
        return call
    reads = reads or call.to.agent == "explore"
    return replace(call, to=replace(call.to, rounds=_rounds(chance, call.to.rounds, reads=reads)))


def _asking(chance: Random, handles: Sequence[str]) -> PlannedTool:
    name = "agent_changes" if chance.random() < 0.2 else "agent_apply"
    given = {"agent": chance.choice(handles)}
    return PlannedTool("delegate", 0.0, to=PlannedDelegation(name, given=given))


@dataclass
class Copying:
    """Knows what is to be in each workspace, and looks whether it is.

    Args:
        ledger: Where what is broken is written down.
        kin: Knows whose children they are.
        agents: To whom runs delegate.
        homeless: Runs that have no workspace.
        wished: Runs have workspaces at all.
    """

    ledger: Ledger
    kin: Kin
    agents: Sequence[SubAgentSpec]
    homeless: frozenset[str]
    wished: bool
    _root: Path | None = None
    _files: dict[str, set[str]] = field(default_factory=dict)
    """By the run whose workspace it is: what is in it."""
    _begun: dict[str, set[str]] = field(default_factory=dict)
    """By the run that works in it: what a copy has begun as."""
    _asked: dict[str, set[str]] = field(default_factory=dict)
    """By the run whose workspace it is: runs that are asked to be brought in. Until that is told,
    what they have written may be there or not."""
    _seen: dict[str, set[str]] = field(default_factory=dict)
    """By run: what it was seen to have changed in its copy as its turn ended."""

    # ---- as hosts and users have it ---------------------------------------------------

    @property
    def copies(self) -> Path | None:
        """The folder for copies; None where nobody works in one."""
        return self._place() / "copies" if self.wished else None

    def workspace_of(self, run_id: str) -> WorkspaceSpec | None:
        """Where a run of the user's works."""
        if not self.wished or run_id in self.homeless:
            return None
        return WorkspaceSpec(path=str(self._place() / "work" / run_id))

    def prepare(self, spec: WorkspaceSpec) -> Path:
        """As a host has it made."""
        is_new = not Path(spec.path).exists()
        made = prepare_workspace(spec)
        if is_new:
            self._made(spec, made)
        return made

    def changed_files(self, spec: WorkspaceSpec) -> Sequence[str] | None:
        """As a host has it looked at."""
        found = changed_files(spec)
        run_id = self._worker_in(spec)
        if found is None or run_id not in self._begun:
            self.ledger.broken(ON_RECORD, f"{run_id} has changed {found} in a copy of its own")
            return found
        begun = self._begun[run_id]
        least, most = self._files[run_id] - begun, self._may_have(run_id) - begun
        if not least <= set(found) <= most:
            self.ledger.broken(ON_RECORD, f"{run_id} has changed {found}, and wrote {least}")
        self._seen[run_id] = set(found)
        return found

    def dispose(self) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    # ---- what happens -----------------------------------------------------------------

    def write(self, key: str, context: ToolContext) -> None:
        """A tool writes a file of its own."""
        if context.workspace is None:
            return
        whose, name = self._whose(context.run_id), key.replace("/", "-")
        self._check(whose, context.workspace)
        context.workspace.joinpath(name).write_text(key)
        self._files.setdefault(whose, set()).add(name)

    def called(self, run_id: str, planned: PlannedDelegation) -> None:
        """A model asks for what another run has changed."""
        if planned.agent in OF_COPIES:
            child = _child_of(run_id, planned.given["agent"])
            self._asked.setdefault(self._whose(run_id), set()).add(child)

    def changed(self, change: RunChanged, log: Sequence[Message]) -> None:
        """A change is on disk, and in its log."""
        run = self.ledger.disk.runs[change.run_id]
        for event in change.delta.events:
            if isinstance(event, TurnCompleted) and event.rounds and change.run_id in self._begun:
                self._recorded(change.run_id, run.values.values.get(CHANGED_FILES.name))
        link = run.spec.parent
        # What a fork begins with was told to another.
        given = 0 if link is None else link.forked
        added = min(len(change.delta.messages), max(0, len(log) - given))
        for call, result in results_in(log, added):
            if call.name == "agent_apply" and result.disposition == "done":
                handle = orjson.loads(call.arguments)["agent"]
                self._told(change.run_id, _child_of(change.run_id, handle), result.text)

    def check_end(self) -> None:
        """All is over: each workspace has what it is to have."""
        for run in self.ledger.disk.runs.values():
            spec, run_id = run.spec.workspace, run.spec.run_id
            if spec is None or run_id not in self._files:
                continue
            self._check(run_id, Path(spec.path))
            if spec.base is not None and _files_in(Path(spec.base)) != self._begun[run_id]:
                text = f"{run_id} has begun as {self._begun[run_id]}: {_files_in(Path(spec.base))}"
                self.ledger.broken(BEGUN, text)

    # ---- what must be there -----------------------------------------------------------

    def _made(self, spec: WorkspaceSpec, made: Path) -> None:
        run_id, files = self._worker_in(spec), _files_in(made)
        if run_id in self._files:
            self.ledger.broken(BEGUN, f"the workspace of {run_id} is made anew")
        self._files[run_id] = files
        if spec.base is None:
            least, most = set[str](), set[str]()
        else:
            self._begun[run_id] = set(files)
            source = self._whose(run_id.rpartition(CHILD_MARK)[0])
            least, most = self._files[source], self._may_have(source)
        if not least <= files <= most:
            self.ledger.broken(BEGUN, f"{run_id} begins with {files}, and should with {least}")

    def _check(self, whose: str, path: Path) -> None:
        found, least = _files_in(path), self._files.get(whose)
        if least is None or not least <= found <= self._may_have(whose):
            self.ledger.broken(APART, f"{found} is in the workspace of {whose}, and not {least}")

    def _recorded(self, run_id: str, value: Any) -> None:
        """A turn is over: how its run has left its copy is seen, and known."""
        seen = self._seen.pop(run_id, None)
        known = None if value is None else set(value["paths"])
        if seen is None or known is None or value["count"] != len(seen) or not known <= seen:
            self.ledger.broken(ON_RECORD, f"{run_id} has changed {seen}, and on record is {value}")

    def _told(self, run_id: str, child: str, text: str) -> None:
        """A run is told what was brought in, unless somebody has put other words in its place."""
        lines = text.splitlines()
        if NONE in text:
            told = set[str]()
        elif lines and lines[0] in TAKEN:
            told = {line[2:] for line in lines if line.startswith("- ")}
        else:
            return
        run = self.ledger.disk.runs.get(child)
        if run is None or run.end is None or child not in self._begun:
            self.ledger.broken(BROUGHT_IN, f"{run_id} brings in {child!r}, which is not over")
            return
        whose, workspace = self._whose(run_id), self.ledger.disk.runs[run_id].spec.workspace
        changed = self._files[child] - self._begun[child]
        if workspace is None or told != changed or not changed <= _files_in(Path(workspace.path)):
            text = f"{run_id} is told {told} of {child}, which has changed {changed}"
            self.ledger.broken(BROUGHT_IN, text)
        self._files[whose] |= changed

    def _may_have(self, whose: str) -> set[str]:
        """What may be in a workspace."""
        found = set(self._files[whose])
        for child in self._asked.get(whose, ()):
            found |= self._files.get(child, set()) - self._begun.get(child, set())
        return found

    def _whose(self, run_id: str) -> str:
        """The run whose workspace a run works in."""
        while (kid := self.kin.kids.get(run_id)) is not None and kid.spec.parent is not None:
            if spec_at(self.agents, kid.spec.parent.agent).workspace == "copy":
                return run_id
            run_id = kid.spec.parent.run_id
        return root_of(run_id)

    def _worker_in(self, spec: WorkspaceSpec) -> str:
        """The first run on disk that works in a folder."""
        runs = (run.spec for run in self.ledger.disk.runs.values() if run.spec.workspace)
        return next(run.run_id for run in runs if run.workspace.path == spec.path)  # type: ignore[union-attr]

    def _place(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
        return self._root


def _child_of(run_id: str, handle: str) -> str:
    """The run that another one calls so."""
    return f"{run_id}{CHILD_MARK}{handle.rpartition('-')[2]}"


def _files_in(path: Path) -> set[str]:
    return {one.name for one in path.iterdir()}
