"""The same call for ever, and two by turns, are told once each, with what is repeated."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_actors.testing import Reply
from tests.scenarios.stage import DONE, Played, Scenario, in_order, play, play_killed, writes

CIRCLES = "You go in circles"
READS_A = Reply.call("read_file", {"path": "a.txt"})
READS_B = Reply.call("read_file", {"path": "b.txt"})
BEGINS = (writes("a.txt", "of a"), writes("b.txt", "of b"))


def by_turns(body: dict[str, Any]) -> Reply:
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    return BEGINS[spoken] if spoken < 2 else (READS_A, READS_B)[spoken % 2]


SCENARIO = Scenario(script=in_order(*BEGINS, READS_A))
ALTERNATES = Scenario(script=by_turns)


def check(played: Played, rounds: int = 3, again: int = 0) -> None:
    assert played.ending == ("stalled", "repetition", False)
    (told,) = played.told
    assert told.count(CIRCLES) == 1
    assert "a.txt" in told
    assert "a.txt" in played.result.reason.message
    # Those that write, those that repeat until it is told, and two of grace.
    assert 2 + rounds + 2 <= len(played.requests) <= 2 + rounds + 2 + again


async def test_the_same_call_for_ever(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


async def test_two_calls_by_turns(tmp_path: Path) -> None:
    played = await play(ALTERNATES, tmp_path)
    check(played, rounds=6)
    assert "b.txt" in played.told[0]


async def test_who_does_something_else_when_told_is_completed(tmp_path: Path) -> None:
    script = in_order(*BEGINS, *[READS_A] * 3, READS_B, DONE)
    played = await play(Scenario(script=script), tmp_path)
    assert played.ending == ("done", "completed", True)
    assert json.dumps(played.told).count(CIRCLES) == 1


@pytest.mark.parametrize("seed", [1])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    # On a busy machine the death may cut off a call that writes: it is told as unknown, and that
    # the model has an answer more; and the round before it may not be on disk.
    check(await play_killed(__name__, tmp_path, seed), again=2)
