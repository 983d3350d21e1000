"""Models: what answers a conversation, what that costs, and how its tokens are counted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_actors.models.backoff import Backoff as Backoff
    from harness_actors.models.local import LocalModel as LocalModel
    from harness_actors.models.local_server import LocalServer as LocalServer
    from harness_actors.models.openai import OpenAIModel as OpenAIModel
    from harness_actors.models.prices import Price as Price
    from harness_actors.models.tokens import counter_for as counter_for

_HOMES = {
    "Backoff": "backoff",
    "LocalModel": "local",
    "LocalServer": "local_server",
    "OpenAIModel": "openai",
    "Price": "prices",
    "counter_for": "tokens",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Names are looked up when used: the room itself loads no client and no encoding.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
