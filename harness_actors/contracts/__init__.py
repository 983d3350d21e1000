"""What a task must have come to, and whether it has: contracts, their predicates, verification."""

from harness_actors.contracts.commands import WorkspaceCommands
from harness_actors.contracts.contract import (
    AcceptabilityCriteria,
    RequiredOutput,
    TaskContract,
    UserQuestion,
)
from harness_actors.contracts.customs import CustomAnswer, CustomQuestion
from harness_actors.contracts.document import LoadedContract, load_contract
from harness_actors.contracts.findings import Finding
from harness_actors.contracts.gaps import CompletionReport, Gap, GapReport
from harness_actors.contracts.leaves import (
    AlwaysTrue,
    CommandSucceeds,
    ContainsText,
    Custom,
    FileExists,
    JsonSchemaValid,
    ModelJudged,
    PredicateKind,
    ToolResultSuccess,
)
from harness_actors.contracts.ledger import (
    CoverageLedger,
    Evidence,
    RequirementCoverage,
)
from harness_actors.contracts.looking import Grounds
from harness_actors.contracts.predicates import (
    AllOf,
    AnyOf,
    Not,
    Predicate,
)
from harness_actors.contracts.verifier import ContractVerifier, Verification
from harness_actors.contracts.workspace import WorkspaceFiles

__all__ = [
    "AcceptabilityCriteria",
    "AllOf",
    "AlwaysTrue",
    "AnyOf",
    "CommandSucceeds",
    "CompletionReport",
    "ContainsText",
    "ContractVerifier",
    "CoverageLedger",
    "Custom",
    "CustomAnswer",
    "CustomQuestion",
    "Evidence",
    "FileExists",
    "Finding",
    "Gap",
    "GapReport",
    "Grounds",
    "JsonSchemaValid",
    "LoadedContract",
    "ModelJudged",
    "Not",
    "Predicate",
    "PredicateKind",
    "RequiredOutput",
    "RequirementCoverage",
    "TaskContract",
    "ToolResultSuccess",
    "UserQuestion",
    "Verification",
    "WorkspaceCommands",
    "WorkspaceFiles",
    "load_contract",
]
