"""Approvals of a schedule: which calls a person must approve of, and what people decide."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import orjson

from harness_actors.policies import ApprovalRule, Approvals, Approve, Refuse, Respond
from harness_actors.policies.approvals import OnExpiry
from harness_actors.policies.decisions import Decision, decision_in, decision_text
from tests.simulation.questions import FIRST_WORDS
from tests.simulation.workload import ToolKind, Workload

APPROVING = 0.16
"""Share of the schedules whose agents have approvals."""
ASKED_ABOUT: tuple[ToolKind, ...] = ("effect", "thread", "command", "again", "crash", "look")
"""Tools that a policy may name: those whose calls say by their keys where they are."""
DECISIONS = (
    *("yes",) * 8,
    *("edit",) * 3,
    *("always",) * 2,
    *("no",) * 4,
    "never",
    *("by hand",) * 2,
)
"""What people decide, each as often as it is chosen."""
EDIT_S = 5e-5
"""What edits add to the time that a call takes, so that each is told from all others."""


def plan_approvals(workload: Workload, seed: int) -> Workload:
    """The workload of a seed with the approvals of its agents."""
    chance = Random(f"{seed}/approvals")
    if chance.random() >= APPROVING:
        return workload
    asked = chance.sample(ASKED_ABOUT, chance.choice((1, 2, 3, 5)))
    rules = [ApprovalRule(decide="ask", tools=[kind], why="by rule") for kind in asked]
    if chance.random() < 0.3:
        rules.insert(0, ApprovalRule(decide="deny", tools=[chance.choice(ASKED_ABOUT)]))
    on_expiry: OnExpiry = chance.choice(("deny", "approve"))
    expires_s = chance.choice((None, None, 0.5, 3.0, 20.0))
    return replace(
        workload, approvals=Approvals(rules=rules, expires_s=expires_s, on_expiry=on_expiry)
    )


def key_in_question(question: Mapping[str, Any]) -> str:
    """Which call a question is about: the one that asks, or the one that is to be approved."""
    if question.get("kind") == "approval":
        key: str = orjson.loads(question["arguments"])["key"]
        return key
    text: str = question["text"]
    return text.partition(":")[0]


def decide(chance: Random, question: Mapping[str, Any], words: str, number: int) -> str:
    """What a person decides of a call.

    Args:
        chance: Theirs.
        question: The approval, as it is told.
        words: What nobody else says.
        number: Of this decision among those of the same person.
    """
    decision: Decision
    match chance.choices(("yes", "edit", "always", "no", "never", "by hand"), (8, 3, 2, 4, 1, 2))[
        0
    ]:
        case "yes":
            decision = Approve(note=words)
        case "edit":
            given = orjson.loads(question["arguments"])
            given["takes_s"] += EDIT_S * number
            decision = Approve(given, note=words)
        case "always":
            decision = Approve(note=words, standing="tool")
        case "no":
            decision = Refuse(words)
        case "never":
            decision = Refuse(words, standing="tool")
        case _:
            decision = Respond(words)
    assert words.startswith(FIRST_WORDS)
    return decision_text(decision)


def is_decision(text: str) -> bool:
    """Whether an answer can be taken of somebody who decides about a call."""
    try:
        decision_in(text)
    except ValueError:
        return False
    return True
