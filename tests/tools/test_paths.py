"""No path that a model can write leaves the workspace."""

import json
import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.errors import ToolError
from harness_actors.ports import Tool, ToolContext
from harness_actors.tools.command import run_command
from harness_actors.tools.files import create_directory, edit_file, read_file, write_file
from harness_actors.tools.paths import (
    make_folder,
    open_folder,
    open_to_read,
    replace_file,
)
from harness_actors.tools.scan import KEPT_OPEN, Descent, is_foreign, matching_lines, walk
from harness_actors.tools.search import find_files, grep_files, list_directory
from harness_actors.tools.standing import watch_workspace
from harness_actors.tools.way import Root, find_inside
from tests.tools.conftest import Call

SECRET = "the secret outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


@pytest.fixture
def root(workspace: Path) -> Iterator[Root]:
    with opened(workspace) as handle:
        yield Root(workspace, handle)


@pytest.fixture
def links(workspace: Path, outside: Path) -> None:
    (workspace / "real.txt").write_text("inside")
    (workspace / "file_link").symlink_to(outside / "secret.txt")
    (workspace / "folder_link").symlink_to(outside)
    (workspace / "relative_link").symlink_to("../outside/secret.txt")
    (workspace / "dangling_out").symlink_to(outside / "new.txt")
    (workspace / "dangling_in").symlink_to("new.txt")
    (workspace / "good_link").symlink_to("real.txt")
    (workspace / "circle").symlink_to("circle")
    (workspace / "chain").symlink_to("file_link")


ESCAPES = [
    "../outside/secret.txt",
    "a/../../outside/secret.txt",
    "./../outside/./secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "file_link",
    "chain",
    "relative_link",
    "folder_link/secret.txt",
    "folder_link/../outside/secret.txt",
    "folder_link",
    "dangling_out",
    "..",
    "/",
]


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("path", ESCAPES)
async def test_no_tool_reaches_outside(path: str, call: Call, outside: Path) -> None:
    attempts = [
        call(read_file, path=path),
        call(write_file, path=path, content="changed"),
        call(edit_file, path=path, old_text="secret", new_text="changed"),
        call(create_directory, path=path),
        call(list_directory, path=path),
        call(find_files, pattern="*", path=path),
        call(grep_files, pattern="secret", path=path),
    ]
    for attempt in attempts:
        with pytest.raises(ToolError, match="outside of the workspace"):
            await attempt
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(outside) == ["secret.txt"]


@pytest.mark.usefixtures("links")
async def test_searches_do_not_follow_symlinks(call: Call) -> None:
    assert (await call(grep_files, pattern="secret|inside", include_lines=False)) == "real.txt"
    assert await call(find_files, pattern="*.txt") == "real.txt"
    shown = await call(list_directory, depth=5)
    assert "secret.txt" not in [line.strip() for line in shown.splitlines()]


@pytest.mark.usefixtures("links")
async def test_symlinks_that_stay_inside_are_followed(call: Call, workspace: Path) -> None:
    assert await call(read_file, path="good_link") == "inside"

    await call(write_file, path="good_link", content="changed")
    await call(write_file, path="dangling_in", content="made")

    assert (workspace / "good_link").is_symlink()
    assert (workspace / "real.txt").read_text() == "changed"
    assert (workspace / "new.txt").read_text() == "made"


