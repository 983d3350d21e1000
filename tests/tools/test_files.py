"""read_file, write_file, edit_file, create_directory."""

import os
import stat
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools import texts
from harness_actors.tools.files import create_directory, edit_file, read_file, write_file
from harness_actors.tools.search import find_files, grep_files, list_directory
from harness_actors.tools.texts import MAX_CHARS, MAX_FILE_BYTES
from tests.tools.conftest import Call

FIVE = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize("text", [FIVE, "", "no line end", "\r\nwindows\r\n", "\ufeffbom é\x0c\n"])
async def test_a_whole_file_is_read_unchanged(text: str, call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(text.encode())
    assert await call(read_file, path="a.txt") == text


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (2, 3, "[Lines 2-3 of 5 in a.txt]\n2\ttwo\n3\tthree\n"),
        (4, None, "[Lines 4-5 of 5 in a.txt]\n4\tfour\n5\tfive\n"),
        (None, 1, "[Lines 1-1 of 5 in a.txt]\n1\tone\n"),
        (4, -1, "[Lines 4-5 of 5 in a.txt]\n4\tfour\n5\tfive\n"),
        (5, 99, "[Lines 5-5 of 5 in a.txt]\n5\tfive\n"),
        (0, 1, "[Lines 1-1 of 5 in a.txt]\n1\tone\n"),
        (6, None, "[a.txt has 5 lines; there is nothing from line 6 on]"),
    ],
)
async def test_a_range_is_numbered_under_a_header_with_the_total(
    start: int | None, end: int | None, text: str, call: Call, workspace: Path
) -> None:
    (workspace / "a.txt").write_text(FIVE)
    assert await call(read_file, path="a.txt", start_line=start, end_line=end) == text


@pytest.mark.parametrize(("start", "end"), [(3, 2), (3, 0), (1, -2)])
async def test_a_range_that_ends_before_it_starts_is_an_error(
    start: int, end: int, call: Call, workspace: Path
) -> None:
    (workspace / "a.txt").write_text(FIVE)
    with pytest.raises(ToolError, match="-1"):
        await call(read_file, path="a.txt", start_line=start, end_line=end)


async def test_a_missing_file_is_an_error(call: Call) -> None:
    with pytest.raises(ToolError, match=r"there is no 'b\.txt' in the workspace"):
        await call(read_file, path="b.txt")


async def test_a_long_file_is_cut_at_a_line_and_can_be_read_on(call: Call, workspace: Path) -> None:
    lines = [f"{number:09}\n" for number in range(1, 25_001)]
    (workspace / "long.txt").write_text("".join(lines))

    first = await call(read_file, path="long.txt")
    note = "[Cut after line 10000 of 25000 in long.txt; read on with start_line=10001.]"
    assert first == "".join(lines[:10_000]) + note

    second = await call(read_file, path="long.txt", start_line=10_001)
    assert second.startswith("[Lines 10001-")
    assert second.endswith("]")
    assert len(second) < MAX_CHARS + 300
    assert "10001\t000010001\n" in second


async def test_one_endless_line_is_cut(call: Call, workspace: Path) -> None:
    (workspace / "long.txt").write_text("x" * 300_000)
    for shown in (
        await call(read_file, path="long.txt"),
        await call(read_file, path="long.txt", start_line=1),
    ):
        assert len(shown) < MAX_CHARS + 300
        assert "[Cut after" in shown or "[Lines 1-1 of 1" in shown


