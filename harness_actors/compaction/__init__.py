"""How a conversation is made to fit its model's window; rules alone."""

from harness_actors.compaction.durability import policies_of as policies_of
from harness_actors.compaction.ladder import Compacted as Compacted
from harness_actors.compaction.ladder import Ladder as Ladder
from harness_actors.compaction.ladder import compacted as compacted
from harness_actors.compaction.pressure import Thresholds as Thresholds
