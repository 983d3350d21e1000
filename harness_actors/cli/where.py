"""Where a command is to run, judged before anything is started, and where its agent works."""

import shutil
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from harness_actors.cli.event_lines import EventLines
from harness_actors.errors import BadInputError

if TYPE_CHECKING:
    from harness_actors.batch.agent_file import LoadedAgent


def check_where(runtime: str, address: str | None) -> None:
    """Refuse what cannot be meant by ``--runtime`` and ``--address``.

    Args:
        runtime: ``"ray"`` or ``"local"``.
        address: That of ``--address``; None where it was not given.

    Raises:
        BadInputError: An address is given where no Ray is used, or it is none by its form,
            or ``RAY_ADDRESS`` is not, where that is what counts; or ``HARNESS_CELL_IDLE_S``
            or ``HARNESS_WARM_CELLS`` is not a number. Whether a Ray answers there is not asked:
            that is a `CellError` of whoever joins it.
    """
    if runtime == "local":
        if address:
            problem = "it names a Ray, and --runtime local uses none; leave one of them out"
            raise BadInputError("--address", (problem,))
        return
    from harness_actors.actors.cell_lifetime import idle_s, warm_cells
    from harness_actors.actors.joining.address import check_form

    check_form(address)
    idle_s()
    warm_cells()


def fresh_workspace(loaded: "LoadedAgent", lines: EventLines) -> str | None:
    """A folder for an agent with tools that was given none: a copy of its own, or empty."""
    if not loaded.brings_folder:
        return None
    folder = mkdtemp(prefix="harness-run-")
    if loaded.workspace is not None:
        shutil.copytree(loaded.workspace, folder, symlinks=True, dirs_exist_ok=True)
    lines.note(f"workspace {folder}")
    return folder
