"""Faults in what children are held to, and in what is told of those that did not come to it."""

from dataclasses import replace
from typing import Any

from harness_actors.coordination import children
from harness_actors.messages import ToolCall
from harness_actors.ports import Delegation
from harness_actors.results import HarnessResult
from harness_actors.subagents import reports
from harness_actors.subagents.delegate import Delegate
from tests.simulation.kin import GIVEN, HELD_TO, TOLD
from tests.simulation.planted.bug import Patches, PlantedBug


def _whoever_says_so_is_done() -> Patches:
    return [(reports, "_is_held", lambda link, result: True)]


def _what_it_says_is_its_value() -> Patches:
    def patched(output: Any) -> bytes:
        return f"it came to {output}".encode()

    return [(reports, "encode_json", patched)]


def _its_last_words_are_lost() -> Patches:
    def patched(link: Any, result: HarnessResult, values: Any) -> Any:
        unmet = result.status == "done" and not result.ok
        return child_result(link, replace(result, output_text="") if unmet else result, values)

    child_result = reports.child_result
    return [(children, "child_result", patched)]


def _contracts_are_left_at_home() -> Patches:
    def patched(self: Delegate, call: ToolCall) -> Delegation:
        return replace(delegation(self, call), contract=None)

    delegation = Delegate.delegation
    return [(Delegate, "delegation", patched)]


def _values_are_left_at_home() -> Patches:
    def patched(self: Delegate, call: ToolCall) -> Delegation:
        return replace(delegation(self, call), typed=False)

    delegation = Delegate.delegation
    return [(Delegate, "delegation", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "a child is done that did not come to what it is held to",
        _whoever_says_so_is_done,
        frozenset({GIVEN, TOLD}),
    ),
    PlantedBug(
        "in the place of the value of a child stand words",
        _what_it_says_is_its_value,
        frozenset({GIVEN}),
    ),
    PlantedBug(
        "what a child said is lost where its contract is not met",
        _its_last_words_are_lost,
        frozenset({GIVEN}),
    ),
    PlantedBug(
        "the contract of a child is not handed on",
        _contracts_are_left_at_home,
        frozenset({HELD_TO}),
    ),
    PlantedBug(
        "it is not handed on that a child is to come to a value",
        _values_are_left_at_home,
        frozenset({HELD_TO}),
    ),
)
