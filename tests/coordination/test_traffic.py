"""What a coordinator sends for a round does not grow with the conversation."""

import pickle

from harness_actors.coordination.protocol import Deliver, Slot
from harness_actors.state import AGENT_TURN
from tests.coordination.agents import Round, Team
from tests.coordination.world import World, a_spec

CYCLE: tuple[Round, ...] = ("effect", "lookup", "turn")


def bytes_by_cycle(cycles: int) -> list[int]:
    """Bytes that left for each cycle, counted from one delivery to repair to the next."""
    world = World(Team(plan=CYCLE * cycles).handlers)
    world.submit(a_spec())
    world.settle()
    sums: list[int] = []
    for post in world.sent:
        if isinstance(post.envelope.body, Deliver) and post.slot.executor == "repair":
            sums.append(0)
        sums[-1] += len(pickle.dumps(post.envelope))
    return sums


def test_round_200_costs_what_round_10_costs() -> None:
    sums = bytes_by_cycle(101)
    early, late = sum(sums[4:7]), sum(sums[96:99])
    assert late <= 1.05 * early


def test_a_delivery_brings_only_what_others_added_to_the_log() -> None:
    world = World(Team(plan=CYCLE * 20).handlers)
    world.submit(a_spec())
    world.settle()
    for envelope in world.posts(Deliver, Slot(AGENT_TURN)):
        assert isinstance(envelope.body, Deliver)
        assert len(envelope.body.log) == 0
