"""What a result says of its contract, by the entries of the state alone."""

from typing import Any

import pytest

from harness_actors.coordination.coverage import SHOWN_CHARS, contract_result
from harness_actors.state import ANSWERS, COVERAGE, VERIFIED


def contract(*outputs: dict[str, Any], **further: Any) -> dict[str, Any]:
    named = [{"id": f"R{n}", "description": "it is there"} | one for n, one in enumerate(outputs)]
    return {"outputs": named, **further}


def covered(*statuses: str, satisfied: bool = False, attempt: int = 1) -> dict[str, Any]:
    entries = {f"R{n}": {"status": status, "notes": status} for n, status in enumerate(statuses)}
    verified = {"satisfied": satisfied, "attempt": attempt}
    return {VERIFIED.name: verified, COVERAGE.name: entries}


def test_without_a_contract_there_is_nothing_to_say() -> None:
    assert contract_result(None, covered("met")) is None


def test_what_nobody_has_verified_is_not_met_and_says_so() -> None:
    found = contract_result(contract({}, {}), {})
    assert found is not None
    assert (found.satisfied, found.attempts, found.recommendation) == (False, 0, "continue")
    assert [(one.status, one.why) for one in found.unmet] == [("unmet", "nobody has looked")] * 2


@pytest.mark.parametrize("chars", [SHOWN_CHARS - 1, SHOWN_CHARS, SHOWN_CHARS + 1, 5000])
def test_a_description_is_shown_whole_up_to_its_bound_and_else_cut_to_it(chars: int) -> None:
    text = "é" * chars
    found = contract_result(contract({"description": text}), {})
    assert found is not None
    shown = found.requirements[0].description
    assert shown == (text if chars <= SHOWN_CHARS else "é" * (SHOWN_CHARS - 1) + "…")


@pytest.mark.parametrize(
    ("statuses", "partial", "recommended"),
    [
        (("met", "skipped"), False, "need_user"),
        (("met", "partially_met"), False, "continue"),
        (("met", "partially_met"), True, "need_user"),
        (("met", "unmet"), True, "continue"),
    ],
)
def test_the_user_is_needed_where_nothing_else_is_missing(
    statuses: tuple[str, ...], partial: bool, recommended: str
) -> None:
    asked = contract({}, {}, acceptability={"allow_partial": partial})
    found = contract_result(asked, covered(*statuses, attempt=3))
    assert found is not None
    assert (found.attempts, found.recommendation) == (3, recommended)
    optional = contract({}, {"optional": True}, acceptability={"allow_partial": partial})
    spared = contract_result(optional, covered(*statuses))
    assert spared is not None
    assert spared.recommendation == "need_user"


def test_what_is_satisfied_is_done_whatever_was_asked() -> None:
    question = {"id": "c1", "question": "Which colour?"}
    asked = contract({}, questions=[question])
    found = contract_result(asked, covered("met", satisfied=True))
    assert found is not None
    assert (found.satisfied, found.recommendation) == (True, "done")
    assert found.open_questions == ("Which colour?",)


def test_a_question_that_is_answered_is_open_no_more() -> None:
    questions = [{"id": "c1", "question": "Which?"}, {"id": "c2", "question": "Until when?"}]
    values = covered("met") | {ANSWERS.name: {"c1": "blue"}}
    found = contract_result(contract({}, questions=questions), values)
    assert found is not None
    assert found.open_questions == ("Until when?",)
