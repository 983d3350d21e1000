"""What a task must have come to, and whether it has: contracts, their predicates, verification."""

from harness_actors.contracts.contract import (
    AcceptabilityCriteria,
    RequiredOutput,
    TaskContract,
    UserQuestion,
)
from harness_actors.contracts.document import LoadedContract, load_contract
from harness_actors.contracts.predicates import (
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
    PredicateKind,
    ToolResultSuccess,
)

__all__ = [
    "AcceptabilityCriteria",
    "AllOf",
    "AlwaysTrue",
    "AnyOf",
    "CommandSucceeds",
    "ContainsText",
    "Custom",
    "FileExists",
    "JsonSchemaValid",
    "LoadedContract",
    "ModelJudged",
    "Not",
    "Predicate",
    "PredicateKind",
    "RequiredOutput",
    "TaskContract",
    "ToolResultSuccess",
    "UserQuestion",
    "load_contract",
]
