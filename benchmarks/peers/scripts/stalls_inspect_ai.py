"""Inspect: its `react` agent with `CompactionSummary`, at its default share of the window.

It counts tokens by ranks that it fetches when they are first used. The harness has the same ones:
they are laid where it looks for them.
"""

import hashlib
import lzma
import os
from pathlib import Path

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval_async
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import CompactionSummary, Model, get_model
from inspect_ai.tool import Tool, tool

from benchmarks.peers import book
from benchmarks.peers.book import INSTRUCTIONS, MODEL, SUMMARIZER, TASK
from benchmarks.peers.conversations import KEY, Work

FULL = 0.9
RANKS = Path(__file__).parents[3] / "harness_actors" / "models" / "ranks" / "o200k_base.tiktoken.xz"
FETCHED_FROM = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@tool
def page() -> Tool:
    async def execute(number: int) -> str:
        """A page of the book.

        Args:
            number: Which.
        """
        return await book.page(number)

    return execute


def lay_ranks(folder: Path) -> None:
    """Put the ranks where tiktoken keeps what it has fetched."""
    folder.mkdir()
    name = hashlib.sha1(FETCHED_FROM.encode(), usedforsecurity=False).hexdigest()
    (folder / name).write_bytes(lzma.decompress(RANKS.read_bytes()))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)


async def contend(work: Work) -> None:
    lay_ranks(work.folder / "ranks")

    def model(name: str) -> Model:
        return get_model(f"openai-api/{name}/{name}", base_url=work.base_url, api_key=KEY)

    compaction = CompactionSummary(threshold=int(FULL * work.window), model=model(SUMMARIZER))
    (log,) = await eval_async(
        Task(
            dataset=[Sample(input=TASK)],
            solver=react(prompt=INSTRUCTIONS, tools=[page()], submit=False, compaction=compaction),
        ),
        model=model(MODEL),
        log_dir=str(work.folder / "logs"),
        log_realtime=False,
        ctl_server=False,
        score=False,
    )
    if log.status != "success":
        raise RuntimeError(f"the evaluation ended {log.status}: {log.error}")
