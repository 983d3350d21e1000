"""A batch that finds no room stops, says so, and goes on when there is room."""

from pathlib import Path

import pytest

from tests.chaos.battle import Size
from tests.chaos.disks import LimitedFiles, SmallDisk
from tests.chaos.outages import run_outage, wrong_words

SIZE = Size(runs=16, at_once=16, rounds=(5, 8))


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_cell_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    verdict = run_outage("small_disk", tmp_path, size=SIZE, seed=1)

    assert verdict.findings.broken == []


def test_a_journal_that_sqlite_says_is_full_is_told_and_goes_on(tmp_path: Path) -> None:
    verdict = run_outage("sqlite_full", tmp_path, size=SIZE, seed=1, address=None)

    assert verdict.findings.broken == []


def test_what_a_command_without_room_must_not_say_is_found(tmp_path: Path) -> None:
    place = SmallDisk(tmp_path)
    good = f"error: journal '{tmp_path}/run/runs.db': database or disk is full; make room"

    assert wrong_words(1, good, place) == []
    assert len(wrong_words(0, good, place)) == 1
    assert len(wrong_words(1, "error: [Errno 28] No space left on device", place)) == 1
    assert len(wrong_words(1, f"Traceback\n{good}", place)) == 1
    assert len(wrong_words(1, good, LimitedFiles(tmp_path))) == 1
