"""Token counts are tiktoken's, without a network and without touching the environment."""

import lzma
import os
import pickle
import socket
from importlib.resources import files
from pathlib import Path

import pytest
import tiktoken
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from harness_actors.errors import ConfigError
from harness_actors.models import tokens
from harness_actors.models.tokens import SOURCES, TiktokenCounter, counter_for

CACHE_NAMES = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}

TEXTS = [
    "",
    " ",
    "hello world",
    "def add(a: int, b: int) -> int:\n    return a + b\n\n\n# It's what we'LL do\r\n",
    "naïve façade – “quotes” … ½ × 3² ≠ ∞",
    "你好,世界。こんにちは、世界。안녕하세요 세계",
    "🙂👩‍👩‍👧‍👦🇫🇷 zalgo z̷̧̛a̴l̵g̶o̸",
    "Привет, мир! مرحبا بالعالم שלום עולם",
    "1234567890 0xDEADBEEF 3.14159e-10 1,000,000",
    "<|endoftext|> is ordinary text here <|fim_prefix|>",
    "tabs\t\tand    spaces   \n\n   \n\ttrailing   ",
    "https://example.org/a/b?c=d&e=%20#f //////// \\\\\\\\",
    "a" * 5000 + " " * 5000 + "=" * 5000,
    "lone \ud800 surrogate",
]


@pytest.fixture(params=sorted(SOURCES))
def published(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tiktoken.Encoding:
    """An encoding as tiktoken itself builds it, from our copy of its file."""
    name = request.param
    packed = files("harness_actors.models").joinpath("ranks", f"{name}.tiktoken.xz").read_bytes()
    (tmp_path / CACHE_NAMES[name]).write_bytes(lzma.decompress(packed))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


async def test_counts_are_those_of_tiktoken(published: tiktoken.Encoding) -> None:
    counter = TiktokenCounter(published.name)

    assert [await counter.count(text) for text in TEXTS] == [
        len(published.encode_ordinary(text)) for text in TEXTS
    ]


async def test_long_texts_count_nearly_the_same_in_pieces(published: tiktoken.Encoding) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 10_000
    pieces = len(text) // tokens.CHUNK_CHARS

    counted = await TiktokenCounter(published.name).count(text)

    assert 0 <= counted - len(published.encode_ordinary(text)) <= pieces


@pytest.mark.parametrize("filler", [" ", "a", "\n", "=", "あ"])
async def test_a_megabyte_of_one_character_is_counted(filler: str) -> None:
    assert await counter_for("gpt-4o").count(filler * 1_000_000) > 1000


async def test_the_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/the/users/own")
    monkeypatch.setattr(tokens, "_loaded", {})
    before = dict(os.environ)

    assert await TiktokenCounter().count("hello world") == 2
    assert dict(os.environ) == before


async def test_no_network_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(tokens, "_loaded", {})

    assert await TiktokenCounter("cl100k_base").count("hello world") == 2


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4.1", "o200k_base"),
        ("gpt-4o-2024-08-06", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("openai/gpt-3.5-turbo", "cl100k_base"),
        ("gpt-oss-20b", "o200k_base"),
        ("text-davinci-003", "o200k_base"),
        ("local/smollm2-135m", "o200k_base"),
    ],
)
def test_a_model_has_its_encoding(model: str, encoding: str) -> None:
    assert counter_for(model).encoding == encoding


def test_a_model_that_nobody_knows_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="harness_actors.models.tokens"):
        counter_for("a-model-of-my-own")
        counter_for("a-model-of-my-own")

    assert sum("a-model-of-my-own" in record.getMessage() for record in caplog.records) == 1


def test_a_counter_travels_as_a_name() -> None:
    assert pickle.loads(pickle.dumps(TiktokenCounter("cl100k_base"))).encoding == "cl100k_base"


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ConfigError, match="p50k"):
        TiktokenCounter("p50k_base")


def test_a_damaged_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = tokens.EncodingSource("0" * 64, "x")
    monkeypatch.setitem(SOURCES, "o200k_base", source)
    monkeypatch.setattr(tokens, "_loaded", {})

    with pytest.raises(OSError, match="damaged"):
        tokens.load_encoding("o200k_base")
