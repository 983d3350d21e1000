"""What is left of a conversation after many summaries: measured for what is shipped."""

import json
import subprocess
import sys

import pytest

from harness_actors.compaction import DeterministicSummarizer
from harness_actors.plan import Summary
from harness_actors.ports import MadeSummary, SummaryRequest
from harness_actors.testing import fidelity
from harness_actors.testing.fidelity import FACTS, decisions, measure, measure_without

OF_ALL = len(decisions())


class Forgets:
    """A summarizer that says nothing of what it is given."""

    name = "forgets"
    most_tokens = 100_000

    async def summarize(self, request: SummaryRequest) -> MadeSummary:
        return MadeSummary(summary=Summary(current_task="Go on."))


async def test_after_ten_cycles_facts_and_results_are_there_and_nine_decisions_of_ten() -> None:
    found = await measure(DeterministicSummarizer())
    assert (found.facts, found.results) == (len(FACTS), 50)
    assert found.decisions >= 45, found.lost
    assert found.decisions + len(found.lost) == OF_ALL == 50
    assert found.tokens <= fidelity.WINDOW_TOKENS
    assert found.usage.model_calls == 0


async def test_facts_stay_whatever_a_summarizer_says() -> None:
    found = await measure(Forgets(), cycles=3)
    assert found.facts == len(FACTS)
    # Of the last cycle, what is shown still.
    assert found.results < 15
    assert found.decisions < 15


@pytest.mark.parametrize("name", fidelity.WITHOUT)
def test_without_summaries_less_is_left(name: str) -> None:
    found = measure_without(name, fidelity.WITHOUT[name])
    assert found.facts < len(FACTS)
    assert found.results < 25
    assert found.tokens <= fidelity.WINDOW_TOKENS


def test_the_command_prints_a_line_for_each_also_of_ones_own() -> None:
    command = [sys.executable, "-m", "harness_actors.testing.fidelity", "--cycles", "1", "--json"]
    own = ("--summarizer", f"{__name__}:Forgets")
    done = subprocess.run([*command, *own], capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["name"] for one in told] == [
        DeterministicSummarizer.name,
        "forgets",
        *fidelity.WITHOUT,
    ]
    assert told[0]["facts"] == len(FACTS)
    assert len(told[1]["lost"]) + told[1]["decisions"] == 5
