"""Faults in what becomes of verifications."""

from dataclasses import replace
from typing import Any

from harness_actors.contracts import ContractVerifier
from harness_actors.events import StopDecided
from harness_actors.executors import stop_decision
from harness_actors.executors.stop_decision import StopDecision
from harness_actors.signals import TurnComplete
from harness_actors.state import TURN_COUNT, VERIFIED
from harness_actors.turn.gates import Gates
from harness_actors.turn.loop import TurnLoop
from harness_actors.turn.verification import Came, ContractGate
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.verifying import (
    COMPLETED_VERIFIED,
    COUNTED_UP,
    ITS_OWN,
    ONE_DECISION,
    ONE_MESSAGE,
    SAID_ONCE,
)


def _what_is_missing_counts_for_nothing() -> Patches:
    async def patched(self: ContractGate, answer: str) -> Came:
        await at_end(self, answer)
        return Came()

    at_end = ContractGate.at_end
    return [(ContractGate, "at_end", patched)]


def _what_was_met_stays_met() -> Patches:
    async def patched(self: ContractVerifier, grounds: Any, **more: Any) -> Any:
        found = await verify(self, grounds, **more)
        met = known.setdefault(self._contract.id, {})
        met |= {name: one for name, one in found.ledger.entries.items() if one.status == "met"}
        ledger = found.ledger.put(*met.values())
        gaps = type(found.gaps).of(self._contract, ledger)
        return replace(found, ledger=ledger, gaps=gaps)

    known: dict[str, dict[str, Any]] = {}
    verify = ContractVerifier.verify
    return [(ContractVerifier, "verify", patched)]


def _a_contract_is_verified_once() -> Patches:
    async def patched(self: ContractVerifier, grounds: Any, **more: Any) -> Any:
        if self._contract.id not in known:
            known[self._contract.id] = await verify(self, grounds, **more)
        return known[self._contract.id]

    known: dict[str, Any] = {}
    verify = ContractVerifier.verify
    return [(ContractVerifier, "verify", patched)]


def _texts_are_not_verified() -> Patches:
    return [(TurnLoop, "_says_done", lambda self, ended: ended.ending == "completed")]


def _the_last_turn_is_not_verified() -> Patches:
    async def patched(self: Gates, ended: TurnComplete) -> TurnComplete:
        if self.context.get(TURN_COUNT) >= self.context.spec.config.max_turns:
            return ended
        return await at_end(self, ended)

    at_end = Gates.at_end
    return [(Gates, "at_end", patched)]


def _who_claims_twice_is_believed() -> Patches:
    async def patched(self: ContractGate, answer: str) -> Came:
        again = self.context.get(VERIFIED) is not None
        came = await at_end(self, answer)
        return Came() if again else came

    at_end = ContractGate.at_end
    return [(ContractGate, "at_end", patched)]


def _attempts_are_not_counted() -> Patches:
    def patched(self: ContractGate, attempt: int, **more: Any) -> None:
        tell(self, 1, **more)

    tell = ContractGate._tell
    return [(ContractGate, "_tell", patched)]


def _only_the_first_cause_is_told() -> Patches:
    def patched(self: StopDecision, signal: Any, context: Any, count: int, nudges: int) -> Any:
        return not_accepted(
            self, replace(signal, findings=signal.findings[:1]), context, count, nudges
        )

    not_accepted = StopDecision._not_accepted
    return [(StopDecision, "_not_accepted", patched)]


def _each_cause_is_a_message() -> Patches:
    def patched(context: Any, words: str, turn: int, count: int) -> None:
        for point in words.split("\n- "):
            nudge(context, point, turn, count)

    nudge = vars(stop_decision)["_nudge"]
    return [(stop_decision, "_nudge", patched)]


def _refusals_are_silent() -> Patches:
    return [(StopDecision, "_not_accepted", lambda self, signal, context, count, nudges: None)]


def _claims_are_decided_before_their_gates() -> Patches:
    async def patched(self: StopDecision, signal: Any, context: Any) -> Any:
        if isinstance(signal, TurnComplete) and signal.ending == "completed":
            context.emit(
                StopDecided(turn=context.get(TURN_COUNT), decision="stop", reason="completed")
            )
        return await handle(self, signal, context)

    handle = StopDecision.handle
    return [(StopDecision, "handle", patched)]


def _time_that_is_over_is_taken_for_met() -> Patches:
    async def patched(self: ContractGate, answer: str) -> Came:
        came = await at_end(self, answer)
        return Came() if came.limit is not None else came

    at_end = ContractGate.at_end
    return [(ContractGate, "at_end", patched)]


def _who_dies_at_its_gates_has_said_nothing() -> Patches:
    return [(TurnLoop, "_said_before", lambda self: None)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "who dies at its gates has said nothing",
        _who_dies_at_its_gates_has_said_nothing,
        frozenset({SAID_ONCE}),
    ),
    PlantedBug(
        "what is missing of a contract counts for nothing",
        _what_is_missing_counts_for_nothing,
        frozenset({COMPLETED_VERIFIED}),
    ),
    PlantedBug("what was met stays met", _what_was_met_stays_met, frozenset({ITS_OWN})),
    PlantedBug("a contract is verified once", _a_contract_is_verified_once, frozenset({ITS_OWN})),
    PlantedBug(
        "texts that end a run are not verified",
        _texts_are_not_verified,
        frozenset({COMPLETED_VERIFIED}),
    ),
    PlantedBug(
        "the last turn is not verified",
        _the_last_turn_is_not_verified,
        frozenset({COMPLETED_VERIFIED}),
    ),
    PlantedBug(
        "who claims twice is believed",
        _who_claims_twice_is_believed,
        frozenset({COMPLETED_VERIFIED}),
    ),
    PlantedBug("attempts are not counted", _attempts_are_not_counted, frozenset({COUNTED_UP})),
    PlantedBug(
        "only the first cause of a refusal is told",
        _only_the_first_cause_is_told,
        frozenset({ONE_MESSAGE}),
    ),
    PlantedBug(
        "each cause of a refusal is a message", _each_cause_is_a_message, frozenset({ONE_MESSAGE})
    ),
    PlantedBug("refusals are silent", _refusals_are_silent, frozenset({ONE_MESSAGE})),
    PlantedBug(
        "claims are decided before their gates",
        _claims_are_decided_before_their_gates,
        frozenset({ONE_DECISION}),
    ),
    PlantedBug(
        "time that is over in a verification is taken for met",
        _time_that_is_over_is_taken_for_met,
        frozenset({COMPLETED_VERIFIED}),
    ),
)
