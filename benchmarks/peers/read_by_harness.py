"""The book as the harness reads it, through what a user calls."""

from benchmarks.peers.book import INSTRUCTIONS, MODEL, SUMMARIZER, TASK, page
from benchmarks.peers.conversations import KEY, Work
from harness_actors import ChatAgent, HarnessConfig, OpenAIModel, run_batch, tool
from harness_actors.compaction import ChatClientSummarizer
from harness_actors.config import CompactionConfig

EARLY = 0.6
"""Of the window, from where on it is summarized: a summary is there before the window is full."""


async def early(work: Work) -> None:
    await _read(work, CompactionConfig(soft=EARLY))


async def as_it_comes(work: Work) -> None:
    await _read(work, CompactionConfig())


async def _read(work: Work, compaction: CompactionConfig) -> None:
    summarizer = OpenAIModel(SUMMARIZER, base_url=work.base_url, api_key=KEY)
    agent = ChatAgent(
        model=OpenAIModel(MODEL, base_url=work.base_url, api_key=KEY),
        instructions=INSTRUCTIONS,
        tools=[tool(effect="read_only")(page)],
        summarizer=ChatClientSummarizer(summarizer),
    )
    outcomes = run_batch(
        [TASK],
        agent,
        # The other frameworks' conversations end with an answer, too.
        config=HarnessConfig(
            completion="answer", max_input_tokens=work.window, compaction=compaction
        ),
        run_dir=work.folder / "batch",
        runtime="local",
    )
    async for outcome in outcomes:
        if outcome.status != "done":
            raise RuntimeError(f"the run ended {outcome.status}: {outcome.reason}")
