"""Flags and arguments that the commands of `harness ctl` share with `harness replay`."""

from pathlib import Path
from typing import Annotated

import typer

WHERE = "Where to look"

RunIdArgument = Annotated[
    str, typer.Argument(metavar="RUN_ID", help="The run, or the beginning of its id.")
]
RunIdsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN_ID", help="The runs, or the beginnings of their ids.")
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
CellsRayOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The one Ray to look at; by default each that has a cell on this machine, and the "
        "one that a command would join.",
        rich_help_panel=WHERE,
    ),
]
RunsRayOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray of the cell that serves them; by default it is found on this machine.",
        rich_help_panel=WHERE,
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FILE", help="A journal's file, wherever it is.", rich_help_panel=WHERE
    ),
]
