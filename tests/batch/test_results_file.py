import asyncio
import errno
import json
import os
import resource
import signal
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.batch.durable_files import write_atomically
from harness_actors.batch.outcomes import CheckResult, TaskOutcome, decode_outcome, encode_outcome
from harness_actors.batch.results_file import ResultsFile, ok_runs, read_outcomes
from harness_actors.batch.torn_line import heal
from harness_actors.errors import BadInputError, StoreError
from harness_actors.messages import encode_json
from harness_actors.results import Reason, Status

FIELDS = (
    "id task_hash run_id attempt status reason turns model_calls tool_calls usage wall_s working_s "
    "output_text deliverables completion_verified check error metadata "
    "agent model setup"
)


def outcome(name: str, *, text: str = "", status: Status = "done", attempt: int = 1) -> TaskOutcome:
    kind = {"done": "completed", "failed": "model_error"}[status]
    return TaskOutcome(
        id=name,
        task_hash=f"hash of {name}",
        run_id=f"run of {name}",
        attempt=attempt,
        status=status,
        reason=Reason(kind=kind),
        output_text=text,
    )


OURS_TORN = b'{"id":"torn","task_hash":"ha'


def written(*outcomes: TaskOutcome) -> bytes:
    return b"".join(encode_json(encode_outcome(one)) + b"\n" for one in outcomes)


class Disk:
    """Syncs as the disk does, and keeps what each file and folder held when it was synced."""

    def __init__(self) -> None:
        self.synced: dict[str, object] = {}
        self.order: list[str] = []
        self.fails = False

    def sync(self, number: int) -> None:
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(number)
        path = Path(f"/proc/self/fd/{number}").readlink()
        self.order.append(path.name)
        held = frozenset(os.listdir(path)) if path.is_dir() else path.read_bytes()
        self.synced[path.name] = held


async def test_a_line_is_on_the_disk_when_its_task_is_told_to_be_done(tmp_path: Path) -> None:
    path, disk = tmp_path / "results.jsonl", Disk()
    results = ResultsFile(path, sync=disk.sync)
    for number in range(3):
        await results.append(outcome(f"t{number}"))
        assert disk.synced[path.name] == path.read_bytes(), f"after line {number}"
        assert f"t{number}".encode() in path.read_bytes()
    assert disk.synced[tmp_path.name] == frozenset({path.name}), "its name, too"
    # Once is enough for the name.
    assert disk.order == [path.name, tmp_path.name, path.name, path.name]


async def test_a_file_that_cannot_be_compacted_is_as_it_was_and_takes_no_more_room(
    tmp_path: Path,
) -> None:
    path, disk = tmp_path / "results.jsonl", Disk()
    results = ResultsFile(path, sync=disk.sync)
    lines = (outcome("a", status="failed"), outcome("a", attempt=2))
    for one in lines:
        await results.append(one)
    disk.fails = True
    with pytest.raises(StoreError, match="Input/output error"):
        results.compact()
    assert path.read_bytes() == written(*lines)
    assert os.listdir(tmp_path) == [path.name]
    disk.fails = False
    results.compact()
    assert path.read_bytes() == written(lines[1])


def test_a_torn_line_of_any_length_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    whole = written(outcome("a"), outcome("b", text="long " * 60_000))
    path.write_bytes(whole[:-10])
    ResultsFile(path)
    assert path.read_bytes() == written(outcome("a"))


def test_what_is_shipped_syncs() -> None:
    for opens in (ResultsFile.__init__, heal, write_atomically):
        assert opens.__kwdefaults__ == {"sync": os.fsync}


async def test_lines_that_wait_for_each_other_are_synced_together(tmp_path: Path) -> None:
    disk = Disk()
    results = ResultsFile(tmp_path / "results.jsonl", sync=disk.sync)
    await asyncio.gather(*(results.append(outcome(f"t{number}")) for number in range(50)))
    assert disk.order.count("results.jsonl") <= 3


async def test_a_compacted_file_is_on_the_disk_before_it_takes_the_place_of_the_old_one(
    tmp_path: Path,
) -> None:
    path, disk = tmp_path / "results.jsonl", Disk()
    results = ResultsFile(path, sync=disk.sync)
    for one in (outcome("a", status="failed"), outcome("a", attempt=2)):
        await results.append(one)
    disk.order.clear()
    results.compact()
    beside, folder = disk.order
    assert (beside.endswith(".new"), folder) == (True, tmp_path.name)
    assert disk.synced[beside] == path.read_bytes() == written(outcome("a", attempt=2))
    assert disk.synced[tmp_path.name] == frozenset({path.name}), "after the renaming"


