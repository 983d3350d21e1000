"""Two trees at once."""

import json
from pathlib import Path

import pytest

from benchmarks import beside
from benchmarks.contest import ROOT


def test_two_trees_do_the_same_work_and_the_ratio_of_their_cpu_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sizes = ["--pairs", "2", "--conversations", "4", "--rounds", "3", "--runtime", "local"]
    beside.main([str(ROOT), *sizes])

    found = json.loads(capsys.readouterr().out)
    assert found["n"] == len(found["ratios"]) <= 2
    assert found["ratio"]["least"] > 0


def test_a_tree_without_the_code_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=f"{tmp_path}: it has no benchmarks"):
        beside.main([str(tmp_path), "--pairs", "1", "--rounds", "1", "--runtime", "local"])
