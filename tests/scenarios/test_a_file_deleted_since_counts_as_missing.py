"""What an attempt has found counts for nothing at the next one."""

from pathlib import Path

from harness_actors.contracts import FileExists
from tests.contracts.grounds import contract_with
from tests.scenarios.stage import DONE, Played, Scenario, in_order, play, runs, writes

SCENARIO = Scenario(
    script=in_order(
        writes("a.md", "a"),
        DONE,  # finds a.md
        runs("rm a.md && touch b.md"),
        DONE,  # must not remember it
        writes("a.md", "again"),
        DONE,
    ),
    settings={"contract": contract_with(FileExists("a.md"), FileExists("b.md"))},
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    first, second = played.told
    assert ("R1: " in first, "R2: " in first) == (False, True)
    assert ("R1: " in second, "R2: " in second) == (True, False)
    assert "there is no file 'a.md'" in second
    assert (played.workspace / "a.md").read_text() == "again"


async def test_a_file_deleted_since_counts_as_missing(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))
