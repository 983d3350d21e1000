"""What a provider's answers look like on the wire."""

from collections.abc import Mapping
from typing import Any

import orjson

from harness_actors.testing.scripted import Reply, words_of

CREATED = 1_700_000_000


def completion(
    answer: Reply | Mapping[str, Any], request: Mapping[str, Any], sent_bytes: int
) -> dict[str, Any]:
    """A Chat Completions object.

    Args:
        answer: A reply; or an assistant message; or with ``choices`` a whole object, of which
            only what is missing is added.
        request: The request's body.
        sent_bytes: Its size, from which its tokens are estimated.
    """
    if isinstance(answer, Reply):
        message = as_message(answer, len(request.get("messages", ())))
        choice = {"index": 0, "message": message, "finish_reason": answer.ending}
    elif "choices" not in answer:
        ending = "tool_calls" if answer.get("tool_calls") else "stop"
        choice = {"index": 0, "message": {"role": "assistant", **answer}, "finish_reason": ending}
    else:
        choice = {}
    input_tokens = max(1, sent_bytes // 4)
    output_tokens = max(1, len(orjson.dumps(choice)) // 4)
    whole: dict[str, Any] = {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": CREATED,
        "model": request.get("model", "scripted"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }
    return whole if isinstance(answer, Reply) or "choices" not in answer else {**whole, **answer}


def as_message(reply: Reply, position: int) -> dict[str, Any]:
    """The assistant message of a reply that stands at `position` in its conversation."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.said}
    if reply.asked:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.tool_calls(position)
        ]
    return message


def event_stream(answer: Mapping[str, Any]) -> bytes:
    """An answer as a stream: its text word by word, each call's arguments in two."""
    head = {
        "id": answer["id"],
        "object": "chat.completion.chunk",
        "created": answer["created"],
        "model": answer["model"],
    }
    chunks: list[dict[str, Any]] = []
    for choice in answer["choices"]:
        deltas = [{"role": "assistant"}, *_deltas(choice.get("message") or {})]
        chunks += [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        end = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
        chunks.append({"choices": [end]})
    chunks.append({"choices": [], "usage": answer.get("usage")})
    events = [b"data: " + orjson.dumps({**head, **chunk}) + b"\n\n" for chunk in chunks]
    return b"".join([*events, b"data: [DONE]\n\n"])


def _deltas(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [
        {"content": word} for word in words_of(message.get("content") or "")
    ]
    for index, call in enumerate(message.get("tool_calls") or ()):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        opened = {**call, "index": index}
        opened["function"] = {**call["function"], "arguments": arguments[:half]}
        rest = {"index": index, "function": {"arguments": arguments[half:]}}
        deltas += [{"tool_calls": [opened]}, {"tool_calls": [rest]}]
    return deltas
