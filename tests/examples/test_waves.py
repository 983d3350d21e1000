"""`examples/waves.py` shows what it says: what runs at once, what alone, and what not again."""

import re
from pathlib import Path

from tests.pages import run_python, text_of


def test_reading_calls_begin_together_and_a_refund_alone(tmp_path: Path) -> None:
    ended = run_python(text_of("examples/waves.py"), tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    begun = [line for line in ended.stdout.splitlines() if re.match(r" *[\d.]+ s  ", line)]
    assert [line.partition(" s  ")[2] for line in begun] == [
        "order 17 is looked up",
        "order 18 is looked up",
        "order 19 is looked up",
        "customer Ada is looked up",
        "customer Bob is looked up",
        "order 17 is refunded",
        "order 17 is looked up",
    ]
    assert ended.stdout.splitlines()[len(begun) :] == [
        "order 17: paid",
        "order 18: paid",
        "order 19: paid",
        "Ada pays in time",
        "Bob pays in time",
        "order 17: paid",
        "order 17 is refunded",
        "order 17: refunded",
        "done, 8 tool calls: Order 17 is refunded.",
    ]
