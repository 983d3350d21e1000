"""Verification as a whole: what it comes to, what is told, and that it is made anew each time."""

import pickle
from pathlib import Path

import pytest

from harness_actors.contracts import (
    AcceptabilityCriteria,
    AllOf,
    AlwaysTrue,
    AnyOf,
    CommandSucceeds,
    CompletionReport,
    ContainsText,
    ContractVerifier,
    CoverageLedger,
    Custom,
    CustomQuestion,
    Evidence,
    FileExists,
    GapReport,
    ModelJudged,
    RequiredOutput,
    RequirementCoverage,
    TaskContract,
    ToolResultSuccess,
    UserQuestion,
)
from harness_actors.errors import ConfigError
from tests.contracts.grounds import contract_with, grounds_of, verified

THREE = TaskContract.simple("a report", "a summary", "a table", "a chart")
EVIDENCE = (Evidence(kind="artifact", ref="a.md", value="3 bytes"),)


def met(name: str) -> RequirementCoverage:
    return RequirementCoverage(requirement_id=name, status="met", evidence=EVIDENCE)


def test_a_ledger_begins_with_nothing_met_and_knows_its_contract() -> None:
    ledger = CoverageLedger.begin(THREE)

    assert ledger.contract_id == THREE.id
    assert [each.status for each in ledger.entries.values()] == ["unmet"] * 3
    assert ledger.percent(THREE) == 0


def test_what_is_met_counts_with_its_evidence() -> None:
    begun = CoverageLedger.begin(THREE)
    ledger = begun.put(met("R2"))

    assert ledger.entries["R2"].evidence == EVIDENCE
    assert ledger.changed_since(begun) == (met("R2"),)
    assert begun.entries["R2"].status == "unmet"
    with pytest.raises(KeyError):
        ledger.put(met("R9"))


def test_the_percentage_is_of_what_is_required() -> None:
    outputs = tuple(
        RequiredOutput(id=name, description=name, optional=name == "c") for name in "abc"
    )
    contract = TaskContract(goal="x", outputs=outputs)
    ledger = CoverageLedger.begin(contract)

    assert ledger.put(met("c")).percent(contract) == 0
    assert ledger.put(met("a")).percent(contract) == 50
    assert ledger.put(met("a"), met("b")).percent(contract) == 100


def test_what_is_skipped_counts_and_needs_a_reason() -> None:
    ledger = CoverageLedger.begin(THREE).put(met("R1"), met("R2"))

    with pytest.raises(ConfigError):
        ledger.skip("R3", reason=" ")
    assert not GapReport.of(THREE, ledger).is_empty
    assert GapReport.of(THREE, ledger.skip("R3", reason="not wanted")).is_empty


def test_ledgers_and_reports_come_back_from_plain_values() -> None:
    ledger = CoverageLedger.begin(THREE).put(met("R1")).skip("R3", reason="not wanted")
    report = CompletionReport.of(THREE, ledger, confidence=0.7, summary="nearly")

    assert CoverageLedger.from_plain(ledger.as_plain()) == ledger
    assert CompletionReport.from_plain(report.as_plain()) == report
    assert pickle.loads(pickle.dumps(ledger)) == ledger
    with pytest.raises(ConfigError, match="one of unmet, met"):
        CoverageLedger.from_plain(
            {**ledger.as_plain(), "entries": [{"requirement_id": "R1", "status": "good"}]}
        )


def test_a_gap_report_lists_what_is_not_met_in_order() -> None:
    report = GapReport.of(THREE, CoverageLedger.begin(THREE).put(met("R1")))

    assert [gap.id for gap in report.unmet_requirements] == ["R2", "R3"]
    assert report.suggestions == ("Complete 2 remaining requirement(s)",)


def test_a_report_says_what_to_do_next() -> None:
    question = UserQuestion(id="q", question="Which colour?", required_for=("R1",))
    contract = contract_with(AlwaysTrue(), questions=(question,))
    done = CoverageLedger.begin(contract).put(met("R1"))

    asks = CompletionReport.of(contract, done)
    assert (asks.recommendation, asks.open_questions) == ("need_user", ("Which colour?",))
    assert (asks.confidence, asks.deliverables) == (0.8, ("a.md",))
    begun = CompletionReport.of(contract, CoverageLedger.begin(contract))
    assert begun.recommendation == "continue"
    assert CompletionReport.of(THREE, CoverageLedger.begin(THREE)).recommendation == "continue"
    all_met = CoverageLedger.begin(THREE).put(met("R1"), met("R2"), met("R3"))
    assert CompletionReport.of(THREE, all_met).recommendation == "done"


