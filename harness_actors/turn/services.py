"""What a turn needs from the process that it runs in."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness_actors.config import ArtifactsConfig
from harness_actors.messages import ToolCall
from harness_actors.ports import (
    Clock,
    ContractCommands,
    ContractFiles,
    ConversationArtifacts,
    ResourceLocks,
    TokenCounter,
    ToolProcesses,
    ToolResources,
    ToolWorkers,
)
from harness_actors.ports.child_copies import copies_name
from harness_actors.progress import RunProgress
from harness_actors.records import FolderId, RunSpec, WorkspaceSpec
from harness_actors.turn.one_call import PlannedCall, RunCall, run_call
from harness_actors.turn.stalls import ReadStall
from harness_actors.turn.waves import waves_of

RUN_VARIABLE = "HARNESS_RUN_ID"
"""Environment variable by which the processes of a run's tools can be found."""


class Watched(Protocol):
    """A folder that must stay at its path."""

    @property
    def id(self) -> FolderId: ...

    def check(self) -> None:
        """Look at it; called twice a round, so it must cost next to nothing.

        Raises:
            HarnessError: It is no longer there.
        """
        ...


async def _nothing_on_record(call: ToolCall) -> str:
    raise LookupError(f"what was said of call {call.id!r} is known to whoever did it")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTurnServices:
    """What a turn needs from the process that it runs in.

    Attributes:
        counter_for: The token counter of a model, by the model's name.
        clock: Time.
        in_thread: Runs a blocking function in the pool for such tools.
        prepare_workspace: Makes a run's folder and returns it. Blocks, and is called in
            that pool before a run's first turn; after a crash perhaps again, so it must
            leave a folder that is complete as it is.
        run_call: Runs one call of a tool, or says what came of it before.
        waves_of: Parts the calls of a message into those that run at the same time.
        watch_workspace: Given that folder, returns what tells when it is no longer at its path;
            None where nobody watches.
        read_stall: Takes the rounds of a run that have ended, and says how it comes to nothing.
        letters_due: Of so many letters that have come for a run, how many its model is told now.
        text_on_record: Finds the result of a call, in a run that is done again.
        processes: Starts the processes of tools; None where tools start them as children.
        resources: What tools have open in this process; None where each call opens its own.
        workers: Processes for tools that ask for one; None where they run like all others.
        contract_files: Given the workspace, returns what contracts look into it with; None for
            the folder itself.
        contract_commands: Given it, returns what runs their commands; None runs them there, by
            `processes`.
        artifacts_of: Given a conversation and settings, returns where its long results are kept;
            None where there is no place for them.
        locks: Keeps calls apart that touch the same in runs of one tree; None where each run looks
            after its own calls alone.
        copies: The folder for copies of workspaces, each for a run below another one; None where
            there is no place for them.
        changed_files: Given the workspace of such a run, returns what it has changed there. Blocks.
    """

    counter_for: Callable[[str], TokenCounter]
    clock: Clock
    in_thread: Callable[..., Awaitable[Any]]
    prepare_workspace: Callable[[WorkspaceSpec], Path]
    watch_workspace: Callable[[Path], Watched | None] = lambda _path: None
    run_call: RunCall = run_call
    waves_of: Callable[[Sequence[PlannedCall]], list[Sequence[PlannedCall]]] = waves_of
    read_stall: ReadStall = RunProgress.read
    letters_due: Callable[[int], int] = lambda waiting: waiting
    text_on_record: Callable[[ToolCall], Awaitable[str]] = _nothing_on_record
    processes: ToolProcesses | None = None
    resources: ToolResources | None = None
    workers: ToolWorkers | None = None
    contract_files: Callable[[Path | None], ContractFiles] | None = None
    contract_commands: Callable[[Path | None], ContractCommands | None] | None = None
    artifacts_of: Callable[[str, ArtifactsConfig], ConversationArtifacts] | None = None
    locks: ResourceLocks | None = None
    copies: Path | None = None
    changed_files: Callable[[WorkspaceSpec], Sequence[str] | None] = lambda _spec: None

    def copies_of(self, spec: RunSpec) -> Path | None:
        """Where those are that the runs work in which a run has begun; None for nowhere."""
        folder, workspace = self.copies, spec.workspace
        if folder is None:
            return None
        covered = None if workspace is None else workspace.covered
        if covered is not None and not folder.is_relative_to(covered):
            # Commands see one folder of what is covered, and that must be inside.
            folder = Path(covered, ".copies")
        return folder / copies_name(spec.run_id)

    def artifacts(self, spec: RunSpec) -> ConversationArtifacts | None:
        """Where the long results of a run are kept; None where they are cut."""
        config = spec.config.artifacts
        if config is None or self.artifacts_of is None:
            return None
        return self.artifacts_of(spec.conversation_id, config)

    async def bring_artifacts(self, spec: RunSpec) -> None:
        """Give a fork the long results that the conversation names which it begins with.

        Raises:
            ToolError: There is no room for them.
        """
        link, artifacts = spec.parent, self.artifacts(spec)
        if link is None or not link.forked or artifacts is None:
            return
        texts = [message.text for message in spec.task[: link.forked]]
        await self.in_thread(artifacts.take, link.forked_from, texts)
