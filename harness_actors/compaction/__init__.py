"""How a conversation is made to fit its model's window; rules alone."""

from harness_actors.compaction.durability import policies_of as policies_of
from harness_actors.compaction.ladder import Compacted as Compacted
from harness_actors.compaction.ladder import Ladder as Ladder
