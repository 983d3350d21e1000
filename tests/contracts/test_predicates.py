"""Each predicate where it holds, where it does not, and where that cannot be told."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_actors.contracts import (
    AllOf,
    AlwaysTrue,
    AnyOf,
    CommandSucceeds,
    ContainsText,
    ContractVerifier,
    Custom,
    CustomAnswer,
    CustomQuestion,
    Evidence,
    FileExists,
    Grounds,
    JsonSchemaValid,
    ModelJudged,
    Not,
    Predicate,
    ToolResultSuccess,
    WorkspaceCommands,
    WorkspaceFiles,
)
from harness_actors.contracts.combining import combine
from harness_actors.contracts.findings import Finding
from harness_actors.ports import NewestResult
from harness_actors.records import FolderId
from harness_actors.tools.supervision.client import SupervisedProcesses
from tests.contracts.grounds import Results, ScriptedJudge, contract_with, found, grounds_of

SCHEMA = {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}
WITH_PATTERN = {"type": "object", "properties": {"name": {"pattern": "^[a-z]+$"}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with some files in it, and something beside it."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "report.md").write_text("# Report\n\nTotal: 42 (all of it)\nend\n")
    (work / "empty").touch()
    (work / "good.json").write_text('{"total": 3, "name": "abc"}')
    (work / "bad.json").write_text('{"total": "3", "name": "ABC"}')
    (work / "torn.json").write_text('{"total": 3,\n"x"')
    (work / "deep.json").write_text("[" * 100_000)
    (work / "data.bin").write_bytes(b"\xff\xfe\x00 total: 42")
    (tmp_path / "secret.md").write_text("Total: 42")
    (work / "out").symlink_to(tmp_path)
    (work / "out.md").symlink_to(tmp_path / "secret.md")
    (work / "in.md").symlink_to("report.md")
    os.mkfifo(work / "pipe")
    return work


@pytest.mark.parametrize(
    ("predicate", "verdict", "why"),
    [
        (FileExists("report.md"), "met", ""),
        (FileExists("sub/../report.md"), "met", ""),
        (FileExists("in.md"), "met", ""),
        (FileExists("sub", folder=True), "met", ""),
        (FileExists("empty"), "met", ""),
        (FileExists("empty", min_bytes=1), "unmet", "'empty' has 0 bytes, and needs 1"),
        (FileExists("sub"), "unmet", "'sub' is a folder, not a file"),
        (FileExists("empty", folder=True), "unmet", "'empty' is a file, not a folder"),
        (FileExists("none.md"), "unmet", "there is no file 'none.md'"),
        (FileExists("no/ne.md"), "unmet", "there is no file 'no/ne.md'"),
        (FileExists("report.md/x"), "unmet", "there is no file 'report.md/x'"),
        (FileExists("in.md/../empty"), "unmet", "there is no file"),
        (FileExists("out/secret.md"), "unknown", "outside of the workspace"),
        (FileExists("out.md"), "unknown", "outside of the workspace"),
        (FileExists("pipe"), "unknown", "device, pipe or socket"),
        (ContainsText("total: [0-9]+", file="report.md"), "met", ""),
        (ContainsText("^total: [0-9]+.*$", file="report.md"), "met", ""),
        (ContainsText("Total: 42", file="report.md", ignore_case=False), "met", ""),
        (ContainsText("total", file="report.md", ignore_case=False), "unmet", "nothing there"),
        (ContainsText("total: 7", file="report.md"), "unmet", "'report.md' has nothing that"),
        (ContainsText("total: 42", file="data.bin"), "met", ""),
        (ContainsText("x", file="none.md"), "unmet", "there is no such file"),
        (ContainsText("x", file="sub"), "unmet", "it is a folder"),
        (ContainsText("total", file="out.md"), "unknown", "outside of the workspace"),
        (ContainsText("x", file="pipe"), "unknown", "device, pipe or socket"),
        (JsonSchemaValid(schema=SCHEMA, file="good.json"), "met", ""),
        (JsonSchemaValid(schema=SCHEMA, file="bad.json"), "unmet", "$.total: must be of type"),
        (JsonSchemaValid(schema=SCHEMA, file="torn.json"), "unmet", "line 2: it is not JSON"),
        (JsonSchemaValid(schema=SCHEMA, file="data.bin"), "unmet", "not UTF-8"),
        (JsonSchemaValid(schema=SCHEMA, file="none.json"), "unmet", "there is no such file"),
        (
            JsonSchemaValid(schema={}, file="deep.json"),
            "unknown",
            "because it is nested too deeply",
        ),
        (JsonSchemaValid(schema={"$ref": "#"}, file="good.json"), "unknown", "for this schema"),
        (JsonSchemaValid(schema=WITH_PATTERN, file="deep.json"), "unknown", "nested too deeply"),
        (JsonSchemaValid(schema=WITH_PATTERN, file="good.json"), "met", ""),
        (JsonSchemaValid(schema=WITH_PATTERN, file="bad.json"), "unmet", "breaks 'pattern'"),
        (JsonSchemaValid(schema=WITH_PATTERN, file="torn.json"), "unmet", "it is not JSON"),
        (CommandSucceeds("test -f report.md"), "met", ""),
        (CommandSucceeds("echo three failed; exit 3"), "unmet", "exited with 3; it printed: three"),
        (CommandSucceeds("no-such-program"), "unknown", "failed with 127"),
        (CommandSucceeds("kill -9 $$"), "unknown", "failed with 137"),
        (Not(FileExists("none.md")), "met", ""),
        (Not(FileExists("report.md")), "unmet", "it is so, and must not be: there is a file"),
        (Not(FileExists("out.md")), "unknown", "outside"),
        (Not(CommandSucceeds("no-such-program")), "unknown", "failed with 127"),
        (AlwaysTrue(), "met", ""),
    ],
    ids=str,
)
async def test_a_predicate_is_told_by_what_is_in_the_workspace(
    folder: Path, predicate: Predicate, verdict: str, why: str
) -> None:
    finding = await found(folder, predicate)

    assert finding.verdict == verdict, finding
    assert why in finding.why
    assert (verdict == "met") == (finding.why == "")
    if verdict == "met" and not isinstance(predicate, Not):
        assert finding.evidence


async def test_what_was_seen_is_evidence(folder: Path) -> None:
    finding = await found(
        folder,
        AllOf((FileExists("empty"), ContainsText("total: ", file="report.md"))),
    )

    assert finding.evidence == (
        Evidence(kind="artifact", ref="empty", value="0 bytes"),
        Evidence(kind="artifact", ref="report.md", value="Total: 42 (all of it)"),
    )


@pytest.mark.parametrize(
    ("answer", "pattern", "verdict"),
    [
        ("All 17 tests passed.", "[0-9]+ tests passed", "met"),
        ("All 17 tests passed.", "tests PASSED", "met"),
        ("Nothing worked.", "passed", "unmet"),
        ("\udc80 passed", "passed", "met"),
        ("", "passed", "unmet"),
    ],
)
async def test_a_text_is_looked_for_in_the_answer(
    answer: str, pattern: str, verdict: str, tmp_path: Path
) -> None:
    finding = await found(tmp_path, ContainsText(pattern), answer=answer)

    assert finding.verdict == verdict


async def test_the_answer_is_looked_into_without_a_workspace() -> None:
    verifier = ContractVerifier(
        contract_with(ContainsText("yes"), JsonSchemaValid(schema=SCHEMA), FileExists("a"))
    )
    grounds = Grounds(files=WorkspaceFiles(folder=None), answer='{"total": 1, "x": "yes"}')

    verification = await verifier.verify(grounds)

    assert [each.verdict for each in verification.findings.values()] == ["met", "met", "unknown"]
    assert verification.findings["R3"].why == "there is no workspace to look into"


async def test_an_answer_is_checked_by_a_schema(tmp_path: Path) -> None:
    predicate = JsonSchemaValid(schema=SCHEMA)

    assert (await found(tmp_path, predicate, answer='{"total": 1}')).verdict == "met"
    assert (await found(tmp_path, predicate, answer="{}")).why.endswith("$: 'total' is missing")
    assert (await found(tmp_path, predicate, answer="NaN")).why.endswith("it is not JSON: NaN")


@pytest.mark.parametrize(
    ("newest", "verdict", "why"),
    [
        ({}, "unmet", "the tool 'run' was not called"),
        ({"run": NewestResult(call_id="c2", is_error=True, text="boom")}, "unmet", "failed: boom"),
        ({"run": NewestResult(call_id="c2", is_error=False, text="fine")}, "met", ""),
    ],
)
async def test_a_tool_has_succeeded_if_its_newest_result_is_a_success(
    newest: dict[str, NewestResult], verdict: str, why: str, tmp_path: Path
) -> None:
    finding = await found(tmp_path, ToolResultSuccess("run"), tool_results=Results(newest))

    assert finding.verdict == verdict
    assert why in finding.why
    if verdict == "met":
        assert finding.evidence == (Evidence(kind="tool_result", ref="c2", value="fine"),)


@pytest.mark.parametrize(
    ("said", "verdict", "why"),
    [
        ('{"met": true, "reason": "it is kind"}', "met", ""),
        ('```json\n{"met": true}\n```', "met", ""),
        ('{"met": false, "reason": "it is rude"}', "unmet", "it is rude"),
        ('{"met": "yes"}', "unknown", "neither yes nor no"),
        ("I would say so.", "unknown", "neither yes nor no: 'I would say so.'"),
        ("[" * 100_000, "unknown", "neither yes nor no"),
        ("true", "met", ""),
        ("Yes.", "met", ""),
        ("**NO**", "unmet", "It is kind."),
        ("yes and no", "unknown", 'it is to answer with {"met": true'),
        ('{"met": true} {"met": false}', "unknown", "neither yes nor no"),
        ("", "unknown", "neither yes nor no"),
    ],
)
async def test_a_judge_is_taken_at_its_word_if_it_gives_one(
    said: str, verdict: str, why: str, folder: Path
) -> None:
    judge = ScriptedJudge(said)
    predicate = ModelJudged("It is kind.", files=("report.md",), model="strict")

    finding = await found(folder, predicate, judge=judge, answer="Here it is.")

    assert finding.verdict == verdict
    assert why in finding.why
    ((asked, model),) = judge.asked
    assert model == "strict"
    assert all(text in asked for text in ("It is kind.", "Here it is.", "Total: 42"))


async def test_a_judge_is_not_asked_about_a_file_that_is_not_there(folder: Path) -> None:
    judge = ScriptedJudge('{"met": true}')

    bad = ModelJudged("It has errors.", files=("none.md",))
    for predicate in (bad, Not(bad)):
        finding = await found(folder, predicate, judge=judge, answer="done")
        assert finding.verdict == "unknown"
    assert judge.asked == []


def holds(question: CustomQuestion) -> bool:
    return question.workspace is not None and question.arguments == {"least": 3}


async def says_no(question: CustomQuestion) -> CustomAnswer:
    return CustomAnswer(False, "there are 2 parts, not 3")


class Callable3:
    async def __call__(self, question: CustomQuestion) -> bool:
        return question.attempt == 1


def raises(_: CustomQuestion) -> bool:
    raise ValueError("no such table")


def leaves(_: CustomQuestion) -> bool:
    raise SystemExit(3)


async def leaves_later(_: CustomQuestion) -> bool:
    sys.exit("bye")


def is_cancelled(_: CustomQuestion) -> bool:
    raise asyncio.CancelledError("enough")


async def is_cancelled_later(_: CustomQuestion) -> bool:
    raise asyncio.CancelledError


def stops(_: CustomQuestion) -> bool:
    raise StopIteration


@pytest.mark.parametrize(
    ("function", "verdict", "why"),
    [
        (holds, "met", ""),
        (says_no, "unmet", "there are 2 parts, not 3"),
        (Callable3(), "met", ""),
        (lambda _: False, "unmet", "the predicate 'mine' does not hold"),
        (lambda _: None, "unknown", "answered 'None', which is neither true nor false"),
        (lambda _: "ok", "unknown", "neither true nor false"),
        (raises, "unknown", "could not be looked at: ValueError: no such table"),
        (leaves, "unknown", "SystemExit: 3"),
        (leaves_later, "unknown", "SystemExit: bye"),
        (stops, "unknown", "StopIteration"),
        (is_cancelled, "unknown", "CancelledError: enough"),
        (is_cancelled_later, "unknown", "CancelledError"),
    ],
)
async def test_a_function_of_the_user_answers_or_is_a_finding(
    function: Callable[[CustomQuestion], Any], verdict: str, why: str, tmp_path: Path
) -> None:
    predicate = Custom("mine", arguments={"least": 3})

    finding = await found(tmp_path, predicate, customs={"mine": function})

    assert finding.verdict == verdict
    assert why in finding.why


async def test_a_function_that_is_not_registered_is_unknown(tmp_path: Path) -> None:
    finding = await found(tmp_path, Custom("mine"), customs={"yours": holds})

    assert (finding.verdict, finding.why) == (
        "unknown",
        "the predicate 'mine' is not registered here",
    )


def blocks(_: CustomQuestion) -> bool:
    time.sleep(3)
    return True


async def hangs(_: CustomQuestion) -> bool:
    while True:
        try:
            await asyncio.sleep(0.4)
            return True
        except asyncio.CancelledError:
            continue


class HangingJudge:
    async def ask(self, text: str, *, model: str | None) -> str:
        await asyncio.Event().wait()
        raise AssertionError


class DeadJudge:
    async def ask(self, text: str, *, model: str | None) -> str:
        raise ConnectionResetError("the model is gone")


@pytest.mark.parametrize(
    ("predicate", "more", "why"),
    [
        (Custom("x", timeout_s=0.1), {"customs": {"x": blocks}}, "took longer than 0.1 s"),
        (Custom("x", timeout_s=0.1), {"customs": {"x": hangs}}, "took longer than 0.1 s"),
        (ModelJudged("x", timeout_s=0.1), {"judge": HangingJudge()}, "took longer than 0.1 s"),
        (ModelJudged("x"), {"judge": DeadJudge()}, "could not be looked at: the model is gone"),
        (CommandSucceeds("echo begun; sleep 60", timeout_s=0.3), {}, "ran past 0.3 s and was kil"),
        (CommandSucceeds("(sleep 60 &); sleep 60", timeout_s=0.3), {}, "ran past 0.3 s"),
    ],
    ids=["blocks", "hangs", "judge hangs", "judge dies", "sleeps", "forks"],
)
async def test_one_that_takes_too_long_or_dies_is_a_finding_in_time(
    predicate: Predicate, more: dict[str, Any], why: str, tmp_path: Path
) -> None:
    begun = time.monotonic()

    finding = await found(tmp_path, predicate, answer="done", **more)

    assert finding.verdict == "unknown"
    assert why in finding.why
    # Under load; the time is 0.3 s at most.
    assert time.monotonic() - begun < 2.5


async def test_an_endless_search_ends_with_the_verification(tmp_path: Path) -> None:
    # No repeat is within another one, so it is taken; and it takes years.
    pattern = "(?:a|a|b)*" + "(?:a|a)?" * 3 + "c$"
    (tmp_path / "a.txt").write_text("a" * 5_000)
    (tmp_path / "b.txt").touch()
    verifier = ContractVerifier(
        contract_with(
            ContainsText(pattern, file="a.txt"),
            ContainsText(pattern + "d", file="a.txt"),
            FileExists("b.txt"),
        ),
        limit_s=0.8,
    )
    begun = time.monotonic()

    verification = await verifier.verify(grounds_of(tmp_path))

    assert time.monotonic() - begun < 0.8 + 1.5
    assert verification.findings["R1"].verdict == "unknown"
    assert "given up because" in verification.findings["R1"].why
    assert "all 0.8 s of the verification had passed" in verification.findings["R2"].why
    assert verification.findings["R3"].verdict == "met"
    assert not verification.satisfied


async def test_of_what_a_command_prints_the_end_is_told(tmp_path: Path) -> None:
    command = CommandSucceeds(
        "head -c 200000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1"
    )

    finding = await found(tmp_path, command)

    assert finding.verdict == "unmet"
    assert "the end" in finding.why
    assert len(finding.why) <= 500


async def test_a_large_file_is_searched_in_a_process(folder: Path) -> None:
    (folder / "large.txt").write_bytes(b"line\n" * 200_000 + b"Total: 7\n")

    finding = await found(folder, ContainsText("total: 7", file="large.txt"))

    assert finding.verdict == "met"
    assert "Total: 7" in finding.evidence[0].value


async def test_a_large_document_is_checked_in_a_process(folder: Path) -> None:
    (folder / "large.json").write_text(json.dumps({"total": 3, "rest": ["x" * 100] * 5_000}))
    many = {"type": "object", "properties": {"rest": {"maxItems": 3}}}

    assert (await found(folder, JsonSchemaValid(schema=SCHEMA, file="large.json"))).verdict == "met"
    finding = await found(folder, JsonSchemaValid(schema=many, file="large.json"))
    assert finding.why.endswith("$.rest: an array breaks 'maxItems', which is 3")


async def test_another_folder_in_the_place_of_the_workspace_is_not_looked_into(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").touch()
    known = FolderId.of(os.stat(tmp_path / "one"))
    (tmp_path / "one").rename(tmp_path / "gone")
    (tmp_path / "two").rename(tmp_path / "one")
    files = WorkspaceFiles(folder=tmp_path / "one", id=known)
    commands = WorkspaceCommands(folder=tmp_path / "one", id=known)

    verification = await ContractVerifier(
        contract_with(FileExists("a"), ContainsText("x", file="a"), CommandSucceeds("touch ran"))
    ).verify(Grounds(files=files, commands=commands))

    for finding in verification.findings.values():
        assert finding.verdict == "unknown"
        assert "was moved away" in finding.why
    assert not (tmp_path / "one" / "ran").exists()


MET, UNMET = Finding(verdict="met"), Finding(verdict="unmet", why="no")
UNKNOWN, LATER = (
    Finding(verdict="unknown", why="?"),
    Finding(verdict="unknown", why="!", needs_run=True),
)


@pytest.mark.parametrize(
    ("kind", "parts", "verdict", "needs_run"),
    [
        (AllOf, (MET, MET), "met", False),
        (AllOf, (MET, UNKNOWN), "unknown", False),
        (AllOf, (MET, LATER), "unknown", True),
        (AllOf, (UNKNOWN, LATER), "unknown", False),
        (AllOf, (UNMET, LATER), "unmet", False),
        (AnyOf, (UNMET, MET), "met", False),
        (AnyOf, (UNKNOWN, MET), "met", False),
        (AnyOf, (UNMET, UNKNOWN), "unknown", False),
        (AnyOf, (UNMET, LATER), "unknown", True),
        (AnyOf, (UNMET, UNMET), "unmet", False),
        (Not, (MET,), "unmet", False),
        (Not, (UNMET,), "met", False),
        (Not, (UNKNOWN,), "unknown", False),
        (Not, (LATER,), "unknown", True),
    ],
)
def test_what_cannot_be_told_of_a_part_leaves_the_whole_untold_unless_others_decide(
    kind: Any, parts: tuple[Finding, ...], verdict: str, needs_run: bool
) -> None:
    named = tuple(FileExists(str(place)) for place in range(len(parts)))
    predicate = kind(named[0]) if kind is Not else kind(named)

    finding = combine(predicate, lambda leaf: parts[named.index(leaf)])

    assert (finding.verdict, finding.needs_run) == (verdict, needs_run)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("kill -KILL $PPID; sleep 300", "was killed: the process that watched it was killed"),
        ("trap '' TERM INT; (setsid sleep 300 &); sleep 300", "ran past 1.5 s and was killed"),
    ],
    ids=["kills its parent", "hides"],
)
async def test_a_command_under_the_supervisor_leaves_nothing_and_harms_nobody(
    command: str, why: str, tmp_path: Path
) -> None:
    processes = SupervisedProcesses()
    try:
        verifier = ContractVerifier(
            contract_with(CommandSucceeds(command, timeout_s=1.5), CommandSucceeds("true"))
        )
        commands = WorkspaceCommands(folder=tmp_path, processes=processes)
        begun = time.monotonic()

        verification = await verifier.verify(Grounds(commands=commands))
    finally:
        processes.close()

    first, second = verification.findings.values()
    assert (first.verdict, second.verdict) == ("unknown", "met"), first
    assert why in first.why
    assert time.monotonic() - begun < 6
