"""`harness`: the commands under one name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from harness_actors.cli.batch import batch
from harness_actors.cli.chat import chat
from harness_actors.cli.contract import contract
from harness_actors.cli.ctl import ctl
from harness_actors.cli.doctor import doctor
from harness_actors.cli.replay import replay
from harness_actors.cli.run import run
from harness_actors.printing.plain import one_line


@contextmanager
def _harmless() -> Iterator[None]:
    """What is said of arguments repeats them, and is printed by the library."""
    try:
        yield
    except TyperException as error:
        if isinstance(said := getattr(error, "message", None), str):
            error.message = one_line(said)
        raise


class Commands(TyperGroup):
    """The commands, with errors that are safe to print: arguments may come from anywhere."""

    def make_context(self, *given: Any, **facts: Any) -> Any:
        with _harmless():
            return super().make_context(*given, **facts)

    def invoke(self, ctx: Any) -> Any:
        with _harmless():
            return super().invoke(ctx)


app = typer.Typer(
    name="harness",
    cls=Commands,
    help="Long-running LLM agents on Ray: run one, run many, and go on after a crash.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(chat)
app.command()(batch)
app.command()(replay)
app.add_typer(ctl, name="ctl")
app.add_typer(contract, name="contract")
app.command()(doctor)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"harness_actors {version('harness_actors')}")
        raise typer.Exit


@app.callback()
def harness(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Long-running LLM agents on Ray: run one, run many, and go on after a crash."""
