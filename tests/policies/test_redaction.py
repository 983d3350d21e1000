"""Secrets of known forms leave nowhere: not from a text, and not from one that comes in pieces."""

import re
import time
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.errors import ConfigError, ToolError
from harness_actors.messages import Message, ToolCall
from harness_actors.policies import CallDeniedError, MiddlewareChain, Redact, ToolInvocation
from harness_actors.policies.pattern_bounds import checked_pattern
from harness_actors.policies.redaction import Redactor, StreamRedactor
from harness_actors.ports import LargeResult, ModelRequest, ModelResponse, ToolOutput, ToolSet
from harness_actors.ports.artifacts import PIECE_BYTES
from harness_actors.tools.workers.failure import WorkerToolError
from tests.policies.calls import a_call

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nxyz+/=\n-----END RSA PRIVATE KEY-----"
SECRETS = [
    "sk-proj-abcdefghijklmnop1234",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_0123456789abcdefghij0123456789abcdef",
    "github_pat_11ABCDEFG0123456789_abcdefghij",
    "glpat-abcdefghij0123456789",
    "xoxb-123456789012-abcdef",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "sk_live_0123456789abcdefgh",
    "npm_0123456789abcdefghij0123456789abcdef",
    "hf_abcdefghijklmnopqrstuvwxyz",
    "pypi-AgEIcHlwaS5vcmcabcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
    "Bearer abcdefghijklmnop.qrst",
    "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYaa",
    PEM,
]
INNOCENT = [
    "a task-force-of-many-different-people met",
    "the bearer of this letter",
    "risk-adjusted-returns-2024-report",
    "https://example.com/path?x=1",
    "ssh://host:22/path",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "sk-short",
    "see user@example.com",
]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:12])
def test_a_secret_of_a_known_form_is_taken_out_and_nothing_else(secret: str) -> None:
    assert Redactor().text(f"before {secret} after") == "before [redacted] after"


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_the_login_of_an_address_is_taken_out_and_the_address_stays() -> None:
    text = Redactor().text("postgres://me:p4ss@db.example:5432/x")
    assert text == "postgres://[redacted]@db.example:5432/x"


def test_half_of_a_private_key_is_a_secret_to_the_end_of_the_text() -> None:
    assert Redactor().text("x -----BEGIN PRIVATE KEY-----\nMIIE") == "x [redacted]"


_PARTS = st.lists(
    st.sampled_from(
        [
            *SECRETS,
            *INNOCENT,
            "a",
            " ",
            "\n",
            "-----BEGIN",
            "-----",
            "cust 12",
            "cust 1234 end",
            ".",
        ]
    ),
    max_size=8,
)


@settings(max_examples=400)
@given(_PARTS, st.lists(st.integers(1, 30), min_size=1))
def test_pieces_leave_as_the_whole_text_would(parts: list[str], sizes: list[int]) -> None:
    """However a text is cut, what is told of it together is what `text` makes of it."""
    redactor = Redactor([checked_pattern("patterns", "cust [0-9]{2,6} end")])
    text, stream, told = "".join(parts), StreamRedactor(redactor), ""
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        told += stream.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    assert told + stream.end() == redactor.text(text)


def test_words_are_told_soon() -> None:
    stream = StreamRedactor(Redactor())
    told = "".join(
        stream.feed(word + " ") for word in ["one", "two", "three", "four", "five", "six"]
    )
    assert told == "one two three four "[: len(told)]
    assert len(told) >= len("one two three ")


@pytest.mark.parametrize(
    "text", ["a" * 400_000, "-----BEGIN PRIVATE KEY-----\n" + "ab\n" * 100_000]
)
def test_a_text_without_an_end_is_held_in_bounded_time(text: str) -> None:
    stream, began = StreamRedactor(Redactor()), time.process_time()
    for at in range(0, len(text), 8):
        stream.feed(text[at : at + 8])
    stream.end()
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "text",
    [
        "sk-" * 30_000,
        "eyJ" + "a." * 50_000,
        "://" + "a:" * 50_000,
        "://" * 30_000,
        "bearer " * 15_000,
        "-----BEGIN PRIVATE KEY-----" * 4_000,
    ],
    ids=lambda text: text[:8],
)
def test_no_text_makes_the_known_forms_hang(text: str) -> None:
    began = time.process_time()
    Redactor().text(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a+)+b", "without an upper bound"),
        ("a*b", "without an upper bound"),
        ("a{0,100}a{0,100}b", "too many ways"),
        ("(?:a|ab){1,40}c", "too many ways"),
        ("(?:a{1,9}){1,9}b", "too many ways"),
        (r"([0-9])\1", "refers to a group"),
        ("x?", "matches an empty text"),
        ("x{5000}", "4,096 are allowed"),
        ("(", "no regular expression"),
        (7, "as texts"),
    ],
)
def test_a_pattern_that_could_take_for_ever_or_match_anything_is_refused(
    pattern: object, why: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)):
        Redact(patterns=[pattern])  # type: ignore[list-item]


