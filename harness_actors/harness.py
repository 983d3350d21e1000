"""`AgentHarness`: one agent, run by run, from Python."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Self

from harness_actors.actors import Runtime, RuntimeKind
from harness_actors.actors.driver.awaiting import Answer, Answerer, answer_texts
from harness_actors.actors.driver.followed_run import FollowedRun, result_of
from harness_actors.actors.driver.placed_store import PlacedStore
from harness_actors.actors.text.hearing import HeardItem
from harness_actors.agents import (
    Program,
    check_task,
    new_run_id,
    settings_of,
    with_contract,
    with_hooks,
)
from harness_actors.config import HarnessConfig, OnQuestion
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import (
    ActorLostError,
    CellError,
    ConfigError,
    ConversationBusyError,
    RunNotFoundError,
    StoreError,
)
from harness_actors.events import RunEvent, TextDelta, TextGap
from harness_actors.messages import Message
from harness_actors.ports import Agent
from harness_actors.records import WorkspaceSpec
from harness_actors.results import HarnessResult
from harness_actors.setting_checks import folder
from harness_actors.typed_runs import TypedRuns


class AgentHarness:
    """Runs one agent until the harness says that it is over.

    Successive runs continue one conversation, and share nothing else.

    Args:
        agent: The agent, or a workflow around one from `HarnessWorkflowBuilder`.
        config: The settings; keyword fields of `HarnessConfig` may be given instead, or
            override it. A workflow that was built with a config brings its own.
        runtime: ``"ray"``, or ``"local"`` to run in this process without Ray.
        address: Which Ray: None or ``"auto"`` joins one that is up and else starts one,
            ``"local"`` starts one, ``"HOST:PORT"`` joins that one. A process that is
            connected to a Ray stays with that.
        store: The journal's file; by default one in ``$HARNESS_HOME``.
        workspace: The folder that the agent's tools work in, made if there is none.
        on_question: What follows when the agent asks its user, by the tool `ask_user`: called with
            each `OpenQuestion`, a function, async or not, answers with a text, and the run goes
            on; with None the run waits, as it does where none is given. A word is the setting of
            that name, see `HarnessConfig`.
        hooks: Hooks beside those of the agent; see `ChatAgent`.
        on_loss: Called with a line where Ray was lost, which says what is done about that: one of
            our own is started again, another is waited for, and the run goes on. None logs it
            as a warning of ``harness_actors``.

    Raises:
        ConfigError: A setting is unknown, out of range, or of a part that is not built;
            contradicts that of the workflow; or bounds the cost of a model whose price
            nobody knows.
        AgentCodeError: A part of the agent cannot be sent to another process.
    """

    def __init__(
        self,
        agent: Agent | Workflow,
        *,
        config: HarnessConfig | None = None,
        runtime: RuntimeKind = "ray",
        address: str | None = None,
        store: str | Path | None = None,
        workspace: str | Path | None = None,
        on_question: Answerer | OnQuestion | None = None,
        hooks: Any = None,
        on_loss: Callable[[str], None] | None = None,
        **config_fields: Any,
    ) -> None:
        if runtime not in ("ray", "local"):
            raise ConfigError("runtime", f"must be 'ray' or 'local', not {runtime!r}")
        if not isinstance(agent, Workflow) and not hasattr(agent, "model"):
            raise ConfigError("agent", f"must be a ChatAgent or a workflow, not {agent!r}")
        agent = with_hooks(agent, hooks)
        given: object = on_question
        if isinstance(given, str):
            config_fields["on_question"] = given
        elif given is not None and not callable(given):
            problem = f"must be a function, 'wait', 'deny' or 'fail', not {given!r}"
            raise ConfigError("on_question", problem)
        self._answerer = on_question if callable(on_question) else None
        self.config = settings_of(agent, config, config_fields)
        self._program = Program.of(agent)
        self._program.check_bounds(self.config)
        _ = self._program.blob  # an agent that cannot travel is told now, not at the first run
        path = None if store is None else Path(store).resolve()
        self._placed = PlacedStore(path, runtime, address, on_loss)
        self._workspace = folder("workspace", workspace)
        self._program = self._program.held_to(self.config, has_workspace=workspace is not None)
        self._typed = TypedRuns(self._program)
        self._conversation_id: str | None = None
        self._is_on_record = False
        self._active: FollowedRun | None = None
        self._run_id: str | None = None
        # Of a summary that was asked for between two runs.
        self._to_keep: str | None = None

    @property
    def is_running(self) -> bool:
        """A run is in progress, so another one would be refused."""
        return self._active is not None

    @property
    def run_id(self) -> str | None:
        """The run in progress, or else the newest that this harness began or took up.

        It stays when `run` ends by an exception, so that `resume` can take up what Ctrl-C or a
        time limit has cut. None before the first run. A run that was cut before it reached the
        journal is not known there: `resume` raises `RunNotFoundError`, and nothing was done.
        """
        return self._run_id

    @property
    def window_tokens(self) -> int:
        """How large a request of its runs may be, in tokens, by settings or its model's name."""
        return self._program.with_window(self.config).window_tokens

    @property
    def store(self) -> Path | None:
        """The journal's file; None before the first run of a harness that was given none."""
        return self._placed.path

    async def run(
        self, message: str | Sequence[Message], *, contract: Any = None, output_type: Any = None
    ) -> HarnessResult:
        """Do one run to its end.

        A caller that is cancelled, by `asyncio.timeout` for one, parks the run at once: nobody
        waits for it any more, and its round is cut. Ctrl-C under `asyncio.run` is gentler: the
        round is finished and the run parked before the caller is cancelled; a second Ctrl-C
        cuts. Either way ``resume(harness.run_id)`` goes on with it.

        Args:
            message: The task: the text of a user message, or messages.
            contract: What it must have come to before it is over: a `TaskContract`, in place of
                that of the settings. None for that one.
            output_type: What it is to come to, in place of that of the agent: see `ChatAgent`. None
                for that one.

        Returns:
            How it ended, whatever the model and the tools did; or, with the status
            ``awaiting_input``, what it asks its user. It is at no process then, for as long as it
            takes; ``resume(run_id, answers={...})`` goes on with it.

        Raises:
            BadInputError: The message is empty, or no message; or the contract is at fault, or
                asks for what no run of this agent could have.
            ConfigError: `output_type` is no type.
            AgentCodeError: It cannot be sent to another process.
            ConversationBusyError: A run of this harness is not over, or waits for its user.
            RunParkedError: `park` was called before it ended.
            CellError: The actors did not come up.
            StoreError: The journal cannot be written; `resume` goes on when it can. Or it was
                moved or removed since the last run, and the conversation with it.
        """
        stream = self.run_stream(message, text=False, contract=contract, output_type=output_type)
        return await result_of(stream)

    async def run_stream(
        self,
        message: str | Sequence[Message],
        *,
        text: bool = True,
        children: bool = False,
        contract: Any = None,
        output_type: Any = None,
    ) -> AsyncGenerator[RunEvent | HarnessResult | TextDelta | TextGap]:
        """Do one run to its end, as `run` does, event by event; the result comes last.

        Args:
            message: The task.
            text: Tell what happens before it is on disk, too. The text of answers comes as the
                model says it, each answer's before the events that tell of it. It may be void,
                and it may be missing where its reader is slow; see `TextDelta` and `TextGap`.
                `ToolCalled` comes when its tool begins, and not only with the record of its
                round: at position 0, and not a second time. Where such a round is lost with
                its process, `RunResumed` or `ExecutorLost` follows, and what was told of it at
                position 0 is void: it is begun and told again. False: only what is on disk.
            children: Tell what happens in the runs below it, too, once it is on disk: `RunEvent`s
                with their own `run_id`, and a `path` of agents such as ``critic/explore``.
            contract: As of `run`.
            output_type: As of `run`.

        A reader that leaves early parks the run, once the stream is closed: by
        `contextlib.aclosing`, or else at some later time by Python itself.
        """
        check_task(message)
        config = self.config if contract is None else with_contract(self.config, contract)
        program, output = self._typed.program_for(output_type)
        program = program.held_to(config, has_workspace=self._workspace is not None)
        run_id = new_run_id()
        self._begin(run_id)
        self._typed.begun(run_id, output)
        try:
            if self._is_on_record:
                assert self._conversation_id is not None, "it was begun"
                await self._placed.check_continued(self._conversation_id)
            runtime = await self._placed.runtime()
            self._conversation_id = self._conversation_id or run_id
            spec = program.spec(
                message,
                config,
                run_id=run_id,
                conversation_id=self._conversation_id,
                workspace=self._workspace_spec(),
            )
            code, secrets = program.stored, program.secrets
            begin = partial(runtime.submit, [spec], code=code, secrets=secrets)
            told = self._told(runtime, begin, text=text, children=children)
            async with aclosing(told) as stream:
                async for item in stream:
                    yield item
        finally:
            self._end()

    async def resume(
        self, run_id: str, *, answers: Mapping[str, Answer] | None = None
    ) -> HarnessResult:
        """Take up a run that was interrupted or waits, with the agent and settings it has.

        Args:
            run_id: The run.
            answers: What its user answers, by the ids of `HarnessResult.questions`: all of them
                are on disk before it goes on, or none. The first answer to a question counts. Of an
                approval: `Approve`, `Refuse` or `Respond`, of `harness_actors`.

        Returns:
            How it ended; at once if it had ended before. What it asks where it waits still.

        Raises:
            AnswerError: It waits for no such answer, or has one; or that is no answer.
            RunNotFoundError: The store does not know the run.
            StoreInUseError: Another process works on the store.
            ConversationMovedOnError: Another run has continued its conversation since.
            BadInputError: Its workspace is gone.
        """
        return await result_of(self.resume_stream(run_id, answers=answers, text=False))

    async def resume_stream(
        self,
        run_id: str,
        *,
        answers: Mapping[str, Answer] | None = None,
        text: bool = True,
        children: bool = False,
    ) -> AsyncGenerator[RunEvent | HarnessResult | TextDelta | TextGap]:
        """As `resume`, event by event, from where it goes on; the result comes last.

        `text` and `children` are those of `run_stream`, and a reader that leaves early parks the
        run as there.
        """
        texts = answer_texts(run_id, answers)
        self._begin(run_id)
        try:
            runtime = await self._placed.runtime_of(run_id)
            # Of before: in a cell that outlived its command the run goes on by itself.
            cursor = await runtime.position()
            heading = next((h for h in await runtime.headings() if h.run_id == run_id), None)
            if heading is None:
                raise RunNotFoundError(run_id, str(self.store))
            if heading.end is None:
                from harness_actors.stores.taking_up import check_taking_up

                assert self.store is not None, "the runtime works on it"
                await asyncio.to_thread(check_taking_up, self.store, [run_id])
            self._conversation_id, self._is_on_record = heading.conversation_id, True
            if texts:
                await runtime.answer(run_id, texts)
            if heading.end is not None:
                end = heading.end.with_transcript(await runtime.events(run_id))
                yield await self._typed.given(end)
                return
            begin = partial(runtime.resume, [run_id], secrets=self._program.secrets)
            told = self._told(runtime, begin, cursor=cursor, text=text, children=children)
            async with aclosing(told) as stream:
                async for item in stream:
                    yield item
        finally:
            self._end()

    async def conversation(self, run_id: str) -> list[dict[str, Any]]:
        """All messages of the conversation that a run belongs to, also while it goes on.

        Nothing is started for it, and no code of the run is opened.

        Returns:
            The messages as plain values in the Chat Completions format, oldest first; the
            system prompt first where the agent has one. Those of a journal from before the
            prompt was put on record begin with the task.

        Raises:
            RunNotFoundError: The store does not know the run.
            StoreError: The journal cannot be read.
        """
        from harness_actors.stores.conversations import find_conversation
        from harness_actors.stores.places import journals_in

        stores = journals_in() if self.store is None else [self.store]
        found = await asyncio.to_thread(find_conversation, stores, run_id)
        return [dict(message) for message in found.messages]

    def begin_conversation(self) -> None:
        """Let the next run begin a conversation instead of going on with this one.

        Raises:
            ConversationBusyError: A run of this one is not over.
        """
        if self._active is not None:
            raise ConversationBusyError(self._conversation_id or self._active.run_id)
        self._conversation_id, self._is_on_record = None, False

    async def park(self, *, now: bool = False) -> None:
        """Ask the run in progress to stop, so that `resume` can take it up.

        Args:
            now: Cut the round in progress; else it is finished first.
        """
        if self._active is not None:
            await self._active.stop(now=now)

    async def compact(self, keep: str = "") -> bool:
        """Have the conversation summarized: while the run in progress goes on, or before the next.

        Args:
            keep: What is to be kept, in words; empty for nothing of its own.

        Returns:
            Whether that is done: False where the settings have no `compaction.summaries`.
        """
        if self.config.compaction is None or not self.config.compaction.summaries:
            return False
        if self._active is None:
            self._to_keep = keep
            return True
        return await (await self._placed.runtime()).compact(self._active.run_id, keep)

    async def close(self) -> None:
        """Give back the store and its cell; harnesses with the same store lose them too.

        A cell under a Ray that was there before stays for a while, to serve the next one.
        """
        await self._placed.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _begin(self, run_id: str) -> None:
        if self._active is not None:
            raise ConversationBusyError(self._conversation_id or self._active.run_id)
        self._active, self._run_id = FollowedRun(run_id, self._answerer), run_id

    def _end(self) -> None:
        self._active = None

    async def _told(
        self,
        runtime: Runtime,
        begin: Callable[[], Awaitable[None]],
        *,
        cursor: int | None = None,
        text: bool,
        children: bool,
    ) -> AsyncGenerator[HeardItem]:
        assert self._active is not None, "it was begun"
        keep, self._to_keep = self._to_keep, None
        items = self._active.tell(
            runtime, begin, self._program.secrets, cursor, text=text, children=children, keep=keep
        )
        try:
            async with aclosing(items):
                async for item in items:
                    self._is_on_record = True
                    yield await self._typed.given(item) if isinstance(item, HarnessResult) else item
        except (ActorLostError, CellError, StoreError):
            # This cell serves nobody any more; the next call gets another.
            await self.close()
            raise

    def _workspace_spec(self) -> WorkspaceSpec | None:
        return None if self._workspace is None else WorkspaceSpec(path=str(self._workspace))
