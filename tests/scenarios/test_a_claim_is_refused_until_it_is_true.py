"""Who says that all is done, and has done nothing, is told what is missing, and then completes."""

from pathlib import Path

import pytest

from harness_actors.contracts import CommandSucceeds, ContainsText
from tests.contracts.grounds import contract_with
from tests.scenarios.stage import DONE, Played, Scenario, in_order, play, play_killed, writes

CONTRACT = contract_with(
    ContainsText("^total: [0-9]+$", file="report.md"), CommandSucceeds("grep -q signed report.md")
)
SCENARIO = Scenario(
    script=in_order(DONE, DONE, writes("report.md", "total: 42\nsigned\n"), DONE),
    settings={"contract": CONTRACT},
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    assert played.result.output_text == "The report is written."
    assert (played.workspace / "report.md").read_text() == "total: 42\nsigned\n"
    assert len(played.requests) == 4
    assert len(played.told) == 2, "one message for each claim"
    for told in played.told:
        assert told.count("does not count as done yet") == 1
        assert told.count("R1: ") == told.count("R2: ") == 1
        assert "there is no such file" in told
        assert "'grep -q signed report.md' exited with 2" in told
    assert played.result.contract is not None
    assert (played.result.contract.satisfied, played.result.contract.attempts) == (True, 3)


async def test_a_claim_is_refused_until_it_is_true(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


@pytest.mark.parametrize("seed", [1])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))


@pytest.mark.parametrize(
    ("policy", "ending"),
    [
        ("interactive", ("done", "unverified", False)),
        ("strict_automation", ("stalled", "blocked", False)),
    ],
)
async def test_who_only_claims_is_never_completed(
    tmp_path: Path, policy: str, ending: tuple[str, str, bool]
) -> None:
    settings = {"contract": CONTRACT, "stop_policy": policy}
    played = await play(Scenario(script=in_order(DONE), settings=settings), tmp_path)

    assert played.ending == ending
    assert len(played.told) == 5
    (cause,) = played.result.reason.details["causes"]
    assert "R1" in cause
    assert "R2" in cause
    assert not (played.workspace / "report.md").exists()
