"""Whether a Ray can be joined, by who answers there and what there is to show: nobody is asked."""

import os
import platform
from importlib.metadata import version
from typing import Any

import pytest

from harness_actors.actors.joining.address import Found
from harness_actors.actors.joining.probe import Answer, Verdict
from harness_actors.actors.joining.token import Token
from harness_actors.actors.joining.trust import TRUST
from harness_actors.errors import CellError

pytestmark = pytest.mark.usefixtures("bare")

OURS, STRANGERS = frozenset({os.geteuid()}), frozenset({54_321})
RAY, PYTHON = version("ray"), platform.python_version()
MINOR, PATCH = PYTHON.rpartition(".")[::2]
NONE = Token(source="nowhere")
SHOWN = Token(value="secret", source="the file")


def found(
    verdict: Verdict = "ray", token: Token = NONE, *, is_named: bool = True, **facts: Any
) -> Found:
    known: dict[str, Any] = {"users": OURS, "ray": RAY, "python": PYTHON, **facts}
    answer = Answer(verdict=verdict, **known)
    return Found(
        address="127.0.0.1:6379", source="--address", answer=answer, token=token, is_named=is_named
    )


def test_one_of_this_user_with_our_versions_can_be_joined() -> None:
    assert found().problem is None
    assert found("unknown", ray=None, python=None).problem is None
    assert found(users=None).problem is None, "of another machine nobody knows whose it is"
    found().check()


@pytest.mark.parametrize(
    ("facts", "fits"),
    [
        ({"ray": "1.0.0"}, False),
        ({"python": "3.8." + PATCH}, False),
        ({"python": f"{MINOR}.{int(PATCH) + 1}"}, False),
        ({"ray": None}, True),
        ({"python": None}, True),
    ],
    ids=["ray", "minor", "patch", "no ray", "no python"],
)
def test_versions_that_are_told_must_be_ours(facts: dict[str, Any], fits: bool) -> None:
    one = found(**facts)
    assert (one.problem is None) is fits
    if one.problem is not None:
        assert "both must be the same" in one.problem
        with pytest.raises(CellError, match=r"Ray at '127\.0\.0\.1:6379' \(--address\)"):
            one.check()


def test_a_patch_of_python_may_differ_where_ray_was_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "minor")
    assert found(python=f"{MINOR}.{int(PATCH) + 1}").problem is None
    assert found(python="3.8." + PATCH).problem is not None


def test_one_of_another_user_is_joined_where_it_is_named_and_trusted_or_has_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "--trust-ray joins it nevertheless" in str(found(users=STRANGERS).problem)
    assert "is not yours" in str(found("locked", users=STRANGERS).problem)
    assert found(users=STRANGERS, token=SHOWN).problem is None
    assert found(users=STRANGERS, token=SHOWN, is_named=False).problem is not None
    monkeypatch.setenv(TRUST, "1")
    assert found(users=STRANGERS).problem is None
    assert found(users=STRANGERS, is_named=False).problem is not None, "nobody has meant that one"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (NONE, "it asks for a token, and there is none in nowhere"),
        (SHOWN, "it refuses the token of the file, which is that of another cluster"),
        (Token(source="x", problem="it is empty"), "it asks for a token, and it is empty"),
    ],
    ids=["none", "refused", "kept back"],
)
def test_what_is_wrong_with_a_token_is_said_and_the_token_is_not(token: Token, words: str) -> None:
    problem = str(found("locked", token).problem)
    assert words in problem
    assert "secret" not in problem


def test_who_told_ray_to_use_a_token_must_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "Token")
    assert "RAY_AUTH_MODE is set to token, but" in str(found().problem)
    assert found(token=SHOWN).problem is None
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert found().problem is None


@pytest.mark.parametrize("verdict", ["closed", "silent", "unreachable", "stranger"])
def test_where_no_ray_answers_it_is_said_what_was_seen_whoever_it_is(verdict: Verdict) -> None:
    problem = str(found(verdict, users=STRANGERS, detail="nobody listens").problem)
    assert "no Ray answers there (nobody listens)" in problem
    assert "--address local" in problem