@pytest.mark.parametrize("left", [-1, -20], ids=["without its line feed", "torn"])
def test_a_last_line_that_was_healed_is_on_the_disk(tmp_path: Path, left: int) -> None:
    path, disk = tmp_path / "results.jsonl", Disk()
    path.write_bytes(written(outcome("a"), outcome("b"))[:left])
    ResultsFile(path, sync=disk.sync)
    assert disk.order == [path.name]
    assert disk.synced[path.name] == path.read_bytes()


async def test_a_disk_that_cannot_sync_is_told_and_the_line_is_not_there(tmp_path: Path) -> None:
    disk = Disk()
    results = ResultsFile(tmp_path / "results.jsonl", sync=disk.sync)
    await results.append(outcome("a"))
    disk.fails = True
    for name in ("b", "c"):
        with pytest.raises(StoreError, match="Input/output error"):
            await results.append(outcome(name))
    # Nobody knows what such a disk has kept: nothing more is written.
    disk.fails = False
    with pytest.raises(StoreError, match="Input/output error"):
        await results.append(outcome("d"))
    assert results.path.read_bytes() == written(outcome("a"))
    assert set(results.lines) == {"a"}


def test_a_line_has_the_fields_that_users_rely_on() -> None:
    line = json.loads(written(outcome("a")))

    assert list(line) == FIELDS.split()
    assert list(line["usage"]) == ["input_tokens", "output_tokens", "cached_tokens", "cost_usd"]
    assert decode_outcome(line) == outcome("a")


@given(
    texts=st.lists(st.text(max_size=30), min_size=1, max_size=5),
    where=st.floats(min_value=0, max_value=1),
)
def test_a_file_cut_at_any_byte_loses_the_torn_line_alone(texts: list[str], where: float) -> None:
    outcomes = [outcome(f"t{number}", text=text) for number, text in enumerate(texts)]
    whole = written(*outcomes)
    cut = round(where * len(whole))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        path.write_bytes(whole[:cut])

        results = ResultsFile(path)
        kept = list(read_outcomes(path))
        asyncio.run(results.append(outcome("new")))

        # A line that lacks nothing but its line feed is whole.
        complete = sum(
            cut >= len(written(*outcomes[:number])) - 1 for number in range(1, len(outcomes) + 1)
        )
        assert kept == outcomes[:complete]
        assert list(read_outcomes(path)) == [*kept, outcome("new")]


async def test_lines_of_tasks_that_end_together_are_all_written(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "results.jsonl")
    outcomes = [outcome(f"t{number}") for number in range(50)]

    await asyncio.gather(*(results.append(one) for one in outcomes))

    assert list(read_outcomes(results.path)) == outcomes
    assert len(results.lines) == 50


async def test_of_two_lines_of_a_task_the_later_stands(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "results.jsonl")
    for one in (outcome("a", status="failed"), outcome("b"), outcome("a", attempt=2)):
        await results.append(one)

    await results.append(outcome("c"))

    results.compact()

    stands = [outcome("b"), outcome("a", attempt=2), outcome("c")]
    assert list(read_outcomes(results.path)) == stands
    assert results.lines["a"].verdict == "ok"


def test_a_file_that_was_not_compacted_is_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(written(outcome("a", status="failed"), outcome("a", attempt=2)))

    ResultsFile(path)

    assert list(read_outcomes(path)) == [outcome("a", attempt=2)]


def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"mine": 1}\n{"mine": 2}\n')

    with pytest.raises(BadInputError, match="line 1: not a result of a batch"):
        ResultsFile(path)

    assert path.read_text() == '{"mine": 1}\n{"mine": 2}\n'


@pytest.mark.parametrize("bad", [b"mine\n", b'{"mine": 1}\n', OURS_TORN + b"\n"])
def test_the_line_that_is_none_of_ours_is_told_by_its_number(bad: bytes, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    one, two = written(outcome("a")), written(outcome("b"))
    for content, number in ((bad + one, 1), (one + bad + two, 2), (one + b"\n" + bad + two, 3)):
        path.write_bytes(content)

        with pytest.raises(BadInputError, match=rf"line {number}: not a result of a batch"):
            ResultsFile(path)


def test_empty_lines_are_passed_over_and_a_whole_last_line_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"\n" + written(outcome("a")) + b"\n  \n" + written(outcome("b"))[:-1])

    assert ResultsFile(path).lines.keys() == {"a", "b"}
    assert path.read_bytes().endswith(written(outcome("b")))


