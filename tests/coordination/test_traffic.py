"""What a coordinator sends for a round does not grow with the conversation."""

import pickle

from harness_actors.coordination.protocol import Deliver, Slot
from harness_actors.messages import Message
from harness_actors.signals import Signal
from harness_actors.state import AGENT_TURN, StateDelta
from tests.coordination.agents import Round, Team
from tests.coordination.world import Served, Work, World, a_spec

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


def test_what_a_host_adds_with_its_answer_does_not_come_back_to_it() -> None:
    class Talker(Team):
        def agent_turn(self, run: Served, signal: Signal) -> Work:
            delta, outcome = yield from super().agent_turn(run, signal)
            said = run.add(Message.assistant("as I said"))
            return StateDelta(delta.writes, (*delta.messages, *said), delta.events), outcome

    world = World(Talker(plan=("effect", "turn", "turn", "turn", "turn")).handlers)
    world.submit(a_spec())
    world.settle()
    delivered = [envelope.body for envelope in world.posts(Deliver, Slot(AGENT_TURN))]
    assert len(delivered) > 1
    assert [body.log for body in delivered if isinstance(body, Deliver)] == [()] * len(delivered)


def test_a_delivery_brings_only_what_others_added_to_the_log() -> None:
    world = World(Team(plan=CYCLE * 20).handlers)
    world.submit(a_spec())
    world.settle()
    for envelope in world.posts(Deliver, Slot(AGENT_TURN)):
        assert isinstance(envelope.body, Deliver)
        assert len(envelope.body.log) == 0
