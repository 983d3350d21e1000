"""How a conversation is made to fit its model's window: rules, and who summarizes."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.compaction.chat_summarizer import (
        ChatClientSummarizer as ChatClientSummarizer,
    )
    from harness_actors.compaction.condensing import Condensation as Condensation
    from harness_actors.compaction.deterministic import (
        DeterministicSummarizer as DeterministicSummarizer,
    )
    from harness_actors.compaction.durability import policies_of as policies_of
    from harness_actors.compaction.ladder import Compacted as Compacted
    from harness_actors.compaction.ladder import Ladder as Ladder

# Looked up when used: an agent turn needs to know what results are worth, and summarizes nothing.
__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "ChatClientSummarizer": "chat_summarizer",
        "Compacted": "ladder",
        "Condensation": "condensing",
        "DeterministicSummarizer": "deterministic",
        "Ladder": "ladder",
        "policies_of": "durability",
    },
)
