"""Counts tokens with tiktoken, offline: the rank files are part of this package."""

import asyncio
import hashlib
import logging
import lzma
from base64 import b64decode
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING

from harness_actors.errors import ConfigError

if TYPE_CHECKING:
    from tiktoken import Encoding

log = logging.getLogger(__name__)

CHUNK_CHARS = 64 * 1024
"""Longest piece given to tiktoken: in one piece, a megabyte of spaces overflows the stack
of its regular expressions, which ends in a `PanicException` that is no `Exception`."""

INLINE_BYTES = 256 * 1024
"""Larger texts are counted in a thread: some 10 ms of work, too long for an event loop."""


@dataclass(frozen=True, slots=True)
class EncodingSource:
    """What an encoding is made of, besides its ranks.

    Attributes:
        sha256: Of the rank file, uncompressed.
        pattern: tiktoken's own pattern that splits a text before it is merged.
    """

    sha256: str
    pattern: str


# Source: tiktoken_ext/openai_public.py of tiktoken 0.14 (MIT, see ranks/LICENSE). Its own
# functions are not called because they fetch the ranks, or look for them where an
# environment variable says, which is the user's to set.
SOURCES = {
    "o200k_base": EncodingSource(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(
            (
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
                r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
                r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
    ),
    "cl100k_base": EncodingSource(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|"
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}

DEFAULT_ENCODING = "o200k_base"


class TiktokenCounter:
    """Answers the `TokenCounter` port with one of tiktoken's encodings.

    The encoding is loaded with the first count, which takes about 0.4 s, in a thread.
    Texts above 64 K characters are counted in pieces, so a token that spans two pieces
    counts as two. Counters may be shared by threads and loops; they pickle as a name.

    Args:
        encoding: `o200k_base` or `cl100k_base`.

    Raises:
        ConfigError: The encoding is another one.
    """

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        if encoding not in SOURCES:
            raise ConfigError("encoding", f"must be one of {', '.join(SOURCES)}, not {encoding!r}")
        self.encoding = encoding

    async def count(self, text: str) -> int:
        encoding = _loaded.get(self.encoding)
        if encoding is None:
            return await asyncio.to_thread(self.count_now, text)
        if len(text) <= CHUNK_CHARS:
            return len(encoding.encode_ordinary(text))
        if len(text.encode("utf-8", "replace")) <= INLINE_BYTES:
            return self.count_now(text)
        return await asyncio.to_thread(self.count_now, text)

    def count_now(self, text: str) -> int:
        """Count a text's tokens in the calling thread, however long it takes."""
        encoding = load_encoding(self.encoding)
        return sum(
            len(encoding.encode_ordinary(text[start : start + CHUNK_CHARS]))
            for start in range(0, len(text), CHUNK_CHARS)
        )

    def __reduce__(self) -> tuple[type["TiktokenCounter"], tuple[str]]:
        return TiktokenCounter, (self.encoding,)


def counter_for(model: str) -> TiktokenCounter:
    """The counter of a model, by the name that its provider gives it.

    Models that tiktoken does not know count as `o200k_base`, which is noted in the log
    once per name: their counts are near, not exact.
    """
    return _counter(encoding_of(model))


@cache
def encoding_of(model: str) -> str:
    """The name of a model's encoding."""
    # tiktoken.model imports nothing but tables: no ranks are loaded for this.
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        log.info(
            "no encoding is known for model %r: its tokens count as %s", model, DEFAULT_ENCODING
        )
        return DEFAULT_ENCODING
    # `o200k_harmony` differs in special tokens only, of which ordinary text has none.
    return name if name in SOURCES else DEFAULT_ENCODING


@cache
def _counter(encoding: str) -> TiktokenCounter:
    return TiktokenCounter(encoding)


_loading = Lock()
_loaded: dict[str, "Encoding"] = {}


def load_encoding(name: str) -> "Encoding":
    """An encoding from the rank files of this package; loaded once per process.

    Raises:
        OSError: The file does not hold what tiktoken published.
    """
    with _loading:
        if name not in _loaded:
            from tiktoken import Encoding

            source = SOURCES[name]
            _loaded[name] = Encoding(
                name,
                pat_str=source.pattern,
                mergeable_ranks=_read_ranks(name, source.sha256),
                special_tokens={},
            )
        return _loaded[name]


def _read_ranks(name: str, sha256: str) -> dict[bytes, int]:
    packed = files("harness_actors.models").joinpath("ranks", f"{name}.tiktoken.xz").read_bytes()
    plain = lzma.decompress(packed)
    if hashlib.sha256(plain).hexdigest() != sha256:
        raise OSError(f"the rank file of {name} is damaged; install harness_actors again")
    pairs = (line.split() for line in plain.splitlines())
    return {b64decode(token): int(rank) for token, rank in pairs}
