"""What does it cost to keep a conversation within its window, and does it stay there?

- The ladder alone, over a conversation of 10,000 messages and 2 million tokens: how long it takes,
  and for how long it holds the event loop at most.
- One run of 2,000 rounds with results of 4 KB in a window of 32,000 tokens, over HTTP, on the
  local runtime: requests over the window by tiktoken's count, the wall of a round in the last 100
  beside the first 100, and how much of each request was there in the one before it: what a
  provider's cache can use.
- 50 runs at once whose windows are full again and again, beside 50 whose windows never are: CPU of
  a round, without HTTP.

What would change our mind: a request over the window; 1.3 × the wall at the end; less than 0.85 of
the bytes reused; 100 ms for the ladder, 10 ms of them in one piece; 1.5 × the CPU.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish, read_options
from benchmarks.findings import Finding, ratios
from harness_actors.agents import ChatAgent
from harness_actors.compaction import Ladder
from harness_actors.config import CompactionConfig
from harness_actors.conversation import Conversation
from harness_actors.harness import AgentHarness
from harness_actors.messages import Message, ToolCall
from harness_actors.models import OpenAIModel
from harness_actors.models.tokens import load_encoding
from harness_actors.plan import ToolPolicy
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import Usage
from harness_actors.state import Pressure
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel
from harness_actors.tools import tool

WINDOW = 32_000
ENDS = 100
"""Rounds at the beginning and at the end whose walls are compared."""
WORDS = "the quick brown fox jumps over the lazy dog and runs "
POLICIES = {"page": asdict(ToolPolicy(durability="replayable"))}


@tool(effect="read_only", volatile=True)
async def page(number: int, size: int) -> str:
    """A page of a book.

    Args:
        number: Which.
        size: How long, in characters.
    """
    return f"{number}: {(WORDS * (size // len(WORDS) + 1))[:size]}"


@dataclass
class Book:
    """Reads on behind the newest page that it is shown, and counts what it is sent.

    Attributes:
        pages: How many there are.
        size: Of a page, in characters.
        at: When each request came, in seconds.
        over: Requests over the window, by tiktoken's count.
        reused: Bytes of requests that stood at the beginning of the one before.
        sent: Bytes of the requests before.
    """

    pages: int
    size: int
    at: list[float] = field(default_factory=list)
    over: int = 0
    reused: int = 0
    sent: int = 0
    _before: bytes = b""
    _tokens: dict[str, int] = field(default_factory=dict)

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        self.at.append(time.perf_counter())
        parts = [json.dumps(body["tools"]), *map(json.dumps, body["messages"])]
        self.over += sum(map(self._count, parts)) > WINDOW
        whole = "\n".join(parts[1:]).encode()
        self.sent += len(self._before)
        self.reused += common(self._before, whole)
        self._before = whole
        return self.next(body["messages"])

    def next(self, messages: Sequence[Mapping[str, Any]]) -> Reply:
        """The next page, or that the book is read."""
        calls = (call for one in reversed(messages) for call in one.get("tool_calls") or ())
        newest = next(calls, None)
        number = 1 if newest is None else json.loads(newest["function"]["arguments"])["number"] + 1
        if number > self.pages:
            return Reply.call("work_complete", {"summary": "read"})
        return Reply.call("page", {"number": number, "size": self.size})

    def _count(self, part: str) -> int:
        # Most messages come again and again.
        if part not in self._tokens:
            self._tokens[part] = len(load_encoding("o200k_base").encode(part))
        return self._tokens[part]


def common(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True)
class Reader:
    """The same without a server; what it reports is a token for each four bytes."""

    book: Book
    name: str = "reader"
    key_names: tuple[str, ...] = ()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        reply = self.book.next([message.body for message in request.messages[-8:]])
        tokens = sum(len(message.encoded) for message in request.messages) // 4
        answer = await ScriptedModel([reply]).complete(
            ModelRequest(messages=(), tools=request.tools)
        )
        usage = Usage(model_calls=1, input_tokens=tokens, output_tokens=20)
        return ModelResponse(text=None, tool_calls=answer.tool_calls, usage=usage)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


def settings(window: int) -> dict[str, Any]:
    rounds = {"max_rounds_per_turn": 10**6, "limits": {"model_calls": 10**6}}
    return {"max_input_tokens": window, "runtime": "local", "stall": None, **rounds}


async def long_run(rounds: int, size: int) -> Book:
    """One run in a small window."""
    book = Book(rounds, size)
    with tempfile.TemporaryDirectory(prefix="compaction-") as folder:
        async with LoopbackServer(book, keep=1) as server:
            model = OpenAIModel("gpt-4o", base_url=server.base_url, api_key="none")
            agent = ChatAgent(model=model, tools=[page])
            store = Path(folder) / "runs.db"
            async with AgentHarness(agent, store=store, **settings(WINDOW)) as harness:
                result = await harness.run("Read the book.")
    assert result.status == "done", result.reason
    return book


async def at_once(runs: int, rounds: int, size: int, window: int) -> float:
    """CPU of a round, in milliseconds, of so many runs at once."""
    with tempfile.TemporaryDirectory(prefix="compaction-") as folder:
        agent = ChatAgent(model=Reader(Book(rounds, size)), tools=[page])
        store, given = Path(folder) / "runs.db", settings(window)
        harnesses = [AgentHarness(agent, store=store, **given) for _ in range(runs)]
        # Whoever is first opens the cell; one conversation has one run at a time.
        async with harnesses[0]:
            began = time.process_time()
            results = await asyncio.gather(*(one.run("Read the book.") for one in harnesses))
            spent = time.process_time() - began
    assert all(result.status == "done" for result in results), results[0].reason
    return 1000 * spent / (runs * rounds)


def a_log(messages: int, tokens: int) -> Conversation:
    """A task, and then calls with results."""
    each = 2 * tokens // messages
    text = (WORDS * (each // 10))[: each * 4]

    def rounds() -> Iterator[Message]:
        yield Message.user("Read the book.", tokens=8)
        for number in range(messages // 2):
            call = ToolCall(f"c{number}", "page", f'{{"number":{number}}}')
            yield Message.assistant(None, [call], tokens=20)
            yield Message.tool_result(call.id, f"{number} {text}", tokens=each)

    return Conversation(rounds())


def climb(log: Conversation) -> tuple[float, float]:
    """How long the ladder takes, and its longest piece, in milliseconds."""
    pressure = Pressure(
        window_tokens=WINDOW,
        request_tokens=log.tokens + 1000,
        overhead_tokens=1000,
        policies=POLICIES,
    )
    at = [time.perf_counter()]
    ladder = Ladder(log, None, pressure, CompactionConfig())
    for _ in ladder.climb():
        at.append(time.perf_counter())
    assert ladder.result().fits
    at.append(time.perf_counter())
    return 1000 * (at[-1] - at[0]), 1000 * max(after - before for before, after in pairwise(at))


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"messages": 10_000, "rounds": 2000, "result_bytes": 4096, "runs": 50, "short": 60},
        smoke={"messages": 400, "rounds": 60, "runs": 2, "short": 30},
        repeats=3,
    )
    log = a_log(options.messages, 200 * options.messages)
    climbs = [climb(log) for _ in range(max(3, options.repeats))]
    books = [
        asyncio.run(long_run(options.rounds, options.result_bytes)) for _ in range(options.repeats)
    ]
    full: list[float] = []
    free: list[float] = []
    for _ in range(options.repeats):
        for found, window in ((full, 12_000), (free, 10**7)):
            work = at_once(options.runs, options.short, options.result_bytes, window)
            found.append(asyncio.run(work))
    findings = [
        Finding.of(
            f"ladder over {options.messages:,} messages",
            [one[0] for one in climbs],
            unit="ms",
            at_most=100.0,
            computing=True,
        ),
        Finding.of(
            "… its longest piece",
            [one[1] for one in climbs],
            unit="ms",
            at_most=10.0,
            computing=True,
        ),
        Finding.of(
            f"{options.rounds:,} rounds in {WINDOW:,} tokens: requests over the window",
            [one.over for one in books],
            unit="requests",
            at_most=0,
        ),
        Finding.of("… wall of a round, last to first", map(slowing, books), at_most=1.3),
        Finding.of(
            "… bytes that stood at the beginning of the request before",
            [one.reused / one.sent for one in books],
            at_least=0.85,
        ),
        Finding.of(
            f"CPU of a round, {options.runs} runs in full windows, to never full ones",
            ratios(full, free),
            at_most=1.5,
        ),
    ]
    publish("compaction", "ms, ×", options, findings, {"full_ms": full, "free_ms": free})


def slowing(book: Book) -> float:
    """The wall of a late round beside that of an early one."""
    gaps = [after - before for before, after in pairwise(book.at)]
    ends = min(ENDS, len(gaps) // 2)
    return sum(gaps[-ends:]) / sum(gaps[:ends])


if __name__ == "__main__":
    main()
