"""`harness ctl`: what is in flight, and what to do about it."""

from functools import partial

import typer

from harness_actors.cli.ctl.answer import answer
from harness_actors.cli.ctl.approve import approve, deny
from harness_actors.cli.ctl.cancel import cancel
from harness_actors.cli.ctl.cell_list import list_cells
from harness_actors.cli.ctl.cell_stop import stop
from harness_actors.cli.ctl.compact import compact as compact_run
from harness_actors.cli.ctl.events import events
from harness_actors.cli.ctl.export import export
from harness_actors.cli.ctl.list import list_runs
from harness_actors.cli.ctl.pause import pause
from harness_actors.cli.ctl.resume import resume
from harness_actors.cli.ctl.show import show
from harness_actors.cli.ctl.stores import compact, expire

_group = partial(typer.Typer, no_args_is_help=True, rich_markup_mode="rich")

ctl = _group(help="What is in flight, and what to do about it.")
run = _group(
    help="Runs: list, show, events, export, answer, approve, deny, pause, resume, cancel, compact."
)
run.command("list")(list_runs)
run.command("compact")(compact_run)
for command in (show, events, export, answer, approve, deny, pause, resume, cancel):
    run.command()(command)
store = _group(help="Journals: expire, compact.")
store.command()(expire)
store.command()(compact)
cell = _group(help="Cells, the processes that serve runs: list, stop.")
cell.command("list")(list_cells)
cell.command()(stop)
ctl.add_typer(run, name="run")
ctl.add_typer(cell, name="cell")
ctl.add_typer(store, name="store")
