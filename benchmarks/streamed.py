"""The process that is measured: one way to read an answer as it comes. `bench_streaming` starts it.

It reads some answers one after the other, each of so many tokens, and writes down when the
first of each was there.
"""

import asyncio
import json
import os
import pty
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

from benchmarks.windows import window
from harness_actors.actors import RuntimeKind
from harness_actors.testing import Reply

MODEL, KEY = "loopback", "none"
WORD = "token "


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is to be read.

    Attributes:
        base_url: The model server.
        folder: Where files go.
        tokens: Of an answer; the server sends each by itself.
        answers: How many answers.
        runtime: What `run_stream` runs on.
        idle_s: How long it is looked at without work: so long that the clock ticks of forty
            processes do not count.
    """

    base_url: str
    folder: Path
    tokens: int
    answers: int
    runtime: RuntimeKind = "ray"
    idle_s: float = 10.0

    def as_json(self) -> str:
        """To be handed to another process."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**{**fields, "folder": Path(fields["folder"])})

    @property
    def text(self) -> str:
        return WORD * self.tokens


def script(body: Mapping[str, Any]) -> Reply:
    """What the loopback server answers: as many tokens as the user asks for."""
    asked = next(message["content"] for message in body["messages"] if message["role"] == "user")
    return Reply.text(WORD * int(asked))


async def read_with_client(reading: Reading) -> None:
    """As the client's documentation shows it."""
    import openai

    async with openai.AsyncOpenAI(base_url=reading.base_url, api_key=KEY, max_retries=0) as client:

        async def answer() -> float:
            began, first, said = time.perf_counter(), 0.0, []
            stream = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": str(reading.tokens)}],
                stream=True,
            )
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    first = first or time.perf_counter() - began
                    said.append(chunk.choices[0].delta.content)
            assert "".join(said) == reading.text, "the answer is not whole"
            return first

        await answer()
        with window("work"):
            firsts = [await answer() for _ in range(reading.answers)]
    _keep(reading, firsts)


async def read_with_harness(reading: Reading) -> None:
    """By `run_stream`, on a cell that is warm."""
    from harness_actors import AgentHarness, ChatAgent, OpenAIModel
    from harness_actors.events import TextDelta

    model = OpenAIModel(MODEL, base_url=reading.base_url, api_key=KEY)
    async with AgentHarness(
        ChatAgent(model=model),
        completion="answer",
        runtime=reading.runtime,
        store=reading.folder / "runs.db",
        address="local",
    ) as harness:

        async def answer() -> float:
            harness.begin_conversation()
            began, first, said = time.perf_counter(), 0.0, []
            async for item in harness.run_stream(str(reading.tokens)):
                if isinstance(item, TextDelta):
                    first = first or time.perf_counter() - began
                    said.append(item.text)
            assert "".join(said) == reading.text, "the answer is not whole"
            return first

        await answer()
        await answer()
        with window("work"):
            firsts = [await answer() for _ in range(reading.answers)]
        with window("idle"):
            await asyncio.sleep(reading.idle_s)
    _keep(reading, firsts)


def read_with_command(reading: Reading) -> None:
    """By `harness run` on a terminal, from the moment when its model is asked.

    It starts a Ray of its own each time, which other questions are about.
    """
    firsts = []
    for number in range(reading.answers):
        firsts.append(_run_command(reading, f"{number}"))
    _keep(reading, firsts)


def _run_command(reading: Reading, number: str) -> float:
    _tell(reading, "hold")
    asked = _tell(reading, "hold")["requests"]
    command = [
        *(sys.executable, "-m", "harness_actors", "run", str(reading.tokens)),
        *("--model", MODEL, "--model-base-url", reading.base_url, "--address", "local"),
        *("--agent", str(_agent_file(reading))),
    ]
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(HARNESS_HOME=str(reading.folder / number), TERM="dumb")
        os.execv(command[0], command)
    while _tell(reading, "hold")["requests"] == asked:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            raise RuntimeError(f"harness run ended early: {os.read(terminal, 65_536).decode()}")
        time.sleep(0.1)
    with window(f"idle {number}"):
        time.sleep(reading.idle_s)
    with window(f"work {number}"):
        began = time.perf_counter()
        _tell(reading, "release")
        first, shown, left = 0.0, "", reading.tokens
        while left > 0:
            shown += os.read(terminal, 65_536).decode()
            if WORD in shown:
                first = first or time.perf_counter() - began
                left -= shown.count(WORD)
                shown = shown.rpartition(WORD)[2]
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:
        pass  # so a terminal says that nobody is at its other end
    os.close(terminal)
    if status := os.waitpid(pid, 0)[1]:
        raise RuntimeError(f"harness run ended with {os.waitstatus_to_exitcode(status)}")
    return first


def _agent_file(reading: Reading) -> Path:
    path = reading.folder / "agent.yaml"
    path.write_text("harness: {completion: answer}\npersona: {instructions: Say it.}\n")
    return path


def _tell(reading: Reading, what: str) -> dict[str, int]:
    with urlopen(reading.base_url.removesuffix("/v1") + f"/{what}", data=b"") as answer:
        counts: dict[str, int] = json.loads(answer.read())
    return counts


def _keep(reading: Reading, firsts: list[float]) -> None:
    (reading.folder / "firsts").write_text(json.dumps(firsts))


if __name__ == "__main__":
    wanted = Reading.from_json(sys.argv[2])
    match sys.argv[1]:
        case "client":
            asyncio.run(read_with_client(wanted))
        case "run_stream":
            asyncio.run(read_with_harness(wanted))
        case _:
            read_with_command(wanted)
