"""Following runs of a runtime to their ends."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace

from harness_actors.actors.driver.below import Below
from harness_actors.actors.runtime import Runtime
from harness_actors.events import InputAwaited, RunEvent, RunParked
from harness_actors.records import CHILD_MARK
from harness_actors.results import HarnessResult


async def follow(
    runtime: Runtime,
    run_ids: Sequence[str],
    begin: Callable[[], Awaitable[None]],
    cursor: int | None = None,
    *,
    heard: bool = False,
    below: Below | None = None,
) -> AsyncGenerator[RunEvent | HarnessResult]:
    """Begin runs, and tell what happens in them until each has ended, waits, or was put aside.

    Args:
        runtime: What serves them.
        run_ids: The runs.
        begin: Submits them or takes them up.
        cursor: A position from before it was looked whether they are over; None for runs
            that cannot go on by themselves.
        heard: They are told between texts that come as they are said, so none waits for another.
        below: Tells of the runs below one of them, too; None tells of no such runs.

    Yields:
        Their events, those of their messages included, in the order of the journal; and after the
        last event of each that ended its result, without the transcript.
    """
    if cursor is None:
        cursor = await runtime.position()
    await begin()
    waiting = set(run_ids)
    while waiting:
        news = await runtime.wait_for_news(cursor, messages=True, at_once=heard)
        cursor = news.cursor
        for event in news.events:
            if event.run_id in waiting:
                yield event
                if below is not None:
                    below.learn(event)
                if isinstance(event.event, RunParked | InputAwaited):
                    waiting.discard(event.run_id)
            elif below is not None and (told := await below.told(event)) is not None:
                yield told
            if isinstance(event.event, RunParked | InputAwaited):
                # Below it nobody goes on, and what is still open it asks for all of them.
                left = [one for one in waiting if one.startswith(event.run_id + CHILD_MARK)]
                for run_id in left if CHILD_MARK not in event.run_id else ():
                    waiting.discard(run_id)
                    yield replace(event, run_id=run_id)
        for run_id in [run_id for run_id in news.results if run_id in waiting]:
            waiting.discard(run_id)
            yield news.results[run_id]
