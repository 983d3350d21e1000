"""Where does the time of a round go? Samples the processes of a cell at work, by py-spy.

    python benchmarks/flames.py [--seconds 20] [--rate 200] [--keep FOLDER]

Conversations as in `bench_round_cost` are held again and again on Ray, while py-spy looks at the
agent turn and the coordinator at once. Each sample of a thread that has the interpreter is charged
to the room of its innermost frame that belongs to one; a table of the rooms, with the frames that
took most in each, is printed. Shares are of the interpreter's time: what SQLite, sockets and Ray
do without it is in the CPU by process that `bench_round_cost` reports. `--keep` leaves the stacks
for a flame graph: `flamegraph.pl` and speedscope.app read them.
"""

import argparse
import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.contend import warm_up_of
from benchmarks.contest import SCRIPT
from benchmarks.harnessed import converse, opened, roles
from benchmarks.measure import aligned
from benchmarks.notes import Work
from harness_actors.testing import LoopbackProcess

ROOMS: Sequence[tuple[str, str]] = (
    ("model client", r"/(openai|httpx2|httpcore2|aiohttp|yarl|multidict|pydantic)/"),
    ("model client", r"/harness_actors/models/"),
    ("journal", r"/harness_actors/(stores/|actors/(writer|readings|bulletin)\.py)"),
    (
        "sending",
        r"/harness_actors/actors/(mailbox\.py|on_ray/)",
    ),
    ("sending", r"/ray/(cloudpickle/|_private/serialization\.py)"),
    ("coordination", r"/harness_actors/(coordination/|actors/)"),
    ("turn", r"/harness_actors/(turn|executors|tools)/|/benchmarks/notes\.py"),
    ("messages and state", r"/harness_actors/[a-z]+\.py"),
    ("Ray", r"/ray/"),
)
"""Rooms by where their files are; the first that fits a frame has it."""
ELSEWHERE = "event loop and the rest"
FRAMES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Profile:
    """What was seen of a process.

    Attributes:
        rooms: Samples by room.
        frames: Samples by room and innermost frame of that room.
    """

    rooms: Counter[str]
    frames: Mapping[str, Counter[str]]

    @classmethod
    def of(cls, lines: Sequence[str]) -> "Profile":
        """Of stacks as ``outermost;…;innermost samples``, one a line."""
        rooms: Counter[str] = Counter()
        frames: dict[str, Counter[str]] = {}
        for line in lines:
            stack, _, count = line.rpartition(" ")
            room, frame = placed(stack.split(";"))
            rooms[room] += int(count)
            frames.setdefault(room, Counter())[frame] += int(count)
        return cls(rooms, frames)


def placed(stack: Sequence[str]) -> tuple[str, str]:
    """The room of a stack, and its frame there.

    >>> placed(["run (/x/asyncio/base_events.py:1)", "post (/x/harness_actors/models/client.py:9)"])
    ('model client', 'post (harness_actors/models/client.py)')
    >>> placed(["run_forever (/usr/lib/python3.11/asyncio/base_events.py:1)"])
    ('event loop and the rest', 'run_forever (asyncio/base_events.py)')
    """
    if not any(stack):
        return "Ray", "threads of its own"
    for frame in reversed(stack):
        for room, where in ROOMS:
            if re.search(where, frame):
                return room, _short(frame)
    return ELSEWHERE, _short(stack[-1])


def _short(frame: str) -> str:
    name, _, place = frame.rpartition(" (")
    if not name:
        return frame
    path, _, _ = place.rstrip(")").partition(":")
    path = re.sub(r"^.*/(site-packages|python3\.\d+)/", "", path)
    if "/harness_actors/" in path:
        path = "harness_actors/" + path.rpartition("/harness_actors/")[2]
    return f"{name} ({'/'.join(path.split('/')[-3:])})"


async def sample(folder: Path, seconds: int, rate: int) -> dict[str, Profile]:
    """Look at each process of a cell at work.

    Raises:
        RuntimeError: py-spy failed; says what it said.
    """
    with LoopbackProcess(SCRIPT) as server:
        work = Work(conversations=50, rounds=10, base_url=server.base_url, folder=folder)
        async with opened("ray", work) as runtimes:
            await converse(runtimes, warm_up_of(work), folder / "warm-up")
            looking = {
                role: _record(pid, folder / f"{role.partition('[')[0]}.stacks", seconds, rate)
                for pid, role in roles(folder).items()
                if role.startswith(("agent_turn", "coordinator"))
            }
            while any(spy.poll() is None for spy in looking.values()):
                await converse(runtimes, work, work.log)
    return {role: Profile.of(_stacks(role, spy, folder)) for role, spy in looking.items()}


def _record(pid: int, path: Path, seconds: int, rate: int) -> "subprocess.Popen[str]":
    # Beside this Python, whether its folder is on the path or not.
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or "py-spy"
    command = [
        *(spy, "record", "--pid", str(pid), "--format", "raw", "--full-filenames", "--gil"),
        *("--duration", str(seconds), "--rate", str(rate), "--output", str(path)),
    ]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _stacks(role: str, spy: "subprocess.Popen[str]", folder: Path) -> list[str]:
    said, _ = spy.communicate()
    path = folder / f"{role.partition('[')[0]}.stacks"
    if spy.returncode or not path.exists():
        raise RuntimeError(f"py-spy did not see {role}: {said.strip().splitlines()[-1:]}")
    return path.read_text().splitlines()


def lines_of(role: str, profile: Profile) -> Iterator[tuple[str, str, str]]:
    """A table's rows: the rooms of a process, and the frames of each."""
    total = profile.rooms.total()
    for room, samples in profile.rooms.most_common():
        yield role, room, f"{samples / total:.0%}"
        for frame, count in profile.frames[room].most_common(FRAMES_SHOWN):
            if count / total >= 0.01:
                yield "", f"  {frame}", f"{count / total:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the time of a round goes, by py-spy.")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=200, help="samples per second")
    parser.add_argument("--keep", type=Path, help="a folder for the stacks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flames-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        profiles = asyncio.run(sample(folder.resolve(), options.seconds, options.rate))
    rows = [row for role, profile in profiles.items() for row in lines_of(role, profile)]
    print(aligned(("process", "room, and where in it", "samples"), rows))


if __name__ == "__main__":
    main()
