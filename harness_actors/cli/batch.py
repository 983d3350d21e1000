"""`harness batch`: many runs, and the same command again to go on."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness_actors.cli import batch_options as many
from harness_actors.cli import options
from harness_actors.cli.agents import AgentFlags
from harness_actors.cli.failures import ALL_DONE, INTERRUPTED, NOT_ALL_DONE, failures_told
from harness_actors.cli.interrupts import Interrupts
from harness_actors.cli.where import check_where
from harness_actors.errors import BadInputError

if TYPE_CHECKING:
    from harness_actors.actors import Runtime
    from harness_actors.batch.batch import Batch
    from harness_actors.batch.opening import OpenRuntime
    from harness_actors.batch.outcomes import TaskOutcome
    from harness_actors.batch.progress import Display
    from harness_actors.batch.settings import BatchSettings, OnChange

TICK_S = 0.5


def batch(
    tasks: many.TasksArgument,
    run_dir: many.RunDirOption,
    agent: options.AgentOption = None,
    model: options.ModelOption = None,
    model_base_url: options.BaseUrlOption = None,
    setting: options.SettingsOption = None,
    workspace: many.WorkspaceOption = None,
    concurrency: many.ConcurrencyOption = 10,
    limit: many.LimitOption = None,
    epochs: many.EpochsOption = 1,
    retry_on_error: many.RetryOnErrorOption = 0,
    fail_on_error: many.FailOnErrorOption = None,
    retry_failed: many.RetryFailedOption = False,
    accept_changes: many.AcceptChangesOption = False,
    retry_changed: many.RetryChangedOption = False,
    budget: many.BudgetOption = None,
    max_turns: options.MaxTurnsOption = None,
    token_limit: options.TokenLimitOption = None,
    cost_limit: options.CostLimitOption = None,
    time_limit: options.TimeLimitOption = None,
    working_limit: options.WorkingLimitOption = None,
    on_question: many.OnQuestionOption = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Many runs, so many at once; the same command again goes on where this one ended.

    Examples:

        harness batch tasks.jsonl --run-dir runs/one --model gpt-4.1-mini -n 50

        harness batch tasks.jsonl --run-dir runs/one --agent fixer.yaml --budget 5

        harness batch tasks.jsonl --run-dir runs/one --agent fixer.yaml --limit 1 --debug
    """
    flags = AgentFlags(
        agent=agent,
        model=model,
        base_url=model_base_url,
        settings=tuple(setting or ()),
        workspace=workspace,
        max_turns=max_turns,
        token_limit=token_limit,
        cost_limit=cost_limit,
        time_limit=time_limit,
        working_limit=working_limit,
        budget=budget,
        on_question=None if on_question is None else on_question.value,
        address=address,
    )
    with failures_told(as_json=as_json):
        check_where(runtime, address)
        from harness_actors.batch.settings import BatchSettings

        settings = BatchSettings(
            concurrency=concurrency,
            retry_on_error=retry_on_error,
            retry_failed=retry_failed,
            fail_on_error=fail_on_error,
            budget_usd=budget,
            epochs=epochs,
            workspace=flags.workspace_folder(),
            on_change=_on_change(accept=accept_changes, retry=retry_changed),
        )
        command = _Command(flags, settings, runtime, address, as_json=as_json, debug=debug)
        status = asyncio.run(command.run(tasks, run_dir, limit))
    raise typer.Exit(status)


def _on_change(*, accept: bool, retry: bool) -> "OnChange":
    if accept and retry:
        problem = "keeps what --retry-changed does again; give one of the two"
        raise BadInputError("--accept-changes", (problem,))
    if accept:
        return "accept"
    return "retry" if retry else "refuse"


@dataclass(eq=False)
class _Command:
    """One `harness batch`, from its flags to its exit status."""

    flags: AgentFlags
    settings: "BatchSettings"
    runtime: options.RuntimeChoice
    address: str | None
    _: KW_ONLY
    as_json: bool
    debug: bool = False
    _display: "Display | None" = field(default=None, init=False)
    _interrupts: Interrupts | None = field(default=None, init=False)

    async def run(self, tasks: Path, run_dir: Path, limit: int | None) -> int:
        from harness_actors.batch.progress import make_display

        batch = self._prepare(tasks, run_dir, limit)
        await batch.check()
        self._display = make_display(batch.tally, as_json=self.as_json)
        self._tell_crowding(batch)
        ticking = asyncio.create_task(self._tick(batch.looked))
        try:
            with Interrupts(self._parking(batch), self._parking_now(batch)) as self._interrupts:
                async with aclosing(batch.run()) as outcomes:
                    async for outcome in outcomes:
                        self._display.outcome(outcome)
                        if self.debug:
                            await self._tell_where(run_dir / "runs.db", outcome)
        finally:
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking
            results = run_dir / "results.jsonl"
            told = str(results) if results.exists() else None
            self._display.close(batch.summary, told, str(run_dir))
        if batch.ending == "interrupted":
            return INTERRUPTED
        return ALL_DONE if batch.ok else NOT_ALL_DONE

    def _prepare(self, tasks: Path, run_dir: Path, limit: int | None) -> "Batch":
        """Check all input before anything runs."""
        from harness_actors.batch.batch import Batch
        from harness_actors.batch.opening import opener
        from harness_actors.batch.run_directory import RunDirectory
        from harness_actors.batch.task_file import TaskFile

        source = TaskFile(
            tasks,
            load_agent=self.flags.load_file,
            limit=limit,
            epochs=self.settings.epochs,
        )
        agents = self.flags.agents(needed=source.needs_agent)
        if source.has_contracts:
            source.refuse(agents.contract_faults)
        return Batch(
            source,
            agents,
            directory=RunDirectory(run_dir),
            settings=self.settings,
            open_runtime=self._arming(opener(self.runtime.value, self.address, self._note)),
        )

    def _arming(self, open_runtime: "OpenRuntime") -> "OpenRuntime":
        async def open_it(store: Path) -> "Runtime":
            runtime = await open_runtime(store)
            if self._interrupts is not None:
                self._interrupts.arm()
            return runtime

        return open_it

    async def _tell_where(self, store: Path, outcome: "TaskOutcome") -> None:
        from harness_actors.cli.failed_code import failed_code

        if text := await asyncio.to_thread(failed_code, store, outcome):
            self._note(text)

    def _tell_crowding(self, batch: "Batch") -> None:
        from harness_actors.batch.room import crowding

        local = self.runtime is options.RuntimeChoice.local
        tasks = batch.tally.total
        told = crowding(self.settings.concurrency, tasks=tasks, one_process=local)
        if told is not None:
            self._note(f"note: {told}")

    def _note(self, text: str) -> None:
        if self._display is not None:
            self._display.note(text)

    async def _tick(self, looked: asyncio.Event) -> None:
        # What earlier commands did is part of what is shown first.
        await looked.wait()
        while self._display is not None:
            self._display.tick()
            await asyncio.sleep(TICK_S)

    def _parking(self, batch: "Batch") -> Callable[[], None]:
        def park() -> None:
            self._note("stopping after the rounds in flight; Ctrl-C again leaves at once")
            batch.park()

        return park

    def _parking_now(self, batch: "Batch") -> Callable[[], None]:
        def park_now() -> None:
            self._note("leaving")
            batch.park_now()

        return park_now
