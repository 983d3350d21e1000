"""Answers that no model gives: too large, too many, too deep, with numbers that cannot be."""

import json
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tests.attack.hostile_server import Bytes

EVENTS = {"Content-Type": "text/event-stream"}
MIB = 1024 * 1024
PLAIN_MIB = 64
PACKED_MIB = 1024

Make = Callable[[Random], Bytes]


def says(text: Any = "hello", **fields: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}}], **fields}).encode()


def calls(ids: list[str], name: str = "read_file", arguments: str = '{"path":"a"}') -> bytes:
    function = {"name": name, "arguments": arguments}
    wanted = [{"id": one, "type": "function", "function": function} for one in ids]
    message = {"content": None, "tool_calls": wanted}
    return json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()


def _flood(head: bytes, piece: bytes, mib: int) -> Iterator[bytes]:
    yield head
    block = piece * (MIB // len(piece))
    for _ in range(mib):
        yield block


def _packed(pieces: Iterator[bytes], form: str) -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if form == "gzip" else 15)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def text_flood(_: Random) -> Bytes:
    return Bytes(_flood(b'{"choices":[{"message":{"content":"', b"x", PLAIN_MIB))


def packed_bomb(chance: Random) -> Bytes:
    form = chance.choice(("gzip", "deflate"))
    flood = _flood(b'{"choices":[{"message":{"content":"', b"x", PACKED_MIB)
    return Bytes(_packed(flood, form), {"Content-Encoding": form})


def many_members(_: Random) -> Bytes:
    member = b"".join(_packed(iter((b" " * MIB,)), "gzip"))
    return Bytes((member for _ in range(PACKED_MIB)), {"Content-Encoding": "gzip"})


def list_flood(chance: Random) -> Bytes:
    return Bytes((b'{"a":[', chance.choice((b"[],", b"{},", b"[1],")) * MIB, b"1]}"))


def long_line(_: Random) -> Bytes:
    return Bytes(_flood(b"data: ", b"x", PLAIN_MIB), EVENTS)


def endless_events(chance: Random) -> Bytes:
    piece = chance.choice((b"data: {}\n\n", b": ping\n", b"\n", says().join((b"data: ", b"\n\n"))))
    return Bytes(_flood(b"", piece, 4 * PLAIN_MIB), EVENTS)


def packed_events(_: Random) -> Bytes:
    flood = _flood(b"", b"data: {}\n\n", PACKED_MIB)
    return Bytes(_packed(flood, "gzip"), EVENTS | {"Content-Encoding": "gzip"})


def refusal_flood(chance: Random) -> Bytes:
    status = chance.choice((400, 401, 403, 404, 429, 500, 503))
    if chance.random() < 0.5:
        flood = _flood(b"", b"no ", PACKED_MIB)
        return Bytes(_packed(flood, "gzip"), {"Content-Encoding": "gzip"}, status)
    return Bytes(_flood(b'{"error":{"message":"', b"no ", PLAIN_MIB), {}, status)


BOMBS: dict[str, Make] = {
    make.__name__: make
    for make in (
        text_flood,
        packed_bomb,
        many_members,
        list_flood,
        long_line,
        endless_events,
        packed_events,
        refusal_flood,
    )
}


def absurd_usage(chance: Random) -> Bytes:
    numbers = ("1e308", "1e400", "9" * 400, "-1", "-1e308", "18446744073709551616", '"x"', "[1]")
    fields = ("prompt_tokens", "completion_tokens", "total_tokens")
    pairs = ",".join(f'"{name}":{chance.choice(numbers)}' for name in fields)
    details = f'"prompt_tokens_details":{{"cached_tokens":{chance.choice(numbers)}}}'
    body = says()[:-1] + f',"usage":{{{pairs},{details}}}}}'.encode()
    return Bytes((body,))


def absurd_wait(chance: Random) -> Bytes:
    dates = (
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 99 Foo -1 99:99:99 +9999",
        "1e400",
        "nan",
        "-inf",
        "9" * 4000,
    )
    name = chance.choice(("Retry-After", "Retry-After-Ms"))
    return Bytes((b"{}",), {name: chance.choice(dates)}, chance.choice((429, 503)))


def nested(chance: Random) -> Bytes:
    depth = chance.choice((200, 300, 500, 900, 1100, 5000, 100_000))
    begin, end = chance.choice((("[", "]"), ('{"a":', "}")))
    deep = begin * depth + ("1" if begin != "[" else "") + end * depth
    message = chance.choice(
        (
            f'{{"content":{deep}}}',
            f'{{"content":"x","extra":{deep}}}',
            f'{{"tool_calls":[{{"id":{deep},"function":{{"name":"f","arguments":"{{}}"}}}}]}}',
            f'{{"tool_calls":[{{"function":{{"name":"read_file","arguments":{deep}}}}}]}}',
            f'{{"tool_calls":[{{"function":{{"name":"read_file","arguments":{json.dumps(deep)}}}}}]}}',
            deep,
        )
    )
    if chance.random() < 0.2:
        status = chance.choice((200, 400, 500))
        return Bytes((f'{{"error":{{"message":{deep},"code":{deep}}}}}'.encode(),), {}, status)
    return Bytes((f'{{"choices":[{{"message":{message}}}],"usage":{{"a":{deep}}}}}'.encode(),))


def echo(chance: Random, key: str) -> Bytes:
    """The key in a place where a provider may put what it was sent."""
    header = f"Authorization: Bearer {key}"
    call = {"id": key, "function": {"name": key, "arguments": json.dumps({"path": key})}}
    message = {"content": header, "tool_calls": [call]}
    body = chance.choice(
        (
            header.encode(),
            b"<html>" + b"x" * chance.randrange(600) + header.encode(),
            json.dumps([header]).encode(),
            json.dumps({"error": header}).encode(),
            json.dumps({"error": {"code": key, "type": header, "message": header}}).encode(),
            json.dumps({"choices": [{"message": message, "finish_reason": key}]}).encode(),
            says(header, model=key, id=key),
        )
    )
    return Bytes((body,), {"X-Echo": key}, chance.choice((200, 200, 200, 400, 401, 404)))
