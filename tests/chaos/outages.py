"""A batch that finds no room: it stops, says so, and goes on when there is room.

As a command, ``python -m tests.chaos.outages KIND FOLDER …``, it is one such batch, with its
verdict as JSON: the one on a small file system has to live where that is mounted.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.chaos.battle import END_WITHIN_S, Size, Verdict
from tests.chaos.checks import Findings, check
from tests.chaos.command import BatchCommand
from tests.chaos.disks import (
    FullJournal,
    LimitedFiles,
    Place,
    SmallDisk,
    can_mount,
    inside_small_disk,
)
from tests.chaos.model import WatchedModel
from tests.chaos.plans import make_plans

BULK = 4096
"""Bytes of each result, so that little work takes the room."""
STOPS_WITHIN_S = 90.0
ROOT = Path(__file__).parents[2]
OUTAGES = ("sqlite_full", "small_disk")


def run_outage(
    name: str, folder: Path, *, size: Size, seed: int, address: str | None = "local"
) -> Verdict:
    """One batch that runs out of room; blocks until its end.

    Args:
        name: ``sqlite_full``, or ``small_disk``: a small file system where one can be mounted,
            and a limit on the size of files elsewhere.
        folder: Where it lives.
        size: How large the batch is.
        seed: What is left to chance.
        address: Which Ray; None for none, in a process alone.
    """
    if name == "sqlite_full":
        return asyncio.run(_run(FullJournal(folder), name, folder, size, seed, address))
    mounted = folder / "disk"
    mounted.mkdir()
    if not can_mount(mounted):
        return asyncio.run(_run(LimitedFiles(folder), f"{name} (limited)", folder, size, seed))
    inner = [sys.executable, "-m", "tests.chaos.outages", str(folder), "--seed", str(seed)]
    inner += ["--runs", str(size.runs), "--at-once", str(size.at_once)]
    inner += ["--rounds", *map(str, size.rounds)]
    done = subprocess.run(
        inside_small_disk(mounted, inner), stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True
    )
    return verdict_of(json.loads(done.stdout.splitlines()[-1]), folder)


async def _run(
    place: Place, name: str, folder: Path, size: Size, seed: int, address: str | None = "local"
) -> Verdict:
    began = time.monotonic()
    log = str(folder / "tools.log")
    plans = make_plans(size.runs, seed=seed, rounds=size.rounds, log=log, seconds=0.05, bulk=BULK)
    with tempfile.TemporaryDirectory(prefix="hc") as own:
        async with WatchedModel(folder / "model.log", seed=seed, latency_s=(0.0, 0.05)) as model:
            command = BatchCommand(
                folder,
                model.base_url,
                plans,
                at_once=size.at_once,
                run_dir=place.run_dir,
                address=address,
                variables={"RAY_TMPDIR": own},
            )
            try:
                problems = await _stop_and_go_on(place, command)
            finally:
                await command.clean_up()
            findings = check(command, asked=model.asked)
    for problem in problems:
        findings.add("lost", problem)
    return Verdict(
        kinds=(name,),
        findings=findings,
        delays={},
        overlapping=0,
        wall_s=time.monotonic() - began,
        folder=folder if findings.broken else None,
    )


async def _stop_and_go_on(place: Place, command: BatchCommand) -> list[str]:
    """What went wrong when the room was spent, and after room was made."""
    await place.start(command)
    try:
        status = await command.finish(within_s=STOPS_WITHIN_S)
    except TimeoutError:
        return [f"without room, the command went on for {STOPS_WITHIN_S:.0f} s"]
    problems = wrong_words(status, command.said(), place)
    if not command.tool_log.exists():
        problems.append("the room was spent before any work was done")
    place.make_room()
    command.start()
    try:
        status = await command.finish(within_s=END_WITHIN_S)
    except TimeoutError:
        return [*problems, f"with room again, it did not end within {END_WITHIN_S:.0f} s"]
    if status != 0:
        problems.append(f"with room again, it ended with {status}: {command.said()[-2000:]}")
    return problems


def wrong_words(status: int, said: str, place: Place) -> list[str]:
    """What a command without room did not say as it must."""
    problems = []
    if status != 1:
        problems.append(f"without room, the command ended with status {status}, not 1")
    if "Traceback" in said:
        problems.append(f"it printed a traceback: {said[-2000:]}")
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if not any(str(place.run_dir) in e and any(w in e for w in place.words) for e in errors):
        problems.append(f"it named neither file nor cause: {said[-2000:]}")
    return problems


def plain_verdict(verdict: Verdict) -> dict[str, object]:
    """A verdict as JSON that `verdict_of` reads; without delays, of which an outage has none."""
    return {
        "kinds": verdict.kinds,
        "findings": asdict(verdict.findings),
        "wall_s": verdict.wall_s,
    }


def verdict_of(plain: dict[str, object], folder: Path) -> Verdict:
    """What `plain_verdict` wrote."""
    given = plain["findings"]
    assert isinstance(given, dict)
    broken = [(str(word), str(sentence)) for word, sentence in given.pop("broken")]
    findings = Findings(broken=broken, **given)
    return Verdict(
        kinds=tuple(plain["kinds"]),  # type: ignore[arg-type]
        findings=findings,
        delays={},
        overlapping=0,
        wall_s=float(plain["wall_s"]),  # type: ignore[arg-type]
        folder=folder if broken else None,
    )


def main(given: Sequence[str] | None = None) -> None:
    """The batch on the small file system that is mounted in its folder."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.outages")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--at-once", type=int, required=True)
    parser.add_argument("--rounds", type=int, nargs=2, required=True)
    options = parser.parse_args(given)
    size = Size(runs=options.runs, at_once=options.at_once, rounds=tuple(options.rounds))
    place = SmallDisk(options.folder / "disk")
    verdict = asyncio.run(_run(place, "small_disk", options.folder, size, options.seed))
    print(json.dumps(plain_verdict(verdict)))


if __name__ == "__main__":
    main()
