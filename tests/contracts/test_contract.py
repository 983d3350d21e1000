"""Contracts as values: what they hold, what they refuse, and their way to plain values and back."""

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.contracts import (
    AcceptabilityCriteria,
    AllOf,
    AlwaysTrue,
    AnyOf,
    CommandSucceeds,
    ContainsText,
    Custom,
    FileExists,
    JsonSchemaValid,
    ModelJudged,
    Not,
    Predicate,
    RequiredOutput,
    TaskContract,
    ToolResultSuccess,
    UserQuestion,
)
from harness_actors.contracts.patterns import with_case
from harness_actors.contracts.schema_check import UntoldError, faults_of
from harness_actors.contracts.schemas import is_quick
from harness_actors.errors import BadInputError, ConfigError

LEAVES: list[Predicate] = [
    FileExists("a/b.md"),
    FileExists("out", folder=True),
    FileExists("out.bin", min_bytes=7),
    ContainsText("total: [0-9]+", file="b.md"),
    ContainsText("Total", ignore_case=False),
    ToolResultSuccess("run_tests"),
    JsonSchemaValid(schema={"type": "object", "required": ["x"]}, file="x.json"),
    CommandSucceeds("make", timeout_s=5),
    Custom("has_three_parts", arguments={"least": 3}),
    ModelJudged("It is polite.", files=("a.md",), model="small"),
    AlwaysTrue(),
]


def contract_with(*predicates: Predicate, **more: Any) -> TaskContract:
    outputs = tuple(
        RequiredOutput(id=f"R{place}", description="it is done", predicate=predicate)
        for place, predicate in enumerate(predicates, 1)
    )
    return TaskContract(goal="it is done", outputs=outputs, **more)


def test_a_simple_contract_numbers_its_requirements_and_leaves_them_to_the_model() -> None:
    contract = TaskContract.simple("a report", "a summary", "a table", "a chart")

    assert [(each.id, each.description) for each in contract.outputs] == [
        ("R1", "a summary"),
        ("R2", "a table"),
        ("R3", "a chart"),
    ]
    assert {each.predicate for each in contract.outputs} == {AlwaysTrue()}


def test_an_optional_output_is_not_required() -> None:
    outputs = (
        RequiredOutput(id="a", description="needed"),
        RequiredOutput(id="b", description="nice", optional=True),
    )

    assert [each.id for each in TaskContract(goal="x", outputs=outputs).required] == ["a"]


def test_criteria_are_strict_unless_told_otherwise() -> None:
    assert AcceptabilityCriteria() == AcceptabilityCriteria(
        max_known_unknowns=0, min_confidence=0.6, allow_partial=False
    )


def predicates() -> st.SearchStrategy[Predicate]:
    return st.recursive(
        st.sampled_from(LEAVES),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: AnyOf(tuple(parts))),
            st.lists(inner, min_size=1, max_size=3).map(
                lambda parts: AnyOf((AllOf(tuple(parts)), AlwaysTrue()))
            ),
            inner.map(lambda part: AnyOf((Not(part), AlwaysTrue()))),
        ),
        max_leaves=8,
    )


@settings(max_examples=30)
@given(predicates(), st.booleans(), st.integers(0, 3))
def test_a_contract_comes_back_from_plain_values_as_it_was(
    predicate: Predicate, partial: bool, unknowns: int
) -> None:
    contract = contract_with(
        predicate,
        questions=(
            UserQuestion(id="q", question="Which?", required_for=("R1",), asked=True, answer="red"),
            UserQuestion(id="p", question="When?"),
        ),
        acceptability=AcceptabilityCriteria(max_known_unknowns=unknowns, allow_partial=partial),
    )

    assert TaskContract.from_mapping(contract.as_plain()) == contract
    assert pickle.loads(pickle.dumps(contract)) == contract


def test_the_id_of_a_contract_is_made_of_its_content() -> None:
    one, same, other = (contract_with(FileExists(name)) for name in ("a", "a", "b"))

    assert one.id == same.id != other.id


def test_a_schema_that_its_caller_changes_stays_as_it_was() -> None:
    schema: dict[str, Any] = {"type": "object"}
    predicate = JsonSchemaValid(schema=schema)
    schema["type"] = "array"

    assert predicate.schema == {"type": "object"}


