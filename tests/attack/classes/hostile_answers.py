"""Answers of a provider that would stop a process, or say what is nobody's to say."""

import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from harness_actors import AgentHarness, ChatAgent, HarnessConfig, HarnessResult, Limits, tool
from harness_actors.actors.packing import unpack as unpack_code
from harness_actors.errors import ModelAnswerError, ModelError
from harness_actors.messages import Message
from harness_actors.models import Backoff, OpenAIModel, Price
from harness_actors.ports import ModelRequest, ModelResponse, ToolSet
from harness_actors.stores.codec import unpack, unpack_message
from tests.attack.attacks import Attack, Outcome
from tests.attack.hostile_answers import BOMBS, Make, absurd_usage, absurd_wait, calls, echo, nested
from tests.attack.hostile_server import Bytes, HostileServer

KEY = "canary0123456789abcdefCANARY"
MOST_MB = 300.0
"""What the process that asks may take more than before."""
WITHIN_S = 60.0
REFUSED = 400
"""From this status on, an answer is an error that may be asked for again."""


@tool(effect="read_only")
async def read_file(path: str) -> str:
    """Read a file."""
    return f"nothing is in {path[:20]}"


@tool
async def write_file(path: str) -> str:
    """Write a file."""
    return f"wrote {path[:20]}"


def _model(base_url: str) -> OpenAIModel:
    at_once = Backoff(first_s=0.001, longest_s=0.002, longest_asked_s=0.01)
    return OpenAIModel(
        "m", base_url=base_url, api_key=KEY, price=Price(1.0, None, 1.0), backoff=at_once,
        max_retries=1, timeout_s=WITHIN_S,
    )  # fmt: skip


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _ask(model: OpenAIModel, *, streamed: bool) -> ModelResponse | ModelError:
    request = ModelRequest(messages=[Message.user("hello")], tools=ToolSet.of([]))
    try:
        if not streamed:
            return await model.complete(request)
        parts = [part async for part in model.stream(request)]
    except ModelError as error:
        return error
    finally:
        await model.close()
    assert isinstance(parts[-1], ModelResponse)
    return parts[-1]


def _tried(tries: int, attempt: Callable[[int], str]) -> Outcome:
    """Try so often; `attempt` says what got through, if anything."""
    before_mb, worst_s, through = _peak_mb(), 0.0, []
    for number in range(tries):
        began = time.monotonic()
        if fault := attempt(number):
            through.append(fault)
        took_s = time.monotonic() - began
        worst_s = max(worst_s, took_s)
        if took_s > WITHIN_S:
            through.append(f"try {number} took {took_s:.0f} s")
    grown_mb = _peak_mb() - before_mb
    if grown_mb > MOST_MB:
        through.append(f"the process took {grown_mb:.0f} MB more")
    figures = (("worst, s", round(worst_s, 2)), ("memory, MB", round(grown_mb)))
    return Outcome(tries, tuple(through), figures)


def throw_bombs(tries: int) -> Outcome:
    names = list(BOMBS)

    def attempt(number: int) -> str:
        name, chance = names[number % len(names)], Random(number)
        status = 200

        def respond(_body: bytes, _key: str) -> Bytes:
            nonlocal status
            answer = BOMBS[name](chance)
            status = answer.status
            return answer

        with HostileServer(respond) as server:
            streamed = "event" in name or name == "long_line" or chance.random() < 0.5
            answer = asyncio.run(_ask(_model(server.base_url), streamed=streamed))
            asked = server.requests
        if status >= REFUSED:
            return "" if isinstance(answer, ModelError) else f"{name} was taken for an answer"
        if isinstance(answer, ModelAnswerError) and asked == 1:
            return ""
        return f"{name} ended in {answer!r} after {asked} requests"[:300]

    return _tried(tries, attempt)


def _answered_by(make: Make) -> Callable[[int], str]:
    """A model call that is answered so, and a run of an agent on it."""

    def attempt(number: int) -> str:
        with HostileServer(lambda _body, _key: make(Random(number))) as server:
            try:
                answer = asyncio.run(_ask(_model(server.base_url), streamed=number % 2 == 0))
            except Exception as error:  # noqa: BLE001 - of any kind: that is what is looked for
                return f"{make.__name__} {number}: {error!r}"[:300]
            if isinstance(answer, ModelResponse) and not 0 <= answer.usage.tokens < 1 << 40:
                return f"{make.__name__} {number}: {answer.usage}"
            result = _run(
                _model(server.base_url), HarnessConfig(max_turns=2, max_rounds_per_turn=2)
            )
        kind = result.reason.kind
        return f"{make.__name__} {number}: {result.reason}"[:300] if kind == "agent_error" else ""

    return attempt


def _run(model: OpenAIModel, config: HarnessConfig, store: Path | None = None) -> HarnessResult:
    async def run(path: Path) -> HarnessResult:
        agent = ChatAgent(model=model, tools=[read_file, write_file])
        async with AgentHarness(agent, config=config, runtime="local", store=path) as harness:
            return await harness.run("work")

    with tempfile.TemporaryDirectory(prefix="ha") as folder:
        return asyncio.run(run(store or Path(folder) / "runs.db"))


def tell_absurd_numbers(tries: int) -> Outcome:
    wrong = (absurd_usage, absurd_wait)
    return _tried(tries, lambda number: _answered_by(wrong[number % 2])(number))


def nest_answers(tries: int) -> Outcome:
    return _tried(tries, _answered_by(nested))


