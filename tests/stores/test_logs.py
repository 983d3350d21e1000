"""The log of a run, which several processes write."""

from pathlib import Path

import pytest

from harness_actors.stores.logs import RunLog, log_of, remove_logs
from tests.stores.open_files import open_files

OVER = "… the log ends here, at its limit of 200 bytes\n"


def test_a_log_at_its_limit_says_so_once_whoever_writes(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    writers = [RunLog(store, "run", most_bytes=1000) for _ in range(3)]
    for number in range(40):
        for writer in writers:
            # Longer than what is left in the end, which is longer than the word on it.
            writer.append(f"line {number} {'x' * 280}\n")
    text = log_of(store, "run").read_text()
    assert text.count("the log ends here") == 1
    assert text.rstrip().endswith("bytes")
    assert len(text.encode()) < 1200


@pytest.mark.parametrize(
    ("first", "then", "kept"),
    [
        (100, "y" * 99 + "\n", "y" * 99 + "\n"),
        (100, "y" * 100 + "\n", OVER),
        (100, "one\ntwo\n" + "y" * 100, "one\ntwo\n" + OVER),
        (199, "\n", "\n"),
        (199, "y\n", OVER),
        (200, "y\n", ""),
    ],
    ids=["fits", "one too many", "whole lines of it", "the last byte", "too long for it", "full"],
)
def test_a_log_ends_with_the_last_line_that_it_has_room_for(
    tmp_path: Path, first: int, then: str, kept: str
) -> None:
    store = tmp_path / "runs.db"
    begun = "x" * (first - 1) + "\n"
    for text in (begun, then):
        RunLog(store, "run", most_bytes=200).append(text)
    whole = log_of(store, "run").read_text()

    assert whole.rstrip("\n") == (begun + kept).rstrip("\n")
    # It is at its end for all, however short the line would be.
    assert len(whole.encode()) >= 200
    RunLog(store, "run", most_bytes=200).append("\n")
    assert log_of(store, "run").read_text() == whole


def test_a_log_that_has_ended_gets_no_shorter_line_either(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "runs.db", "run", most_bytes=200)
    log.append("x" * 150 + "\n")
    log.append("y" * 150 + "\n")
    log_of(tmp_path / "runs.db", "run").write_text("cut by somebody\n")

    log.append("z\n")

    assert log_of(tmp_path / "runs.db", "run").read_text() == "cut by somebody\n"


def test_any_text_of_any_run_has_a_log_of_its_own(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    names = ["run", "Run 2", "a/../b", "..", "run.log", "läuft", "x" * 60]
    for name in names:
        for line in (f"{name}\n", "half \udcff of a character\n"):
            RunLog(store, name).append(line)

    assert [log_of(store, name).read_text() for name in names] == [
        f"{name}\nhalf ? of a character\n" for name in names
    ]
    assert len(list((tmp_path / "logs").iterdir())) == len(names)
    assert open_files(tmp_path) == []

    remove_logs(store, ["none", *names[:2], "none"])

    assert [log_of(store, name).exists() for name in names] == [False, False] + [True] * 5


def test_a_log_that_could_not_be_written_stays_without_what_follows(tmp_path: Path) -> None:
    place = tmp_path / "logs"
    place.write_text("a file in the place of the folder")
    log = RunLog(tmp_path / "runs.db", "run")
    log.append("lost\n")
    place.unlink()

    log.append("lost, too\n")

    assert not place.exists()
    RunLog(tmp_path / "runs.db", "run").append("kept\n")
    assert (place / "run.log").read_text() == "kept\n"


def test_a_store_behind_a_link_has_its_logs_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "far" / "runs.db")

    RunLog(tmp_path / "link.db", "run").append("printed\n")

    assert log_of(tmp_path / "far" / "runs.db", "run").read_text() == "printed\n"


def test_a_link_that_came_with_a_journal_is_not_followed(tmp_path: Path) -> None:
    """Who receives a folder from somebody has made nothing in it."""
    received, victim = tmp_path / "received", tmp_path / "victim"
    received.mkdir()
    victim.mkdir()
    store, precious = received / "runs.db", victim / "run.log"
    precious.write_text("precious\n")
    (received / "logs").symlink_to(victim)
    RunLog(store, "run").append("printed\n")
    RunLog(store, "other").append("printed\n")
    remove_logs(store, ["run"])
    assert [path.name for path in victim.iterdir()] == ["run.log"]

    (received / "logs").unlink()
    (received / "logs").mkdir()
    (received / "logs" / "run.log").symlink_to(precious)
    RunLog(store, "run").append("printed\n")
    assert precious.read_text() == "precious\n"
    remove_logs(store, ["run"])
    assert precious.exists()
    assert not (received / "logs" / "run.log").is_symlink()
