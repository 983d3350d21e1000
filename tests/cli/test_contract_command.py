"""`harness contract check`: verdicts, exit statuses, and what is said of faulty contracts."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness_actors.cli.app import app
from tests.cli.commands import finished, started

CONTRACT = """\
goal: a report
outputs:
  - {id: R1, description: a report, predicate: {file_exists: report.md}}
  - id: R2
    description: it has a total
    predicate: {contains_text: {file: report.md, pattern: "^total: [0-9]+$"}}
  - id: R3
    description: it is tested
    predicate: {command: "test -f tested || { echo no; exit 3; }"}
"""
NEEDS_RUN = """\
goal: an answer
outputs:
  - {id: R1, description: it ran, predicate: {tool_result_success: run_tests}}
  - {id: R2, description: it is good, predicate: {model_judged: It is good.}}
  - {id: R3, description: it says so, predicate: {contains_text: {pattern: done}}}
"""

Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """The command on a contract, in a folder with a report in it."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "report.md").write_text("Total: 42\n")

    def run(text: str, *words: str) -> Result:
        (tmp_path / "contract.yaml").write_text(text)
        arguments = ["contract", "check", str(tmp_path / "contract.yaml"), "--workspace", str(work)]
        return CliRunner().invoke(app, [*arguments, *words], catch_exceptions=False)

    return run


def test_what_is_missing_is_shown_and_told_by_the_exit_status(check: Check, tmp_path: Path) -> None:
    unmet = check(CONTRACT)

    assert unmet.exit_code == 1
    lines = unmet.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["R1", "met"],
        ["R2", "met"],
        ["R3", "unmet"],
    ]
    assert "exited with 3; it printed: no" in lines[3]
    assert lines[-1] == "the contract is not met: 2 of 3 required"

    (tmp_path / "work" / "tested").touch()
    met = check(CONTRACT)
    assert (met.exit_code, met.stdout.splitlines()[-1]) == (
        0,
        "the contract is met: 3 of 3 required",
    )


def test_scripts_are_told_in_json(check: Check, tmp_path: Path) -> None:
    told = check(CONTRACT, "--json")

    plain = json.loads(told.stdout)
    assert told.exit_code == 1
    assert plain["workspace"] == str(tmp_path / "work")
    assert plain["verdicts"] == {"R1": "met", "R2": "met", "R3": "unmet"}
    assert [gap["id"] for gap in plain["gaps"]["unmet_requirements"]] == ["R3"]
    assert plain["ledger"]["entries"][0]["evidence"] == [
        {"kind": "artifact", "ref": "report.md", "value": "10 bytes"}
    ]


def test_what_only_a_run_can_tell_is_not_met_unless_that_is_assumed(check: Check) -> None:
    strict, assumed = check(NEEDS_RUN), check(NEEDS_RUN, "--assume")

    assert strict.exit_code == 1
    assert strict.stdout.count("cannot be told without a run") == 3
    assert strict.stdout.count(" unknown ") == 3
    assert assumed.exit_code == 0
    assert assumed.stdout.count(" assumed ") == 3


def test_an_answer_may_be_given(check: Check, tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("It is done.")

    told = check(NEEDS_RUN, "--answer", str(tmp_path / "answer.txt"), "--json")

    assert json.loads(told.stdout)["verdicts"] == {"R1": "unknown", "R2": "unknown", "R3": "met"}


def test_a_function_beside_the_contract_is_asked(check: Check, tmp_path: Path) -> None:
    code = "def long_enough(question):\n    return (question.workspace / 'report.md').exists()\n"
    (tmp_path / "checks_of_a_report.py").write_text(code)
    text = "goal: x\noutputs:\n  - predicate: {{custom: {name}}}\n"

    assert check(text.format(name='"checks_of_a_report:long_enough"')).exit_code == 0
    for name, said in (
        ('"checks_of_a_report:missing"', "has no such function"),
        ('"no_such_module_at_all:x"', "cannot be imported"),
        ("long_enough", "no predicate 'long_enough' is registered; name yours as module:function"),
    ):
        told = check(text.format(name=name))
        assert told.exit_code == 2
        assert "contract.yaml: line 3: outputs[0].predicate: " in told.stderr
        assert said in told.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CONTRACT.replace("report.md}", "../report.md}"), "line 3: outputs[0].predicate.file_exi"),
        (CONTRACT.replace("[0-9]+$", "([0-9]+)*$"), "line 6: outputs[1].predicate.contains_text.p"),
        ("x: " + "y" * 10_000_000, "more than 1,000,000 bytes"),
    ],
    ids=["outside", "endless", "10 MB"],
)
def test_a_faulty_contract_is_refused_before_anything_runs(
    text: str, said: str, check: Check, tmp_path: Path
) -> None:
    told = check(text.replace("test -f tested", "touch ran"))

    assert told.exit_code == 2
    assert said in told.stderr
    assert told.stdout == ""
    assert not (tmp_path / "work" / "ran").exists()


def test_folders_and_files_that_are_not_there_are_bad_input(check: Check, tmp_path: Path) -> None:
    runner = CliRunner()
    for words, said in (
        (["contract", "check", str(tmp_path / "none.yaml"), "--workspace", "."], "No such file"),
        (
            ["contract", "check", str(tmp_path / "contract.yaml"), "--workspace", "none"],
            "--workspace: there is no folder 'none'",
        ),
    ):
        check(CONTRACT)
        told = runner.invoke(app, words)
        assert told.exit_code == 2
        assert said in told.stderr
    told = check(CONTRACT, "--answer", str(tmp_path / "none.txt"), "--json")
    assert told.exit_code == 2
    assert "--answer: it cannot be read" in json.loads(told.stderr)["error"]["message"]


def test_what_is_found_cannot_harm_the_terminal(check: Check) -> None:
    text = "goal: x\noutputs:\n  - predicate: {command: \"printf '\\\\033[2Jred'; exit 1\"}\n"

    told = check(text)

    assert "\x1b[2J" not in told.stdout
    assert "␛[2Jred" in told.stdout


async def test_a_command_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "contract.yaml").write_text(
        "goal: x\noutputs:\n  - predicate: {command: echo $$ > b; mv b begun; exec sleep 60}\n"
    )
    running = await started(
        ["contract", "check", str(tmp_path / "contract.yaml"), "--workspace", str(tmp_path)]
    )
    async with asyncio.timeout(30):
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)
    begun = time.monotonic()
    running.process.send_signal(signal.SIGINT)
    status, out, error = await finished(running)

    assert (status, out, error) == (130, "", "")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "begun").read_text()), 0)
    assert time.monotonic() - begun < 10
