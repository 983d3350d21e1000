"""Does a run notice that its conversation is being summarized, by a model that takes its time?

Three runs at once, of as many rounds each, with a model that takes a fifth of a second for each
answer; so the machine is the same for all, and mostly idle:

- one in a window that is full again and again, summarized beside it, for 20 s each time;
- the same in a window that is never full;
- the same as the first, but in line: nothing is summarized before the window is full, and the run
  waits for that.

What would change our mind: less than 10 plans from summaries; 1.05 × the 99th percentile of the
wall of a round in the window that is never full.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.findings import Finding
from harness_actors.agents import ChatAgent
from harness_actors.config import CompactionConfig
from harness_actors.events import ContextCompacted, RoundCompleted, RunEvent
from harness_actors.harness import AgentHarness
from harness_actors.messages import ToolCall
from harness_actors.plan import Summary
from harness_actors.ports import MadeSummary, ModelRequest, ModelResponse, SummaryRequest
from harness_actors.results import Usage
from harness_actors.tools import tool

WINDOW = 24_000
ANSWER_S = 0.2
SUMMARY_S = 20.0
BESIDE = CompactionConfig(summaries=True, soft=0.5, low_water=0.25)
IN_LINE = CompactionConfig(summaries=True, soft=0.95, low_water=0.25)
WORDS = "the quick brown fox jumps over the lazy dog and runs "


@tool(effect="read_only", volatile=True)
async def page(number: int) -> str:
    """A page of a book.

    Args:
        number: Which.
    """
    return f"{number}: {WORDS * 4}"


@dataclass
class Slow:
    """Puts anything into few words, which takes it long.

    Attributes:
        seconds: How long.
    """

    seconds: float
    name: str = "slow"
    most_tokens: int = 100_000

    async def summarize(self, request: SummaryRequest) -> MadeSummary:
        await asyncio.sleep(self.seconds)
        first, last = request.messages[0][0], request.messages[-1][0]
        said = Summary(facts=(f"m{first} to m{last} are pages.",))
        return MadeSummary(summary=said, usage=Usage(model_calls=1, input_tokens=900))


@dataclass
class Reader:
    """Reads on behind the newest page that it is shown, a token for each four bytes.

    Attributes:
        pages: How many there are.
        answer_s: How long an answer takes, in seconds.
    """

    pages: int
    answer_s: float
    name: str = "reader"
    key_names: tuple[str, ...] = ()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        await asyncio.sleep(self.answer_s)
        tokens = sum(len(message.encoded) for message in request.messages) // 4
        usage = Usage(model_calls=1, input_tokens=tokens, output_tokens=20)
        last = (call for one in reversed(request.messages) for call in one.tool_calls)
        newest = next(last, None)
        number = 1 if newest is None else 1 + orjson.loads(newest.arguments)["number"]
        name, given = ("page", f'{{"number":{number}}}')
        if number > self.pages:
            name, given = "work_complete", '{"summary":"read"}'
        call = ToolCall(f"c{number}", name, given)
        return ModelResponse(text=None, tool_calls=(call,), usage=usage)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


@dataclass(frozen=True)
class Read:
    """What came of a run.

    Attributes:
        at: When each round was on disk, in seconds.
        by_summaries: Plans that summarized more than the one before.
        plans: All plans.
    """

    at: Sequence[float]
    by_summaries: int
    plans: int

    @property
    def wall_s(self) -> float:
        return self.at[-1] - self.at[0]

    def percentile(self, share: float) -> float:
        """Of the walls of its rounds, in seconds."""
        walls = sorted(after - before for before, after in pairwise(self.at))
        return walls[min(len(walls) - 1, int(share * len(walls)))]


async def read(options: Any, window: int, settings: CompactionConfig) -> Read:
    """One run."""
    model = Reader(options.rounds, options.answer_ms / 1000)
    agent = ChatAgent(model=model, tools=[page], summarizer=Slow(options.summary_ms / 1000))
    given: dict[str, Any] = {"max_rounds_per_turn": 10**6, "limits": {"model_calls": 10**6}}
    at: list[float] = []
    summarized, by_summaries, plans = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="compaction-") as folder:
        async with AgentHarness(
            agent,
            store=Path(folder) / "runs.db",
            runtime=options.runtime,
            stall=None,
            max_input_tokens=window,
            compaction=settings,
            **given,
        ) as harness:
            async for item in harness.run_stream("Read the book.", text=False):
                match item:
                    case RunEvent(event=RoundCompleted()):
                        at.append(item.at)
                    case RunEvent(event=ContextCompacted(summarized=now)):
                        plans += 1
                        by_summaries += now > summarized
                        summarized = now
    return Read(at, by_summaries, plans)


async def three(options: Any) -> tuple[Read, Read, Read]:
    """Summarized beside, never full, and summarized in line."""
    window = options.window
    beside, never, in_line = await asyncio.gather(
        read(options, window, BESIDE),
        read(options, 10**7, BESIDE),
        read(options, window, IN_LINE),
    )
    return beside, never, in_line


def main() -> None:
    options = read_options(
        __doc__,
        sizes={
            "rounds": 1500,
            "window": WINDOW,
            "answer_ms": int(ANSWER_S * 1000),
            "summary_ms": int(SUMMARY_S * 1000),
        },
        smoke={"rounds": 60, "window": 4_000, "answer_ms": 5, "summary_ms": 50},
        repeats=1,
    )
    found = [asyncio.run(three(options)) for _ in range(options.repeats)]
    findings = [
        Finding.of(
            "plans from summaries that were made beside",
            [beside.by_summaries for beside, _, _ in found],
            unit="plans",
            at_least=1 if options.smoke else 10,
        ),
        Finding.of(
            "99th percentile of the wall of a round, to a window that is never full",
            [beside.percentile(0.99) / never.percentile(0.99) for beside, never, _ in found],
            at_most=None if options.smoke else 1.05,
        ),
        Finding.of(
            "longest round",
            [1000 * beside.percentile(1.0) for beside, _, _ in found],
            unit="ms",
        ),
        Finding.of(
            "… of the same in line",
            [1000 * in_line.percentile(1.0) for _, _, in_line in found],
            unit="ms",
        ),
        Finding.of(
            "wall of the run in line, to summaries beside it",
            [in_line.wall_s / beside.wall_s for beside, _, in_line in found],
        ),
    ]
    figures = {
        name: [
            {"wall_s": one.wall_s, "p50": one.percentile(0.5), "p99": one.percentile(0.99)}
            | {"by_summaries": one.by_summaries, "plans": one.plans}
            for one in (three[place] for three in found)
        ]
        for place, name in enumerate(("beside", "never_full", "in_line"))
    }
    publish("compaction_background", "×, ms", options, findings, figures)


if __name__ == "__main__":
    main()
