"""Long results are kept whole, on disk, and nobody but their conversation reads them."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ToolError
from harness_actors.stores.artifacts import (
    ArtifactFolder,
    FolderArtifacts,
    artifacts_of,
    copy_artifacts,
    remove_artifacts,
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The journal; what is kept beside it needs nothing of its content."""
    path = tmp_path / "runs" / "runs.db"
    path.parent.mkdir()
    path.touch()
    return path


@pytest.fixture
def kept(store: Path) -> FolderArtifacts:
    return ArtifactFolder(store).of("talk", ArtifactsConfig(cap_bytes=1000))


def content(artifacts: FolderArtifacts, artifact_id: str) -> bytes:
    with artifacts.open(artifact_id) as file:
        return file.read()


def files(store: Path) -> list[Path]:
    return sorted(path for path in artifacts_of(store).rglob("*") if path.is_file())


def test_a_result_is_read_back_as_it_was(kept: FolderArtifacts) -> None:
    made = kept.put([b"one ", b"", b"two"])
    assert made.size_bytes == 7
    assert content(kept, made.id) == b"one two"


def test_an_id_is_short_enough_to_be_typed(kept: FolderArtifacts) -> None:
    made = kept.put([b"text"])
    assert made.id.startswith("a")
    assert len(made.id) == 11
    assert set(made.id[1:]) <= set("0123456789abcdef")


def test_the_same_result_is_kept_once(kept: FolderArtifacts, store: Path) -> None:
    assert kept.put([b"text"]) == kept.put([b"te", b"xt"])
    assert len(files(store)) == 1


def test_ids_that_would_be_the_same_are_told_apart(kept: FolderArtifacts, store: Path) -> None:
    first = kept.put([b"text"])
    (file,) = files(store)
    # As if another content had a hash that begins like this one.
    digits, _, digest = file.name.partition("-")
    file.rename(file.with_name(f"{digits}-{'0' * 64}"))
    second = kept.put([b"text"])
    assert len(second.id) == 12
    assert second.id.startswith(first.id)
    assert content(kept, second.id) == b"text"
    with pytest.raises(ToolError, match="damaged"):
        kept.open(first.id)
    assert digest in {file.name.partition("-")[2] for file in files(store)}


def test_a_conversation_reads_nothing_of_another(store: Path) -> None:
    folder = ArtifactFolder(store)
    ours, theirs = (folder.of(name, ArtifactsConfig()) for name in ("ours", "theirs"))
    made = theirs.put([b"text"])
    with pytest.raises(ToolError, match="There is no artifact"):
        ours.open(made.id)
    ours.put([b"another text"])
    with pytest.raises(ToolError, match="There is no artifact"):
        ours.open(made.id)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "a",
        "a..",
        "..",
        "../a0123456789",
        "a0123456789/../../runs.db",
        "a0123456789\0",
        "a0123456789-",
        "A0123456789",
        "a012345678",
        "a" + "0" * 65,
        "a0123456789\n",
        "a" * 1_000_000,
        "á0123456789",
    ],
)
def test_what_is_no_id_leads_nowhere(kept: FolderArtifacts, said: str) -> None:
    kept.put([b"text"])
    with pytest.raises(ToolError, match="There is no artifact") as raised:
        kept.open(said)
    assert len(raised.value.text) < 300


@given(said=st.text(max_size=80))
def test_no_text_opens_what_was_not_named(
    tmp_path_factory: pytest.TempPathFactory, said: str
) -> None:
    store = tmp_path_factory.getbasetemp() / "any.db"
    store.touch()
    kept = ArtifactFolder(store).of("talk", ArtifactsConfig())
    made = kept.put([b"text"])
    if said != made.id:
        with pytest.raises(ToolError):
            kept.open(said)


@pytest.mark.parametrize("name", ["..", ".", "a/../../b", "x" * 5000, "", "\0", "talk\ud800"])
def test_a_conversation_of_any_name_stays_in_its_folder(store: Path, name: str) -> None:
    kept = ArtifactFolder(store).of(name, ArtifactsConfig())
    made = kept.put([b"text"])
    assert content(kept, made.id) == b"text"
    (file,) = files(store)
    assert file.parent.parent == artifacts_of(store)


