"""What a contract asks is answered before the model begins, and told to it once, whenever the
process dies: while somebody thinks, between two answers, or when the model is asked."""

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from harness_actors.contracts import TaskContract
from tests.scenarios.stage import (
    ANSWER_S,
    DONE,
    Played,
    Scenario,
    in_order,
    play,
    play_cut,
    writes,
)

ASKED = "SCENARIO_ASKED"
"""The file in which questions are listed that somebody was asked."""
THINKS_S = 0.1
ANSWERS = {"Which colour?": "blue", "How many?": "three"}


def thinks(asked: Any) -> str:
    with Path(os.environ.get(ASKED, os.devnull)).open("a") as file:
        file.write(f"{asked.text}\n")
    time.sleep(THINKS_S)
    return ANSWERS[asked.text]


CONTRACT = TaskContract.from_mapping(
    {
        "goal": "the report",
        "outputs": [{"description": "a report", "predicate": {"file_exists": "report.md"}}],
        "questions": list(ANSWERS),
    }
)
SCENARIO = Scenario(
    script=in_order(writes("report.md", "three blue doors"), DONE),
    settings={"contract": CONTRACT, "on_question": thinks},
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    (told,) = played.told
    assert [told.count(text) for text in (*ANSWERS, *ANSWERS.values())] == [1, 1, 1, 1]
    assert len(played.requests) == 2
    for request in played.requests:
        assert sum(told == message["content"] for message in request["messages"]) == 1


async def test_questions_of_a_contract_are_answered_before_the_model_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ASKED, str(tmp_path / "asked"))
    check(await play(SCENARIO, tmp_path))
    assert sorted((tmp_path / "asked").read_text().splitlines()) == sorted(ANSWERS)


@pytest.mark.parametrize("seed", range(3))
async def test_questions_of_a_contract_outlive_the_process_that_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    asked = tmp_path / "asked"
    monkeypatch.setenv(ASKED, str(asked))
    wait_s = random.Random(seed).uniform(0, 2 * THINKS_S + 4 * ANSWER_S)
    print(f"seed {seed}: killed {wait_s * 1000:.0f} ms after the first question")

    async def struck(first: asyncio.subprocess.Process) -> None:
        while not asked.exists() and first.returncode is None:  # noqa: ASYNC110 - it is another's
            await asyncio.sleep(0.002)
        await asyncio.sleep(wait_s)

    async with SCENARIO.server(latency_s=ANSWER_S) as server:
        check(await play_cut(__name__, tmp_path, server, struck))
    times = asked.read_text().splitlines()
    # Who was asked when the process died, and was not heard, is asked again; nobody else is.
    assert all(1 <= times.count(text) <= 2 for text in ANSWERS)
