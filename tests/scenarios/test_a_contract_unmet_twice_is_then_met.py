"""Each refusal names what is missing then, and nothing that is there by now."""

from pathlib import Path

from harness_actors.contracts import FileExists, ToolResultSuccess
from tests.contracts.grounds import contract_with
from tests.scenarios.stage import DONE, Played, Scenario, in_order, play, runs, writes

SCENARIO = Scenario(
    script=in_order(
        DONE, writes("report.md", "sum: 4"), DONE, runs("cat report.md > copy.md"), DONE
    ),
    settings={
        "contract": contract_with(
            FileExists("report.md"), FileExists("copy.md"), ToolResultSuccess("run_command")
        )
    },
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    first, second = played.told
    assert [f"R{place}: " in first for place in (1, 2, 3)] == [True, True, True]
    assert [f"R{place}: " in second for place in (1, 2, 3)] == [False, True, True]
    assert "Complete 3 remaining" in first
    assert "Complete 2 remaining" in second
    assert (played.workspace / "copy.md").read_text() == "sum: 4"
    assert len(played.requests) == 5


async def test_a_contract_unmet_twice_is_then_met(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))
