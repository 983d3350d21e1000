"""What is too long for the conversation is kept whole, and the model is told where."""

import asyncio
import pickle
import re
import resource
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ToolError
from harness_actors.messages import ToolCall
from harness_actors.ports import LargeResult, ToolContext, ToolOutput
from harness_actors.stores.artifacts import ArtifactFolder, FolderArtifacts, artifacts_of
from harness_actors.tools import tool
from harness_actors.tools.command import run_command
from harness_actors.turn.artifacts import Extent, keep_large
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call
from harness_actors.turn.outcomes import (
    ToolArtifactReference,
    ToolExecutionResult,
    ToolFailure,
    ToolOutcome,
    ToolTimeout,
)

INLINE = 12_000
ID = re.compile(r"\ba[0-9a-f]{10}\b")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def kept(tmp_path: Path) -> FolderArtifacts:
    path = tmp_path / "kept.db"
    path.touch()
    return ArtifactFolder(path).of("talk", ArtifactsConfig())


@pytest.fixture
def context(kept: FolderArtifacts) -> ToolContext:
    return ToolContext(
        run_id="run", call_id="call", workspace=None, in_thread=asyncio.to_thread, artifacts=kept
    )


def said(text: str) -> ToolExecutionResult:
    return ToolExecutionResult(text=text)


def in_file(data: bytes, *, before: str = "", after: str = "") -> LargeResult:
    file = TemporaryFile()  # noqa: SIM115 - whoever takes it closes it
    file.write(data)
    return LargeResult(f"{data[:10]!r}", file, before=before, after=after)


def whole(kept: FolderArtifacts, text: str) -> str:
    (named, *_) = ID.findall(text)
    with kept.open(named) as file:
        return file.read().decode()


@pytest.mark.parametrize("length", [0, 1, INLINE])
async def test_what_is_short_enough_stays_in_the_conversation(
    context: ToolContext, length: int
) -> None:
    result = said("x" * length)
    assert await keep_large(result, "long", context) is result


async def test_what_is_longer_is_named_with_its_size_its_ends_and_how_to_read_on(
    context: ToolContext, kept: FolderArtifacts
) -> None:
    text = "head\n" + "x" * INLINE + "\ntail"
    result = await keep_large(said(text), "long", context)
    assert isinstance(result, ToolArtifactReference)
    assert result.size_chars == len(text)
    assert len(result.text) <= INLINE
    assert whole(kept, result.text) == text
    assert "The result of long has 12,010 characters in 3 lines" in result.text
    assert 'read_artifact(id="' in result.text
    assert "]\nhead\nxxx" in result.text
    assert result.text.endswith("xxx\ntail")


@pytest.mark.parametrize(
    "failed",
    [
        ToolFailure(text="x" * 20_000, traceback="here"),
        ToolTimeout(text="x" * 20_000, by="working_time"),
    ],
)
@pytest.mark.parametrize("cap_bytes", [20_000, 19_999])
async def test_a_failure_stays_what_it_was(
    tmp_path: Path, context: ToolContext, failed: ToolOutcome, cap_bytes: int
) -> None:
    path = tmp_path / "failures.db"
    path.touch()
    kept = ArtifactFolder(path).of("talk", ArtifactsConfig(cap_bytes=cap_bytes))
    result = await keep_large(failed, "long", replace(context, artifacts=kept))
    assert replace(result, text="") == replace(failed, text="")
    if cap_bytes == 20_000:
        assert whole(kept, result.text) == "x" * 20_000
    else:
        assert "could not be kept" in result.text


async def test_a_result_in_a_file_is_kept_with_what_stands_around_it(
    context: ToolContext, kept: FolderArtifacts
) -> None:
    large = in_file("ü".encode() * 20_000 + b"\xff", before="before ", after=" after")
    result = await keep_large(said(large), "long", context)
    (named, *_) = ID.findall(result.text)
    with kept.open(named) as file:
        assert file.read() == b"before " + "ü".encode() * 20_000 + b"\xff after"
    assert "has 20,014 characters" in result.text
    with pytest.raises(ValueError, match="closed"):
        list(large.pieces())