async def test_absolute_paths_that_lie_inside_are_allowed(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("inside")
    assert await call(read_file, path=str(workspace / "a.txt")) == "inside"


@pytest.mark.parametrize("by_link", [True, False])
async def test_no_tool_works_in_a_folder_that_was_put_in_the_place_of_the_workspace(
    by_link: bool, context: ToolContext, workspace: Path, outside: Path
) -> None:
    pinned = replace(context, workspace_id=watch_workspace(workspace).id)
    await call_in(pinned, write_file, path="a.txt", content="inside")
    put_in_place(outside, workspace, by_link=by_link)
    for tool, arguments in (
        (read_file, {"path": "secret.txt"}),
        (write_file, {"path": "secret.txt", "content": "changed"}),
        (edit_file, {"path": "secret.txt", "old_text": "secret", "new_text": "changed"}),
        (create_directory, {"path": "made"}),
        (list_directory, {}),
        (find_files, {"pattern": "*"}),
        (grep_files, {"pattern": "secret"}),
        (run_command, {"command": "touch made"}),
    ):
        with pytest.raises(ToolError, match="another folder or a symlink is in its place"):
            await call_in(pinned, tool, **arguments)
    assert os.listdir(workspace) == ["secret.txt"]
    assert (workspace / "secret.txt").read_text() == SECRET


def put_in_place(outside: Path, workspace: Path, *, by_link: bool) -> None:
    workspace.rename(workspace.with_name("moved"))
    if by_link:
        workspace.symlink_to(outside)
    else:
        outside.rename(workspace)


async def call_in(context: ToolContext, tool: Tool, **arguments: str) -> str:
    return await tool.run(json.dumps(arguments), context)


async def test_a_workspace_behind_a_symlink_works(call: Call, context: SimpleNamespace) -> None:
    workspace = context.workspace
    moved = workspace.rename(workspace.with_name("moved"))
    workspace.symlink_to(moved)
    await call(write_file, path="a.txt", content="x")
    assert await call(read_file, path=str(workspace / "a.txt")) == "x"
    assert await call(read_file, path=str(moved / "a.txt")) == "x"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("a\0b", "NUL"),
        ("x" * 5000, "File name too long"),
        ("x/" * 3000 + "y", "too long"),
        ("\ud800", "valid Unicode|is no path|break its schema"),
        ("missing.txt", "there is no 'missing.txt'"),
        ("file.txt/x", "is no folder, or leads through a file"),
        ("circle", "symlinks lead in a circle"),
        ("", "is a folder"),
        ("pipe", "is a device, pipe or socket"),
        ("socket", "is a device, pipe or socket|No such device"),
    ],
    ids=lambda value: repr(value[:10]),
)
@pytest.mark.usefixtures("links")
async def test_a_path_that_cannot_be_read_is_an_error_that_says_why(
    path: str, message: str, call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "file.txt").write_text("x")
    os.mkfifo(workspace / "pipe")
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as listener:
        # By a short name: the path of a socket is limited to 108 bytes.
        listener.bind("socket")
        with pytest.raises(ToolError, match=message) as raised:
            await call(read_file, path=path)
        assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", ["pipe", "folder"])
async def test_only_regular_files_are_replaced(name: str, call: Call, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "folder").mkdir()
    with pytest.raises(ToolError):
        await call(write_file, path=name, content="x")