def question(name: str, answer: str | None) -> UserQuestion:
    return UserQuestion(id=name, question=f"{name}?", asked=answer is not None, answer=answer)


@pytest.mark.parametrize(
    ("criteria", "answers", "confidence", "satisfied"),
    [
        (AcceptabilityCriteria(), ("red", "blue"), None, True),
        (AcceptabilityCriteria(), ("red", None), None, False),
        (AcceptabilityCriteria(max_known_unknowns=1), ("red", None), None, True),
        (AcceptabilityCriteria(max_known_unknowns=1), (None, None), None, False),
        (AcceptabilityCriteria(), (), 0.6, True),
        (AcceptabilityCriteria(), (), 0.59, False),
        (AcceptabilityCriteria(min_confidence=0), (), 0.0, True),
    ],
)
async def test_questions_and_confidence_are_looked_at(
    criteria: AcceptabilityCriteria,
    answers: tuple[str | None, ...],
    confidence: float | None,
    satisfied: bool,
    tmp_path: Path,
) -> None:
    questions = tuple(question(f"q{place}", answer) for place, answer in enumerate(answers))
    contract = contract_with(AlwaysTrue(), acceptability=criteria, questions=questions)

    verification = await ContractVerifier(contract).verify(
        grounds_of(tmp_path), confidence=confidence
    )

    assert verification.satisfied == satisfied
    assert bool(verification.gaps.text()) == (not satisfied)


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_part_is_enough_where_that_is_allowed(allowed: bool, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    contract = contract_with(
        AllOf((FileExists("a"), FileExists("b"))),
        acceptability=AcceptabilityCriteria(allow_partial=allowed),
    )

    verification = await ContractVerifier(contract).verify(grounds_of(tmp_path))

    entry = verification.ledger.entries["R1"]
    assert (entry.status, entry.notes) == ("partially_met", "there is no file 'b'")
    assert verification.satisfied == allowed


async def test_nothing_is_taken_over_from_an_earlier_attempt(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("abc")
    verifier = ContractVerifier(contract_with(FileExists("a.md")))

    first = await verifier.verify(grounds_of(tmp_path, now=lambda: 10.0))
    (tmp_path / "a.md").unlink()
    second = await verifier.verify(
        grounds_of(tmp_path, now=lambda: 20.0), ledger=first.ledger, attempt=2
    )
    (tmp_path / "a.md").write_text("again")
    third = await verifier.verify(grounds_of(tmp_path), ledger=second.ledger, attempt=3)

    assert [each.satisfied for each in (first, second, third)] == [True, False, True]
    assert (first.ledger.attempt, first.ledger.at) == (1, 10.0)
    assert (second.ledger.attempt, second.ledger.at) == (2, 20.0)
    assert second.ledger.entries["R1"].evidence == ()
    assert third.ledger.entries["R1"].evidence[0].value == "5 bytes"


async def test_the_ledger_of_another_contract_is_refused(tmp_path: Path) -> None:
    other = CoverageLedger.begin(contract_with(FileExists("b")))

    with pytest.raises(ConfigError, match=f"is of contract '{other.contract_id}'"):
        await ContractVerifier(contract_with(FileExists("a"))).verify(
            grounds_of(tmp_path), ledger=other
        )


async def test_what_somebody_has_skipped_is_not_looked_at_again(tmp_path: Path) -> None:
    contract = contract_with(CommandSucceeds("touch ran; exit 1"), FileExists("ran"))
    ledger = CoverageLedger.begin(contract).skip("R1", reason="not here")

    verification = await ContractVerifier(contract).verify(grounds_of(tmp_path), ledger=ledger)

    assert verification.ledger.entries["R1"].status == "skipped"
    assert verification.ledger.entries["R2"].status == "unmet"
    assert not (tmp_path / "ran").exists()


async def test_files_are_looked_at_after_the_commands_that_may_change_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.md").write_text("total: 1")
    verification = await verified(
        tmp_path,
        FileExists("a.md"),
        ContainsText("total", file="a.md"),
        AnyOf((FileExists("made"), FileExists("never"))),
        CommandSucceeds("rm a.md; touch made"),
    )

    statuses = [each.status for each in verification.ledger.entries.values()]
    assert statuses == ["unmet", "unmet", "met", "met"]


async def test_a_command_that_is_required_twice_runs_once(tmp_path: Path) -> None:
    count = CommandSucceeds("echo x >> ran")

    verification = await verified(tmp_path, count, AllOf((count, AlwaysTrue())))

    assert verification.satisfied
    assert (tmp_path / "ran").read_text() == "x\n"


async def test_one_that_crashes_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    def crashes(_: CustomQuestion) -> bool:
        raise RuntimeError("boom")

    verification = await verified(
        tmp_path,
        Custom("x"),
        CommandSucceeds("kill -9 $$"),
        CommandSucceeds("true"),
        AlwaysTrue(),
        customs={"x": crashes},
    )

    statuses = [each.status for each in verification.ledger.entries.values()]
    assert statuses == ["unmet", "unmet", "met", "met"]
    assert "boom" in verification.gaps.text()


async def test_the_message_names_every_cause_and_what_would_satisfy_it(tmp_path: Path) -> None:
    contract = TaskContract(
        goal="a report",
        outputs=(
            RequiredOutput(id="R1", description="a report", predicate=FileExists("report.md")),
            RequiredOutput(
                id="R2",
                description="tests pass",
                predicate=CommandSucceeds("echo 2 failed; exit 1"),
            ),
            RequiredOutput(id="R3", description="nice", predicate=FileExists("x"), optional=True),
        ),
        questions=(UserQuestion(id="Q1", question="Which version?"),),
    )

    verification = await ContractVerifier(contract).verify(grounds_of(tmp_path), confidence=0.3)

    assert verification.gaps.text() == (
        "The task is not over yet.\n"
        "Required, and not there:\n"
        "- R1: a report: there is no file 'report.md'\n"
        "- R2: tests pass: the command 'echo 2 failed; exit 1' exited with 1; "
        "it printed: 2 failed\n"
        "Not answered by the user yet:\n"
        "- Q1: Which version?\n"
        "Complete 2 remaining requirement(s).\n"
        "Ask 1 clarifying question(s).\n"
        "Look again at what you are not sure of: you said 0.3, and 0.6 is needed."
    )


async def test_a_message_of_a_thousand_gaps_stays_short(tmp_path: Path) -> None:
    predicates = [FileExists(f"{place}{'x' * 200}") for place in range(1_000)]

    text = (await verified(tmp_path, *predicates)).gaps.text()

    assert "- and 980 more\n" in text
    assert len(text) < 20_000


async def test_what_only_a_run_can_tell_is_unmet_unless_it_is_assumed(tmp_path: Path) -> None:
    verification = await verified(
        tmp_path,
        ToolResultSuccess("run"),
        ModelJudged("It is good."),
        ContainsText("done"),
        AnyOf((FileExists("a"), ToolResultSuccess("run"))),
        AllOf((FileExists("a"), ToolResultSuccess("run"))),
    )

    assert not verification.satisfied
    assumed = verification.assuming()
    statuses = [each.status for each in assumed.ledger.entries.values()]
    assert statuses == ["skipped", "skipped", "skipped", "skipped", "unmet"]
    assert [gap.id for gap in assumed.gaps.unmet_requirements] == ["R5"]
    assert "cannot be told without a run" in assumed.ledger.entries["R1"].notes


async def test_nothing_is_kept_of_a_thousand_attempts(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    contract = contract_with(FileExists("a"), FileExists("b"), *[AlwaysTrue()] * 8)
    verifier, ledger, sizes = ContractVerifier(contract), None, []
    for attempt in range(1, 1_001):
        verification = await verifier.verify(
            grounds_of(tmp_path, now=lambda: 1.0), ledger=ledger, attempt=attempt
        )
        ledger = verification.ledger
        sizes.append(len(pickle.dumps(ledger)))

    # The number of the attempt takes a byte more.
    assert sizes[-1] - sizes[0] < 4
