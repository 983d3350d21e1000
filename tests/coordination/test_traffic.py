"""What a coordinator sends for a round does not grow with the conversation."""

import pickle

from harness_actors.coordination.dispatch import SUBSCRIBED_RUNS
from harness_actors.coordination.protocol import Deliver, Slot, Speak
from harness_actors.messages import Message
from harness_actors.signals import Signal
from harness_actors.state import AGENT_TURN, STOP_DECISION, StateDelta
from tests.coordination.agents import Round, Team
from tests.coordination.test_losses import TURN, move_until
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


def streams(world: World) -> list[tuple[Slot, str]]:
    """Where runs were delivered to, and who was to hear what is said there."""
    posts = [(post.slot, post.envelope.body) for post in world.sent]
    return [(slot, body.stream) for slot, body in posts if isinstance(body, Deliver)]


def test_text_goes_to_the_newest_that_asked_and_of_turns_alone() -> None:
    world = World(Team(plan=["effect", "turn"]).handlers)
    world.perform(world.coordinator.subscribe(["run"], "early"))
    world.submit(a_spec())
    move_until(world, TURN)
    assert streams(world)[-1] == (TURN, "early")
    effects = world.coordinator.subscribe(["run", "another"], "late")
    assert [(post.slot, post.envelope.body) for post in effects.posts] == [(TURN, Speak("late"))]
    world.perform(effects)
    move_until(world, Slot(STOP_DECISION))
    assert not world.coordinator.subscribe(["run"], "last").posts, "it says nothing there"
    world.settle()
    assert {stream for slot, stream in streams(world) if slot != TURN} == {""}
    assert {stream for slot, stream in streams(world)[4:] if slot == TURN} == {"last"}


def test_who_listened_to_a_run_that_is_over_hears_nothing_of_the_next_of_that_name() -> None:
    world = World(Team(plan=["turn"]).handlers)
    world.perform(world.coordinator.subscribe(["run"], "stream"))
    world.submit(a_spec())
    move_until(world, TURN)
    world.perform(world.coordinator.stop("run", "park"))
    world.settle()
    world.perform(world.coordinator.adopt(world.stored(), asked=True))
    world.settle()
    heard = [stream for slot, stream in streams(world) if slot == TURN]
    assert heard[0] == "stream"
    assert set(heard[1:]) == {""}


def test_a_run_that_is_over_takes_no_place_at_its_host() -> None:
    world = World(Team(plan=["turn"]).handlers, agent_turns=2)
    for name in ("first", "second"):
        world.submit(a_spec(name))
        world.settle()
    assert {post.slot.index for post in world.sent if post.slot.executor == AGENT_TURN} == {0}


def test_of_too_many_that_ask_for_text_the_oldest_are_forgotten() -> None:
    world = World(Team().handlers)
    names = [f"run{number}" for number in range(SUBSCRIBED_RUNS)]
    world.perform(world.coordinator.subscribe(names, "s"))
    world.perform(world.coordinator.subscribe(["run0", "more", "and"], "s"))
    heard = {}
    for name in ("run0", "run1", "run2", "run3", "more"):
        world.submit(a_spec(name))
        move_until(world, TURN, name)
        heard[name] = streams(world)[-1][1]
    assert heard == {"run0": "s", "run1": "", "run2": "", "run3": "s", "more": "s"}


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