def test_a_folder_that_becomes_a_symlink_on_the_way_is_not_followed(
    root: Root, workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = Descent.enter

    def swap_then_enter(descent: Descent, name: str) -> None:
        if name == "sub" and not (workspace / "sub").is_symlink():
            (workspace / "sub").rmdir()
            (workspace / "sub").symlink_to(outside)
        enter(descent, name)

    monkeypatch.setattr(Descent, "enter", swap_then_enter)
    for work in (
        lambda: open_to_read(root, "sub/secret.txt").__enter__(),
        lambda: replace_file(root, "sub/secret.txt", b"changed"),
        lambda: replace_file(root, "sub/new/deep/a.txt", b"made"),
        lambda: make_folder(root, "sub/new/deep"),
        lambda: open_folder(root, "sub").__enter__(),
    ):
        (workspace / "sub").unlink(missing_ok=True)
        (workspace / "sub").mkdir()
        with pytest.raises(ToolError):
            work()
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(outside) == ["secret.txt"]


def test_what_is_found_stays_where_it_was_whatever_is_at_its_path_then(
    root: Root, workspace: Path, outside: Path
) -> None:
    (workspace / "sub").mkdir()
    with find_inside(root, "sub/secret.txt") as place:
        (workspace / "sub").rename(workspace / "moved")
        (workspace / "sub").symlink_to(outside)
        assert place.stat() is None
        os.mkdir("made", dir_fd=place.folder)
    assert os.listdir(workspace / "moved") == ["made"]
    assert os.listdir(outside) == ["secret.txt"]


def test_a_file_that_becomes_a_symlink_after_it_was_found_is_not_followed(
    root: Root, workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file = os.open

    def swap_then_open(path: str, flags: int, mode: int = 0o777, **where: int) -> int:
        if path == "a.txt":
            (workspace / "a.txt").unlink()
            (workspace / "a.txt").symlink_to(outside / "secret.txt")
        return open_file(path, flags, mode, **where)

    (workspace / "a.txt").write_text("inside")
    monkeypatch.setattr(os, "open", swap_then_open)
    with (
        pytest.raises(ToolError, match="symlink was put in its place"),
        open_to_read(root, "a.txt"),
    ):
        pytest.fail("opened")
    assert (outside / "secret.txt").read_text() == SECRET


def test_a_walk_enters_no_folder_that_became_a_symlink(workspace: Path, outside: Path) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).mkdir()
    seen = []
    with opened(workspace) as top:
        for descent, entries in walk(top):
            if not descent.names and entries is not None:
                (workspace / "b").rmdir()
                (workspace / "b").symlink_to(outside)
            seen.append(("/".join(descent.names), entries is None))
    assert seen == [("", False), ("a", False), ("a", True), ("c", False), ("c", True), ("", True)]


def test_a_walk_of_any_depth_keeps_few_folders_open(workspace: Path) -> None:
    depth = 10 * KEPT_OPEN
    with opened(workspace) as top, closing(Descent(top)) as descent:
        for _ in range(depth):
            for name in ("a", "z"):
                os.mkdir(name, dir_fd=descent.folder)
            descent.enter("a")
    seen, most = 0, 0
    before = len(os.listdir("/proc/self/fd"))
    with opened(workspace) as top:
        for _, entries in walk(top):
            seen += entries is not None
            most = max(most, len(os.listdir("/proc/self/fd")) - before)
    assert seen == 2 * depth + 1
    assert most <= KEPT_OPEN + 2


@pytest.mark.parametrize(
    ("links", "owner", "foreign"),
    [(2, os.geteuid() + 1, True), (1, os.geteuid() + 1, False), (2, os.geteuid(), False)],
)
def test_only_another_users_file_with_a_second_name_is_foreign(
    links: int, owner: int, foreign: bool
) -> None:
    fields = [stat.S_IFREG | 0o644, 1, 1, links, owner, 0, 5, 0, 0, 0]
    assert is_foreign(os.stat_result(fields)) is foreign


@pytest.fixture
def a_link_to_anothers_file(
    workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(outside / "secret.txt", 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    os.link(outside / "secret.txt", workspace / "hard.txt")


@pytest.mark.usefixtures("a_link_to_anothers_file")
async def test_hard_links_to_files_of_other_users_are_refused(call: Call) -> None:
    for attempt in (
        call(read_file, path="hard.txt"),
        call(write_file, path="hard.txt", content="changed"),
        call(edit_file, path="hard.txt", old_text="secret", new_text="changed"),
    ):
        with pytest.raises(ToolError, match="hard link to a file of another user"):
            await attempt


@pytest.mark.usefixtures("a_link_to_anothers_file")
def test_hard_links_to_files_of_other_users_are_not_searched(workspace: Path) -> None:
    with opened(workspace) as top:
        assert matching_lines("hard.txt", top, re.compile("secret")) == []


NAMES = st.sampled_from(["a", "b", "c", "..", ".", "", "/", "~", "ws", "out", "\0", "é", "x" * 300])
PATHS = st.lists(NAMES, max_size=8).map("/".join) | st.text(max_size=30)


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as top:
        yield Path(os.path.realpath(top))


@given(links=st.lists(st.tuples(PATHS, PATHS), max_size=5), path=PATHS)
def test_no_path_leads_out_of_the_workspace(
    tree: Path, links: list[tuple[str, str]], path: str
) -> None:
    with tempfile.TemporaryDirectory(dir=tree) as made:
        root = Path(made) / "ws"
        (root / "a" / "b").mkdir(parents=True)
        (Path(made) / "out").mkdir()
        for place, target in links:
            name = place.replace("/", "_").replace("\0", "_")[:20]
            if name in ("", ".", "..") or not target or "\0" in target:
                continue
            try:
                (root / "a" / name).symlink_to(target)
            except (OSError, UnicodeEncodeError):
                continue
        with opened(root) as handle:
            try:
                with find_inside(Root(root, handle), path) as found:
                    folder = os.readlink(f"/proc/self/fd/{found.folder}")
            except ToolError:
                return
        assert folder == str(root) or folder.startswith(f"{root}{os.sep}")
        assert "/" not in found.name
        assert found.name not in (".", "..")