def test_a_results_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").mkdir()

    for read in (ResultsFile, ok_runs):
        with pytest.raises(
            BadInputError, match=r"results\.jsonl.*Is a directory.*; fix its rights"
        ):
            read(tmp_path / "results.jsonl")


def test_the_runs_that_ended_well_are_those_that_passed_their_checks(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    check = CheckResult(passed=False, exit_code=1, seconds=0.0, output="")
    path.write_bytes(
        written(
            outcome("a"),
            outcome("b", status="failed"),
            replace(outcome("c"), check=check),
            replace(outcome("d"), check=replace(check, passed=True)),
            replace(outcome("e"), run_id=None),
        )
        + OURS_TORN
    )

    assert ok_runs(path) == {"run of a", "run of d"}
    assert ok_runs(tmp_path / "none.jsonl") == set()


async def test_a_file_of_one_line_for_each_task_is_not_written_anew(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "results.jsonl")
    for one in (outcome("a", status="failed"), outcome("a", attempt=2)):
        await results.append(one)
    results.compact()
    before = results.path.stat()

    results.compact()
    ResultsFile(results.path)

    assert results.path.stat() == before


async def test_only_their_owner_changes_the_files_whatever_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        await ResultsFile(tmp_path / "results.jsonl").append(outcome("a"))
        write_atomically(tmp_path / "summary.json", [b"{}"])
    finally:
        os.umask(before)

    assert {
        os.stat(tmp_path / name).st_mode & 0o777 for name in ("results.jsonl", "summary.json")
    } == {0o644}


async def test_no_file_is_left_open(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "results.jsonl")
    await results.append(outcome("a"))
    before = os.listdir("/proc/self/fd")
    for attempt in (2, 3):
        await results.append(outcome("a", attempt=attempt))
        results.compact()

    assert len(os.listdir("/proc/self/fd")) == len(before)


OURS = encode_json(encode_outcome(outcome("a")))
FOREIGN = [
    b"mine",
    b"mine\n",
    b'{"mine": 1}\n{"mine": 2}\nnot JSON\n',
    b'{"mine": 1}\n{"mine": 2',
    b'{"id": 1, "task',
    b'{"id":"x","text":"torn li',
    b'{"id":7',
    b"[1, 2",
    b"\0\0\0\0",
    b"\xff\xfe",
    OURS + b"\nthe end",
    OURS + b'\n{"id":"b","text":"torn',
    OURS + b"\nthe middle\n" + OURS[:40],
    OURS[:40] + b"\n" + OURS + b"\n",
    OURS + b"\n" + OURS[:40] + b"\n" + OURS[:40],
    OURS + b'\n{"mine": 1}\n' + OURS[:40],
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda text: text[-20:].decode(errors="replace"))
@pytest.mark.parametrize("linked", [False, True])
def test_nothing_is_cut_from_a_file_that_is_refused(
    foreign: bytes, linked: bool, tmp_path: Path
) -> None:
    path = place = tmp_path / "results.jsonl"
    if linked:
        place = tmp_path / "elsewhere.jsonl"
        path.symlink_to(place)
    place.write_bytes(foreign)
    before = place.stat()

    with pytest.raises(BadInputError, match=r"line \d: not a result of a batch"):
        ResultsFile(path)

    assert place.read_bytes() == foreign
    assert place.stat().st_mtime_ns == before.st_mtime_ns
    assert path.is_symlink() == linked
    assert len(list(tmp_path.iterdir())) == 1 + linked


@given(foreign=st.binary(max_size=60), after=st.booleans())
def test_any_last_line_is_kept_or_is_the_beginning_of_ours(foreign: bytes, after: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        content = (OURS + b"\n" if after else b"") + foreign
        path.write_bytes(content)
        try:
            ResultsFile(path)
        except BadInputError:
            assert path.read_bytes() == content
            return
        left = content[len(path.read_bytes()) :].rstrip(b"\n\0")
        assert left == b"" or b'{"id":"'.startswith(left[:7])


def test_zeros_after_our_lines_are_what_a_power_cut_left(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for torn in (b"\0\0\0", OURS[:30] + b"\0\0", OURS[:30] + b"\n"):
        path.write_bytes(OURS + b"\n" + torn)

        ResultsFile(path)

        assert path.read_bytes() == OURS + b"\n"


async def test_a_disk_that_is_full_is_told_and_leaves_no_torn_line(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "results.jsonl")
    await results.append(outcome("a"))
    before = results.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A bound on the size of files fails a write half-way, as a full disk does.
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(StoreError, match="File too large"):
            await results.append(outcome("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)

    assert results.path.read_bytes() == before
    assert "b" not in results.lines
