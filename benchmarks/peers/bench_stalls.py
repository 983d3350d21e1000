"""How long does an agent stand still while its conversation is summarized, in other frameworks?

    python -m benchmarks.peers.bench_stalls [--repeats N] [--only NAMES] [--json] [--smoke]

A model has a book read, page by page, in a window that is full again and again. The same server
for everybody, which answers the agent in a tenth of a second, and who asks for a summary in 3 s.
Each framework summarizes with what it ships for it, by a model of its own, in an environment and a
process of its own. A *gap* is the time from an answer to the agent's next request, both seen at
the server; a *stall* is the longest gap in the time of a summary. Of those that have no model
summarize it is said why.

What would change our mind about summarizing beside the run: a longest gap of ours, where it is
summarized early (`soft=0.6`), of more than a quarter of the shortest of the others.
"""

import argparse
import asyncio
import io
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict
from pathlib import Path
from typing import Any

# Run as a file, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.command import publish
from benchmarks.findings import Finding
from benchmarks.measure import Spread, machine
from benchmarks.peers.contenders import AS_IT_COMES, EARLY, SUMMARIZERS, Contender, chosen
from benchmarks.peers.conversations import FAILURE
from benchmarks.peers.environments import InstallError, python_of, versions_of
from benchmarks.peers.reading import NotReadError, Reading, reading_of
from benchmarks.peers.watched import Watch

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 300
WINDOW = 24_000
ANSWER_S, SUMMARY_S = 0.1, 3.0
SHARE = 0.25
"""Of the shortest longest gap of the others, that ours is to have at most."""
DEADLINE_S = 300.0
MOST_SAID = 300
"""Characters of why a contender failed."""
OURS = (EARLY, AS_IT_COMES)
WITHOUT = {
    "openai-agents": "only the provider's own compaction, with the Responses API",
    "autogen-agentchat": "leaves out old messages, and summarizes none",
}
"""Who has no model summarize, and what is there instead."""
HEADS = ("contender", "longest gap", "stalls", "usual gap", "summaries", "rounds", "wall", "window")

Found = dict[str, list[Reading]]


async def read(contender: Contender, python: Path, options: argparse.Namespace) -> Reading:
    """Let a contender read the book once, in a process of its own.

    Raises:
        NotReadError: It failed, or did something else.
    """
    watch = Watch(rounds=options.rounds, answer_s=options.answer_s, summary_s=options.summary_s)
    with tempfile.TemporaryDirectory(prefix="bench-stalls-") as folder:
        async with watch.server() as server:
            process = await asyncio.create_subprocess_exec(
                *(str(python), *contender.command),
                *("--base-url", server.base_url, "--folder", folder, "--conversations", "1"),
                *("--rounds", str(options.rounds), "--window", str(options.window)),
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                ended = await asyncio.wait_for(process.wait(), DEADLINE_S)
            except TimeoutError:
                raise NotReadError(f"did not end within {DEADLINE_S:g} s") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if ended:
            failure = Path(folder) / FAILURE
            said = failure.read_text() if failure.exists() else f"ended with {ended}"
            raise NotReadError(said[:MOST_SAID])
    return reading_of(watch.asked)


async def measure(
    contenders: Mapping[str, Contender], options: argparse.Namespace
) -> tuple[Found, dict[str, str]]:
    """Let all read, in turn; what came of it, and why a contender is out of the comparison."""
    found: Found = {}
    failed: dict[str, str] = {}
    for turn in range(options.repeats):
        for name, contender in contenders.items():
            if name in failed:
                continue
            try:
                reading = await read(contender, python_of(contender.environment), options)
            except (InstallError, NotReadError) as error:
                failed[name] = said = f"{type(error).__name__}: {error}"
                found.pop(name, None)
            else:
                found.setdefault(name, []).append(reading)
                said = f"longest gap {reading.longest_s:.2f} s, {len(reading.stalls)} summaries"
            print(f"{turn + 1}/{options.repeats} {name}: {said}", file=sys.stderr, flush=True)
    return found, failed


async def compare(options: argparse.Namespace) -> bool:
    """Measure, and print what came out; whether ours is within its bar."""
    options.machine = machine()
    contenders = chosen(options.only, SUMMARIZERS)
    found, failed = await measure(contenders, options)
    compared = EARLY in contenders and not set(contenders) <= set(OURS)
    findings = findings_of(found, compared=compared)
    rows = [row(contenders[name].label, readings) for name, readings in found.items()]
    publish("stalls", "s", options, findings, figures(found, failed), (HEADS, rows))
    why = {contenders[name].label: said for name, said in failed.items()} | WITHOUT
    for label, said in why.items():
        print(f"{label}: {said}", file=sys.stderr)
    return all(finding.met is not False for finding in findings)


def findings_of(found: Mapping[str, Sequence[Reading]], *, compared: bool) -> list[Finding]:
    """Everybody's longest gap, and where it is compared ours to the shortest of the others."""
    findings = [
        Finding.of(
            f"{SUMMARIZERS[name].label}: longest gap",
            [one.longest_s for one in readings],
            unit="s",
        )
        for name, readings in found.items()
    ]
    if compared:
        others = [readings for name, readings in found.items() if name not in OURS]
        turns = zip(found.get(EARLY, ()), zip(*others, strict=True), strict=False)
        ratios = [ours.longest_s / min(one.longest_s for one in turn) for ours, turn in turns]
        findings.append(
            Finding.of("… with soft=0.6, to the shortest of the others", ratios, at_most=SHARE)
        )
    return findings


def row(label: str, readings: Sequence[Reading]) -> tuple[str, ...]:
    """A line of the table: medians, and of the stalls the least and the most of all."""
    stalls = [stall for one in readings for stall in one.stalls]
    last = readings[-1]
    return (
        label,
        f"{Spread.of(one.longest_s for one in readings).median:.2f} s",
        f"{min(stalls):.2f}–{max(stalls):.2f} s",
        f"{1e3 * Spread.of(one.usual_s for one in readings).median:.0f} ms",
        str(len(last.stalls)),
        str(last.rounds),
        f"{Spread.of(one.wall_s for one in readings).median:.0f} s",
        f"{last.most_tokens:,}",
    )


def figures(found: Mapping[str, Sequence[Reading]], failed: Mapping[str, str]) -> dict[str, Any]:
    """What was measured of whom, as JSON."""
    return {
        "contenders": {
            name: versions_of(contender.environment, contender.distributions)
            for name, contender in SUMMARIZERS.items()
        },
        "failed": dict(failed),
        "without": dict(WITHOUT),
        "readings": {
            name: [
                {**asdict(one), "longest_s": one.longest_s, "usual_s": one.usual_s}
                for one in readings
            ]
            for name, readings in found.items()
        },
    }


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="NAMES", help=f"of {', '.join(SUMMARIZERS)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--window", type=int, default=WINDOW, help="tokens that a request may have")
    parser.add_argument("--answer-s", type=float, default=ANSWER_S, help="an answer takes")
    parser.add_argument("--summary-s", type=float, default=SUMMARY_S, help="a summary takes")
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    parser.add_argument("--json", action="store_true", help="the JSON line, and no table")
    options = parser.parse_args(given)
    try:
        chosen(options.only, SUMMARIZERS)
    except ValueError as error:
        parser.error(str(error))
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if options.smoke:
        options.repeats, options.answer_s, options.summary_s = 1, 0.01, 0.3
    return options


if __name__ == "__main__":
    asked = parse_arguments()
    with redirect_stderr(io.StringIO() if asked.json else sys.stderr):
        within = asyncio.run(compare(asked))
    sys.exit(0 if within else 1)
