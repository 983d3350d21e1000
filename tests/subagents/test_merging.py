"""Changes of a copy, brought into a workspace that has gone on meanwhile."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness_actors.errors import ToolError
from harness_actors.tools import merging
from harness_actors.tools.tree_files import Tree
from tests.subagents.trees import Files, Node, brought_in, files_in, three

LINES = "".join(f"line {number}\n" for number in range(9))


def edited(text: str, number: int, to: str) -> str:
    return text.replace(f"line {number}\n", f"{to}\n")


def hows(top: Path) -> dict[str, str]:
    return {path: one.how for path, one in brought_in(top).items()}


def whys(top: Path) -> dict[str, str]:
    return {path: one.why for path, one in brought_in(top).items()}


def test_what_is_as_the_copy_began_is_taken(tmp_path: Path) -> None:
    base: Files = {
        "same": "1",
        "edited": "1",
        "gone": "1",
        "image": b"\xff\0",
        "sub/deep/file": "1",
    }
    work: Files = {
        "same": "1",
        "edited": "2",
        "image": b"\xff\0\1",
        "new/er/file": "2",
        "tool": ("program", "2"),
        "to": ("link", "sub"),
    }
    top = three(tmp_path, base=base, work=work, ours=base)
    assert set(hows(top).values()) == {"applied"}
    assert files_in(top / "ours") == work
    # A folder that is left empty goes with its last file.
    assert not (top / "ours" / "sub").exists()
    assert set(hows(top).values()) == {"same"}


def test_lines_that_do_not_meet_are_merged(tmp_path: Path) -> None:
    top = three(
        tmp_path,
        base={"a": LINES},
        work={"a": edited(LINES, 1, "theirs")},
        ours={"a": edited(LINES, 7, "ours"), "own": "kept"},
    )
    assert hows(top) == {"a": "merged"}
    merged = edited(edited(LINES, 1, "theirs"), 7, "ours")
    assert files_in(top / "ours") == {"a": merged, "own": "kept"}
    assert hows(top) == {"a": "same"}
    assert files_in(top / "ours")["a"] == merged


def test_lines_that_were_merged_before_are_not_taken_twice(tmp_path: Path) -> None:
    # To git alone, what the first merge has made looks as if ours had a line more of its own.
    top = three(tmp_path, base={"f": "b\na\n"}, work={"f": "b\na\na\n"}, ours={"f": "a\n"})
    assert hows(top) == {"f": "merged"}
    assert files_in(top / "ours") == {"f": "a\na\n"}
    assert hows(top) == {"f": "same"}
    assert files_in(top / "ours") == {"f": "a\na\n"}


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "why"),
    [
        (LINES, edited(LINES, 1, "x"), edited(LINES, 1, "y"), "both have changed the same lines"),
        (b"\xff\0", b"\xff\1", b"\xff\2", "no text"),
        ("1", None, "2", "is deleted there, and was changed in your workspace"),
        ("1", "2", None, "is changed there, and was deleted in your workspace"),
        (None, "2", "3", "both have made it"),
        ("1", ("link", "other"), "2", "became something else"),
        (("link", "a"), ("link", "b"), ("link", "c"), "leads elsewhere"),
        ("1", ("link", "/etc/passwd"), "1", "leads out of the workspace"),
        ("1", ("link", "../up"), "1", "leads out of the workspace"),
    ],
)
def test_a_conflict_is_named_and_the_file_stays(
    tmp_path: Path, base: Node | None, theirs: Node | None, ours: Node | None, why: str
) -> None:
    def tree(node: Node | None) -> Files:
        return {"other": "1"} if node is None else {"other": "1", "f": node}

    top = three(tmp_path, base=tree(base), work={**tree(theirs), "other": "2"}, ours=tree(ours))
    outcomes = brought_in(top)
    assert outcomes["f"].how == "conflict"
    assert why in outcomes["f"].why
    assert outcomes["other"].how == "applied"
    assert files_in(top / "ours") == {**tree(ours), "other": "2"}


def test_whether_a_file_may_be_executed_is_merged_apart_from_its_lines(tmp_path: Path) -> None:
    changed = edited(LINES, 1, "new")
    top = three(
        tmp_path,
        base={"a": LINES, "b": LINES, "c": LINES},
        work={"a": ("program", LINES), "b": changed, "c": ("program", changed)},
        ours={"a": changed, "b": ("program", LINES), "c": LINES},
    )
    (top / "ours/c").chmod(0o600)
    assert hows(top) == {"a": "merged", "b": "merged", "c": "applied"}
    assert files_in(top / "ours") == dict.fromkeys("abc", ("program", changed))
    # Nobody else may read it, and so nobody else may execute it.
    assert (top / "ours/c").stat().st_mode & 0o777 == 0o700
    assert set(hows(top).values()) == {"same"}


def test_so_it_is_of_what_is_no_text(tmp_path: Path) -> None:
    one, two = b"\xff\0\1", b"\xff\0\2"
    top = three(
        tmp_path,
        base={"theirs": one, "ours": one, "both": one},
        work={"theirs": one, "ours": two, "both": two},
        ours={"theirs": two, "ours": one, "both": two},
    )
    for path in ("work/theirs", "ours/ours", "work/both"):
        (top / path).chmod(0o755)
    assert hows(top) == {"theirs": "merged", "ours": "merged", "both": "merged"}
    assert files_in(top / "ours") == dict.fromkeys(("theirs", "ours", "both"), two)
    assert all(os.access(top / "ours" / name, os.X_OK) for name in ("theirs", "ours", "both"))
    assert set(hows(top).values()) == {"same"}


@pytest.mark.parametrize(("most", "how"), [(9, "merged"), (8, "conflict")])
def test_files_that_both_have_changed_are_merged_up_to_a_bound(
    most: int, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MOST_MERGED_BYTES", most)
    top = three(
        tmp_path,
        base={"lines": "a\n\n\n\nb\n", "mode": "1", "long": "1"},
        work={"lines": "a\n\n\n\nc\n", "mode": "23456789!", "long": "2345678901"},
        ours={"lines": "abc\n\n\n\nb\n", "mode": ("program", "1"), "long": "1"},
    )
    assert hows(top) == {"lines": how, "mode": how, "long": "applied"}
    if how == "conflict":
        assert whys(top)["lines"] == "both have changed it, and it is too long to be merged"
        assert "its mode was changed in your workspace" in whys(top)["mode"]
    else:
        assert files_in(top / "ours")["lines"] == "abc\n\n\n\nc\n"
        assert files_in(top / "ours")["mode"] == ("program", "23456789!")


def test_who_is_stopped_brings_nothing_more_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = three(tmp_path, base={}, work={"a": "1", "b": "1"}, ours={})
    stops = iter([None, ToolError("the call was stopped")])

    def check_stopped() -> None:
        if (error := next(stops)) is not None:
            raise error

    monkeypatch.setattr(merging, "check_stopped", check_stopped)
    with pytest.raises(ToolError, match="the call was stopped"):
        brought_in(top)
    assert files_in(top / "ours") == {"a": "1"}


def test_a_merge_on_record_that_was_not_written_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = three(tmp_path, base={"f": "b\na\n"}, work={"f": "b\na\na\n"}, ours={"f": "a\n"})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(Tree, "put", full)
        assert whys(top) == {"f": "it cannot be written: no room"}
    assert (top / "applied.jsonl").read_bytes().strip()
    assert files_in(top / "ours") == {"f": "a\n"}
    assert hows(top) == {"f": "merged"}
    assert files_in(top / "ours") == {"f": "a\na\n"}
    assert hows(top) == {"f": "same"}


def test_a_record_is_closed_behind_each_line(tmp_path: Path) -> None:
    record = merging.Record(tmp_path / "applied.jsonl")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(9):
        record.add("a", "x", str(number))
    assert len(os.listdir("/proc/self/fd")) == before
    known = merging.Record(tmp_path / "applied.jsonl")
    assert known.has("a", "x", "8")
    assert known.has("a", "x", "0")
    assert not known.has("a", "8", "x")


def test_a_folder_comes_in_the_place_of_a_file_and_a_file_in_that_of_a_folder(
    tmp_path: Path,
) -> None:
    base: Files = {"a": "1", "b/one": "1", "b/two": "1"}
    work: Files = {"a/one": "2", "b": "2"}
    top = three(tmp_path, base=base, work=work, ours=base)
    assert set(hows(top).values()) == {"applied"}
    assert files_in(top / "ours") == work
    assert set(hows(top).values()) == {"same"}


def test_what_stands_in_the_way_is_a_conflict(tmp_path: Path) -> None:
    top = three(
        tmp_path,
        base={"b/one": "1"},
        work={"a/one": "2", "b": "2", "c": "2"},
        ours={"a": "mine", "b/one": "1", "b/mine": "1", "c/mine": "1"},
    )
    found = brought_in(top)
    assert {path: one.how for path, one in found.items()} == {
        "a/one": "conflict",
        "b": "conflict",
        "b/one": "applied",
        "c": "conflict",
    }
    assert "where a folder of it should be" in found["a/one"].why
    assert "has a folder of this name" in found["b"].why
    assert files_in(top / "ours") == {"a": "mine", "b/mine": "1", "c/mine": "1"}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    top = three(
        tmp_path / "trees",
        base={"lib/a": "1", "f": "1"},
        work={"lib/a": "2", "lib/new": "2", "f": "2"},
        ours={"lib": ("link", str(outside)), "f": ("link", str(outside / "a"))},
    )
    outside.mkdir()
    (outside / "a").write_text("1")
    assert set(hows(top).values()) == {"conflict"}
    assert files_in(outside) == {"a": "1"}


def test_without_git_both_sides_of_a_file_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    top = three(
        tmp_path / "trees",
        base={"a": LINES, "b": "1"},
        work={"a": edited(LINES, 1, "theirs"), "b": "2"},
        ours={"a": edited(LINES, 7, "ours"), "b": "1"},
    )
    assert whys(top) == {"a": "both have changed it, and there is no git to merge it", "b": ""}


def test_git_does_what_it_does_without_settings_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[merge]\n\tconflictstyle = nonsense\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    top = three(
        tmp_path / "trees",
        base={"a": LINES},
        work={"a": edited(LINES, 1, "theirs")},
        ours={"a": edited(LINES, 7, "ours")},
    )
    assert hows(top) == {"a": "merged"}


def test_caches_and_what_version_control_keeps_are_no_changes(tmp_path: Path) -> None:
    work: Files = {
        ".git/index": "2",
        "a/__pycache__/a.pyc": "2",
        "node_modules/x/y": "2",
        ".env": "2",
    }
    top = three(tmp_path, base={}, work=work, ours={})
    assert hows(top) == {".env": "applied"}


def test_pipes_are_not_waited_for_and_go_nowhere(tmp_path: Path) -> None:
    top = three(tmp_path, base={"a": "1"}, work={}, ours={"a": "1"})
    os.mkfifo(top / "work/a")
    os.mkfifo(top / "work/new")
    assert whys(top) == {"a": "it is neither file nor link, or a file of another user"}


class Killed(BaseException):
    """In the place of a signal."""


@pytest.mark.parametrize("at", range(6))
def test_what_was_cut_off_in_the_middle_comes_to_the_same_when_it_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    base: Files = {"a": LINES, "b": "1", "c": "1", "d/e": "1"}
    work: Files = {"a": edited(LINES, 1, "theirs"), "b": "2", "c/new": "2", "l": ("link", "b")}
    ours: Files = {**base, "a": edited(LINES, 7, "ours")}
    whole = three(tmp_path / "whole", base=base, work=work, ours=ours)
    cut = three(tmp_path / "cut", base=base, work=work, ours=ours)
    brought_in(whole)
    steps = iter(range(100))

    def killed_before(name: str) -> None:
        real = getattr(Tree, name)

        def step(self: Tree, *given: Any, **named: Any) -> None:
            if next(steps) == at:
                raise Killed
            real(self, *given, **named)

        monkeypatch.setattr(Tree, name, step)

    with monkeypatch.context() as patched:
        monkeypatch = patched
        for name in ("put", "put_link", "remove"):
            killed_before(name)
        with pytest.raises(Killed):
            brought_in(cut)
    assert set(hows(cut).values()) <= {"applied", "merged", "same"}
    assert files_in(cut / "ours") == files_in(whole / "ours")


NAMES = st.sampled_from(["a", "b", "c", "d/a", "d/b", "d/e/a"])
TEXTS = st.lists(st.sampled_from("uvwxyz"), max_size=6).map(
    lambda lines: "".join(f"{one}\n" for one in lines)
)
NODES = st.one_of(
    TEXTS,
    st.binary(max_size=3).map(lambda data: b"\xff" + data),
    TEXTS.map(lambda text: ("program", text)),
    st.sampled_from(["a", "b"]).map(lambda name: ("link", name)),
)
TREES = st.dictionaries(NAMES, NODES, max_size=5)


def over(base: Mapping[str, Node], edits: Mapping[str, Node | None]) -> dict[str, Node]:
    """A tree with some files changed, and some deleted."""
    return {name: node for name, node in {**base, **edits}.items() if node is not None}


EDITS = st.dictionaries(NAMES, st.none() | NODES, max_size=4)


@settings(max_examples=120, deadline=None)
@example(base={"a": ("link", "b")}, theirs={"a": ("program", "u")}, own={})
@given(base=TREES, theirs=EDITS, own=EDITS)
def test_nothing_of_ours_is_lost_and_all_that_does_not_clash_comes(
    base: dict[str, Node], theirs: dict[str, Node | None], own: dict[str, Node | None]
) -> None:
    work, ours = over(base, theirs), over(base, own)
    with TemporaryDirectory() as name:
        top = three(Path(name), base=base, work=work, ours=ours)
        outcomes = brought_in(top)
        after = files_in(top / "ours")
        for path in base.keys() | work.keys() | ours.keys() | after.keys():
            was, is_, mine = base.get(path), work.get(path), ours.get(path)
            if was == is_:
                assert after.get(path) == mine
                assert path not in outcomes
            elif mine in (was, is_):
                assert after.get(path) == is_
                assert outcomes[path].how == ("same" if mine == is_ else "applied")
            elif outcomes[path].how == "conflict":
                assert after.get(path) == mine
                assert outcomes[path].why
            else:
                # A program and a file are merged apart from what is in them.
                assert outcomes[path].how == "merged"
                kept = _lines(mine) - _lines(was)
                assert kept <= _lines(after[path])
        again = brought_in(top)
        assert files_in(top / "ours") == after
        for path, one in again.items():
            assert one.how == ("conflict" if outcomes[path].how == "conflict" else "same")


def _lines(node: Node | None) -> set[str]:
    text = node[1] if isinstance(node, tuple) else node
    return set(text.splitlines()) if isinstance(text, str) else set()
