"""Images that tools return: what they are, how large, and what they cost a model."""

import base64
import math
import os
import struct
from pathlib import Path
from typing import Any

from harness_actors.errors import ToolError

MOST_BYTES = 5_000_000
"""The largest image; providers take no larger ones."""
MOST_IMAGES = 8
"""Images of one result, at most."""

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What providers read."""

BASE_TOKENS, TILE_TOKENS = 85, 170
TILE, LONG_SIDE, SHORT_SIDE = 512, 2048, 768


class Image:
    """An image, as the result of a tool or in a list with texts.

    Args:
        source: Its bytes, or the path of its file.
        media_type: Such as ``"image/png"``; empty reads it from the bytes.

    Raises:
        ToolError: The file cannot be read; or it is no image of a kind that models read, or has
            more than 5 MB.
    """

    def __init__(self, source: bytes | str | os.PathLike[str], media_type: str = "") -> None:
        self.data = source if isinstance(source, bytes) else _read(Path(source))
        self.media_type = media_type or _media_type_of(self.data)
        if self.media_type not in MEDIA_TYPES:
            known = ", ".join(MEDIA_TYPES)
            raise ToolError(f"an image must be one of {known}, not {self.media_type or 'unknown'}")
        if len(self.data) > MOST_BYTES:
            raise ToolError(f"the image has {len(self.data)} bytes; {MOST_BYTES} are allowed")

    def __repr__(self) -> str:
        return f"<{self.label}>"

    @property
    def label(self) -> str:
        """What it is, for people and for models that do not see."""
        size = size_of(self.data)
        extent = f", {size[0]} × {size[1]}" if size else ""
        return f"{self.media_type}{extent}, {len(self.data)} bytes"

    @property
    def url(self) -> str:
        """The image itself, as a ``data:`` URL."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"

    @property
    def tokens(self) -> int:
        """What it adds to a request.

        Source: OpenAI's rule for images in full detail, which costs at least as much as that of
        others: within 2,048 pixels, then its short side within 768, in tiles of 512.
        """
        wide, high = size_of(self.data) or (LONG_SIDE, SHORT_SIDE)
        shrink = min(1.0, LONG_SIDE / max(wide, high))
        shrink *= min(1.0, SHORT_SIDE / max(1.0, shrink * min(wide, high)))
        tiles = math.ceil(shrink * wide / TILE) * math.ceil(shrink * high / TILE)
        return BASE_TOKENS + TILE_TOKENS * max(1, tiles)


def has_images(value: Any) -> bool:
    """Whether a result is an image, or a list with one."""
    if isinstance(value, list | tuple):
        return any(isinstance(part, Image) for part in value)
    return isinstance(value, Image)


def size_of(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None where the bytes do not say them."""
    try:
        size = _stated_size(data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def _stated_size(data: bytes) -> tuple[int, int] | None:
    if data.startswith(b"\x89PNG"):
        wide, high = struct.unpack(">II", data[16:24])
        return wide, high
    if data.startswith(b"GIF8"):
        wide, high = struct.unpack("<HH", data[6:10])
        return wide, high
    if data.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    return _webp_size(data) if data[8:12] == b"WEBP" else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        # Begins a frame; the three others of that range are tables.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            high, wide = struct.unpack(">HH", data[at + 5 : at + 9])
            return wide, high
        at += 2 + int(struct.unpack(">H", data[at + 2 : at + 4])[0])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        wide, high = data[24:27], data[27:30]
        return 1 + int.from_bytes(wide, "little"), 1 + int.from_bytes(high, "little")
    if kind == b"VP8L":
        bits = int(struct.unpack("<I", data[21:25])[0])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        wide, high = struct.unpack("<HH", data[26:30])
        return wide & 0x3FFF, high & 0x3FFF
    return None


def _media_type_of(data: bytes) -> str:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _BEGINNINGS.items() if data.startswith(begin)), "")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ToolError(f"the image {path.name!r} cannot be read: {error.strerror}") from None
