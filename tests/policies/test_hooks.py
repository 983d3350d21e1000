"""Hooks are taken as functions, objects or both, and their answers only where they make sense."""

import re
from typing import Any

import pytest

from harness_actors.errors import ConfigError
from harness_actors.policies import (
    Allow,
    Ask,
    Change,
    Circling,
    Deny,
    EndRun,
    Hook,
    Hooks,
    Novel,
    Replace,
)
from harness_actors.policies.answers import verdict_of
from harness_actors.policies.hooks import KINDS, HookKind
from harness_actors.policies.verdicts import CallVerdict, encoded_arguments, shortened_reason


async def first(event: Any) -> None: ...


async def second(event: Any) -> None: ...


class Auditor:
    async def pre_tool(self, event: Any) -> None: ...

    async def session_end(self, event: Any) -> None: ...


def names(hooks: Hooks, kind: HookKind) -> list[str]:
    return [hook.name for hook in hooks.of(kind)]


def test_hooks_may_be_given_as_functions_objects_or_several_of_them() -> None:
    hooks = Hooks.given([Hooks(pre_tool=first), {"pre_tool": [second]}, Auditor()])

    assert names(hooks, "pre_tool") == ["first", "second", "Auditor.pre_tool"]
    assert names(hooks, "session_end") == ["Auditor.session_end"]
    assert not Hooks.given(None)


@pytest.mark.parametrize("given", [{"pre_tols": first}, 7, object(), {"pre_tool": 7}, [[7]]])
def test_what_is_no_hook_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="hooks"):
        Hooks.given(given)


@pytest.mark.parametrize(
    "options", [{"timeout_s": 0}, {"timeout_s": True}, {"timeout_s": "1"}, {"on_error": "ignore"}]
)
def test_a_hook_with_settings_that_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="hooks"):
        Hook(first, **options)


def test_only_pre_tool_denies_where_a_hook_fails_unless_it_is_told_otherwise() -> None:
    assert [kind for kind in KINDS if Hook(first).denies_on_error(kind)] == ["pre_tool"]
    assert not Hook(first, on_error="allow").denies_on_error("pre_tool")
    assert Hook(first, on_error="deny").denies_on_error("output_guard")


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("pre_tool", Allow()),
        ("pre_tool", Deny("no")),
        ("pre_tool", Change({"n": 1})),
        ("pre_tool", Ask()),
        ("post_tool", Replace("x")),
        ("agent_stop", Deny("no")),
        ("input_guard", EndRun("no")),
        ("stall", Novel()),
        ("stall", Circling("you wait")),
    ],
)
def test_an_answer_that_its_kind_takes_is_taken(kind: HookKind, answer: Any) -> None:
    assert verdict_of(kind, answer) == answer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", [True, False, "deny", 7, {"decision": "deny"}, object()])
def test_nonsense_is_no_answer_of_any_kind(kind: HookKind, answer: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"where {kind} takes")):
        verdict_of(kind, answer)


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("pre_model", Deny("no")),
        ("post_tool", Deny("no")),
        ("agent_stop", Change({})),
        ("pre_tool", EndRun("no")),
        ("pre_tool", Deny(7)),  # type: ignore[arg-type]
        ("post_tool", Replace(None)),  # type: ignore[arg-type]
        ("stall", Deny("no")),
        ("stall", Circling(None)),  # type: ignore[arg-type]
        ("agent_stop", Novel()),
    ],
)
def test_an_answer_of_another_kind_is_nonsense(kind: HookKind, answer: Any) -> None:
    with pytest.raises(ValueError, match="returned"):
        verdict_of(kind, answer)


def test_nothing_said_allows() -> None:
    assert all(verdict_of(kind, None) == Allow() for kind in KINDS)


@pytest.mark.parametrize(
    "arguments",
    [7, [1], {1: 2}, {"x": object()}, {"x": {1, 2}}, {"x": "ä" * 10_000}],
)
def test_arguments_that_could_not_be_kept_are_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match="changed the arguments to"):
        encoded_arguments(arguments)


def test_a_verdict_is_read_back_as_it_was() -> None:
    for verdict in (CallVerdict(), CallVerdict(denied="no"), CallVerdict(asks="", arguments="{}")):
        assert CallVerdict.from_plain(verdict.as_plain()) == verdict
    assert CallVerdict().as_plain() == {}


def test_a_reason_is_text_of_bounded_length() -> None:
    assert shortened_reason("  ") == "no reason was given"
    assert shortened_reason("\ud800") == "?"
    assert len(shortened_reason("x" * 10_000)) == 2_000


async def no_event() -> None: ...


async def two_events(event: Any, more: Any) -> None: ...


@pytest.mark.parametrize("function", [no_event, two_events])
@pytest.mark.parametrize("kind", KINDS)
def test_a_hook_that_could_never_be_called_is_refused_when_it_is_given(
    function: Any, kind: HookKind
) -> None:
    with pytest.raises(ConfigError, match=r"events? is called with \(event\), and takes \("):
        Hooks.given({kind: function})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_in_no_arguments(number: float) -> None:
    with pytest.raises(ValueError, match="changed the arguments to what is no plain JSON"):
        encoded_arguments({"usd": number})


def test_whole_numbers_are_changed_to_as_they_are() -> None:
    assert encoded_arguments({"order": 2**70 + 1}) == '{"order":1180591620717411303425}'