def repeat_ids(tries: int) -> Outcome:
    """Thousands of calls of few ids; where so many are allowed, most of them are refused."""

    def attempt(number: int) -> str:
        chance = Random(number)
        count = chance.choice((257, 2000, 15_000))
        ids = [chance.choice(("a", "a#2", "", "call_1")[: 1 + number % 4]) for _ in range(count)]
        allowed = number % 2 == 0
        limits = Limits(calls_per_message=20_000 if allowed else 256, tool_calls=5)
        with HostileServer(lambda _body, _key: Bytes((calls(ids),))) as server:
            result = _run(_model(server.base_url), HarnessConfig(limits=limits))
        wanted = ("limit", "tool_calls") if allowed else ("failed", "model_error")
        got = (result.status, result.reason.kind)
        return "" if got == wanted else f"{count} calls ended {result.reason}"[:300]

    return _tried(tries, attempt)


def fence_many_calls(tries: int) -> Outcome:
    """Calls that are not idempotent, each of which is on disk by itself."""

    def attempt(number: int) -> str:
        count = (300, 1000, 3000)[number % 3]
        ids = [f"call_{place}" for place in range(count)]
        with (
            HostileServer(lambda _body, _key: Bytes((calls(ids, "write_file"),))) as server,
            tempfile.TemporaryDirectory(prefix="ha") as folder,
        ):
            store = Path(folder) / "runs.db"
            limits = Limits(calls_per_message=count, model_calls=1)
            result = _run(_model(server.base_url), HarnessConfig(limits=limits), store)
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
        if (result.reason.kind, result.usage.tool_calls) != ("model_calls", count):
            return f"{count} calls ended {result.reason}"[:300]
        each = size / count
        return f"{count} calls took {each:.0f} bytes each" if each > 4000 + 1e6 / count else ""

    return _tried(tries, attempt)


def look_for_the_key(tries: int) -> Outcome:
    """One batch of so many tasks, each of which is answered with the key, or with a bomb."""
    makes = [absurd_usage, absurd_wait, nested, *BOMBS.values()]

    def respond(body: bytes, key: str) -> Bytes:
        messages = json.loads(body)["messages"]
        number = int(next(m["content"] for m in messages if m["role"] == "user"))
        chance = Random(f"{number}/{len(messages)}")
        return makes[number % len(makes)](chance) if number % 3 == 0 else echo(chance, key)

    with (
        HostileServer(respond) as server,
        tempfile.TemporaryDirectory(dir="/tmp", prefix="ha") as folder,
    ):
        place = Path(folder)
        said = _batch(place, server.base_url, tries, on_ray=tries > FEW)
        found = [f"the key is in what was printed: {said[-300:]}"] if KEY in said else []
        found += _places_with(KEY, place)
        results = place / "run" / "results.jsonl"
        ended = len(results.read_text().splitlines()) if results.exists() else 0
        if ended != tries:
            found.append(f"{ended} of {tries} tasks ended; the command said: {said[-500:]}")
    return Outcome(tries, tuple(found))


FEW = 8
"""Tasks that a batch without Ray has, in the tests."""


def _batch(place: Path, base_url: str, tasks: int, *, on_ray: bool) -> str:
    lines = [{"id": f"t{number}", "task": str(number)} for number in range(tasks)]
    (place / "tasks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    agent = {
        "model": {"id": "scripted", "base_url": base_url},
        "environment": {"tools": ["read_file", "write_file"]},
        "harness": {"max_turns": 3},
    }
    (place / "agent.yaml").write_text(json.dumps(agent))
    ray = place / "ray"
    where = ("--address", "local") if on_ray else ("--runtime", "local")
    command = (
        *(sys.executable, "-m", "harness_actors", "batch", str(place / "tasks.jsonl")),
        *("--agent", str(place / "agent.yaml"), "--run-dir", str(place / "run"), "-n", "8", *where),
    )
    own = {"HARNESS_HOME": str(place / "home"), "OPENAI_API_KEY": KEY, "RAY_TMPDIR": str(ray)}
    ran = subprocess.run(
        command, env={**os.environ, **own}, capture_output=True, check=False, timeout=900
    )
    return (ran.stdout + ran.stderr).decode("utf-8", "replace")


def _places_with(key: str, place: Path) -> Iterator[str]:
    """Where a text is: names and bytes of files, and columns of journals, unpacked."""
    for path in place.rglob("*"):
        if not path.is_file() or path.is_symlink():
            continue
        if key in path.name or key.encode() in path.read_bytes():
            yield f"the key is in {path.relative_to(place)}"
        if path.suffix == ".db":
            yield from (f"the key is in {path.name}: {column}" for column in _columns(key, path))


def _columns(key: str, path: Path) -> Iterator[str]:
    with sqlite3.connect(path) as journal:
        tables = [
            row[0] for row in journal.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for table in tables:
            for row in journal.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if any(key in text for text in _readings(value)):
                        yield table


def _readings(value: object) -> Iterator[str]:
    """A column in each form that it may have."""
    yield repr(value)
    if isinstance(value, bytes):
        for read in (unpack, unpack_message, unpack_code, zlib.decompress):
            try:
                yield repr(read(value))
            except Exception:  # noqa: BLE001 - it has another form
                continue


ATTACKS = (
    Attack("repeated_ids", "thousands of calls of few ids in one message", repeat_ids, 60, 2),
    Attack(
        "many_fenced_calls",
        "thousands of calls of one message that are not idempotent",
        fence_many_calls,
        12,
        1,
    ),
    Attack(
        "answer_bombs",
        "answers, events and errors that unpack to a GiB or never end",
        throw_bombs,
        200,
        8,
    ),
    Attack("absurd_numbers", "usage and waits that no call has", tell_absurd_numbers, 600, 4),
    Attack("nested_answers", "answers nested up to 100,000 levels deep", nest_answers, 400, 6),
    Attack(
        "key_canary",
        "the key, echoed by a provider, in files, journals, logs and on the screen",
        look_for_the_key,
        300,
        FEW,
    ),
)
