"""The process that is measured: one contender, who does some work. `contest` starts it."""

import asyncio
import resource
import sys
from dataclasses import replace
from typing import Literal, cast

from benchmarks.hand_written import run_aiohttp, run_joined, run_openai, run_post
from benchmarks.harnessed import run_counted, run_harness
from benchmarks.notes import Work

Kind = Literal[
    "openai", "post", "aiohttp", "joined", "ray", "local", "counted-ray", "counted-local"
]
WARM_UP_CONVERSATIONS, WARM_UP_ROUNDS = 10, 2


def warm_up_of(work: Work) -> Work:
    """What a contender does before it is measured: imports and connections are there then."""
    return replace(work, conversations=WARM_UP_CONVERSATIONS, rounds=WARM_UP_ROUNDS, at_once=None)


def contend(kind: Kind, work: Work) -> None:
    """Do the work in the way of that kind."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    # As the harness does: each connection is a file, and the usual limit is 1,024.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    warm_up = warm_up_of(work)
    match kind:
        case "openai":
            asyncio.run(run_openai(work, warm_up))
        case "post":
            asyncio.run(run_post(work, warm_up))
        case "aiohttp":
            asyncio.run(run_aiohttp(work, warm_up))
        case "joined":
            asyncio.run(run_joined(work, warm_up))
        case "ray" | "local":
            asyncio.run(run_harness(kind, work, warm_up))
        case "counted-ray":
            asyncio.run(run_counted("ray", work, warm_up))
        case "counted-local":
            asyncio.run(run_counted("local", work, warm_up))


if __name__ == "__main__":
    contend(cast(Kind, sys.argv[1]), Work.from_json(sys.argv[2]))