@pytest.mark.parametrize("letter", ["x", "ü", "𝄞"])
async def test_a_file_that_is_short_after_all_stays_in_the_conversation(
    context: ToolContext, kept: FolderArtifacts, letter: str
) -> None:
    # As long as it may be in characters, whatever it is in bytes.
    text = letter * (INLINE - 2)
    large = in_file(text.encode(), before="a", after="b")
    result = await keep_large(said(large), "long", context)
    assert result.text == f"a{text}b"
    assert type(result.text) is str
    assert kept.room_bytes() == kept.cap_bytes


async def test_the_images_of_a_result_that_is_kept_stay_with_it(
    context: ToolContext, kept: FolderArtifacts
) -> None:
    output = ToolOutput("x" * 20_000, images=("data:image/png;base64,AA",), image_tokens=255)
    result = await keep_large(ToolExecutionResult(text=output, output=output), "seen", context)
    assert whole(kept, result.text) == "x" * 20_000
    assert (result.images, result.image_tokens) == (output.images, 255)


@pytest.mark.parametrize("raises", [False, True])
async def test_a_result_in_a_file_is_kept_whole_after_several_tries(
    context: ToolContext, kept: FolderArtifacts, raises: bool
) -> None:
    tried = 0

    @tool(effect="read_only", retries=1)
    def export() -> str:
        """Export."""
        nonlocal tried
        tried += 1
        if tried == 1:
            raise TimeoutError
        large = in_file(b"x" * 20_000)
        if raises:
            raise ToolError(large)
        return large

    planned = PlannedCall(call=ToolCall("call", "export", "{}"), tool=export)
    result = await keep_large(await run_call(planned, context, Due(None)), "export", context)
    assert result.is_error is raises
    assert isinstance(result, ToolArtifactReference) is not raises
    if isinstance(result, ToolArtifactReference):
        assert result.output is not None
        assert result.output.tries == 2
    note = "\nIt was tried 2 times." if raises else ""
    assert whole(kept, result.text) == "x" * 20_000 + note


async def test_a_result_for_which_there_is_no_room_is_a_failure_with_its_ends(
    tmp_path: Path, context: ToolContext
) -> None:
    path = tmp_path / "small.db"
    path.touch()
    small = ArtifactFolder(path).of("talk", ArtifactsConfig(cap_bytes=15_000))
    text = "head" + "x" * 20_000 + "tail"
    result = await keep_large(said(text), "long", replace(context, artifacts=small))
    assert result.failure == "failed"
    assert "The call of long was made" in result.text
    assert "artifacts.cap_bytes" in result.text
    assert "]\nheadxxx" in result.text
    assert result.text.endswith("xxxtail")
    assert len(result.text) <= INLINE
    assert ID.findall(result.text) == []
    # The next one that fits is kept as ever.
    fits = await keep_large(said("y" * 15_000), "long", replace(context, artifacts=small))
    assert whole(small, fits.text) == "y" * 15_000


async def test_a_disk_that_is_full_fails_that_result_alone(
    tmp_path: Path, context: ToolContext
) -> None:
    # A limit on the size of files stands in for it: the kernel says the same of every write.
    path = tmp_path / "full.db"
    path.touch()
    kept = ArtifactFolder(path).of("talk", ArtifactsConfig())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (13_000, before[1]))
    try:
        full = await keep_large(said("x" * 20_000), "long", replace(context, artifacts=kept))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.failure == "failed"
    assert "could not be kept" in full.text
    assert [path for path in artifacts_of(path).rglob("*") if path.is_file()] == []


async def test_where_there_is_no_thread_the_result_is_a_failure(context: ToolContext) -> None:
    async def taken(*_: Any) -> Any:
        raise ToolError("all threads are taken")

    result = await keep_large(said("x" * 20_000), "long", replace(context, in_thread=taken))
    assert result.failure == "failed"
    assert "could not be kept: all threads are taken" in result.text