async def test_a_result_and_the_words_of_an_error_are_redacted_before_anybody_sees_them() -> None:
    chain = MiddlewareChain((Redact(patterns=["cust-[0-9]{6}"]),))

    async def tell(call: ToolInvocation) -> str:
        return "key sk-abcdefghijklmnop12 of cust-123456"

    async def fail(call: ToolInvocation) -> str:
        raise ToolError("no access with sk-abcdefghijklmnop12")

    async def deny(call: ToolInvocation) -> str:
        raise CallDeniedError("not with sk-abcdefghijklmnop12")

    assert await chain.call_tool(a_call(), tell) == "key [redacted] of [redacted]"
    with pytest.raises(ToolError, match=r"no access with \[redacted\]"):
        await chain.call_tool(a_call(), fail)
    with pytest.raises(CallDeniedError, match=r"not with \[redacted\]"):
        await chain.call_tool(a_call(), deny)


def in_file(data: bytes) -> LargeResult:
    return LargeResult("its ends", BytesIO(data), before="before ", after=" after")


@pytest.mark.parametrize("raises", [False, True])
async def test_a_result_in_a_file_is_searched_whole(raises: bool) -> None:
    async def export(call: ToolInvocation) -> str:
        # Across the border of two pieces.
        large = in_file(b"x " * (PIECE_BYTES // 2 - 4) + b"sk-abcdefghijklmnop12 and on")
        if raises:
            raise ToolError(large)
        return large

    try:
        result = await MiddlewareChain((Redact(),)).call_tool(a_call(), export)
    except ToolError as error:
        result = error.text

    assert isinstance(result, LargeResult)
    whole = b"".join(result.pieces()).decode()
    result.close()
    assert whole == "before " + "x " * (PIECE_BYTES // 2 - 4) + "[redacted] and on after"


async def test_what_is_shown_of_a_result_in_a_file_is_searched_too() -> None:
    async def export(call: ToolInvocation) -> str:
        return LargeResult("it ends in sk-abcdefghijklmnop12", BytesIO(b"sk-abcdefghijklmnop12"))

    result = await MiddlewareChain((Redact(),)).call_tool(a_call(), export)

    assert isinstance(result, LargeResult)
    result.close()
    # All that is left where it cannot be kept.
    assert str(result) == "it ends in [redacted]"


async def test_images_stay_with_a_text_that_is_redacted() -> None:
    async def look(call: ToolInvocation) -> str:
        return ToolOutput("sk-abcdefghijklmnop12", images=("data:",), image_tokens=85)

    result = await MiddlewareChain((Redact(),)).call_tool(a_call(), look)

    assert isinstance(result, ToolOutput)
    assert (result, result.images, result.image_tokens) == ("[redacted]", ("data:",), 85)


@pytest.mark.parametrize("error", [ToolError("no"), WorkerToolError("no", "")])
async def test_what_was_added_to_an_error_is_redacted_too(error: ToolError) -> None:
    async def fail(call: ToolInvocation) -> str:
        error.add_note("asked with sk-abcdefghijklmnop12")
        raise error

    with pytest.raises(ToolError) as raised:
        await MiddlewareChain((Redact(),)).call_tool(a_call(), fail)

    assert raised.value.text == "no\nasked with [redacted]"


async def test_what_the_model_is_sent_and_what_it_answers_hold_no_secret() -> None:
    chain = MiddlewareChain((Redact(),))
    sent: list[ModelRequest] = []

    async def ask(request: ModelRequest) -> ModelResponse:
        sent.append(request)
        arguments = '{"text":"use sk-abcdefghijklmnop12","n":[1]}'
        return ModelResponse(
            text="Bearer abcdefghijklmnop1234", tool_calls=(ToolCall("c1", "note", arguments),)
        )

    plain = Message.user("hello")
    request = ModelRequest(
        messages=(plain, Message.user("my key is sk-abcdefghijklmnop12")), tools=ToolSet.of(())
    )
    response = await chain.call_model(request, ask)

    assert [message.text for message in sent[0].messages] == ["hello", "my key is [redacted]"]
    assert sent[0].messages[0] is plain
    assert response.text == "[redacted]"
    assert response.tool_calls[0].arguments == '{"text":"use [redacted]","n":[1]}'
