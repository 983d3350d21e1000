"""One reader of a run's text does not read: neither the run nor another reader waits for it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from harness_actors.actors import Runtime
from harness_actors.actors.driver.following import follow
from harness_actors.actors.text import streams
from harness_actors.actors.text.hearing import HeardItem, with_texts
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.events import TextDelta, TextGap
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.followers import opened, results, submit

WITHIN_S = 60.0
KEPT_PIECES = 4
ANSWER = " ".join(str(number) for number in range(300))
"""Said over more than a second, in pieces of 0.15 s: more than are kept."""


async def answering(runtime: Runtime) -> tuple[RunSpec, AsyncGenerator[HeardItem]]:
    """A run that gives a long answer, and its stream, which submits it."""
    model = ScriptedModel([Reply.text(ANSWER)], word_s=0.005)
    program = Program.of(ChatAgent(model=model))
    spec = program.spec("go", HarnessConfig(completion="answer"))

    async def begin() -> None:
        await runtime.subscribe([spec.run_id])
        await submit(runtime, program, [spec])

    return spec, with_texts(runtime, spec.run_id, follow(runtime, [spec.run_id], begin))


async def test_a_reader_that_stops_reading_misses_text_and_is_told_and_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "KEPT_PIECES", KEPT_PIECES)
    async with opened("local", tmp_path / "runs.db") as runtime, asyncio.timeout(WITHIN_S):
        spec, stream = await answering(runtime)
        async with aclosing(stream):
            # The first piece is enough to know where the slow reader is.
            slow = asyncio.ensure_future(runtime.texts(spec.run_id))
            items = [item async for item in stream]
        before = await slow
        after = await runtime.texts(spec.run_id, before.cursor)

    assert _text(items) == ANSWER
    assert not any(isinstance(item, TextGap) for item in items)
    assert isinstance(items[-1], HarnessResult)
    assert items[-1].output_text == ANSWER
    heard = "".join(spoken.text for spoken in before.spoken)
    at_last = "".join(spoken.text for spoken in after.spoken)
    assert ANSWER.startswith(heard)
    assert ANSWER.endswith(at_last)
    assert after.missed
    assert len(heard) + after.missed + len(at_last) == len(ANSWER)


async def read_to_its_end(runtime: Runtime, run_id: str) -> str:
    """The text of a run with one answer, none of it missing."""
    texts = await runtime.texts(run_id)
    read = list(texts.spoken)
    while not read or not read[-1].ended:
        texts = await runtime.texts(run_id, texts.cursor)
        assert not texts.missed
        read += texts.spoken
    return "".join(spoken.text for spoken in read)


async def test_a_stream_that_nobody_takes_items_from_holds_up_no_run_and_tells_its_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "KEPT_PIECES", KEPT_PIECES)
    async with opened("local", tmp_path / "runs.db") as runtime, asyncio.timeout(WITHIN_S):
        spec, stream = await answering(runtime)
        async with aclosing(stream):
            other = asyncio.ensure_future(read_to_its_end(runtime, spec.run_id))
            items: list[HeardItem] = []
            async for item in stream:
                items.append(item)
                if isinstance(item, TextDelta):
                    break
            # It takes nothing more until the other reader has heard all and the run is over.
            read = await other
            ended = (await results(runtime, [spec.run_id]))[spec.run_id]
            items += [item async for item in stream]

    assert read == ANSWER
    assert (ended.status, ended.output_text) == ("done", ANSWER)
    assert items[-1] == ended
    told = [item for item in items if isinstance(item, TextDelta | TextGap)]
    (gap,) = (place for place, item in enumerate(told) if isinstance(item, TextGap))
    heard, at_last = _text(told[:gap]), _text(told[gap:])
    assert ANSWER.startswith(heard)
    assert ANSWER.endswith(at_last)
    assert len(heard) + sum(_missed(item) for item in told) + len(at_last) == len(ANSWER)


def _text(items: Sequence[HeardItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


def _missed(item: HeardItem) -> int:
    return (item.missed or 0) if isinstance(item, TextGap) else 0
