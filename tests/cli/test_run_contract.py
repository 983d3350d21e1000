"""`harness run --contract`: a file holds the run."""

import json
from pathlib import Path

import pytest

from harness_actors.testing import LoopbackServer, Reply
from tests.cli.commands import answers, finished, started, works

CONTRACT = """\
goal: a greeting
outputs:
  - id: greeting
    predicate: {contains_text: {file: b.txt, pattern: hello}}
  - predicate: {custom: checks:is_short}
"""
CHECKS = """
def is_short(question):
    return len((question.workspace / "b.txt").read_text()) < 10
"""


async def run_with(folder: Path, server: LoopbackServer, *flags: str) -> tuple[int, str, str]:
    model = ("--model", "scripted", "--model-base-url", server.base_url, "--runtime", "local")
    arguments = ["run", "greet", *model, "--contract", str(folder / "contract.yaml"), *flags]
    return await finished(await started(arguments, HARNESS_HOME=str(folder / "home")))


async def test_the_contract_of_a_file_holds_the_run_and_its_functions_stand_beside_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    (tmp_path / "checks.py").write_text(CHECKS)
    (tmp_path / "work").mkdir()
    async with LoopbackServer(works) as server:
        status, out, error = await run_with(tmp_path, server, "--workspace", str(tmp_path / "work"))

    assert (status, out) == (0, "written\n"), error
    assert "verified: all 2 required are met" in error


async def test_it_takes_the_place_of_that_of_the_agent_file_and_unmet_exits_with_1(
    tmp_path: Path,
) -> None:
    (tmp_path / "contract.yaml").write_text(
        "goal: g\noutputs: [{id: shout, predicate: {contains_text: '^HELLO$'}}]\n"
    )
    async with LoopbackServer(answers) as server:
        (tmp_path / "agent.yaml").write_text(
            f"model: {{id: scripted, base_url: '{server.base_url}'}}\n"
            "persona: {contract: {goal: g, outputs: [{id: mine, predicate: always_true}]}}\n"
            "harness: {continuation: {max_prompts: 1}}\n"
        )
        status, _, error = await run_with(tmp_path, server, "--agent", str(tmp_path / "agent.yaml"))

    assert status == 1
    assert "0 of 1 required are met, without shout" in error
    assert "mine" not in error


@pytest.mark.parametrize(
    ("contract", "told"),
    [
        ("goal: g\noutputs:\n  - predicate: {file_exist: a}\n", "line 3: outputs[0].predicate"),
        ("goal: g\noutputs:\n  - predicate: {custom: nowhere}\n", "line 3: outputs[0].predicate"),
        (
            "goal: g\noutputs:\n  - a word\n  - predicate: {model_judged: {rubric: r, model: m}}\n",
            "line 4: outputs[1].predicate: no judge is named 'm'",
        ),
    ],
)
async def test_its_faults_name_file_line_and_field_before_a_model_is_asked(
    tmp_path: Path, contract: str, told: str
) -> None:
    (tmp_path / "contract.yaml").write_text(contract)

    def never(*_: object) -> Reply:
        raise AssertionError("nothing is to be run")

    async with LoopbackServer(never) as server:
        status, out, error = await run_with(tmp_path, server)

    assert (status, out) == (2, "")
    assert f"{tmp_path / 'contract.yaml'}" in error.replace("\n", "")
    assert told in " ".join(error.split())


async def test_its_questions_are_answered_by_another_command(tmp_path: Path) -> None:
    (tmp_path / "contract.yaml").write_text(
        "goal: g\noutputs: [{id: a, predicate: {contains_text: May}}]\nquestions: [Until when?]\n"
    )
    home = {"HARNESS_HOME": str(tmp_path / "home")}
    async with LoopbackServer(answers) as server:
        status, told, error = await run_with(tmp_path, server, "--json")
        assert (status, server.requests) == (1, 0), error
        run_id = json.loads(told)["run_id"]
        arguments = [
            "ctl",
            "run",
            "answer",
            run_id,
            "c1",
            "in May",
            "--resume",
            "--runtime",
            "local",
        ]
        status, out, error = await finished(await started(arguments, **home))

    assert status == 0, error
    assert "in May" in out
