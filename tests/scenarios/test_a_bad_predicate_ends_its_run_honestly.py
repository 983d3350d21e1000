"""Commands of a contract that hang, kill who started them or never stop talking."""

import os
import time
from pathlib import Path

import pytest

from harness_actors.config import Limits
from harness_actors.contracts import CommandSucceeds, FileExists, Not
from tests.contracts.grounds import contract_with
from tests.scenarios.stage import DONE, Scenario, in_order, play, writes

MEGABYTES = 200
HANGS = "trap '' TERM INT HUP; echo $$ > pid; while true; do sleep 0.2; done"
KILLS_PARENT = "kill -9 $PPID; sleep 0.2"
KILLS_ITSELF = "kill -9 $$"
PRINTS = f"head -c {MEGABYTES << 20} /dev/zero | tr '\\\\0' x; echo the end; exit 3"


def claims(command: str, *, opposite: bool = False) -> Scenario:
    one = CommandSucceeds(command, timeout_s=0.5 if command == HANGS else 30.0)
    contract = contract_with(Not(one) if opposite else one, FileExists("report.md"))
    few = {"max_prompts": 1}
    script = in_order(DONE, writes("report.md", "x"), DONE)
    return Scenario(script=script, settings={"contract": contract, "continuation": few})


@pytest.mark.parametrize("command", [HANGS, KILLS_ITSELF, PRINTS])
async def test_it_is_told_and_the_run_is_unverified(tmp_path: Path, command: str) -> None:
    began = time.monotonic()
    played = await play(claims(command), tmp_path)

    assert played.ending == ("done", "unverified", False)
    assert all(told.count("R1: ") == 1 for told in played.told)
    assert "R2: " in played.told[0]
    assert "R2: " not in played.told[-1], "the other requirement is looked at by itself"
    (cause,) = played.result.reason.details["causes"]
    why = {HANGS: "0.5 s", KILLS_ITSELF: "failed with 137", PRINTS: "exited with 3"}[command]
    assert why in cause
    assert max(map(len, played.bodies)) < 100_000, "what it prints is not told whole"
    assert played.result.contract is not None
    assert time.monotonic() - began < 30
    if command == HANGS:
        pid = int((played.workspace / "pid").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("command", [HANGS, KILLS_ITSELF])
async def test_of_what_nobody_knows_the_opposite_is_no_more_true(
    tmp_path: Path, command: str
) -> None:
    played = await play(claims(command, opposite=True), tmp_path)

    assert played.ending == ("done", "unverified", False)
    assert played.result.contract is not None
    assert [one.status for one in played.result.contract.requirements] == ["unmet", "met"]


async def test_one_that_kills_its_parent_kills_no_harness(tmp_path: Path) -> None:
    played = await play(claims(KILLS_PARENT), tmp_path)

    assert played.ending[0] == "done"
    assert played.result.contract is not None
    assert played.result.contract.requirements[1].status == "met"


async def test_one_that_hangs_ends_with_the_time_of_its_run(tmp_path: Path) -> None:
    contract = contract_with(CommandSucceeds("sleep 50"))
    limits = Limits(time_s=3.0)
    settings = {"contract": contract, "limits": limits}
    began = time.monotonic()
    played = await play(Scenario(script=in_order(DONE), settings=settings), tmp_path)

    assert played.ending == ("limit", "time", False)
    assert time.monotonic() - began < 20
    assert len(played.bodies) <= 1
