"""No path that a model can write leaves the workspace."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.errors import ToolError
from harness_actors.tools.files import create_directory, edit_file, read_file, write_file
from harness_actors.tools.paths import open_to_read, replace_file, resolve_inside
from harness_actors.tools.search import find_files, grep_files, list_directory
from tests.tools.conftest import Call

SECRET = "the secret outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


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


def test_a_folder_that_becomes_a_symlink_after_it_was_checked_is_noticed(
    workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "sub").mkdir()

    def resolve_then_swap(root: Path, path: str) -> Path:
        real = resolve_inside(root, path)
        if (workspace / "sub").is_symlink():
            return real
        (workspace / "sub").rmdir()
        (workspace / "sub").symlink_to(outside)
        return real

    monkeypatch.setattr("harness_actors.tools.paths.resolve_inside", resolve_then_swap)
    with (
        pytest.raises(ToolError, match="outside"),
        open_to_read(workspace, "sub/secret.txt"),
    ):
        pytest.fail("opened")
    (workspace / "sub").unlink()
    (workspace / "sub").mkdir()
    with pytest.raises(ToolError):
        replace_file(workspace, "sub/secret.txt", b"changed")
    assert (outside / "secret.txt").read_text() == SECRET


def test_a_file_that_becomes_a_symlink_after_it_was_checked_is_not_followed(
    workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve_then_swap(root: Path, path: str) -> Path:
        real = root / path
        real.unlink(missing_ok=True)
        real.symlink_to(outside / "secret.txt")
        return real

    monkeypatch.setattr("harness_actors.tools.paths.resolve_inside", resolve_then_swap)
    with pytest.raises(ToolError), open_to_read(workspace, "a.txt"):
        pytest.fail("opened")
    with pytest.raises(ToolError):
        replace_file(workspace, "a.txt", b"changed")
    assert (outside / "secret.txt").read_text() == SECRET


NAMES = st.sampled_from(["a", "b", "c", "..", ".", "", "/", "~", "ws", "out", "\0", "é", "x" * 300])
PATHS = st.lists(NAMES, max_size=8).map("/".join) | st.text(max_size=30)


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as top:
        yield Path(os.path.realpath(top))


@given(links=st.lists(st.tuples(PATHS, PATHS), max_size=5), path=PATHS)
def test_no_resolved_path_leaves_the_workspace(
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
        try:
            found = resolve_inside(root, path)
        except ToolError:
            return
        assert os.path.realpath(found).startswith(f"{root}{os.sep}") or found == root
