"""Be one of the contenders: the process that is measured, in the contender's own environment.

python -m benchmarks.peers.contend module:function --base-url URL --folder PATH …
"""

import argparse
import asyncio
from importlib import import_module
from pathlib import Path

from benchmarks.peers.conversations import Work, keep_marks_apart


def contend(entry: str, work: Work) -> None:
    """Do the work; a failure is also left in a file, for the table."""
    module, _, function = entry.partition(":")
    try:
        asyncio.run(getattr(import_module(module), function)(work))
    except BaseException as error:
        said = str(error).strip().splitlines() or [""]
        work.failure.write_text(f"{type(error).__name__}: {said[0]}")
        raise


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.contend")
    parser.add_argument("entry")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--conversations", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--children", type=int, default=0)
    parser.add_argument("--window", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    given = parse_arguments()
    keep_marks_apart()
    contend(
        given.entry,
        Work(
            base_url=given.base_url,
            folder=given.folder,
            conversations=given.conversations,
            rounds=given.rounds,
            calls=given.calls,
            children=given.children,
            window=given.window,
        ),
    )
