"""Answers that are cut off or empty, calls of tools that there are not, arguments of no use."""

from pathlib import Path

import pytest

from harness_actors.testing import Reply
from tests.scenarios.stage import DONE, Played, Scenario, in_order, play, play_killed, writes

CUT = Reply.text("The report is wri", finish_reason="length")
CUT_CALL = Reply(
    asked=(("write_file", '{"path": "report.md", "content": "tot'),), finish_reason="length"
)
CUT_COMPLETION = Reply(asked=(("work_complete", '{"summary": "It is'),), finish_reason="length")
SCENARIO = Scenario(
    script=in_order(
        CUT,
        Reply.text(""),
        Reply.call("write_fil", {"path": "report.md", "content": "x"}),
        Reply.call("write_file", {"path": 7}),
        Reply.call("write_file", '{"path": "report.md"'),
        CUT_CALL,
        CUT_COMPLETION,
        writes("report.md", "x"),
        DONE,
    )
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    assert len(played.requests) == 9
    cut, empty = played.told
    assert "length limit" in cut
    assert "You answered without calling a tool" in empty or "empty" in empty
    unknown, schema, no_json, cut_call, cut_completion, *rest = played.answers
    assert unknown.startswith("There is no tool 'write_fil'. Tools: ")
    assert "'write_file'" in unknown.partition("Tools: ")[2].partition(".")[2]
    assert "path" in schema
    assert "content" in schema
    assert "JSON" in no_json
    for told in (cut_call, cut_completion):
        assert "length limit" in told
    assert len(rest) == 1
    assert (played.workspace / "report.md").read_text() == "x"


async def test_each_is_told_once_and_the_run_goes_on(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


@pytest.mark.parametrize("seed", [3])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))


@pytest.mark.parametrize("said", [CUT, Reply.text("")])
async def test_where_an_answer_ends_the_run_it_is_no_answer(tmp_path: Path, said: Reply) -> None:
    settings = {"completion": "answer"}
    played = await play(Scenario(script=in_order(said), settings=settings), tmp_path / "never")
    assert played.ending == ("done", "unverified", False)
    assert played.told

    script = in_order(said, Reply.text("42"))
    played = await play(Scenario(script=script, settings=settings), tmp_path / "once")
    assert played.ending == ("done", "answered", True)
    assert (played.result.output_text, len(played.told)) == ("42", 1)
