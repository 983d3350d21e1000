"""Models: what answers a conversation, what that costs, and how its tokens are counted."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.models.backoff import Backoff as Backoff
    from harness_actors.models.chain import Fallback as Fallback
    from harness_actors.models.chain import ModelChain as ModelChain
    from harness_actors.models.local import LocalModel as LocalModel
    from harness_actors.models.local_server import LocalServer as LocalServer
    from harness_actors.models.openai import OpenAIModel as OpenAIModel
    from harness_actors.models.prices import Price as Price
    from harness_actors.models.tokens import counter_for as counter_for
    from harness_actors.models.tries import tell_spent as tell_spent

# Names are looked up when used: the room itself loads no client and no encoding.
__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "Backoff": "backoff",
        "Fallback": "chain",
        "LocalModel": "local",
        "LocalServer": "local_server",
        "ModelChain": "chain",
        "OpenAIModel": "openai",
        "Price": "prices",
        "counter_for": "tokens",
        "tell_spent": "tries",
    },
)
