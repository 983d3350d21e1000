"""What the commands of a batch's runs are not to see: the folders of the others."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from harness_actors.errors import BadInputError

HIDE_VARIABLE = "HARNESS_HIDE_WORKSPACES"
Hide = Literal["auto", "always", "never"]
"""`auto`: where nothing else changes for a command by it; `always`: by a user namespace where it
must be, and no command starts where even that fails."""

_KNOWN: dict[str, Hide] = {known: known for known in get_args(Hide)}

WORKSPACES = "workspaces"
_OURS = re.compile(
    rf"{WORKSPACES}|checks|logs|\.?(runs\.db|results\.jsonl|summary\.json|setups\.json)(\..*|-.*)?"
)


@dataclass(frozen=True, slots=True)
class Hidden:
    """What a command is not to see.

    Attributes:
        folder: All in it but the workspace of its own run; None for nothing.
        required: It does not start where that cannot be done.
    """

    folder: Path | None = None
    required: bool = False


def hiding() -> Hide:
    """Where workspaces are hidden from one another: ``$HARNESS_HIDE_WORKSPACES``.

    Raises:
        BadInputError: The variable says something else.
    """
    named = os.environ.get(HIDE_VARIABLE) or "auto"
    if named not in _KNOWN:
        problem = f"must be one of {', '.join(_KNOWN)}, not {named!r}"
        raise BadInputError(HIDE_VARIABLE, (problem,))
    return _KNOWN[named]


def hidden_in(run_directory: Path, hide: Hide) -> Hidden:
    """What commands are not to see of a run directory.

    All of it where nothing else is in it, journal and results included; where there is, a
    command may need that, and it is the folder of the workspaces alone.
    """
    if hide == "never":
        return Hidden()
    is_ours = all(_OURS.fullmatch(name) for name in os.listdir(run_directory))
    folder = run_directory if is_ours else run_directory / WORKSPACES
    return Hidden(folder, required=hide == "always")
