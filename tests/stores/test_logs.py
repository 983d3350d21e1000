"""The log of a run, which several processes write."""

from pathlib import Path

from harness_actors.stores.logs import RunLog, log_of


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
