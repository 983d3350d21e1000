"""A process that makes many calls at once may open a socket for each."""

import json
import subprocess
import sys

# Each call has a file at its two ends, and both ends are in this process.
MANY_CALLS = """
import asyncio
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer, Reply
from tests.models.requests import a_request

async def main(many):
    async with LoopbackServer(lambda body: Reply.text("ok"), keep=0) as server:
        server.hold()
        model = OpenAIModel("gpt-4.1", base_url=server.base_url)
        calls = [asyncio.create_task(model.complete(a_request())) for _ in range(many)]
        await server.until_open(many)
        server.release()
        assert {(await call).text for call in calls} == {"ok"}
        print(server.peak)

asyncio.run(main(2_500))
"""

# The limits of a process are its own, and the hard one is not raised again.
CALLS_UNDER = """
import asyncio, json, resource, sys
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer, Reply
from tests.models.requests import a_request

async def main(given):
    after = []
    async with LoopbackServer(lambda body: Reply.text("ok")) as server:
        for limits in given:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            model = OpenAIModel("gpt-4.1", base_url=server.base_url)
            assert (await model.complete(a_request())).text == "ok"
            after.append(resource.getrlimit(resource.RLIMIT_NOFILE))
    print(json.dumps(after))

asyncio.run(main(json.loads(sys.argv[1])))
"""


def after_calls_under(*limits: tuple[int, int]) -> list[list[int]]:
    """The soft and hard limits of a process that had these and called a model, for each."""
    command = [sys.executable, "-c", CALLS_UNDER, json.dumps(limits)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout)
    return found


def test_as_many_calls_as_there_are_files_for_are_made_at_once() -> None:
    command = [sys.executable, "-c", MANY_CALLS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout == "2500\n", done.stderr


def test_a_model_gets_as_many_files_as_its_process_may_have_and_bears_few() -> None:
    found = after_calls_under((256, 4_000), (256, 1_000), (256, 256))

    assert found == [[4_000, 4_000], [1_000, 1_000], [256, 256]]
