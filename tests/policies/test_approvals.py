"""A policy says of each call what becomes of it, and refuses to be unclear."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.errors import ConfigError
from harness_actors.policies import ApprovalRule, Approvals, Approve, Refuse
from harness_actors.policies.approval_rules import SEARCHED_CHARS, WHY_CHARS
from harness_actors.policies.approvals import (
    MOST_RULES,
    NO_OBJECT,
    NOT_ALLOWED,
    NOT_IN_TIME,
    Ruled,
)
from harness_actors.policies.decisions import decision_in
from harness_actors.ports import Effect, ToolSpec

AUTO = Ruled("auto")


def a_spec(name: str = "run_command", effect: Effect = "destructive") -> ToolSpec:
    return ToolSpec(name=name, description="", parameters={"type": "object"}, effect=effect)


def rule(decide: Any = "ask", **more: Any) -> ApprovalRule:
    return ApprovalRule(decide=decide, **more)


def ruled(*rules: ApprovalRule, spec: ToolSpec | None = None, arguments: Any = "{}") -> Ruled:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Approvals(rules=rules).ruled(spec or a_spec(), text)


def test_the_first_rule_that_holds_decides() -> None:
    rules = (rule("auto", tools=["read"]), rule("ask", why="dear"), rule("deny"))

    assert ruled(*rules) == Ruled("ask", "dear")
    assert ruled(*rules, spec=a_spec("read")) == AUTO
    assert ruled() == AUTO
    assert Approvals(otherwise="deny").ruled(a_spec(), "{}") == Ruled("deny", NOT_ALLOWED)


@pytest.mark.parametrize(
    ("tools", "name", "holds"),
    [
        (["run_command"], "run_command", True),
        (["run_*"], "run_command", True),
        (["read", "crm_?"], "crm_1", True),
        (["crm_?"], "crm_12", False),
        (["[rw]*"], "write", True),
        (["RUN_COMMAND"], "run_command", False),
        (["run"], "run_command", False),
        ([], "whatever", True),
    ],
)
def test_tools_are_named_or_matched_whole(tools: list[str], name: str, holds: bool) -> None:
    assert (ruled(rule(tools=tools), spec=a_spec(name)).decide == "ask") is holds


def test_all_that_a_rule_names_must_hold() -> None:
    both = rule(tools=["write"], effects=["network"], arguments={"to": "@"})

    assert ruled(both, spec=a_spec("write", "network"), arguments={"to": "a@b"}).decide == "ask"
    assert ruled(both, spec=a_spec("write", "destructive"), arguments={"to": "a@b"}) == AUTO
    assert ruled(both, spec=a_spec("write", "network"), arguments={"to": "me"}) == AUTO
    assert ruled(both, spec=a_spec("write", "network")) == AUTO


@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        ("rm", "sudo rm x", True),
        ("^rm", "sudo rm x", False),
        ("^[0-9]{4,9}$", 5000, True),
        ("^[0-9]{4,9}$", 50, False),
        ("prod", {"target": ["staging", "prod"]}, True),
        ("true", True, True),
        ("ü", {"a": "ü"}, True),
        ("null", None, True),
    ],
)
def test_patterns_are_found_in_texts_and_in_the_json_of_all_else(
    pattern: str, value: Any, found: bool
) -> None:
    said = ruled(rule(arguments={"it": pattern}), arguments={"it": value})

    assert (said.decide == "ask") is found


def test_a_call_without_arguments_has_none() -> None:
    assert ruled(rule("ask"), arguments=" ") == Ruled("ask")
    assert ruled(rule("deny", arguments={"it": "x"}), arguments="") == AUTO


@pytest.mark.parametrize(
    "arguments", ["no json", "[1]", '{"it": 1, "it": 2}', '"text"', "[" * 100_000]
)
def test_where_nobody_can_look_it_is_taken_for_the_worse(arguments: str) -> None:
    looks = {"it": "x"}

    assert ruled(rule("deny", arguments=looks), arguments=arguments).decide == "deny"
    assert ruled(rule("ask", arguments=looks), arguments=arguments) == Ruled("deny", NO_OBJECT)
    only_auto = (rule("auto", arguments=looks), rule("deny", why="else"))
    assert ruled(*only_auto, arguments=arguments) == Ruled("deny", "else")
    assert ruled(rule("auto"), arguments=arguments) == AUTO, "it fails by itself"


def test_an_argument_that_is_too_long_to_be_searched_is_taken_for_the_worse() -> None:
    long = {"it": "y" * (SEARCHED_CHARS + 1)}
    just = {"it": "y" * SEARCHED_CHARS}

    assert ruled(rule(arguments={"it": "x"}), arguments=long).decide == "ask"
    assert ruled(rule(arguments={"it": "x"}), arguments=just) == AUTO
    auto_only = (rule("auto", arguments={"it": "y"}), rule("ask"))
    assert ruled(*auto_only, arguments=long).decide == "ask"
    assert ruled(*auto_only, arguments=just) == AUTO


@pytest.mark.parametrize(
    ("level", "asked"),
    [
        ("low", {"local_write", "network", "destructive"}),
        ("medium", {"network", "destructive"}),
        ("high", set()),
    ],
)
def test_autonomy_is_which_effects_are_asked_about(level: Any, asked: set[Effect]) -> None:
    policy = Approvals.of_autonomy(level)
    effects: tuple[Effect, ...] = ("read_only", "local_write", "network", "destructive")

    found = {
        effect for effect in effects if policy.ruled(a_spec("x", effect), "{}").decide == "ask"
    }

    assert found == asked
    assert policy.may_ask is bool(asked)


def test_rules_of_ones_own_come_before_those_of_a_level() -> None:
    own = Approvals(rules=[rule("auto", tools=["edit_file"])], expires_s=60)
    both = own.before(Approvals.of_autonomy("low"))

    assert both.ruled(a_spec("edit_file", "local_write"), "{}") == AUTO
    assert both.ruled(a_spec("delete", "destructive"), "{}").decide == "ask"
    assert both.expires_s == 60


def test_what_counts_of_what_nobody_has_decided_in_time_can_be_read_as_an_answer() -> None:
    assert decision_in(Approvals().default) == Refuse(NOT_IN_TIME)
    assert decision_in(Approvals(on_expiry="approve").default) == Approve(note=NOT_IN_TIME)


def test_plain_values_make_the_same_policy() -> None:
    plain = {
        "rules": [{"decide": "ask", "tools": ["a*"], "arguments": {"x": "y"}, "why": "so"}],
        "otherwise": "deny",
        "expires_s": 5,
        "on_expiry": "approve",
    }
    asked = rule(tools=["a*"], arguments={"x": "y"}, why="so")

    assert Approvals.from_mapping(plain) == Approvals(
        rules=[asked], otherwise="deny", expires_s=5, on_expiry="approve"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "approvals: must have fields such as rules"),
        ({"rule": []}, "approvals.rule: no such field; there are rules, otherwise"),
        ({"rules": "ask"}, "approvals.rules: must be a list"),
        ({"rules": {"decide": "ask"}}, "approvals.rules: must be a list"),
        ({"rules": ["ask"]}, "approvals.rules[1]: must have fields such as decide"),
        ({"rules": [{}]}, "approvals.rules[1]: says nothing of decide, one of auto, ask, deny"),
        ({"rules": [{"decide": "Ask"}]}, "approvals.rules[1].decide: must be one of auto"),
        ({"rules": [{"decide": ["ask"]}]}, "approvals.rules[1].decide: must be one of auto"),
        (
            {"rules": [{"decide": "auto"}, {"decide": "ask", "tools": "read"}]},
            "approvals.rules[2].tools: must be a list of names, not 'read'",
        ),
        ({"rules": [{"decide": "ask", "tools": [""]}]}, "rules[1].tools: must be a list of names"),
        ({"rules": [{"decide": "ask", "tools": [7]}]}, "rules[1].tools: must be a list of names"),
        ({"rules": [{"decide": "ask", "effects": ["write"]}]}, "effects: must be one of read_only"),
        ({"rules": [{"decide": "ask", "arguments": ["x"]}]}, "arguments: must be regular expr"),
        ({"rules": [{"decide": "ask", "arguments": {"x": "("}}]}, "rules[1].arguments.x: '('"),
        ({"rules": [{"decide": "ask", "arguments": {"x": "a+"}}]}, "a repeat without an upper"),
        ({"rules": [{"decide": "ask", "arguments": {"x": ""}}]}, "matches an empty text"),
        ({"rules": [{"decide": "ask", "arguments": {"x": 7}}]}, "must be regular expressions"),
        ({"rules": [{"decide": "ask", "arguments": {7: "x"}}]}, "7 is no name of an argument"),
        ({"rules": [{"decide": "ask", "why": 7}]}, "rules[1].why: must be a text"),
        ({"rules": [{"decide": "ask", "why": "x" * (WHY_CHARS + 1)}]}, "rules[1].why: must be"),
        ({"rules": [{"decide": "ask"}] * (MOST_RULES + 1)}, "there are 101 rules; 100 are allowed"),
        ({"otherwise": "maybe"}, "approvals.otherwise: must be one of auto, ask, deny"),
        ({"expires_s": 0}, "approvals.expires_s: must be a number of seconds above 0, not 0"),
        ({"expires_s": float("nan")}, "approvals.expires_s"),
        ({"expires_s": True}, "approvals.expires_s"),
        ({"expires_s": "1h"}, "approvals.expires_s"),
        ({"on_expiry": "ask"}, "approvals.on_expiry: must be one of deny, approve"),
    ],
)
def test_a_fault_names_the_field_and_what_it_should_be(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Approvals.from_mapping(given)

    assert said in str(caught.value)


def test_a_tool_that_the_agent_does_not_have_is_no_slip_that_goes_unnoticed() -> None:
    Approvals(rules=[rule(tools=["refund", "crm_*"])]).check_tools(["refund"])

    with pytest.raises(ConfigError, match=r"rules\[2\].tools: there is no tool 'refnd'; .* refund"):
        Approvals(rules=[rule(), rule(tools=["refnd"])]).check_tools(["refund"])


def test_there_is_no_such_level() -> None:
    with pytest.raises(ConfigError, match="autonomy: must be one of low, medium, high, not 'some'"):
        Approvals.of_autonomy("some")  # type: ignore[arg-type]


@given(st.text(), st.sampled_from(["auto", "ask", "deny"]))
def test_whatever_a_model_writes_something_is_decided(arguments: str, decide: Any) -> None:
    said = ruled(rule(decide, arguments={"it": "x"}), arguments=arguments)

    assert said.decide in ("auto", "ask", "deny")
    assert bool(said.why) or said.decide != "deny"
