"""Merges the lines of three texts, by git where there is one."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

WITHIN_S = 30.0
_MOST_CLASHES = 127
"""More of them git does not tell."""


class ClashError(Exception):
    """The texts cannot be merged; says why."""


def merge_lines(ours: bytes, base: bytes, theirs: bytes) -> bytes:
    """What two texts come to that were one; blocks.

    git is started apart from any repository, with nobody's settings but its own.

    Args:
        ours: The first.
        base: What both were.
        theirs: The second.

    Raises:
        ClashError: Both have changed the same lines, or there is no git.
        OSError: There is no room for the texts.
    """
    git = shutil.which("git")
    if git is None or not os.path.isabs(git):
        raise ClashError("both have changed it, and there is no git to merge it")
    with TemporaryDirectory(prefix="harness-merge-") as name:
        folder = Path(name)
        for part, text in (("ours", ours), ("base", base), ("theirs", theirs)):
            (folder / part).write_bytes(text)
        try:
            ended = subprocess.run(
                [git, "merge-file", "-p", "-q", "ours", "base", "theirs"],
                cwd=folder,
                env=_environment(name),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=WITHIN_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClashError(f"both have changed it, and git did not merge it: {error}") from None
    if ended.returncode == 0:
        return ended.stdout
    if 0 < ended.returncode <= _MOST_CLASHES:
        raise ClashError("both have changed the same lines")
    raise ClashError("both have changed it, and git could not merge it")


def _environment(folder: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": folder,
        "XDG_CONFIG_HOME": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        # No repository above it is looked for.
        "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
    }
