"""Calls that a person must approve: made once that is decided, as it was decided, and not else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from harness_actors.actors.simulated.cell import EPOCH
from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.messages import Message
from harness_actors.policies import Approvals, Approve, Refuse, Respond
from harness_actors.policies.decisions import Decision, decision_in
from harness_actors.records import RunChanged, id_at_the_top
from harness_actors.state import ANSWERS, QUESTIONS
from tests.simulation.approvals import key_in_question
from tests.simulation.disk import DiskRun
from tests.simulation.gated_calls import answered_in, has_place, key_of
from tests.simulation.ledger import Ledger

NOT_BEFORE = "a call that needs approval is not made before it has it"
AS_DECIDED = "a call is made as it was approved, and a refused one is told once"
ONCE_ASKED = "nobody is asked twice about a call"
EXPIRES = "an approval that expires is decided by its default, and by nothing later"
KNOWN = "of a call that waits for approval everybody knows that it was not made"
RULED_OUT = "a call that the policy denies never runs"


@dataclass
class Decided:
    """What is on disk of the approvals of one run.

    Attributes:
        asked: Those that were asked for, by the ids of their questions.
        by_key: The decisions, by the keys of their calls.
        standing: Those that stand for a tool, with where they were made: message and place.
    """

    asked: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    by_key: dict[str, Decision] = field(default_factory=dict)
    standing: list[tuple[tuple[int, int], str, Decision]] = field(default_factory=list)


class Approving:
    """Watches the calls that a person must approve of.

    Args:
        ledger: Where it is written down.
        policy: What the agents have; None for nothing.
        replaces: Hooks may make something else of a result.
    """

    def __init__(self, ledger: Ledger, policy: Approvals | None, *, replaces: bool) -> None:
        self._ledger = ledger
        self._disk = ledger.disk
        self._policy = policy
        self._replaces = replaces
        self._runs: dict[str, Decided] = {}
        approves = policy is not None and policy.on_expiry == "approve"
        self._on_expiry = Approve if approves else Refuse
        self._at_the_top: dict[tuple[str, str], float] = {}
        """When what runs below have asked was answered, by the runs at the top."""

    def of(self, run_id: str) -> Decided:
        """What is known of the approvals of a run."""
        return self._runs.setdefault(run_id, Decided())

    # ---- on disk ----------------------------------------------------------------------

    def changed(self, run: DiskRun, change: RunChanged, log: Sequence[Message]) -> None:
        """A change of a run is on disk."""
        if self._policy is None:
            return
        known, values = self.of(change.run_id), run.values.values
        for write in change.delta.writes:
            if write.key == ANSWERS.name and write.change == "put":
                self._at_the_top[change.run_id, write.value[0]] = change.at
        for question in (values.get(QUESTIONS.name) or {}).get("asked", ()):
            if question.get("call") is not None and question["id"] not in known.asked:
                self._is_asked(change.run_id, question, log)
        answers = values.get(ANSWERS.name) or {}
        for question_id, question in known.asked.items():
            key = question["key"]
            if question_id in answers and key not in known.by_key:
                above = id_at_the_top(change.run_id, run.spec.root, question_id)
                at = self._at_the_top.get((run.spec.root, above), change.at)
                self._is_decided(change.run_id, at, question, answers[question_id])
        for key, call, result in answered_in(log, len(change.delta.messages)):
            if change.end is not None or run.spec.custom or not key.startswith(f"{change.run_id}/"):
                # Who ends a run, or goes on behind one that was cut, only closes its calls.
                continue
            if key in known.by_key:
                self._check_result(key, known.by_key[key], result)
            elif self._needs(call.name, key) and result.text == UNKNOWN_OUTCOME:
                self._ledger.broken(KNOWN, f"{key} has an unknown outcome, and nobody was asked")

    def _is_asked(self, run_id: str, question: Mapping[str, Any], log: Sequence[Message]) -> None:
        known, call = self.of(run_id), question["call"]
        key = key_in_question({"kind": "approval", **call})
        if any(other["key"] == key for other in known.asked.values()):
            self._ledger.broken(ONCE_ASKED, f"{key} is asked about again as {question['id']}")
        if self._standing(known, call["tool"], key) is not None:
            self._ledger.broken(ONCE_ASKED, f"{key} is asked about, and was decided before")
        known.asked[question["id"]] = {**call, "key": key}
        said = {key_of(call): call.name for message in log for call in message.tool_calls}
        begun = [
            one
            for one in self._ledger.tools
            # Of a message that died with its process, or was cut with its turn, another one may be
            # in the place.
            if one.run_id == run_id
            and has_place(one.key)
            and not one.process.gone
            and said.get(one.key, one.what) == one.what
        ]
        where = _place(key)
        for one in begun:
            # What comes after it in its message waits with it.
            if _place(one.key)[0] == where[0] and _place(one.key)[1] >= where[1]:
                self._ledger.broken(NOT_BEFORE, f"{one.key} has begun before {key} is asked about")

    def _is_decided(self, run_id: str, at: float, asked: Mapping[str, Any], text: str) -> None:
        known, decision = self.of(run_id), decision_in(text)
        key, expires_at = asked["key"], asked.get("expires_at")
        late = expires_at is not None and at >= expires_at
        by_default = text == asked.get("default") and isinstance(decision, self._on_expiry)
        if late != by_default:
            text = f"{key} is decided {text!r} at {at - EPOCH:.3f} s, and was to be by then"
            self._ledger.broken(EXPIRES, f"{text}: {asked}")
        known.by_key[key] = decision
        if isinstance(decision, Approve | Refuse) and decision.standing == "tool":
            known.standing.append((_place(key), asked["tool"], decision))

    def _check_result(self, key: str, decision: Decision, result: Message) -> None:
        if self._replaces and result.disposition in ("done", "denied"):
            return
        match decision:
            case Refuse(note) if note not in result.text or result.disposition != "denied":
                told = f"{key} was refused with {note!r}, and is {result.disposition}"
                self._ledger.broken(AS_DECIDED, f"{told}: {result.text!r}")
            case Respond(text) if result.text != text:
                told = f"{key} was answered {text!r}, and is {result.disposition}"
                self._ledger.broken(AS_DECIDED, f"{told}: {result.text!r}")

    # ---- at hosts ---------------------------------------------------------------------

    def called(self, kind: str, key: str, given: Mapping[str, Any]) -> None:
        """A tool is called."""
        if self._policy is None or not has_place(key):
            return
        ruled = self._ruled(kind)
        if ruled == "deny":
            self._ledger.broken(RULED_OUT, f"{key} of {kind} runs")
        elif ruled == "ask":
            self._check_call(kind, key, given)

    def _ruled(self, kind: str) -> str:
        assert self._policy is not None
        rules = (rule for rule in self._policy.rules if kind in rule.tools)
        return next((rule.decide for rule in rules), self._policy.otherwise)

    def _check_call(self, kind: str, key: str, given: Mapping[str, Any]) -> None:
        known = self.of(key.partition("/")[0])
        decision = known.by_key.get(key)
        if decision is None:
            decision = self._standing(known, kind, key)
        if decision is None:
            self._ledger.broken(NOT_BEFORE, f"{key} of {kind} runs, and nobody has approved of it")
        elif not isinstance(decision, Approve):
            self._ledger.broken(NOT_BEFORE, f"{key} of {kind} runs, and was decided {decision}")
        elif (key in known.by_key) and given["takes_s"] != self._wanted(known, key, decision):
            text = f"{key} is made with {given}, and was approved as {decision}"
            self._ledger.broken(AS_DECIDED, text)

    def _needs(self, kind: str, key: str) -> bool:
        return self._ruled(kind) == "ask" and not any(
            tool == kind for _, tool, _ in self.of(key.partition("/")[0]).standing
        )

    def _standing(self, known: Decided, kind: str, key: str) -> Decision | None:
        """What was decided in an earlier message for calls such as this; the newest counts."""
        before = [
            (at, one) for at, tool, one in known.standing if tool == kind and at[0] < _place(key)[0]
        ]
        return max(before, key=lambda one: one[0])[1] if before else None

    def _wanted(self, known: Decided, key: str, decision: Approve) -> Any:
        if decision.arguments is not None:
            return decision.arguments["takes_s"]
        asked = next(one for one in known.asked.values() if one["key"] == key)
        return orjson.loads(asked["arguments"])["takes_s"]


def _place(key: str) -> tuple[int, int]:
    """Message and place of a call."""
    _, message, place = key.split("/")
    return int(message), int(place)
