"""Where scenarios are played: a scripted model over HTTP, the whole loop, and what it was asked.

As a process of its own, which a test may kill: ``python -m tests.scenarios.stage MODULE FOLDER
URL`` begins the scenario ``MODULE.SCENARIO``, or goes on with it, and prints its result.
"""

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness_actors import AgentHarness, ChatAgent, HarnessResult
from harness_actors.models import Backoff, OpenAIModel
from harness_actors.results import decode_result, encode_result
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply
from harness_actors.testing.faults import Faults
from harness_actors.tools import coding_tools

TASK = "Write the report."
DONE = Reply.call("work_complete", {"summary": "The report is written."})
AT_ONCE = Backoff(first_s=0.001, longest_s=0.002)
ANSWER_S = 0.01
"""What an answer takes where the process is killed, so that it is at work for a while."""
LATEST_KILL_S = 0.05
"""After the request at which it is killed: in that, in the calls that follow, or some later."""


def writes(path: str, text: str) -> Reply:
    return Reply.call("write_file", {"path": path, "content": text})


def runs(command: str) -> Reply:
    return Reply.call("run_command", {"command": command})


def in_order(*replies: Reply) -> Callable[[Mapping[str, Any]], Reply]:
    """A script: the first reply to a conversation without an answer, and so on; the last stays."""

    def reply(body: Mapping[str, Any]) -> Reply:
        spoken: int = sum(message["role"] == "assistant" for message in body["messages"])
        said: Reply = replies[min(spoken, len(replies) - 1)]
        return said

    return reply


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What a model says, and what the run has.

    Attributes:
        script: What it says to a request.
        agent: What the agent has besides the model and the shipped tools for code.
        settings: Settings of the harness that are not those that it is shipped with.
        faults: Faults of the provider.
    """

    script: Callable[[dict[str, Any]], Reply]
    agent: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    faults: Faults | None = None

    def harness(self, folder: Path, url: str, **given: Any) -> AgentHarness:
        """One whose journal and workspace are in a folder."""
        settings = {
            "runtime": "local",
            "store": folder / "runs.db",
            "workspace": folder / "work",
            **self.settings,
            **given,
        }
        model = OpenAIModel("scripted", base_url=url, backoff=AT_ONCE)
        parts = {"tools": coding_tools(), "model": model, **self.agent}
        return AgentHarness(ChatAgent(**parts), **settings)

    def server(self, **given: Any) -> LoopbackServer:
        return LoopbackServer(self.script, faults=self.faults, keep=1_000, **given)


@dataclass(frozen=True, kw_only=True)
class Played:
    """What came of a scenario.

    Attributes:
        result: That of the run.
        bodies: The requests, as bytes, the oldest first.
        workspace: Where it worked.
    """

    result: HarnessResult
    bodies: tuple[bytes, ...]
    workspace: Path

    @property
    def ending(self) -> tuple[str, str, bool]:
        """Status, reason, and whether its completion was verified."""
        return (self.result.status, self.result.reason.kind, self.result.completion_verified)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests; one that is asked again, byte for byte, stands here once.

        It need not be asked again at once: who is killed may be a round ahead of the disk.
        """
        return [json.loads(body) for body in dict.fromkeys(self.bodies)]

    @property
    def talks(self) -> dict[str, list[dict[str, Any]]]:
        """The requests of each conversation, by how it begins; one without children has one."""
        found: dict[str, dict[bytes, dict[str, Any]]] = {}
        for body in self.bodies:
            request = json.loads(body)
            spoken = (n for n, one in enumerate(request["messages"]) if one["role"] == "assistant")
            begins = json.dumps(request["messages"][: next(spoken, None)])
            found.setdefault(begins, {})[body] = request
        return {begins: list(requests.values()) for begins, requests in found.items()}

    @property
    def told(self) -> list[str]:
        """What the harness has told the model after the task, each message once."""
        return [message["content"] for message in self.said_by("user")][1:]

    @property
    def answers(self) -> list[str]:
        """The results of calls, each once."""
        return [message["content"] for message in self.said_by("tool")]

    def said_by(self, role: str) -> list[dict[str, Any]]:
        """Messages of the last request, in which all are that went before."""
        return [one for one in self.requests[-1]["messages"] if one["role"] == role]

    def check_growth(self) -> None:
        """Each request is the one before, and more: nothing is told anew, and nothing is lost.

        But where its window was full: then it says how to read what it does not show.
        """
        for requests in self.talks.values():
            messages = [request["messages"] for request in requests]
            for earlier, later in pairwise(messages):
                if later[: len(earlier)] != earlier:
                    assert "read_artifact" in json.dumps(later)
                else:
                    assert len(later) > len(earlier)


async def play(scenario: Scenario, folder: Path, **given: Any) -> Played:
    """A scenario in this process."""
    async with scenario.server() as server, scenario.harness(folder, server.base_url, **given) as h:
        async with asyncio.timeout(100):
            result = await h.run(TASK)
    return played(result, server, folder)


async def play_killed(module: str, folder: Path, seed: int) -> Played:
    """The same in a process that is killed at a drawn moment, and then in another to its end."""
    scenario: Scenario = import_module(module).SCENARIO
    asked = len((await play(scenario, folder / "whole")).bodies)
    draw = random.Random(seed)
    number, wait_s = draw.randint(1, asked), draw.uniform(0, LATEST_KILL_S)
    print(f"seed {seed}: killed {wait_s * 1000:.0f} ms after request {number} of {asked}")

    async def struck(_: asyncio.subprocess.Process) -> None:
        await server.until_asked(number)
        await asyncio.sleep(wait_s)

    async with scenario.server(latency_s=ANSWER_S) as server:
        return await play_cut(module, folder / "cut", server, struck)


async def play_cut(
    module: str,
    folder: Path,
    server: LoopbackServer,
    struck: Callable[[asyncio.subprocess.Process], Awaitable[None]],
) -> Played:
    """A scenario in a process that is killed, and then in another to its end.

    Args:
        module: That of the scenario.
        folder: Where it has its journal and its workspace.
        server: Its model.
        struck: Returns when the first process is to be killed.
    """
    async with asyncio.timeout(100):
        first = await _begun(module, folder, server.base_url)
        await struck(first)
        if first.returncode is None:
            first.kill()
        await first.communicate()
        second = await _begun(module, folder, server.base_url)
        out, error = await second.communicate()
    assert second.returncode == 0, error.decode()
    return played(decode_result(json.loads(out)), server, folder)


def played(result: HarnessResult, server: LoopbackServer, folder: Path) -> Played:
    """What came of it, with what the server was asked."""
    bodies = tuple(one.body for one in server.seen)
    one = Played(result=result, bodies=bodies, workspace=folder / "work")
    one.check_growth()
    return one


async def _begun(module: str, folder: Path, url: str) -> asyncio.subprocess.Process:
    words = ("-m", "tests.scenarios.stage", module, str(folder), url)
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, *words, stdout=pipe, stderr=pipe)


async def _go_on(module: str, folder: Path, url: str) -> HarnessResult:
    """Begin the scenario; or take it up, where it is on record."""
    store = folder / "runs.db"
    known = JournalReader(store).headings() if store.exists() else ()
    scenario: Scenario = import_module(module).SCENARIO
    async with scenario.harness(folder, url) as harness:
        if known:
            return await harness.resume(next(iter(known)).run_id)
        return await harness.run(TASK)


if __name__ == "__main__":
    found = asyncio.run(_go_on(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
    print(json.dumps(encode_result(found)))
