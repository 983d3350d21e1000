"""`read_artifact` pages through a long result and searches it, in bounded room and time."""

import asyncio
import json
import re
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.stores.artifacts import ArtifactFolder, FolderArtifacts
from harness_actors.tools import artifact_scan, scanning
from harness_actors.tools.artifacts import excerpt, read_artifact

INLINE_CHARS = 2_000


@pytest.fixture
def kept(tmp_path: Path) -> FolderArtifacts:
    store = tmp_path / "runs.db"
    store.touch()
    return ArtifactFolder(store).of("talk", ArtifactsConfig(inline_chars=INLINE_CHARS))


@pytest.fixture
def reading(context: ToolContext, kept: FolderArtifacts) -> ToolContext:
    return replace(context, artifacts=kept)


async def read(reading: ToolContext, **arguments: object) -> str:
    return await read_artifact.run(json.dumps(arguments), reading)


def put(kept: FolderArtifacts, text: str) -> str:
    return kept.put([text.encode()]).id


async def test_the_pages_of_a_result_are_the_result(
    reading: ToolContext, kept: FolderArtifacts
) -> None:
    text = "".join(f"line {number} – ü\n" for number in range(1_000))
    made, start, pages = put(kept, text), 0, []
    while True:
        answer = await read(reading, id=made, start=start)
        assert len(answer) <= INLINE_CHARS
        header, _, page = answer.partition("\n")
        pages.append(page)
        more = re.search(r"start=(\d+)", header)
        if more is None:
            break
        start = int(more[1])
    assert "".join(pages) == text
    assert len(pages) > 5


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [(0, 3, "abc"), (2, 4, "cd"), (-2, None, "ij"), (-50, 2, "ab"), (9, 99, "j"), (-3, 8, "h")],
)
async def test_a_part_is_read_by_its_characters(
    reading: ToolContext, kept: FolderArtifacts, start: int, end: int | None, shown: str
) -> None:
    answer = await read(reading, id=put(kept, "abcdefghij"), start=start, end=end)
    assert answer.partition("\n")[2] == shown


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"start": 10}, "the artifact has 10 characters"),
        ({"start": 10**30}, "the artifact has 10 characters"),
        ({"start": 5, "end": 5}, "end must be above start"),
        ({"start": -1, "end": 2}, "end must be above start"),
        ({"pattern": ""}, "pattern must have"),
        ({"pattern": "x" * 10_001}, "pattern must have"),
        ({"start": "first"}, "start"),
    ],
)
async def test_what_cannot_be_read_is_said(
    reading: ToolContext, kept: FolderArtifacts, arguments: dict[str, object], problem: str
) -> None:
    with pytest.raises(ToolError, match=problem):
        await read(reading, id=put(kept, "abcdefghij"), **arguments)


@pytest.mark.parametrize("said", ["..", "a0123456789", "../../runs.db", "", "a0123456789/.."])
async def test_an_id_that_the_conversation_does_not_know_is_said(
    reading: ToolContext, said: str
) -> None:
    with pytest.raises(ToolError, match="There is no artifact"):
        await read(reading, id=said)


async def test_where_nothing_is_kept_there_is_nothing_to_read(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="No results are kept"):
        await read(context, id="a0123456789")


async def test_matches_are_shown_with_the_place_to_read_on_from(
    reading: ToolContext, kept: FolderArtifacts
) -> None:
    text = "x" * 5_000 + "\nERROR: disk on fire\n" + "y" * 5_000
    made = put(kept, text)
    answer = await read(reading, id=made, pattern=r"^ERROR: (\w+)")
    found = re.search(r"^(\d+): .*ERROR: disk on fire", answer, re.MULTILINE)
    assert found is not None
    assert int(found[1]) == text.index("ERROR")
    page = await read(reading, id=made, start=int(found[1]), end=int(found[1]) + 5)
    assert page.partition("\n")[2] == "ERROR"


async def test_of_many_matches_the_first_are_shown_and_the_rest_can_be_read_on(
    reading: ToolContext, kept: FolderArtifacts
) -> None:
    text = "".join(f"item {number:04}\n" for number in range(500))
    made, start, places = put(kept, text), 0, []
    while True:
        answer = await read(reading, id=made, pattern=r"item \d+", start=start)
        assert len(answer) <= INLINE_CHARS
        places += [int(place) for place in re.findall(r"^(\d+): ", answer, re.MULTILINE)]
        more = re.search(r"start=(\d+)", answer)
        if more is None:
            break
        start = int(more[1])
    assert places == [match.start() for match in re.finditer(r"item \d+", text)]


async def test_a_search_stays_within_start_and_end(
    reading: ToolContext, kept: FolderArtifacts
) -> None:
    made = put(kept, "one two one two one")
    answer = await read(reading, id=made, pattern="one", start=1, end=16)
    assert re.findall(r"^(\d+): ", answer, re.MULTILINE) == ["8"]
    assert "No matches." in await read(reading, id=made, pattern="one", start=1, end=8)


async def test_a_faulty_pattern_is_searched_as_text(
    reading: ToolContext, kept: FolderArtifacts
) -> None:
    answer = await read(reading, id=put(kept, "cost(usd"), pattern="cost(")
    assert "0: cost(usd" in answer
    assert "Not a regular expression" in answer


async def test_a_pattern_that_backtracks_for_ever_is_stopped(
    reading: ToolContext, kept: FolderArtifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "SEARCH_TIME_S", 0.5)
    made = put(kept, "a" * 5_000 + "b")
    began = time.monotonic()
    answer = await read(reading, id=made, pattern="(a|a)*c")
    assert "[Stopped because it took 0.5 s" in answer
    assert time.monotonic() - began < 5.0


async def test_a_search_that_is_cancelled_ends(reading: ToolContext, kept: FolderArtifacts) -> None:
    made = put(kept, "a" * 5_000 + "b")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await read(reading, id=made, pattern="(a|a)*c")


WORDS = st.text("ab\nü", max_size=200)


@given(text=WORDS, pattern=st.sampled_from(["a+", "^b", "b$", "ab?", "ü\n", "(?s)a.b"]))
def test_what_passes_in_pieces_is_searched_as_one(text: str, pattern: str) -> None:
    wanted = re.compile(pattern, re.MULTILINE)
    before = artifact_scan.PIECE_BYTES, artifact_scan.AHEAD_CHARS
    artifact_scan.PIECE_BYTES, artifact_scan.AHEAD_CHARS = 7, 201
    try:
        found = [
            at for at, _ in artifact_scan.matches(BytesIO(text.encode()), wanted, 0, float("inf"))
        ]
    finally:
        artifact_scan.PIECE_BYTES, artifact_scan.AHEAD_CHARS = before
    assert found == [match.start() for match in wanted.finditer(text)]


def test_a_match_across_two_pieces_is_found_once() -> None:
    text = "x" * (artifact_scan.PIECE_BYTES - 3) + "needle" + "y" * artifact_scan.PIECE_BYTES
    text += "needle"
    found = artifact_scan.matches(BytesIO(text.encode()), re.compile("needle"), 0, float("inf"))
    assert [at for at, _ in found] == [text.index("needle"), text.rindex("needle")]


@given(data=st.binary(max_size=300), start=st.integers(0, 320), length=st.integers(0, 320))
def test_a_part_of_any_bytes_is_that_of_their_text(data: bytes, start: int, length: int) -> None:
    text = data.decode("utf-8", "replace")
    part, total = excerpt(BytesIO(data), start, start + length)
    assert part == text[start : start + length]
    assert total == len(text)
