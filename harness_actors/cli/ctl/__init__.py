"""`harness ctl`: what is in flight, and what to do about it."""

import typer

from harness_actors.cli.ctl.answer import answer
from harness_actors.cli.ctl.approve import approve, deny
from harness_actors.cli.ctl.cancel import cancel
from harness_actors.cli.ctl.cell_list import list_cells
from harness_actors.cli.ctl.cell_stop import stop
from harness_actors.cli.ctl.events import events
from harness_actors.cli.ctl.export import export
from harness_actors.cli.ctl.list import list_runs
from harness_actors.cli.ctl.pause import pause
from harness_actors.cli.ctl.resume import resume
from harness_actors.cli.ctl.show import show
from harness_actors.cli.ctl.stores import compact, expire

ctl = typer.Typer(
    help="What is in flight, and what to do about it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
run = typer.Typer(
    help="Runs: list, show, events, export, answer, approve, deny, pause, resume, cancel.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
run.command("list")(list_runs)
run.command()(show)
run.command()(events)
run.command()(export)
run.command()(answer)
run.command()(approve)
run.command()(deny)
run.command()(pause)
run.command()(resume)
run.command()(cancel)
store = typer.Typer(
    help="Journals: expire, compact.", no_args_is_help=True, rich_markup_mode="rich"
)
store.command()(expire)
store.command()(compact)
cell = typer.Typer(
    help="Cells, the processes that serve runs: list, stop.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
cell.command("list")(list_cells)
cell.command()(stop)
ctl.add_typer(run, name="run")
ctl.add_typer(cell, name="cell")
ctl.add_typer(store, name="store")
