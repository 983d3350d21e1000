"""A cage for what would take the whole machine: so many processes, and none outlives it."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.attack.attacks import NotTriedError

_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
_GROUPS = Path("/sys/fs/cgroup")


def in_cage(program: Sequence[str], *, most: int, within_s: float) -> str:
    """What a program prints in a cage; all that it started has ended when this returns.

    Args:
        program: It, with its arguments.
        most: How many processes there may be at once.
        within_s: Seconds after which the cage is emptied; what was printed by then is returned.

    Raises:
        NotTriedError: This machine has no such cage: it takes a cgroup with ``pids`` that may be
            written, and the right to a pid namespace.
    """
    if shutil.which(_NAMESPACE[0]) is None or subprocess.call(
        [*_NAMESPACE, "true"], stderr=subprocess.DEVNULL
    ):
        raise NotTriedError("there are no pid namespaces here")
    with _group(most) as members:
        caged = subprocess.Popen(
            # It joins before it becomes the program, so nothing that it starts is outside.
            ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', members, *_NAMESPACE, *program],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            return caged.communicate(timeout=within_s)[0]
        except subprocess.TimeoutExpired:
            # The first process of the namespace dies with it, and all others with that one. It
            # heeds no other signal while it waits for them.
            caged.kill()
            return caged.communicate()[0]


@contextmanager
def _group(most: int) -> Iterator[Path]:
    """A cgroup of so many processes; yields the file of its members."""
    own = Path("/proc/self/cgroup").read_text().splitlines()
    above = _GROUPS / "pids"
    if not above.is_dir():
        above = _GROUPS / own[-1].rpartition(":")[2].lstrip("/")
    folder = above / f"cage-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise NotTriedError(f"no cgroup can be made in {above}: {error.strerror}") from None
    try:
        try:
            (folder / "pids.max").write_text(str(most))
        except OSError as error:
            why = f"processes cannot be bounded in {above}: {error.strerror}"
            raise NotTriedError(why) from None
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()
