"""What a provider's refusal means, in the words and codes of many."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from harness_actors.errors import (
    ContextOverflowError,
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelSetupError,
)
from harness_actors.models.failures import (
    PROBLEM_CHARS,
    Endpoint,
    reported_failure,
    status_failure,
    unreachable_failure,
)

ASKED = Endpoint(model="m", base_url="http://here/v1", key_name="THE_KEY", key="abcdef-not-shown")


def refused(status: int, error: Any = "no", **headers: str) -> ModelError:
    return status_failure(ASKED, status, headers, orjson.dumps({"error": error}))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelSetupError),
        (401, ModelSetupError),
        (404, ModelSetupError),
        (408, ModelBusyError),
        (409, ModelBusyError),
        (413, ContextOverflowError),
        (422, ModelSetupError),
        (425, ModelBusyError),
        (429, ModelBusyError),
        (499, ModelSetupError),
        (500, ModelBusyError),
        (502, ModelBusyError),
        (529, ModelBusyError),
    ],
)
def test_a_status_says_whether_to_ask_again(status: int, kind: type[ModelError]) -> None:
    error = refused(status)

    assert type(error) is kind
    assert error.status == status


@pytest.mark.parametrize("status", [400, 403, 429, 500])
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("context_length_exceeded", ContextOverflowError),
        ("exceed_context_size_error", ContextOverflowError),
        ("string_above_max_length", ContextOverflowError),
        ("request_too_large", ContextOverflowError),
        ("content_filter", ModelRefusedError),
        ("content_policy_violation", ModelRefusedError),
        ("ResponsibleAIPolicyViolation", ModelRefusedError),
        ("insufficient_quota", ModelSetupError),
        ("billing_hard_limit_reached", ModelSetupError),
        ("billing_not_active", ModelSetupError),
    ],
)
def test_a_code_says_more_than_the_status_wherever_it_stands(
    code: str, kind: type[ModelError], status: int
) -> None:
    for error in (
        {"message": "no", "code": code},
        {"message": "no", "type": code, "code": None},
        {"message": "no", "code": "other", "innererror": {"code": code}},
    ):
        assert type(refused(status, error)) is kind
    if kind is ModelSetupError:
        assert "billing of the account of THE_KEY" in str(refused(status, {"code": code}))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ContextOverflowError),
        (422, ContextOverflowError),
        (429, ContextOverflowError),
        (500, ContextOverflowError),
        (404, ModelSetupError),
        (503, ModelBusyError),
    ],
)
def test_words_of_a_long_request_are_heard_where_a_status_may_mean_that(
    status: int, kind: type[ModelError]
) -> None:
    assert type(refused(status, {"message": "beyond the Maximum Context Length"})) is kind


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"error":{"message":"the words"}}', "the words"),
        (b'{"error":{"detail":"the words"}}', "the words"),
        (b'{"error":{"msg":"the words"}}', "the words"),
        (b'{"error":"the words"}', "the words"),
        (b'{"detail":"the words","other":1}', "the words"),
        (b'[{"error":{"message":"the words"}}]', "the words"),
        (b'"the words"', "the words"),
        (b"the\n\n  words", "the words"),
        (b'{"error":{"odd":"the words"}}', "{'odd': 'the words'}"),
        (b"the w\xffrds", "the w\ufffdrds"),
        (b"[]", "[]"),
        (b"", "the provider gave no reason"),
    ],
)
def test_the_words_of_a_refusal_are_found_whatever_its_form(body: bytes, says: str) -> None:
    assert status_failure(ASKED, 503, {}, body).problem == says


def test_a_long_reason_is_shortened() -> None:
    problem = status_failure(ASKED, 503, {}, b"word " * 100_000).problem

    assert problem.startswith("word word")
    assert len(problem) == PROBLEM_CHARS


def test_the_wait_that_is_asked_for_goes_with_the_refusal() -> None:
    error = status_failure(ASKED, 503, {"retry-after": "7"}, b"")

    assert isinstance(error, ModelBusyError)
    assert error.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 429, "message": "slow down"}, ModelBusyError, 429),
        ({"code": "401", "message": "no"}, ModelSetupError, 401),
        ({"code": 413, "message": "no"}, ContextOverflowError, 413),
        ({"code": "context_length_exceeded", "message": "no"}, ContextOverflowError, 500),
        ({"code": "content_filter", "message": "no"}, ModelRefusedError, 500),
        ({"code": 200, "message": "no"}, ModelBusyError, 500),
        ({"code": 4000, "message": "no"}, ModelBusyError, 500),
        ({"message": "no"}, ModelBusyError, 500),
        ("no", ModelBusyError, 500),
    ],
)
def test_an_error_under_status_200_is_taken_as_its_own_code_says(
    error: Any, kind: type[ModelError], status: int
) -> None:
    failure = reported_failure(ASKED, error)

    assert type(failure) is kind
    assert failure.status == status


@pytest.mark.parametrize(
    "shown",
    ["abcdef-not-shown", "sk-012345", "rk_012345", "gsk-abcdefg", "xai-abcdefg",
     "AIza0123456789", "Bearer anything"],
)  # fmt: skip
def test_whatever_looks_like_a_key_is_not_repeated(shown: str) -> None:
    for error in (refused(400, f"with {shown} you may not"), refused(503, [shown])):
        assert shown not in str(error)
        assert "[key]" in str(error)


def test_a_word_that_stands_for_a_key_may_be_said() -> None:
    # Servers of one's own are given such words, which are in their answers by right.
    own = Endpoint(model="m", base_url="http://here/v1", key_name="THE_KEY", key="none")

    assert "none of these" in str(status_failure(own, 400, {}, b"none of these"))


def test_where_it_was_asked_and_what_to_check_is_said() -> None:
    for status, remedy in ((401, "THE_KEY"), (403, "THE_KEY"), (404, "'m'"), (400, "no")):
        assert "http://here/v1" in str(refused(status))
        assert remedy in str(refused(status))
    with_login = replace(ASKED, base_url="http://me:secret@here/v1")
    assert "http://here/v1" in str(status_failure(with_login, 400, {}, b"no"))
    unreachable = str(unreachable_failure(ASKED, "no connection", attempts=3))
    for part in ("http://here/v1", "3 attempts", "no connection"):
        assert part in unreachable
