"""Asking the hooks of an agent: each within its time, and what they say on record."""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from harness_actors.events import HookFailed
from harness_actors.policies import Allow, Deny, EndRun, Hook, HookEvent, Hooks
from harness_actors.policies.answers import Verdict, verdict_of
from harness_actors.policies.hooks import LATE_S, HookKind
from harness_actors.policies.verdicts import shortened_reason
from harness_actors.ports import RunContext
from harness_actors.ports.origins import ORIGIN
from harness_actors.state import TURN_COUNT
from harness_actors.turn.bounds import Due
from harness_actors.turn.deadline import Allowance, Raised, TimedOut, run_within
from harness_actors.turn.interruption import is_ctrl_c
from harness_actors.turn.texts import shortened, well_formed

PROBLEM_CHARS = 200
"""Characters of what is said of a hook that failed."""
TOLD_FAILURES = 3
"""Hooks that failed at one point of a run, of which is told."""


@dataclass(frozen=True, slots=True)
class Withhold:
    """Of a `post_tool` hook that has not seen a result as it must: nobody else may.

    Attributes:
        why: It failed, or the time of its run was over.
    """

    why: Literal["failed", "cut"]


@dataclass(slots=True)
class Asked:
    """What the hooks at one point of a run have said so far.

    Attributes:
        plain: As it is kept on record.
        text: Of `post_tool`: what the model is to see; None for what it would anyway.
    """

    plain: dict[str, Any] = field(default_factory=dict)
    text: str | None = None

    def failed(self, hook: Hook, problem: str) -> None:
        """A hook has failed."""
        failures = self.plain.setdefault("failed", [])
        if len(failures) < TOLD_FAILURES:
            failures.append([hook.name[:PROBLEM_CHARS], problem])


