"""Answers that send a conversation on to another host."""

import asyncio
from collections.abc import Sequence
from itertools import product

from harness_actors.errors import ModelError
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer
from tests.attack.attacks import Attack, Outcome
from tests.models.endpoints import Exchange, endpoint
from tests.models.requests import a_request

CANARY = "what nobody else may read"
STATUSES = ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent")
WAYS = ("at once", "by another path", "without a scheme", "by a name that begins alike")


async def _send_on(status: str, way: str, *, streams: bool) -> Sequence[str]:
    """Answer a request with a redirect; what came through to where it leads."""
    async with LoopbackServer() as elsewhere:
        there = f"{elsewhere.base_url}/chat/completions"

        async def serve(exchange: Exchange) -> None:
            locations = {
                "at once": there,
                "by another path": there if "/hop" in exchange.head else "/hop",
                "without a scheme": there.removeprefix("http:"),
                "by a name that begins alike": there.replace("127.0.0.1", "127.0.0.1.localhost"),
            }
            await exchange.answer(b"", f"Location: {locations[way]}", status=status)

        said = "followed"
        async with endpoint(serve) as base_url:
            model = OpenAIModel("scripted", base_url=base_url, max_retries=0)
            try:
                if streams:
                    _ = [piece async for piece in model.stream(a_request(CANARY))]
                else:
                    await model.complete(a_request(CANARY))
            except ModelError as error:
                said = str(error)
            await model.close()
    case = f"{status}, {way}{', streamed' if streams else ''}"
    came = [f"{case}: the conversation came to another host"] if elsewhere.requests else []
    return came if "which is not followed" in said else [*came, f"{case}: {said}"]


def send_on(tries: int) -> Outcome:
    """Send so many requests on, in every way in turn."""
    cases = list(product(STATUSES, WAYS, (False, True)))
    through: list[str] = []
    for number in range(tries):
        status, way, streams = cases[7 * number % len(cases)]
        through += asyncio.run(_send_on(status, way, streams=streams))
    return Outcome(tries, tuple(through))


ATTACKS = (
    Attack(
        "redirects",
        "answers that send the conversation on to another host",
        send_on,
        200,
        10,
    ),
)
