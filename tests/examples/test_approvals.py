"""`examples/approvals.py` shows what it says: one process asks, one approves, one goes on."""

from pathlib import Path

import pytest

from tests.pages import run_python, text_of


@pytest.mark.timeout(240)
def test_a_call_is_asked_about_approved_with_other_arguments_and_made_by_three_processes(
    tmp_path: Path,
) -> None:
    ended = run_python(text_of("examples/approvals.py"), tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "q1: May refund be called? {'number': 17, 'amount': 250}, it is our money",
        "q1 is approved",
        "order 17 is refunded: 20 EUR",
        "done: Settled: 20 EUR are refunded.",
    ]
