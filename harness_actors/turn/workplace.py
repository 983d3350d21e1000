"""Where the tools of a turn work, and what each call is told of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness_actors.ports import (
    ChildCopies,
    ConversationArtifacts,
    Cover,
    DeadlineToken,
    ToolContext,
)
from harness_actors.ports.artifacts import ConversationMessages
from harness_actors.records import FolderId, RunSpec, WorkspaceSpec
from harness_actors.turn.services import RUN_VARIABLE, AgentTurnServices


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where the tools of a turn work; None for nowhere.

    Attributes:
        folder: The workspace.
        id: What it is known by; None also where nobody has looked.
        artifacts: Where long results are kept; None where they are cut.
        messages: The conversation so far; None where its model is shown all of it.
        copies: Those in which others work for the run; None where none is to.
    """

    folder: Path | None
    id: FolderId | None
    artifacts: ConversationArtifacts | None = None
    messages: ConversationMessages | None = None
    copies: ChildCopies | None = None

    def context_of(
        self,
        call_id: str,
        spec: RunSpec,
        services: AgentTurnServices,
        deadline: DeadlineToken,
        tell: Callable[[str], bool],
        want_summary: Callable[[str], bool],
    ) -> ToolContext:
        """What a tool is told of a call of a run."""
        return ToolContext(
            run_id=spec.run_id,
            call_id=call_id,
            workspace=self.folder,
            workspace_id=self.id,
            in_thread=services.in_thread,
            environment={RUN_VARIABLE: spec.run_id},
            processes=services.processes,
            cover=cover_of(spec.workspace, self.folder),
            deadline=deadline,
            artifacts=self.artifacts,
            messages=self.messages,
            copies=self.copies,
            read_only=spec.workspace is not None and spec.workspace.read_only,
            tell=tell,
            want_summary=want_summary,
            clock=services.clock,
            resources=services.resources,
            workers=services.workers,
        )


def cover_of(spec: WorkspaceSpec | None, folder: Path | None) -> Cover | None:
    """What the commands of a run are not to see; None for nothing."""
    if spec is None or spec.covered is None or folder is None:
        return None
    return Cover(folder=Path(spec.covered), spared=folder, required=spec.must_be_covered)
