"""A judge that says neither yes nor no, hangs or is down: the run is never taken as completed."""

from pathlib import Path
from typing import Any

import pytest

from harness_actors.contracts import FileExists, ModelJudged, Not
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer, Reply
from harness_actors.testing.faults import SERVER_ERROR, Fault, NeverAnswer, always
from tests.contracts.grounds import contract_with
from tests.scenarios.stage import AT_ONCE, DONE, Played, Scenario, in_order, play, writes

JUNK = [
    "",
    "Sure! The report is wonderful, I would say yes. Or no.",
    '{"met": "certainly", "verdict": []}',
    "\x00" * 50 + "}{" * 2_000,
    "MET UNMET MET",
]
RUBRIC = "Is the report polite?"


async def judged(
    folder: Path, said: Reply, fault: Fault | None = None, *, opposite: bool = False
) -> tuple[Played, Any]:
    """A run whose judge says that, with the requests that the judge got."""
    faults = always(fault) if fault else None
    async with LoopbackServer(lambda _: said, faults=faults) as bench:
        judge = OpenAIModel("judge", base_url=bench.base_url, max_retries=0, backoff=AT_ONCE)
        polite = ModelJudged(RUBRIC, files=("report.md",), model="judge", timeout_s=1.0)
        contract = contract_with(FileExists("report.md"), Not(polite) if opposite else polite)
        scenario = Scenario(
            script=in_order(writes("report.md", "Dear Ada"), DONE),
            agent={"judges": {"judge": judge}},
            settings={"contract": contract, "continuation": {"max_prompts": 1}},
        )
        return await play(scenario, folder), list(bench.seen)


def check_unknown(played: Played) -> None:
    assert played.ending == ("done", "unverified", False)
    assert played.result.contract is not None
    found = [one.status for one in played.result.contract.requirements]
    assert found == ["met", "unmet"]
    assert all(told.count("R2: ") == 1 for told in played.told)
    assert max(map(len, played.bodies)) < 100_000


@pytest.mark.parametrize("said", JUNK)
async def test_junk_is_no_verdict(tmp_path: Path, said: str) -> None:
    played, asked = await judged(tmp_path, Reply.text(said))
    check_unknown(played)
    assert asked
    assert all(RUBRIC.encode() in request.body for request in asked)
    assert b"Dear Ada" in asked[-1].body
    assert not any(RUBRIC.encode() in body and b'"judge"' in body for body in played.bodies)


@pytest.mark.parametrize("fault", [NeverAnswer(), SERVER_ERROR])
async def test_no_answer_is_no_verdict(tmp_path: Path, fault: Fault) -> None:
    played, asked = await judged(tmp_path, Reply.text("unheard"), fault)
    check_unknown(played)
    assert asked


@pytest.mark.parametrize("fault", [None, SERVER_ERROR])
async def test_of_what_nobody_knows_the_opposite_is_no_more_true(
    tmp_path: Path, fault: Fault | None
) -> None:
    played, _ = await judged(tmp_path, Reply.text(JUNK[1]), fault, opposite=True)
    check_unknown(played)


async def test_nothing_to_judge_is_no_verdict_either(tmp_path: Path) -> None:
    # By the agent's own model, which would be asked beside the others.
    flawed = ModelJudged("The report has errors.", files=("report.md",))
    settings = {"contract": contract_with(Not(flawed))}
    played = await play(Scenario(script=in_order(DONE), settings=settings), tmp_path)

    assert played.ending == ("done", "unverified", False)
    assert [told.count("nothing to judge") for told in played.told] == [1] * 5
    assert len(played.bodies) == 6
