"""From flags to a forked run: its agent, its workspace, its place."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from harness_actors.actors import RuntimeKind
from harness_actors.cli.agents import AgentFlags
from harness_actors.errors import AgentCodeError, BadInputError

if TYPE_CHECKING:
    from harness_actors.actors import Runtime
    from harness_actors.agents import Program
    from harness_actors.config import HarnessConfig
    from harness_actors.ports import Model
    from harness_actors.records import RunSpec, WorkspaceSpec
    from harness_actors.replay import Recording


@dataclass(frozen=True, kw_only=True)
class ForkFlags:
    """What the flags say of a fork; None where a flag was not given."""

    model: str | None = None
    base_url: str | None = None
    settings: tuple[str, ...] = ()
    workspace: Path | None = None
    runtime: RuntimeKind = "ray"
    address: str | None = None

    def refuse_any(self) -> None:
        """Without a turn to go on from, none of them would do anything.

        Raises:
            BadInputError: One was given.
        """
        given = {
            "--model": self.model,
            "--model-base-url": self.base_url,
            "-M": self.settings,
            "--workspace": self.workspace,
        }
        for flag, value in given.items():
            if value:
                raise BadInputError(flag, ("a replay asks no model and calls no tool; add --from",))


@dataclass(frozen=True, kw_only=True)
class BegunFork:
    """A forked run, ready to be submitted.

    Attributes:
        spec: The run.
        code: What the journal is to keep of its program, by name.
        secrets: Keys that were given in code, by name.
        notes: What its user should know.
    """

    spec: "RunSpec"
    code: Mapping[str, bytes]
    secrets: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def submission(self, runtime: "Runtime") -> Callable[[], Awaitable[None]]:
        return partial(runtime.submit, [self.spec], code=self.code, secrets=self.secrets)


def begin_fork(
    recording: "Recording", code: Mapping[str, bytes], turn: int, flags: ForkFlags
) -> BegunFork:
    """The run that goes on from a turn of another.

    Args:
        recording: The other run.
        code: What its journal has of its program, by name.
        turn: The turn to be done anew.
        flags: Another model, another place.

    Raises:
        BadInputError: There is no such turn, no such folder, or no key for the model.
        AgentCodeError: The code of the run is gone, or cannot be read here.
    """
    from harness_actors.agents import new_run_id
    from harness_actors.replay import plan_fork

    plan = plan_fork(recording, turn)
    blob = code.get(recording.spec.code)
    if blob is None:
        reason = "the journal has dropped its code"
        raise AgentCodeError(f"the agent of run {plan.run_id!r}", reason)
    run_id = new_run_id()
    workspace, notes = _workspace(recording.spec, run_id, flags)
    spec = replace(
        recording.spec,
        run_id=run_id,
        conversation_id=run_id,
        task=plan.messages,
        workspace=workspace,
        metadata=plan.metadata,
    )
    secrets: dict[str, str] = {}
    is_on_another = flags.model is not None or flags.base_url is not None or bool(flags.settings)
    if is_on_another or spec.parent is not None:
        program = _another_program(spec, blob, flags if is_on_another else None)
        code, secrets = program.stored, dict(program.secrets)
        other = program.spec((), _at_the_top(spec))
        spec = replace(
            spec,
            code=other.code,
            keys=other.keys,
            made_with=other.made_with,
            config=_at_the_top(spec),
            parent=None,
        )
    _check_keys(spec, secrets, flags)
    begun = f"run {run_id}, from turn {turn} of run {plan.run_id}"
    return BegunFork(spec=spec, code=code, secrets=secrets, notes=(begun, *notes))


async def journal_for_forks() -> Path:
    """A journal in ``$HARNESS_HOME`` that no other process works on, locked for this one."""
    from harness_actors.actors.driver.open_cells import in_place
    from harness_actors.stores.home import free_journal, home

    found = await asyncio.to_thread(in_place, home(), free_journal)
    return found.resolve()


def bring_artifacts(origin: "tuple[Path, Recording]", spec: "RunSpec", store: Path) -> None:
    """Give a forked run the long results that its log names.

    Args:
        origin: The journal and the run that it is forked from.
        spec: The forked run.
        store: Its journal.

    Raises:
        StoreError: There is no room for them.
    """
    from harness_actors.errors import StoreError
    from harness_actors.stores.artifacts import copy_artifacts

    if spec.config.artifacts is None:
        return
    whence = origin[0], origin[1].spec.conversation_id
    texts = [message.text for message in spec.task]
    try:
        copy_artifacts(whence, (store, spec.conversation_id), texts)
    except OSError as error:
        raise StoreError(str(store), f"no artifacts can be put beside it: {error}") from error


def _another_program(spec: "RunSpec", blob: bytes, flags: ForkFlags | None) -> "Program":
    """What a forked run is of, where that is not the program of the other one.

    Args:
        spec: The run, with the parent of the other one.
        blob: The program of the other one.
        flags: Name another model; None for the same.

    Raises:
        AgentCodeError: The code of the run cannot be read here.
    """
    from harness_actors.actors.packing import unpack
    from harness_actors.agents import Program
    from harness_actors.coordination.graph import DEFAULT_EDGES, Workflow
    from harness_actors.executors.compaction import Compaction
    from harness_actors.subagents import agent_at

    workflow = unpack(blob)
    if spec.parent is not None:
        # Nobody waits for it: it is a run of its own, of the agent that the child was one of.
        workflow = Workflow(agent_at(workflow.agent, spec.parent.agent), DEFAULT_EDGES)
    if flags is not None:
        # Ours is put in again, with the strategies of the agent.
        own = {name: one for name, one in workflow.executors.items() if type(one) is not Compaction}
        agent = _on_another_model(workflow.agent, flags)
        workflow = replace(workflow, agent=agent, executors=own)
    return Program.of(workflow)


def _at_the_top(spec: "RunSpec") -> "HarnessConfig":
    """The settings of a run that stands below none, and delegates no deeper than before."""
    config, below = spec.config, spec.config.sub_agents
    if spec.parent is None or below is None:
        return config
    left = max(0, below.max_depth - spec.parent.depth)
    return replace(config, sub_agents=replace(below, max_depth=left))


def _on_another_model(agent: Any, flags: ForkFlags) -> Any:
    """An agent with all that surrounds it, asking another model.

    Raises:
        BadInputError: It is of a class of its user that takes no other model.
    """
    from harness_actors.batch.agent_file import make_model
    from harness_actors.models import OpenAIModel
    from harness_actors.models.chain import models_of

    settings = AgentFlags(settings=flags.settings).overrides.model_settings
    # Of a chain the first: what is asked for is one model.
    own = models_of(agent.model)[0]
    name = flags.model or own.name
    model: Model
    if isinstance(own, OpenAIModel) and name == own.name:
        model = own.changed(base_url=flags.base_url, settings=settings)
    else:
        model = make_model(name, base_url=flags.base_url, settings=settings)
    try:
        if is_dataclass(agent) and not isinstance(agent, type):
            return replace(agent, model=model)
        changed = copy(agent)
        changed.model = model
    except (AttributeError, TypeError, ValueError) as error:
        problem = f"the agent takes no other one ({type(error).__name__}: {error}); leave it out"
        raise BadInputError("--model", (problem,)) from error
    return changed


def _workspace(
    spec: "RunSpec", run_id: str, flags: ForkFlags
) -> "tuple[WorkspaceSpec | None, tuple[str, ...]]":
    from harness_actors.records import WorkspaceSpec

    if flags.workspace is not None:
        given = AgentFlags(workspace=flags.workspace).workspace_folder()
        assert given is not None
        return WorkspaceSpec(path=given), ()
    if spec.workspace is None:
        return None, ()
    path = str(Path(mkdtemp(prefix="harness-fork-")) / run_id)
    source = spec.workspace.source
    if source is not None and Path(source).is_dir():
        begins = f"a fresh copy of {source}"
    else:
        source, begins = None, "an empty folder"
    note = f"workspace {path}: {begins}; the files of that turn are not kept anywhere"
    return WorkspaceSpec(path=path, source=source), (note,)


def _check_keys(spec: "RunSpec", secrets: dict[str, Any], flags: ForkFlags) -> None:
    from harness_actors.actors.embedded import EMBEDDED_MODEL_URL

    if flags.address not in (None, "auto", "local") or os.environ.get("RAY_ADDRESS"):
        return  # its actors may have keys of their own
    for name in spec.keys:
        if name != EMBEDDED_MODEL_URL and not (os.environ.get(name) or secrets.get(name)):
            raise BadInputError("--from", (f"the model needs {name}; set it in the environment",))
