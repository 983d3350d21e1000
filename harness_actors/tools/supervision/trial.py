"""Tries on this machine whether a command is kept from seeing the workspace of another run."""

from pathlib import Path
from tempfile import TemporaryDirectory

from harness_actors.ports import Cover
from harness_actors.tools.environment import SYSTEM_PATH
from harness_actors.tools.shell import run_shell
from harness_actors.tools.supervision.client import SupervisedProcesses

TRIAL_S = 10.0


async def hides_workspaces(*, required: bool) -> bool:
    """Whether a command in one of two folders sees nothing of the other.

    Args:
        required: As in `Cover`: by a user namespace where nothing less will do.

    Raises:
        OSError: It is required and cannot be done; or no command can be started at all.
    """
    processes = SupervisedProcesses()
    try:
        with TemporaryDirectory(prefix="harness-trial-") as place:
            top, own = _laid_out(place)
            listed = await run_shell(
                "ls ..",
                folder=own,
                environment={"PATH": SYSTEM_PATH},
                timeout_s=TRIAL_S,
                processes=processes,
                cover=Cover(folder=top, spared=own, required=required),
            )
    finally:
        processes.close()
    return listed.output.split() == [own.name]


def _laid_out(place: str) -> tuple[Path, Path]:
    top = Path(place).resolve()
    for name in ("own", "other"):
        (top / name).mkdir()
    return top, top / "own"
