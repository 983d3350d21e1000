"""Scripts of the loopback server: what to answer to the body of a request."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from harness_actors.messages import Message
from harness_actors.testing.scripted import Reply, Script

Answer = Reply | Mapping[str, Any]
"""A reply, or a dict: an assistant message, or with ``choices`` a whole completion."""

ReplyTo = Callable[[dict[str, Any]], Answer]
"""A script of the server: what to answer to the body of a request."""


def over_messages(script: Script) -> ReplyTo:
    """A script of the server made of one for `ScriptedModel`."""
    return lambda body: script([Message.from_wire(message) for message in body["messages"]])


def says_ok(body: dict[str, Any]) -> Reply:
    """The script of a server that is given none."""
    return Reply.text("ok")


def load_script(name: str) -> ReplyTo:
    """The function that ``module:function`` names.

    Raises:
        ValueError: It names none.
    """
    module, _, function = name.partition(":")
    try:
        script: ReplyTo = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--script {name!r} must be module:function: {error}") from None
    return script