@pytest.mark.parametrize("data", [b"\x7fELF\x00\x01", b"caf\xe9", "x\n".encode("utf-16")])
async def test_a_binary_file_is_an_error(data: bytes, call: Call, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(data)
    with pytest.raises(ToolError, match=r"'a\.bin' is not UTF-8 text"):
        await call(read_file, path="a.bin")
    with pytest.raises(ToolError, match="is not UTF-8 text"):
        await call(edit_file, path="a.bin", old_text="x", new_text="y")


async def test_a_huge_file_is_not_loaded(call: Call, workspace: Path) -> None:
    (workspace / "huge").touch()
    os.truncate(workspace / "huge", MAX_FILE_BYTES * 1000)
    with pytest.raises(ToolError, match="larger than 20,000,000 bytes"):
        await call(read_file, path="huge", start_line=5)


async def test_without_a_workspace_there_are_no_files(context: ToolContext) -> None:
    for broken in (None, Path("/nowhere/at/all")):
        with pytest.raises(ToolError, match="workspace"):
            await read_file.run('{"path": "a"}', replace(context, workspace=broken))


async def test_a_file_is_written_with_the_folders_above_it(call: Call, workspace: Path) -> None:
    said = await call(write_file, path="src/deep/a.py", content="é\nb")
    assert said == "Created src/deep/a.py (2 lines, 4 bytes)."
    assert (workspace / "src/deep/a.py").read_bytes() == "é\nb".encode()
    assert (await call(write_file, path="src/deep/a.py", content="")).startswith("Replaced")


async def test_a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it(
    call: Call, workspace: Path
) -> None:
    script = workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    await call(write_file, path="run.sh", content="new")
    await call(edit_file, path="run.sh", old_text="new", new_text="newer")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert os.listdir(workspace) == ["run.sh"]


async def test_a_file_is_replaced_and_not_written_into(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    os.link(workspace / "a.txt", workspace / "b.txt")
    await call(write_file, path="a.txt", content="new")
    assert (workspace / "b.txt").read_text() == "old"


async def test_a_piece_that_occurs_once_is_replaced(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text(FIVE)
    said = await call(edit_file, path="a.txt", old_text="two\nthree", new_text="2\n3")
    assert said == "Edited a.txt at line 2."
    assert (workspace / "a.txt").read_text() == "one\n2\n3\nfour\nfive\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("six", "6", "occurs 0 times in 'a.txt'; read the file again"),
        ("  if x:\n  pass", "y", "at line 2 it stands with other white space"),
        ("aa", "b", r"occurs 2 times in 'a.txt' \(at lines 1, 1\)"),
        ("end", "x", r"occurs 2 times in 'a.txt' \(at lines 4, 5\).*add lines around it"),
        ("", "x", "old_text is empty"),
        ("aaa", "aaa", "nothing would change"),
        (" \n", "x", "occurs 0 times"),
    ],
)
async def test_an_edit_that_is_not_clear_changes_nothing_and_says_why(
    old: str, new: str, message: str, call: Call, workspace: Path
) -> None:
    text = "aaa\n\tif x:\n\t\tpass\nend\nend\n"
    (workspace / "a.txt").write_text(text)
    with pytest.raises(ToolError, match=message):
        await call(edit_file, path="a.txt", old_text=old, new_text=new)
    assert (workspace / "a.txt").read_text() == text


async def test_a_text_that_stands_everywhere_is_looked_for_a_few_times_only(
    call: Call, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a" * 2_000_000)
    began = time.process_time()
    with pytest.raises(ToolError, match=r"occurs more than 10 times .* 1, \.\.\.\)"):
        await call(edit_file, path="a.txt", old_text="a" * MAX_CHARS, new_text="b")
    # Each of the two million places would take some 10 µs.
    assert time.process_time() - began < 5
    with pytest.raises(ToolError, match="old_text has 100,001 characters, and may have 100,000"):
        await call(edit_file, path="a.txt", old_text="a" * (MAX_CHARS + 1), new_text="b")


async def test_twenty_million_lines_cost_no_more_than_their_bytes(
    call: Call, workspace: Path
) -> None:
    (workspace / "a.txt").write_bytes(b"\n" * MAX_FILE_BYTES)
    await call(read_file, path="a.txt", start_line=1, end_line=1)
    tracemalloc.start()
    whole = await call(read_file, path="a.txt")
    assert whole.endswith(
        "[Cut after line 100000 of 20000000 in a.txt; read on with start_line=100001.]"
    )
    last = await call(read_file, path="a.txt", start_line=19_999_999)
    assert last == "[Lines 19999999-20000000 of 20000000 in a.txt]\n19999999\t\n20000000\t\n"
    with pytest.raises(ToolError, match="occurs 0 times"):
        await call(edit_file, path="a.txt", old_text="x\ny", new_text="z")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * MAX_FILE_BYTES


@pytest.mark.parametrize("piece", [7, 1000])
async def test_a_text_is_the_same_in_whatever_pieces_it_is_gone_through(
    piece: int, call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "PIECE_BYTES", piece)
    lines = [f"{number}: é{'😀' * (number % 9)}\n" for number in range(1, 400)]
    (workspace / "a.txt").write_text("".join(lines))
    assert await call(read_file, path="a.txt", start_line=398) == (
        f"[Lines 398-399 of 399 in a.txt]\n398\t{lines[397]}399\t{lines[398]}"
    )
    said = await call(edit_file, path="a.txt", old_text="😀\n300: ", new_text="!\n300: ")
    assert said == "Edited a.txt at line 299."
    lines[298] = lines[298].replace("😀\n", "!\n")
    assert (workspace / "a.txt").read_text() == "".join(lines)


async def test_windows_line_ends_survive_an_edit(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await call(edit_file, path="a.txt", old_text="one\ntwo", new_text="1\n2")
    assert (workspace / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_a_folder_is_made_once(call: Call, workspace: Path) -> None:
    assert await call(create_directory, path="a/b") == "Created folder a/b."
    assert await call(create_directory, path="a/b") == "a/b is there already."
    (workspace / "file").write_text("x")
    with pytest.raises(ToolError, match="'file' is a file"):
        await call(create_directory, path="file")
    with pytest.raises(ToolError, match="through a file"):
        await call(create_directory, path="file/below")


async def test_names_are_as_long_as_they_can_be(call: Call, workspace: Path) -> None:
    name = "\u6f22" * 85
    await call(write_file, path=f"{name}/{name}", content="old")
    await call(edit_file, path=f"{name}/{name}", old_text="old", new_text="new")
    assert (workspace / name / name).read_text() == "new"


@pytest.mark.parametrize("path", ["\u6f22" * 86, "x" * 256, f"{'x' * 256}/a", "x/" * 2048 + "x"])
async def test_names_that_are_too_long_are_refused_by_every_tool(path: str, call: Call) -> None:
    for attempt in (
        call(read_file, path=path),
        call(write_file, path=path, content="x"),
        call(edit_file, path=path, old_text="x", new_text="y"),
        call(create_directory, path=path),
        call(list_directory, path=path),
        call(find_files, pattern="*", path=path),
        call(grep_files, pattern="x", path=path),
    ):
        with pytest.raises(ToolError, match="File name too long"):
            await attempt
