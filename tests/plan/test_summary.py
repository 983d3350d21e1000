"""A summary comes back from its plain values as it was, and nothing else passes for one."""

import json
from typing import Any

import pytest
from hypothesis import given

from harness_actors.plan import Decision, OpenItem, Reference, Summary, UnreadablePlanError
from tests.plan.summaries import summaries


@given(summaries())
def test_it_comes_back_as_it_was(summary: Summary) -> None:
    assert Summary.from_plain(summary.as_plain()) == summary
    assert Summary.from_plain(json.loads(json.dumps(summary.as_plain()))) == summary


def test_what_is_empty_is_left_out() -> None:
    assert Summary().as_plain() == {}
    plain = Summary(decisions=(Decision(what="Use A"),), open_items=(OpenItem(what=""),)).as_plain()
    assert plain == {
        "decisions": [{"what": "Use A"}],
        "open_items": [{"what": "", "priority": "normal"}],
    }
    assert Summary(references=(Reference(at=0, what=""),)).as_plain() == {
        "references": [{"at": 0, "what": ""}]
    }


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        "facts",
        {"facts": "one"},
        {"facts": [1]},
        {"facts": None},
        {"other": []},
        {1: []},
        {"decisions": [{}]},
        {"decisions": [{"what": "A", "at": -1}]},
        {"decisions": [{"what": "A", "at": True}]},
        {"decisions": [{"what": "A", "at": 1.0}]},
        {"decisions": [{"what": "A", "because": "B"}]},
        {"open_items": [{"what": "A", "priority": "urgent"}]},
        {"open_items": [{"what": "A", "priority": []}]},
        {"open_items": [{"what": "A", "done": 1}]},
        {"outcomes": [{"tool": "t", "came": "well"}]},
        {"outcomes": [{"tool": "t", "fields": []}]},
        {"outcomes": [{"tool": "t", "fields": {"a": 1}}]},
        {"outcomes": [{"tool": None}]},
        {"references": [{"at": 1}]},
        {"references": [{"at": "1", "what": ""}]},
        {"current_task": None},
        {"current_plan": "first"},
    ],
)
def test_anything_else_is_refused(plain: Any) -> None:
    with pytest.raises(UnreadablePlanError):
        Summary.from_plain(plain)
