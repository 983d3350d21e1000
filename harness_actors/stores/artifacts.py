"""Results that are too long for a log: files beside the journal, a folder for each conversation.

The rule:

- A file is on the disk, with its name, before `put` returns, and so before a commit that names it.
- Its name holds the hash of its content, which is looked at whenever it is opened.
- Folders are named by hashes of conversations: a conversation reads its own, and whatever a
  model says as an id leads nowhere else. A fork is given what its log names (`copy_artifacts`).
- What a death leaves half written is removed by the next `put`; what nothing names, with its
  conversation. `remove_artifacts` follows the journal, see `expiry`.
- Of a folder that was removed nothing is made again but what stands in it.
- A link in the place of a folder is followed by nobody: who made the journal may have put it there.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import EDQUOT, ENOSPC, ENOTDIR
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import BinaryIO

from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ToolError
from harness_actors.ports import Artifact
from harness_actors.stores.private import FOLDER, OWN, OWN_FOLDER, opened_folder
from harness_actors.stores.standing import FileId

ID_DIGITS = 10
_ID = re.compile(r"a[0-9a-f]{10,64}")
_NAMED = re.compile(r"\ba[0-9a-f]{10,64}\b")
_PART = ".part"
_FOLDER_NAME = re.compile(r"[0-9a-f]{32}")


def artifacts_of(store: Path) -> Path:
    """The folder with the artifacts of a journal; there is none where nothing was kept."""
    store = store.resolve()
    return store.with_name(f"{store.name}.artifacts")


def folder_of(store: Path, conversation_id: str) -> Path:
    """The folder with those of a conversation."""
    return artifacts_of(store) / _folder_name(conversation_id)


def remove_artifacts(store: Path, *, but: Collection[str]) -> None:
    """Remove what is kept for conversations that a journal does not have, as far as can be.

    Args:
        store: The journal, on which nobody works.
        but: The conversations that it has.
    """
    root, kept = artifacts_of(store), {_folder_name(one) for one in but}
    with suppress(OSError), opened_folder(root) as folder:
        for name in os.listdir(folder):
            if _FOLDER_NAME.fullmatch(name) and name not in kept:
                shutil.rmtree(name, ignore_errors=True, dir_fd=folder)


def copy_artifacts(
    source: tuple[Path, str], target: tuple[Path, str], texts: Iterable[str]
) -> None:
    """Give a conversation the artifacts of another one that its log names.

    Args:
        source: A journal and a conversation of it.
        target: The same of whoever is given them.
        texts: What its log says.

    Raises:
        OSError: There is no room for them.
    """
    _give(folder_of(*source), folder_of(*target), texts)


def _give(folder: Path, into: Path, texts: Iterable[str]) -> None:
    if not folder.is_dir() or folder.parent.is_symlink() or folder.is_symlink():
        return
    named = {found for text in texts for found in _NAMED.findall(text)}
    files = [name for name in os.listdir(folder) if name.partition("-")[0] in named]
    if not files:
        return
    root = into.parent
    _make_folder(root)
    _make_folder(into)
    for name in files:
        with suppress(FileExistsError):
            _link_or_copy(folder / name, into / name)
    for synced in (into, root):
        _sync(synced)


class ArtifactFolder:
    """The artifacts of a journal, as a process that serves its runs keeps and reads them.

    Args:
        store: The journal. While another file is at its path, nothing is kept.
    """

    def __init__(self, store: Path) -> None:
        self._store = store.resolve()
        self._file = FileId.of(self._store)

    def of(self, conversation_id: str, config: ArtifactsConfig) -> "FolderArtifacts":
        """Those of a conversation."""
        folder = folder_of(self._store, conversation_id)
        return FolderArtifacts(folder, config, self._check_standing)

    def _check_standing(self) -> None:
        if self._file is not None and FileId.of(self._store) != self._file:
            raise FileNotFoundError(f"the journal {str(self._store)!r} was moved or removed")


@dataclass(eq=False)
class FolderArtifacts:
    """Answers `ConversationArtifacts` with the files of a folder.

    Only one process at a time serves a conversation, so that nobody else writes there.

    Args:
        folder: Where they are; made, with the one that it is in, for the first.
        config: How much may be kept.
        check_standing: Raises `OSError` where nothing may be written.
    """

    _path: Path
    _config: ArtifactsConfig
    _check_standing: Callable[[], None]
    _lock: Lock = field(default_factory=Lock, init=False)
    _writing: set[str] = field(default_factory=set, init=False)

    @property
    def inline_chars(self) -> int:
        return self._config.inline_chars

    @property
    def cap_bytes(self) -> int:
        return self._config.cap_bytes

    def put(self, pieces: Iterable[bytes]) -> Artifact:
        with _told(), self._made() as folder, self._part(folder) as (part, room):
            size, digest = _write(folder, part, pieces, room)
            with self._lock:
                found = self._find(folder, lambda name: name.endswith(f"-{digest}"))
                if found is None and size > min(room, self._room(folder, but=part)):
                    raise ToolError(self._full(size))
                found = found or _new_name(os.listdir(folder), digest)
                if size <= room:
                    # Also in the place of one that is there: that may be damaged.
                    os.rename(part, found, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        return Artifact(id=found.partition("-")[0], size_bytes=size)

    def take(self, conversation_id: str, texts: Iterable[str]) -> None:
        with _told():
            self._check_standing()
            _give(self._path.with_name(_folder_name(conversation_id)), self._path, texts)

    def open(self, artifact_id: str) -> BinaryIO:
        unknown = f"There is no artifact {artifact_id[:80]!r} in this conversation."
        if not _ID.fullmatch(artifact_id):
            raise ToolError(f"{unknown} An id is 'a' and {ID_DIGITS} hex digits.")
        try:
            _check_no_link(self._path.parent)
            folder = os.open(self._path, FOLDER)
        except OSError:
            raise ToolError(unknown) from None
        try:
            found = self._find(folder, lambda name: name.startswith(f"{artifact_id}-"))
            if found is None:
                raise ToolError(unknown)
            return _opened(folder, found)
        finally:
            os.close(folder)

    def begin(self) -> BinaryIO:
        with _told(), self._made():
            made: BinaryIO = tempfile.TemporaryFile(dir=self._path, buffering=0)  # noqa: SIM115
            return made

    def room_bytes(self) -> int:
        with _told(), self._made() as folder:
            return self._room(folder)

    @contextmanager
    def _made(self) -> Iterator[int]:
        """The folder, open, made where it is missing."""
        self._check_standing()
        # Not their parents: a run directory that was removed must not come back.
        _make_folder(self._path.parent)
        _make_folder(self._path)
        with opened_folder(self._path) as folder:
            yield folder

    @contextmanager
    def _part(self, folder: int) -> Iterator[tuple[str, int]]:
        """A name for a file in the making, and how long it may become."""
        part = f"{token_hex(8)}{_PART}"
        with self._lock:
            self._writing.add(part)
            for name in os.listdir(folder):
                if name.endswith(_PART) and name not in self._writing:
                    # Whoever wrote it is dead.
                    os.unlink(name, dir_fd=folder)
            room = self._room(folder)
        try:
            yield part, room
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=folder)
            self._writing.discard(part)

    def _room(self, folder: int, but: str = "") -> int:
        used = 0
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name != but:
                    with suppress(FileNotFoundError):
                        used += entry.stat(follow_symlinks=False).st_size
        return max(0, self._config.cap_bytes - used)

    def _full(self, size: int) -> str:
        return (
            f"it has {size:,} bytes, and the artifacts of this conversation may take "
            f"{self._config.cap_bytes:,} together (artifacts.cap_bytes)"
        )

    @staticmethod
    def _find(folder: int, is_meant: Callable[[str], bool]) -> str | None:
        return next((name for name in os.listdir(folder) if is_meant(name)), None)


def _write(folder: int, part: str, pieces: Iterable[bytes], room: int) -> tuple[int, str]:
    """Write and sync a file as far as there is room for it: whole size and hash of the content.

    Of what is too long the hash is needed all the same: it may be kept already.
    """
    size, digest = 0, hashlib.sha256()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, OWN, dir_fd=folder), "wb", buffering=0) as file:
        for piece in pieces:
            size += len(piece)
            digest.update(piece)
            if size <= room:
                _write_all(file, piece)
        os.fsync(file.fileno())
    return size, digest.hexdigest()


def _write_all(file: BinaryIO, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[file.write(left) :]


def _new_name(names: Collection[str], digest: str) -> str:
    """A name with an id that no other has; ids of equal beginnings become longer."""
    ids = {name.partition("-")[0] for name in names}
    digits = ID_DIGITS
    while f"a{digest[:digits]}" in ids:
        digits += 1
    return f"a{digest[:digits]}-{digest}"


def _opened(folder: int, name: str) -> BinaryIO:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    artifact_id, _, digest = name.partition("-")
    damaged = f"Artifact {artifact_id} cannot be read: its file is damaged."
    try:
        file = os.fdopen(os.open(name, flags, dir_fd=folder), "rb", buffering=0)
    except OSError:
        raise ToolError(damaged) from None
    try:
        is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        if not is_file or hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise ToolError(damaged)
        file.seek(0)
    except BaseException as error:
        file.close()
        if isinstance(error, OSError):
            raise ToolError(damaged) from None
        raise
    return file


@contextmanager
def _told() -> Iterator[None]:
    """Whatever the file system says, in words for whoever reads the result."""
    try:
        yield
    except OSError as error:
        full = error.errno in (ENOSPC, EDQUOT)
        raise ToolError("the disk is full" if full else f"{error.strerror or error}") from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(OWN_FOLDER)
    except FileExistsError:
        _check_no_link(folder)
    else:
        _sync(folder.parent)


def _check_no_link(folder: Path) -> None:
    if folder.is_symlink():
        raise NotADirectoryError(
            ENOTDIR, f"{folder.name!r} beside the journal is a link", str(folder)
        )


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # Another file system, or one without links.
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(OWN)
        with target.open("rb") as copied:
            os.fsync(copied.fileno())


def _folder_name(conversation_id: str) -> str:
    return hashlib.sha256(conversation_id.encode("utf-8", "replace")).hexdigest()[:32]