def test_nobody_else_may_read_them(kept: FolderArtifacts, store: Path) -> None:
    before = os.umask(0)
    try:
        kept.put([b"text"])
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in artifacts_of(store).rglob("*")}
    modes[artifacts_of(store)] = stat.S_IMODE(artifacts_of(store).stat().st_mode)
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_what_is_kept_stays_below_the_cap(kept: FolderArtifacts, store: Path) -> None:
    first = kept.put([b"x" * 600])
    with pytest.raises(ToolError, match=r"artifacts\.cap_bytes"):
        kept.put([b"y" * 401])
    assert len(files(store)) == 1
    second = kept.put([b"y" * 400])
    assert kept.room_bytes() == 0
    assert content(kept, first.id) + content(kept, second.id) == b"x" * 600 + b"y" * 400


def test_what_is_kept_already_needs_no_room(kept: FolderArtifacts) -> None:
    made = kept.put([b"x" * 700])
    assert kept.put([b"x" * 300, b"x" * 400]) == made


def test_the_cap_is_of_one_conversation(kept: FolderArtifacts, store: Path) -> None:
    kept.put([b"x" * 1000])
    other = ArtifactFolder(store).of("other", ArtifactsConfig(cap_bytes=1000))
    assert other.room_bytes() == 1000


def test_results_that_come_at_once_do_not_pass_the_cap_together(store: Path) -> None:
    kept = ArtifactFolder(store).of("talk", ArtifactsConfig(cap_bytes=10_000))

    def put(number: int) -> bool:
        try:
            made = kept.put([bytes([number]) * 500, bytes([number]) * 500])
        except ToolError:
            return False
        return content(kept, made.id) == bytes([number]) * 1000

    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(put, range(40)))
    assert sum(done) == 10
    assert sum(path.stat().st_size for path in files(store)) == 10_000


def test_nothing_is_left_of_a_result_that_breaks_off(kept: FolderArtifacts, store: Path) -> None:
    def breaks_off() -> Iterator[bytes]:
        yield b"begun"
        raise OSError(28, "No space left on device")

    with pytest.raises(ToolError, match="the disk is full"):
        kept.put(breaks_off())
    assert files(store) == []
    assert kept.room_bytes() == 1000


def test_what_a_dead_process_left_half_written_takes_no_room(
    kept: FolderArtifacts, store: Path
) -> None:
    kept.put([b"text"])
    (file,) = files(store)
    left = file.with_name("0123456789abcdef.part")
    left.write_bytes(b"x" * 900)
    made = kept.put([b"y" * 900])
    assert not left.exists()
    assert content(kept, made.id) == b"y" * 900


KILLED = """
import sys
from pathlib import Path
from harness_actors.config import ArtifactsConfig
from harness_actors.stores.artifacts import ArtifactFolder

def pieces():
    yield b"begun"
    print("begun", flush=True)
    sys.stdin.read()

ArtifactFolder(Path(sys.argv[1])).of("talk", ArtifactsConfig()).put(pieces())
"""


