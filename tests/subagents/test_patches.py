"""What was changed in a tree, as a unified diff."""

import difflib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.tools import patches
from harness_actors.tools.changes import Change, changes_between
from harness_actors.tools.patches import patch_of
from harness_actors.tools.tree_files import Found
from tests.subagents.trees import Files, make, open_trees


def patch(folder: Path, before: Files, after: Files) -> str:
    make(folder / "before", before)
    make(folder / "after", after)
    with open_trees(folder / "before", folder / "after") as (old, new):
        return "".join(patch_of(changes_between(old, new), old, new))


LINES = st.lists(st.sampled_from("abcd"), max_size=30)


@given(before=LINES, after=LINES)
def test_lines_are_shown_as_they_would_be_of_all_of_the_file(
    before: list[str], after: list[str]
) -> None:
    # What is the same at both ends is left out before lines are compared, and so the two may find
    # other lines to be the same between; but each must make the one text of the other.
    old, new = ([f"{line}\n" for line in lines] for lines in (before, after))
    change = Change("f", Found("file"), Found("file"))
    shown = list(patches._lines("f", change, old, new))
    assert bool(shown) == (before != after)
    assert _applied(old, shown) == new
    assert _applied(old, list(difflib.unified_diff(old, new))) == new


def _applied(lines: list[str], diff: list[str]) -> list[str]:
    """What the lines come to by a diff, whose numbers must be right."""
    made: list[str] = []
    at = 0
    for line in diff[2:]:
        if line.startswith("@@"):
            begin, _, count = line.split()[1].removeprefix("-").partition(",")
            first = int(begin) - (1 if count != "0" else 0)
            made += lines[at:first]
            at = first
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert lines[at] == line[1:]
            at += 1
            made += [line[1:]] if line.startswith(" ") else []
    return made + lines[at:]


def test_git_applies_what_is_shown(tmp_path: Path) -> None:
    before = {"a": "".join(f"{n}\n" for n in range(2000)), "gone": "x\n"}
    after = {"a": before["a"].replace("\n1000\n", "\nthousand\n"), "new": "y"}
    text = patch(tmp_path, before, after)
    shown = "\n".join(line for line in text.split("\n") if not line.startswith("diff "))
    ended = subprocess.run(
        ["git", "apply", "--no-index", "-"],
        input=shown.encode(),
        cwd=tmp_path / "before",
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (tmp_path / "before/a").read_text() == after["a"]
    assert (tmp_path / "before/new").read_text() == "y"
    assert not (tmp_path / "before/gone").exists()


def test_what_has_no_lines_is_told_in_words(tmp_path: Path) -> None:
    before: Files = {"mode": "1\n", "link": ("link", "a"), "kind": "1\n", "image": b"\xff"}
    after: Files = {
        "mode": ("program", "1\n"),
        "link": ("link", "b"),
        "kind": ("link", "c"),
        "image": b"\xff\xff",
        "new\nline": "1\n",
    }
    text = patch(tmp_path, before, after)
    assert "diff mode\nwas file, is file that may be executed\n" in text
    assert "diff link\nwas link to a, is link to b\n" in text
    assert "diff kind\nwas file, is link to c\n--- a/kind\n+++ /dev/null\n" in text
    assert "diff image\nnot shown, for it is no text or too long: 1 bytes -> 2 bytes\n" in text
    assert "diff 'new\\nline'\nnew file\n" in text


def test_what_is_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "MOST_LINES", 10)
    monkeypatch.setattr(patches, "MOST_TEXT_BYTES", 1000)
    many, long = "".join(f"{n}\n" for n in range(20)), "x" * 1001
    text = patch(tmp_path, {"a": many, "b": "1"}, {"a": many.replace("\n", "!\n"), "b": long})
    assert "[20 -> 20 lines: too many changes to be shown]" in text
    assert "diff b\nnot shown, for it is no text or too long: 1 bytes -> 1,001 bytes\n" in text
    monkeypatch.setattr(patches, "MOST_SHOWN_CHARS", 1)
    again = patch(tmp_path / "again", {}, {"a": "1", "b": "2"})
    assert again == "[2 more files are not shown; name one as path]\n"
