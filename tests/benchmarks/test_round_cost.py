"""The benchmark of a round's cost runs from end to end and says what it is asked for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HAND_WRITTEN = {"openai", "post", "aiohttp"}
OURS = {"ray", "local"}


@pytest.mark.ray
def test_the_round_cost_benchmark_prints_one_line_with_the_cost_of_every_contender(
    tmp_path: Path,
) -> None:
    # From another folder: it must find its own modules wherever it is called.
    ran = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "bench_round_cost.py"), "--smoke"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    report = json.loads(line)
    assert {"machine", "versions", "n", "unit", "ratios_of_net"} <= set(report)
    contenders = report["contenders"]
    assert set(contenders) == HAND_WRITTEN | OURS
    for contender in contenders.values():
        assert contender["tool_calls"] == report["conversations"] * report["rounds"]
        assert contender["cpu_ms"]["least"] > 0
        assert contender["rounds_per_s"]["median"] > 0
    # Ray's processes are in its tree, and the model server is in nobody's.
    assert contenders["ray"]["processes"] > 5
    assert {contenders[name]["processes"] for name in (*HAND_WRITTEN, "local")} == {1}