@dataclass(frozen=True, slots=True)
class HookCalls:
    """Asks the hooks of one agent in one run.

    Attributes:
        context: The run; None of one that is over, of which nothing is on record any more.
        hooks: Those of the agent.
        in_thread: Runs a blocking function.
        due: When the run's own time is over.
        agent_path: The names of the agents down to the one at work.
    """

    context: RunContext | None
    hooks: Hooks
    in_thread: Callable[..., Awaitable[Any]]
    due: Callable[[], Due]
    agent_path: tuple[str, ...]

    def event(self, kind: type[HookEvent], **facts: Any) -> Callable[[], HookEvent]:
        """Makes an event of the run, once somebody is to be told.

        Args:
            kind: Of the event.
            facts: What it tells besides; what is callable is made then, too.
        """

        def make() -> HookEvent:
            assert self.context is not None, "the run is not over"
            made = {name: fact() if callable(fact) else fact for name, fact in facts.items()}
            # What comes before the first turn is of that turn.
            turn = max(1, self.context.get(TURN_COUNT))
            run_id = self.context.spec.run_id
            return kind(run_id=run_id, agent_path=self.agent_path, turn=turn, **made)

        return make

    async def observe(
        self,
        kind: HookKind,
        about: Any,
        ask: Callable[[Asked], Awaitable[None]],
        *,
        announce: bool = True,
        **told: str,
    ) -> Asked:
        """Ask at one point of a run, or read what was said there before.

        Args:
            kind: Of the hooks.
            about: What it is about, which names the point within a round.
            ask: Asks; not awaited where the answer is on record.
            announce: Tell that hooks begin; False where what was told already says enough.
            told: Facts of the point, for events.
        """
        asked, context = Asked(), self.context
        assert context is not None, "the run is not over"

        async def make() -> Mapping[str, Any]:
            if announce:
                # Should one of them end this process, it is known whose hook that was.
                context.tools_started([f"the hook {kind}"])
            await ask(asked)
            return asked.plain

        plain = await context.observe(kind, about, make)
        for name, problem in plain.get("failed", ()):
            context.emit(HookFailed(kind=kind, hook=name, problem=problem, **told))
        return Asked(plain, asked.text)

    async def tell(self, kind: HookKind, about: Any, event_of: Callable[[], HookEvent]) -> None:
        """Tell hooks that only observe."""

        async def ask(asked: Asked) -> None:
            event = event_of()
            for hook in self.hooks.of(kind):
                await self.answer(kind, hook, event, asked)

        if self.hooks.of(kind):
            await self.observe(kind, about, ask)

    async def judge(self, kind: HookKind, about: Any, event_of: Callable[[], HookEvent]) -> Asked:
        """Ask hooks that may deny; `plain` has the reason under ``denied`` or ``ends``."""

        async def ask(asked: Asked) -> None:
            event = event_of()
            for hook in self.hooks.of(kind):
                match await self.answer(kind, hook, event, asked):
                    case Deny(reason):
                        asked.plain["denied"] = shortened_reason(reason)
                        return
                    case EndRun(reason):
                        asked.plain["ends"] = shortened_reason(reason)
                        return

        if not self.hooks.of(kind):
            return Asked()
        return await self.observe(kind, about, ask)

    async def answer(
        self, kind: HookKind, hook: Hook, event: HookEvent, asked: Asked
    ) -> Verdict | Withhold:
        """What one hook says; of one that failed, what is to follow from that."""
        cut = False
        try:
            return verdict_of(kind, await self._called(kind, hook, event))
        except _FailedError as failed:
            problem, cut = str(failed), failed.cut
        except ValueError as error:
            problem = str(error)
        problem = shortened(well_formed(problem), PROBLEM_CHARS)
        asked.failed(hook, problem)
        if cut:
            # It did nothing wrong: what it would have said is not known, whatever follows when
            # it fails.
            return Withhold("cut")
        if hook.denies_on_error(kind):
            if kind == "post_tool":
                return Withhold("failed")
            return Deny(f"the hook {hook.name} that decides about it failed: {problem}")
        return Allow()

    async def _called(self, kind: HookKind, hook: Hook, event: HookEvent) -> object:
        limit_s, of_run, cut = hook.timeout_s, self.due().seconds, False
        if of_run is not None:
            left_s = max(0.0, of_run + LATE_S) if kind == "post_tool" else max(0.0, of_run)
            cut = kind == "post_tool" and left_s < limit_s
            limit_s = min(limit_s, left_s)
        outcome = await run_within(
            Allowance(Due(limit_s)),
            f"hook {hook.name}",
            partial(_begin, hook, event, self.in_thread),
        )
        match outcome:
            case TimedOut(last=last):
                if last is not None and is_ctrl_c(last):
                    raise last
                if cut:
                    problem = f"the run's time was over, and {LATE_S:g} s more"
                    raise _FailedError(problem, cut=True)
                raise _FailedError(f"it took longer than {limit_s:g} s")
            case Raised(error):
                if is_ctrl_c(error):
                    raise error
                raise _FailedError(f"{type(error).__name__}: {error}")
            case returned:
                return returned.value


class _FailedError(Exception):
    """A hook raised, or did not end in time; the text says which.

    Attributes:
        cut: What ended it is the time of its run, after which a `post_tool` hook may work on.
    """

    def __init__(self, problem: str, *, cut: bool = False) -> None:
        super().__init__(problem)
        self.cut = cut


async def _begin(hook: Hook, event: HookEvent, in_thread: Callable[..., Awaitable[Any]]) -> object:
    # In a task of its own, so that it need not be taken back.
    ORIGIN.set(f"hook {hook.name}")
    function = hook.function
    if is_async(function):
        return await function(event)
    value = await in_thread(function, event)
    return await value if inspect.isawaitable(value) else value


def is_async(function: object) -> bool:
    """Whether it need not run in a thread: an ``async`` function, or an object that is called
    as one."""
    called = getattr(type(function), "__call__", None)  # noqa: B004 - it is looked at
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def size_on_record(plain: Mapping[str, Any]) -> int:
    """Bytes that an answer takes where it is kept."""
    return len(json.dumps(plain)) if plain else len("{}")