def test_a_process_that_is_killed_while_it_writes_leaves_no_artifact(
    kept: FolderArtifacts, store: Path
) -> None:
    command = [sys.executable, "-c", KILLED, str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writing:
        assert writing.stdout is not None
        assert writing.stdout.readline() == b"begun\n"
        writing.kill()
    (left,) = files(store)
    assert left.read_bytes() == b"begun"
    made = kept.put([b"text"])
    assert [path.name.partition("-")[0] for path in files(store)] == [made.id]


@pytest.mark.parametrize("damage", ["changed", "cut", "folder", "link"])
def test_a_damaged_file_is_not_read(kept: FolderArtifacts, store: Path, damage: str) -> None:
    made = kept.put([b"the text"])
    (file,) = files(store)
    whole = file.read_bytes()
    if damage == "changed":
        file.write_bytes(b"another!")
    elif damage == "cut":
        file.write_bytes(whole[:4])
    else:
        file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage == "link":
        elsewhere = store.with_name("elsewhere")
        elsewhere.write_bytes(whole)
        file.symlink_to(elsewhere)
    with pytest.raises(ToolError, match="its file is damaged"):
        kept.open(made.id)


def test_a_damaged_file_is_put_right_by_the_same_result(kept: FolderArtifacts, store: Path) -> None:
    made = kept.put([b"the text"])
    files(store)[0].write_bytes(b"another!")
    assert kept.put([b"the text"]) == made
    assert content(kept, made.id) == b"the text"


def test_a_file_that_is_gone_is_told(kept: FolderArtifacts, store: Path) -> None:
    made = kept.put([b"text"])
    files(store)[0].unlink()
    with pytest.raises(ToolError, match="There is no artifact"):
        kept.open(made.id)


def test_nothing_is_made_again_in_a_folder_that_was_removed(
    kept: FolderArtifacts, store: Path
) -> None:
    store.unlink()
    store.parent.rmdir()
    with pytest.raises(ToolError):
        kept.put([b"text"])
    with pytest.raises(ToolError):
        kept.begin()
    assert not store.parent.exists()


def test_nothing_is_kept_beside_a_journal_that_was_replaced(
    kept: FolderArtifacts, store: Path
) -> None:
    store.rename(store.with_name("moved.db"))
    store.touch()
    with pytest.raises(ToolError, match="was moved or removed"):
        kept.put([b"text"])
    assert files(store) == []


def test_a_file_in_the_making_has_no_name(kept: FolderArtifacts, store: Path) -> None:
    with kept.begin() as file:
        file.write(b"text")
        assert files(store) == []
        file.seek(0)
        assert file.read() == b"text"


def test_only_what_the_journal_has_is_left(store: Path) -> None:
    folder = ArtifactFolder(store)
    for name in ("old", "new"):
        folder.of(name, ArtifactsConfig()).put([name.encode()])
    remove_artifacts(store, but={"new"})
    assert [path.read_bytes() for path in files(store)] == [b"new"]


def test_what_stands_there_and_was_not_made_by_us_stays(store: Path) -> None:
    (artifacts_of(store) / "notes").mkdir(parents=True)
    remove_artifacts(store, but=())
    assert (artifacts_of(store) / "notes").is_dir()


def test_a_link_that_came_with_a_journal_is_not_followed(store: Path, tmp_path: Path) -> None:
    """Who receives a folder from somebody has made nothing in it."""
    victim = tmp_path / "victim"
    theirs = victim / ("0" * 32)
    theirs.mkdir(parents=True)
    (theirs / "thesis").write_text("precious")
    artifacts_of(store).symlink_to(victim)

    remove_artifacts(store, but=())
    kept = ArtifactFolder(store).of("talk", ArtifactsConfig())
    with pytest.raises(ToolError, match=r"'runs\.db\.artifacts' beside the journal is a link"):
        kept.put([b"text"])
    with pytest.raises(ToolError, match="There is no artifact"):
        kept.open("a0123456789")

    assert [path.name for path in victim.rglob("*")] == ["0" * 32, "thesis"]


def test_a_fork_writes_through_no_link(store: Path, tmp_path: Path) -> None:
    other, victim = tmp_path / "forks.db", tmp_path / "victim"
    other.touch()
    victim.mkdir()
    artifacts_of(other).symlink_to(victim)
    made = ArtifactFolder(store).of("talk", ArtifactsConfig()).put([b"named"])
    with pytest.raises(OSError, match="is a link"):
        copy_artifacts((store, "talk"), (other, "fork"), [f"artifact {made.id}"])
    assert list(victim.iterdir()) == []


def test_nothing_to_remove_is_no_fault(store: Path) -> None:
    remove_artifacts(store, but=())
    assert not artifacts_of(store).exists()


def test_a_fork_has_what_its_log_names_and_no_more(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "forks.db"
    other.touch()
    origin = ArtifactFolder(store).of("talk", ArtifactsConfig())
    named, unnamed = origin.put([b"named"]), origin.put([b"unnamed"])
    text = f"[kept whole as artifact {named.id}; …] and a0000000000"
    copy_artifacts((store, "talk"), (other, "fork"), [text])
    fork = ArtifactFolder(other).of("fork", ArtifactsConfig())
    assert content(fork, named.id) == b"named"
    with pytest.raises(ToolError):
        fork.open(unnamed.id)
    remove_artifacts(store, but=())
    assert content(fork, named.id) == b"named"


def test_a_fork_of_a_run_without_artifacts_has_no_folder(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "forks.db"
    copy_artifacts((store, "talk"), (other, "fork"), ["a0000000000"])
    assert not artifacts_of(other).exists()