@pytest.mark.parametrize(
    ("make", "field", "said"),
    [
        (lambda: FileExists("/etc/passwd"), "path", "is absolute"),
        (lambda: FileExists("a/../../b"), "path", "outside of the workspace"),
        (lambda: FileExists(""), "path", "is empty"),
        (lambda: FileExists("a\0b"), "path", "NUL"),
        (lambda: FileExists("\udc80"), "path", "no valid Unicode"),
        (lambda: FileExists(3), "path", "must be a text, not 3"),  # type: ignore[arg-type]
        (lambda: FileExists("a", folder=True, min_bytes=1), "min_bytes", "a folder has none"),
        (lambda: FileExists("a", min_bytes=-1), "min_bytes", "whole number"),
        (lambda: FileExists("a", min_bytes=True), "min_bytes", "whole number"),
        (lambda: ContainsText("(a"), "pattern", "no regular expression"),
        (lambda: ContainsText("(a+)+$"), "pattern", "may never end"),
        (lambda: ContainsText("(?:x|(a*b)*)c"), "pattern", "may never end"),
        (lambda: ContainsText("(?=(a*)*)b"), "pattern", "may never end"),
        (lambda: ContainsText("(?:xy|a*b)*c"), "pattern", "may never end"),
        (lambda: ContainsText("(?:(x)?(?(1)a*|b)c)*"), "pattern", "may never end"),
        (lambda: ContainsText("(?:(?>a*)b)*c"), "pattern", "may never end"),
        (lambda: ContainsText("(" * 500 + ")" * 500), "pattern", ""),
        (lambda: ContainsText("a" * 2_001), "pattern", "2,001 characters"),
        (lambda: ContainsText("a", file="../x"), "file", "outside"),
        (lambda: ToolResultSuccess(""), "tool_name", "is empty"),
        (lambda: CommandSucceeds("x", timeout_s=0), "timeout_s", "above 0"),
        (lambda: CommandSucceeds("x", timeout_s=601), "timeout_s", "at most 600"),
        (lambda: CommandSucceeds("x", timeout_s=float("nan")), "timeout_s", "above 0"),
        (lambda: CommandSucceeds(" "), "command", "is empty"),
        (lambda: Custom("x", arguments={"a": object()}), "arguments", "plain values"),
        (lambda: Custom("x", arguments={"a": "b" * 50_000}), "arguments", "50,008 bytes"),
        (lambda: ModelJudged("x", files=("/a",)), "files[0]", "is absolute"),
        (lambda: ModelJudged("x", files="abc"), "files", "a list"),  # type: ignore[arg-type]
        (lambda: JsonSchemaValid(schema=[]), "schema", "a JSON schema"),  # type: ignore[arg-type]
        (lambda: JsonSchemaValid(schema={"type": "objekt"}), "schema.type", "'objekt'"),
        (lambda: AllOf(()), "", "one or more predicates"),
        (lambda: AnyOf(("x",)), "[0]", "must be a predicate"),  # type: ignore[arg-type]
        (lambda: Not("x"), "", "must be a predicate"),  # type: ignore[arg-type]
        (
            lambda: RequiredOutput(id="a", description="b", type="file"),  # type: ignore[arg-type]
            "type",
            "one of artifact, response, action",
        ),
        (lambda: UserQuestion(id="q", question="?", answer="yes"), "answer", "`asked` is false"),
        (lambda: AcceptabilityCriteria(min_confidence=1.5), "min_confidence", "from 0 to 1"),
        (lambda: TaskContract(goal="x", outputs=()), "outputs", "is empty"),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_it_is_made(
    make: Any, field: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make()

    assert caught.value.field == field
    assert said in caught.value.problem


@pytest.mark.parametrize(
    "reference",
    ["http://example.org/x.json", "other.json", "file:///etc/passwd", "urn:x", "#/$defs/missing"],
)
def test_a_schema_that_needs_another_document_is_refused(reference: str) -> None:
    with pytest.raises(ConfigError) as caught:
        JsonSchemaValid(schema={"properties": {"a": {"items": {"$ref": reference}}}})

    assert caught.value.field == "schema.properties.a.items.$ref"


def test_a_pattern_of_a_schema_that_may_never_end_is_refused() -> None:
    schemas: list[dict[str, Any]] = [{"pattern": "(a+)+"}, {"patternProperties": {"(a+)+": {}}}]
    for schema in schemas:
        with pytest.raises(ConfigError, match="may never end"):
            JsonSchemaValid(schema=schema)


def test_a_schema_of_its_own_parts_is_taken_and_told_in_short() -> None:
    schema: dict[str, Any] = {
        "$defs": {"n": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/n"}},
    }
    JsonSchemaValid(schema=schema)

    (fault,) = faults_of({"a": "x" * 100_000}, schema)

    assert fault.startswith("$.a: must be of type 'integer', not 'xxx")
    assert len(fault) < 200


def test_what_a_schema_that_goes_in_a_circle_allows_cannot_be_told() -> None:
    with pytest.raises(UntoldError, match="nested too deeply for this schema"):
        faults_of({}, {"$ref": "#"})


def test_schemas_with_patterns_or_references_are_not_quick() -> None:
    quick = {"type": "object", "properties": {"a": {"enum": [1, 2]}}}

    assert is_quick(quick)
    assert not is_quick({**quick, "items": {"pattern": "a"}})
    assert not is_quick({**quick, "items": [{"$ref": "#"}]})


@pytest.mark.parametrize(
    "predicates",
    [
        (FileExists("a"), Not(FileExists("./a"))),
        (Not(FileExists("a")), FileExists("a", min_bytes=4)),
        (Not(FileExists("a")), ContainsText("x", file="b/../a")),
        (FileExists("a"), FileExists("a/b")),
        (FileExists("a", folder=True), JsonSchemaValid(schema={}, file="a")),
        (AllOf((ToolResultSuccess("t"), Not(ToolResultSuccess("t")))),),
        (CommandSucceeds("x"), Not(AnyOf((CommandSucceeds("y"), CommandSucceeds("x"))))),
        (Not(AlwaysTrue()),),
    ],
)
def test_what_nothing_can_meet_is_refused(predicates: tuple[Predicate, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        contract_with(*predicates)

    assert caught.value.field == f"outputs[{len(predicates) - 1}].predicate"


@pytest.mark.parametrize(
    "predicates",
    [
        (AnyOf((FileExists("a"), Not(FileExists("a")))),),
        (FileExists("a"), Not(FileExists("a", min_bytes=4))),
        (FileExists("a/b"), FileExists("a", folder=True), FileExists("a/c")),
        (Not(AllOf((FileExists("a"), FileExists("b")))), FileExists("a")),
    ],
)
def test_what_can_be_met_is_taken(predicates: tuple[Predicate, ...]) -> None:
    contract_with(*predicates)


def test_optional_outputs_may_exclude_one_another() -> None:
    outputs = tuple(
        RequiredOutput(id=name, description=name, predicate=predicate, optional=True)
        for name, predicate in (("a", FileExists("x")), ("b", Not(FileExists("x"))))
    )

    TaskContract(goal="either", outputs=outputs)


def test_all_faults_of_plain_values_are_told_with_their_fields() -> None:
    with pytest.raises(BadInputError) as caught:
        TaskContract.from_mapping(
            {
                "outputs": [
                    {"id": "a"},
                    {"predicate": {"file_exits": "x"}},
                    {"predicate": {"any": [{"custom": ""}, {"command": {"run": "x"}}]}},
                    {"predicate": {"file_exists": "a", "always_true": {}}},
                    7,
                ],
                "questions": {"a": "b"},
                "aim": "x",
                "acceptability": {"min_confidence": "high"},
            }
        )

    assert [fault.partition(": ")[0] for fault in caught.value.faults] == [
        "aim",
        "goal",
        "outputs[0].description",
        "outputs[1].predicate",
        "outputs[2].predicate.any[0].custom",
        "outputs[2].predicate.any[1].command.run",
        "outputs[2].predicate.any[1].command.command",
        "outputs[3].predicate",
        "outputs[4]",
        "questions",
        "acceptability.min_confidence",
    ]


def test_a_fault_hides_no_other_of_the_same_fields() -> None:
    with pytest.raises(BadInputError) as caught:
        TaskContract.from_mapping(
            {
                "goal": 7,
                "outputs": [
                    {"id": 3, "typ": "x", "type": "y", "predicate": {"file_exit": "a"}},
                    {"predicate": {"file_exists": {"paht": "a", "path": "/a", "folder": 3}}},
                ],
            }
        )

    assert [fault.partition(": ")[0] for fault in caught.value.faults] == [
        "outputs[0].typ",
        "outputs[0].predicate",
        "outputs[0].id",
        "outputs[0].type",
        "outputs[1].predicate.file_exists.paht",
        "outputs[1].predicate.file_exists.path",
        "outputs[1].predicate.file_exists.folder",
        "goal",
    ]


def test_what_is_missing_is_no_further_fault() -> None:
    with pytest.raises(BadInputError) as caught:
        TaskContract.from_mapping({"goal": "g", "output": []})
    assert [fault.partition(": ")[0] for fault in caught.value.faults] == ["output", "outputs"]


def test_a_hundred_faults_are_told_in_twenty_and_a_word() -> None:
    with pytest.raises(BadInputError) as caught:
        TaskContract.from_mapping({"goal": "x", "outputs": [{"predicate": "no"}] * 100})

    assert len(caught.value.faults) == 21
    assert "more than 20 faults" in str(caught.value)


def test_plain_values_that_are_nested_too_deeply_are_refused() -> None:
    predicate: Any = "always_true"
    for _ in range(1_000):
        predicate = {"not": predicate}

    with pytest.raises(BadInputError, match="100 levels"):
        TaskContract.from_mapping({"goal": "x", "outputs": [{"predicate": predicate}]})


@pytest.mark.parametrize(
    ("pattern", "ignored", "made"),
    [
        ("a", True, "(?i)a"),
        ("(?s)a", True, "(?is)a"),
        ("(?is)a", True, "(?is)a"),
        ("a", False, "a"),
    ],
)
def test_the_flag_for_case_comes_before_all_else(pattern: str, ignored: bool, made: str) -> None:
    assert with_case(pattern, ignored=ignored) == made