@pytest.mark.parametrize("inline_chars", [2_000, 3_333, 100_000])
@pytest.mark.parametrize("character", ["x", "\n", "ü", "\udcff", "𝄞"])
async def test_what_enters_the_log_is_never_longer_than_it_may_be(
    tmp_path: Path, context: ToolContext, inline_chars: int, character: str
) -> None:
    path = tmp_path / "any.db"
    path.touch()
    kept = ArtifactFolder(path).of("talk", ArtifactsConfig(inline_chars=inline_chars))
    text = character * (inline_chars + 1)
    name = "n" * 1_000
    result = await keep_large(said(text), name, replace(context, artifacts=kept))
    assert len(result.text) <= inline_chars
    assert whole(kept, result.text) == text.encode("utf-8", "replace").decode()
    result.text.encode()


@given(pieces=st.lists(st.binary(max_size=40)), head=st.integers(1, 30), tail=st.integers(1, 30))
def test_the_extent_of_what_passes_is_that_of_the_whole(
    pieces: list[bytes], head: int, tail: int
) -> None:
    extent, text = Extent(head, tail), b"".join(pieces).decode("utf-8", "replace")
    assert list(extent.passing(pieces)) == pieces
    assert (extent.chars, extent.head, extent.tail) == (len(text), text[:head], text[-tail:])
    assert extent.lines == text.count("\n") + (not text.endswith("\n"))


def test_a_result_in_a_file_travels_as_its_text() -> None:
    large = LargeResult("shown", BytesIO(b"whole"))
    assert pickle.loads(pickle.dumps(large)) == "shown"
    assert type(pickle.loads(pickle.dumps(large))) is str


async def test_what_a_command_prints_is_kept_whole(
    context: ToolContext, kept: FolderArtifacts, tmp_path: Path
) -> None:
    context = replace(context, workspace=tmp_path)
    printed = "".join(f"{number}\n" for number in range(1, 100_001))
    text = await run_command.run('{"command": "seq 100000"}', context)
    result = await keep_large(said(text), "run_command", context)
    assert whole(kept, result.text) == f"exit code: 0\n{printed}"
    assert "]\nexit code: 0\n1\n2\n" in result.text


async def test_a_command_that_is_stopped_leaves_what_it_printed(
    context: ToolContext, kept: FolderArtifacts, tmp_path: Path
) -> None:
    context = replace(context, workspace=tmp_path)
    with pytest.raises(ToolError) as raised:
        await run_command.run('{"command": "seq 100000; sleep 60", "timeout_s": 1.5}', context)
    result = await keep_large(ToolFailure(text=raised.value.text), "run_command", context)
    assert whole(kept, result.text).endswith("99999\n100000\n")
    assert "ran past 1.5 s" in result.text


async def test_a_command_that_prints_more_than_there_is_room_for_fails_with_the_ends(
    context: ToolContext, tmp_path: Path
) -> None:
    path = tmp_path / "small.db"
    path.touch()
    small = ArtifactFolder(path).of("talk", ArtifactsConfig(cap_bytes=100_000))
    context = replace(context, workspace=tmp_path, artifacts=small)
    with pytest.raises(ToolError, match="could not be kept whole") as raised:
        await run_command.run('{"command": "seq 100000"}', context)
    assert r"artifacts.cap_bytes" in raised.value.text
    assert raised.value.text.endswith("99999\n100000")
    assert small.room_bytes() == 100_000


@pytest.mark.parametrize("kind", ["command", "handed_over", "text", "worker"])
def test_200_mb_of_a_tool_take_50_mb_of_memory_at_most(tmp_path: Path, kind: str) -> None:
    # Of a text that a function has made, what is taken besides it.
    command = [sys.executable, "-m", "tests.turn.large_results", kind, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert told.returncode == 0, told.stderr
    assert int(told.stdout) <= 50
