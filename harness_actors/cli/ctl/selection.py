"""Flags and arguments that the commands of `harness ctl` share with `harness replay`."""

from pathlib import Path
from typing import Annotated

import typer

WHERE = "Where to look"

RunIdArgument = Annotated[
    str, typer.Argument(metavar="RUN_ID", help="The run, or the beginning of its id.")
]
RunIdsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN_ID...", help="The runs, or the beginnings of their ids.")
]
RunDirOption = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        metavar="DIR",
        help="A batch's run directory; by default the journals in $HARNESS_HOME.",
        rich_help_panel=WHERE,
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FILE", help="A journal's file, wherever it is.", rich_help_panel=WHERE
    ),
]
