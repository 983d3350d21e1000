"""Covers a folder, so that what this process starts sees one folder in it and nothing else.

In a mount namespace of its own: nobody else's view changes, and the kernel takes it all back when
the last process in it ends.
"""

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 32, 4096, 16384, 1 << 19
MNT_DETACH = 2
_EMPTY = MS_NOSUID | MS_NODEV | MS_NOEXEC
_C = ctypes.CDLL(None, use_errno=True)


def cover(folder: bytes, spared: bytes, required: bool) -> bool:
    """Cover a folder for this process and those that it starts from here on.

    A process as root is as free in the namespace as outside, and can take the cover off again.

    Args:
        folder: What is covered; by a path without symlinks, as `spared`.
        spared: The folder inside that stays what it is, at its path.
        required: That it be done, by a user namespace where nothing less will do. Else it is
            left where this process has not the capability (CAP_SYS_ADMIN), or the kernel refuses.

    Returns:
        Whether it is covered.

    Raises:
        OSError: It is required and cannot be done; this process should start nothing then.
    """
    try:
        _enter_namespace(of_user=required)
        # A slave: what the machine mounts later is seen here, and nothing of ours there.
        _mount(None, b"/", None, MS_SLAVE | MS_REC)
        _lay_over(folder, spared)
    except OSError as error:
        if required:
            text = f"other workspaces cannot be hidden from it: {error.strerror}"
            raise OSError(error.errno, text) from None
        return False
    return True


def _enter_namespace(*, of_user: bool) -> None:
    try:
        _unshare(CLONE_NEWNS)
    except PermissionError:
        if not of_user:
            raise
        user, group = os.geteuid(), os.getegid()
        _unshare(CLONE_NEWUSER | CLONE_NEWNS)
        # The order is the kernel's: without this, nobody but root may map a group.
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _lay_over(folder: bytes, spared: bytes) -> None:
    if not spared.startswith(folder + b"/"):
        raise OSError(errno.EINVAL, "the workspace is not inside of the folder")
    # Held open, as its path leads nowhere once the cover is on; only here, for what is open
    # from before belongs to another namespace.
    with _held(spared) as held:
        _mount(b"tmpfs", folder, b"tmpfs", _EMPTY, b"mode=755")
        try:
            os.makedirs(spared)
            _mount(held, spared, None, MS_BIND | MS_REC)
            _mount(None, folder, None, MS_REMOUNT | MS_BIND | MS_RDONLY | _EMPTY)
        except OSError:
            _check(_C.umount2(folder, MNT_DETACH))
            raise


@contextmanager
def _held(folder: bytes) -> Iterator[bytes]:
    """A path to a folder that holds while something lies over its own."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield b"/proc/self/fd/%d" % handle
    finally:
        os.close(handle)


def _unshare(what: int) -> None:
    _check(_C.unshare(what))


def _mount(
    source: bytes | None,
    target: bytes,
    kind: bytes | None,
    flags: int,
    options: bytes | None = None,
) -> None:
    _check(_C.mount(source, target, kind, ctypes.c_ulong(flags), options))


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
