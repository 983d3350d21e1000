"""`harness ctl cell`: which Rays it looks at, and whose cells it stops."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors.actors.cell_facts import CellFacts
from harness_actors.actors.on_ray.known_cells import KnownCell
from harness_actors.cli.app import app
from harness_actors.cli.ctl import cells
from harness_actors.cli.ctl.cells import CellReport, Mode, Stopped
from harness_actors.errors import CellError
from harness_actors.stores.home import home

HERE, THERE = "10.0.0.1:6379", "10.0.0.2:6379"
Harness = Callable[..., Result]


class Machine:
    """Rays with cells, none of which is real: those of this machine are not ours to stop."""

    def __init__(self) -> None:
        self.stores = {HERE: ["/a/runs.db", "/b/runs.db"], THERE: ["/c/runs.db"]}
        self.homes: dict[str, str] = {}
        """Of the cells that answer, by store."""
        self.dead: set[str] = set()
        self.stopped: list[str] = []

    async def reports(
        self, address: str | None, unreachable: list[CellError]
    ) -> AsyncIterator[list[CellReport]]:
        for ray in self.stores if address is None else [address]:
            if ray in self.dead:
                unreachable.append(CellError(f"Ray at {ray!r}", "nobody answers"))
                continue
            yield [
                _report(ray, store, self.homes.get(store, str(home().resolve())))
                for store in self.stores[ray]
            ]

    async def stop(self, report: CellReport, mode: Mode | None) -> Stopped:
        self.stopped.append(str(report.cell.store))
        return Stopped(store=str(report.cell.store), pid=report.cell.pid)


def _report(ray: str, store: str, home: str = "") -> CellReport:
    nobody: Any = None
    cell = KnownCell(name=store, store=Path(store), coordinator=nobody, pid=1)
    return CellReport(cell=cell, address=ray, facts=_facts(store, home), command=None)


def _facts(store: str, home: str) -> CellFacts | None:
    return CellFacts(store=store, pid=1, host="here", node="n", home=home) if home else None


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(cells, "reports", machine.reports)
    monkeypatch.setattr(cells, "stop_cell", machine.stop)
    return machine


@pytest.fixture
def harness() -> Harness:
    return lambda *words: CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["told", "json"])
def test_all_cells_of_several_rays_are_not_stopped_unasked(
    harness: Harness, machine: Machine, flags: tuple[str, ...]
) -> None:
    refused = harness("ctl", "cell", "stop", "--all", *flags)

    assert machine.stopped == []
    assert (refused.exit_code, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    told = json.loads(line)["error"]["message"] if flags else line.removeprefix("error: ")
    assert told == (
        f"--all: cells on 2 Rays would be stopped ({HERE}: /a/runs.db, /b/runs.db; "
        f"{THERE}: /c/runs.db); add --yes, or name one Ray by --address"
    )


def test_all_cells_of_several_rays_are_stopped_where_that_is_said(
    harness: Harness, machine: Machine
) -> None:
    done = harness("ctl", "cell", "stop", "--all", "--yes", "--json")

    assert done.exit_code == 0
    assert [json.loads(line)["stopped"] for line in done.stdout.splitlines()] == [True] * 3
    assert machine.stopped == ["/a/runs.db", "/b/runs.db", "/c/runs.db"]


def test_all_cells_of_one_ray_need_no_more_than_its_address(
    harness: Harness, machine: Machine
) -> None:
    assert harness("ctl", "cell", "stop", "--all", "--address", THERE).exit_code == 0
    assert machine.stopped == ["/c/runs.db"]


def test_all_cells_are_those_of_this_home(
    harness: Harness, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    here = tmp_path.resolve()
    silent = str(here / "runs.db")
    machine.stores = {HERE: ["/a/runs.db", "/b/runs.db", "/c/runs.db", silent]}
    machine.homes = {
        "/a/runs.db": str(here),
        "/b/runs.db": "/elsewhere",
        "/c/runs.db": "",
        silent: "",
    }

    done = harness("ctl", "cell", "stop", "--all")

    assert (done.exit_code, machine.stopped) == (0, ["/a/runs.db", silent])
    assert done.stderr.splitlines() == [
        "left out: /b/runs.db: a command with HARNESS_HOME=/elsewhere started it; "
        "--yes stops it, too",
        "left out: /c/runs.db: it does not answer; --yes stops it, too",
    ]
    harness("ctl", "cell", "stop", "/b/runs.db")
    harness("ctl", "cell", "stop", "--all", "--yes")
    assert machine.stopped[2:] == ["/b/runs.db", *machine.stores[HERE]]


def test_where_one_ray_has_cells_all_are_its_and_what_was_left_out_is_told_once(
    harness: Harness, machine: Machine
) -> None:
    machine.dead = {THERE}

    done = harness("ctl", "cell", "stop", "--all")

    assert done.exit_code == 0
    assert machine.stopped == ["/a/runs.db", "/b/runs.db"]
    assert done.stderr == f"left out: Ray at {THERE!r}: nobody answers\n"


class Coordinator:
    """What tells a cell from others."""

    def __init__(self, name: str) -> None:
        self._actor_id = name.encode()


def test_a_ray_of_two_addresses_has_each_of_its_cells_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cells_at(address: str, *, is_named: bool) -> list[KnownCell]:
        names = ["a", "b"] if address in (HERE, "127.0.0.1:6379") else ["c"]
        # Each connection has handles of its own.
        made: list[Any] = [Coordinator(name) for name in names]
        return [KnownCell(n, Path(f"/{n}/runs.db"), c, 1) for n, c in zip(names, made, strict=True)]

    async def describe_cell(cell: KnownCell, *, weigh: bool) -> None:
        """None of them answers."""

    monkeypatch.setattr(cells, "_asked", lambda _: {"127.0.0.1:6379": True})
    monkeypatch.setattr(cells, "rays_with_cells", lambda: {HERE, THERE})
    monkeypatch.setattr(cells, "cells_at", cells_at)
    monkeypatch.setattr(cells, "describe_cell", describe_cell)

    listed = json.loads(harness("ctl", "cell", "list", "--json").stdout)

    assert [(cell["store"], cell["address"], cell["status"]) for cell in listed] == [
        ("/a/runs.db", "127.0.0.1:6379", "silent"),
        ("/b/runs.db", "127.0.0.1:6379", "silent"),
        ("/c/runs.db", THERE, "silent"),
    ]


def test_a_cell_that_is_named_is_stopped_wherever_it_is(harness: Harness, machine: Machine) -> None:
    assert harness("ctl", "cell", "stop", "/c/runs.db").exit_code == 0
    assert machine.stopped == ["/c/runs.db"]


@pytest.mark.parametrize("name", ["list", "stop"])
def test_its_help_says_which_rays_it_looks_at(name: str) -> None:
    # A terminal without colours, which would stand between the words.
    told = CliRunner(env={"TERM": "dumb"}).invoke(app, ("ctl", "cell", name, "--help"))
    shown = " ".join(told.stdout.replace("│", " ").split())

    assert "each that has a cell on this machine" in shown
    assert "our own" not in shown
