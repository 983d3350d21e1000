"""What becomes of runs when the process that serves them dies."""

import time

import pytest

from harness_actors.conversation import UNKNOWN_OUTCOME, repaired
from harness_actors.coordination.endings import executor_lost, last_words
from harness_actors.coordination.losses import left_by
from harness_actors.coordination.protocol import CUSTOM, QUARANTINE, Deliver, Forget, Slot
from harness_actors.coordination.routing import LOSSES_BEFORE_QUARANTINE
from harness_actors.events import ExecutorLost, RunCompleted
from harness_actors.messages import Message, ToolCall
from harness_actors.records import SnapshotTaken
from harness_actors.results import Reason
from harness_actors.signals import RepairTrigger, RunEnd, Signal, TurnComplete
from harness_actors.state import (
    AGENT_TURN,
    COMPACTION,
    OPEN_CALLS,
    REPAIR,
    STOP_DECISION,
    SharedState,
    StateDelta,
    Write,
)
from tests.coordination.agents import Team
from tests.coordination.world import TOOLS, Handler, Served, WaitFor, Work, World, a_spec

TURN = Slot(AGENT_TURN)
ALONE = Slot(AGENT_TURN, index=QUARANTINE)


def move_until(world: World, slot: Slot, run_id: str = "run") -> None:
    """Go on until a run is at a host, which has taken the signal and done nothing."""
    for _ in range(1000):
        run = world.coordinator.runs.get(run_id)
        served = world.hosts[slot].runs.get(run_id) if slot in world.hosts else None
        if run is not None and run.slot == slot and served and served.hop_number == run.hop_number:
            return
        world.settle(hosts=False)
        for host in list(world.hosts.values()):
            if host.inbox:
                host.take()
            elif host.slot != slot and host.ready():
                host.work(host.ready()[0])
            elif host.outbox:
                world.hear(host.slot)
    raise AssertionError(f"{run_id} never reaches {slot}")


def work_until_open(world: World, slot: Slot, run_id: str = "run") -> None:
    """Let the agent turn work until a tool is about to run."""
    while not world.log(run_id).open_calls():
        world.hosts[slot].work(run_id)
        while world.hosts[slot].outbox:
            world.hear(slot)
        world.settle(hosts=False)


def started(*plan: str, agent_turns: int = 1, runs: int = 1) -> World:
    world = World(Team(plan=plan).handlers, agent_turns=agent_turns)  # type: ignore[arg-type]
    for number in range(runs):
        world.submit(a_spec("run" if runs == 1 else f"run{number}"))
    return world


@pytest.mark.parametrize("executor", [REPAIR, COMPACTION, STOP_DECISION])
def test_a_signal_on_its_way_is_sent_again_to_the_next_host(executor: str) -> None:
    world = started("turn")
    move_until(world, Slot(executor))
    signal = world.coordinator.runs["run"].hop.signal
    effects = world.lose(Slot(executor))
    assert not effects.entries, "nothing happened to the run"
    (post,) = effects.posts
    assert post.slot == Slot(executor)
    deliver = post.envelope.body
    assert isinstance(deliver, Deliver)
    assert deliver.signal == signal
    assert deliver.spec is not None, "the new host knows nothing"
    world.settle()
    assert world.ends()[0].status == "done"
    assert "executor_lost" not in world.events()


@pytest.mark.parametrize("executor", [REPAIR, COMPACTION, STOP_DECISION])
def test_what_a_run_between_two_turns_has_left_at_a_host_is_not_repairs_to_end(
    executor: str,
) -> None:
    world = started("turn", "turn")
    move_until(world, TURN)
    assert left_by(world.coordinator.runs, TURN) == [], "it is there"
    move_until(world, Slot(executor))
    assert left_by(world.coordinator.runs, TURN) == ["run"]
    assert left_by(world.coordinator.runs, ALONE) == [], "it has not been there"
    world.lose(TURN)
    assert left_by(world.coordinator.runs, TURN) == [], "the next one has nothing of it"


def test_a_turn_that_is_interrupted_goes_to_repair_first() -> None:
    world = started("effect")
    move_until(world, TURN)
    effects = world.lose(TURN)
    assert not effects.entries, "no tool ran, so the run is not suspected"
    assert [post.slot for post in effects.posts] == [Slot(REPAIR)]
    assert world.coordinator.runs["run"].hop.signal == RepairTrigger(resumed=True)


def test_a_death_with_a_call_in_flight_is_a_loss_and_its_outcome_unknown() -> None:
    team = Team(plan=["effect"])
    world = World(team.handlers)
    world.submit(a_spec())
    move_until(world, TURN)
    work_until_open(world, TURN)
    world.lose(TURN)
    assert world.coordinator.runs["run"].losses == 1
    world.settle()
    assert "executor_lost" in world.events()
    assert [m.text for m in world.log() if m.role == "tool"] == [UNKNOWN_OUTCOME]
    assert world.ends()[0].status == "done"


def test_a_death_while_an_idempotent_tool_runs_is_a_loss_too() -> None:
    world = started("lookup")
    move_until(world, TURN)
    for _ in range(3):  # the task, the notice, and not yet the result
        world.hosts[TURN].work("run") if world.hosts[TURN].ready() else None
        world.settle(hosts=False)
        while world.hosts[TURN].outbox and world.coordinator.runs["run"].busy_since is None:
            world.hear(TURN)
    assert world.coordinator.runs["run"].busy_since is not None
    world.lose(TURN)
    assert world.coordinator.runs["run"].losses == 1


def test_a_death_between_two_rounds_is_no_loss() -> None:
    world = started("lookup", "lookup")
    move_until(world, TURN)
    while len(world.log()) < 3:
        world.hosts[TURN].work("run")
        while world.hosts[TURN].outbox:
            world.hear(TURN)
        world.settle(hosts=False)
    world.lose(TURN)
    assert world.coordinator.runs["run"].losses == 0


def test_a_death_after_a_round_that_was_announced_is_no_loss() -> None:
    world = started("effect", "effect")
    move_until(world, TURN)
    while not (world.log() and world.log()[-1].role == "tool"):
        world.hosts[TURN].work("run")
        while world.hosts[TURN].outbox:
            world.hear(TURN)
        world.settle(hosts=False)
        while world.hosts[TURN].inbox:
            world.hosts[TURN].take()
    world.lose(TURN)
    assert world.coordinator.runs["run"].losses == 0


def test_a_death_between_two_calls_of_a_message_is_a_loss() -> None:
    def two_calls(run: Served, signal: Signal) -> Work:
        calls = [ToolCall(name, "tool", "{}") for name in ("first", "second")]
        listed = [_listed(call) for call in calls]
        message = run.add(Message.assistant(None, calls))
        yield StateDelta((Write(OPEN_CALLS.name, "set", listed),), message)
        result = run.add(Message.tool_result("first", "done"))
        yield StateDelta((Write(OPEN_CALLS.name, "drop", 1),), result)
        return StateDelta(), TurnComplete(ending="completed")

    world = World({**Team().handlers, AGENT_TURN: two_calls})
    world.submit(a_spec())
    move_until(world, TURN)
    for _ in range(2):
        world.hosts[TURN].work("run")
        world.hear(TURN)
    world.lose(TURN)
    assert world.coordinator.runs["run"].losses == 1, "the second call is in flight"


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_run_that_dies_with_each_answer_that_it_takes_in_is_isolated_and_ends(
    hosts: int,
) -> None:
    def takes_in(run: Served, signal: Signal) -> Work:
        yield TOOLS
        yield WaitFor(99)
        return StateDelta(), TurnComplete(ending="completed")

    world = World({**Team().handlers, AGENT_TURN: takes_in}, agent_turns=hosts)
    world.submit(a_spec())
    while not world.ends():
        world.settle()
        world.lose(next(slot for slot in world.hosts if slot.executor == AGENT_TURN))
        world.settle(hosts=False)

    reason = world.ends()[0].reason
    assert reason.kind == "executor_lost"
    assert "while it took in an answer of this run's model" in reason.message
    assert world.events().count("executor_lost") == 3


def a_round_and_another(run: Served, signal: Signal) -> Work:
    """Two rounds of calls that may be made again: each begins, and is on disk with its results."""
    for number in range(2):
        yield TOOLS
        call = ToolCall(f"call_{number}", "tool", "{}")
        result = Message.tool_result(call.id, "done")
        yield StateDelta((), run.add(Message.assistant(None, [call]), result))
    yield WaitFor(99)
    return StateDelta(), TurnComplete(ending="completed")


def test_that_tools_begin_is_known_though_it_overtakes_the_round_before() -> None:
    world = World({**Team().handlers, AGENT_TURN: a_round_and_another})
    world.submit(a_spec())
    move_until(world, TURN)
    host, run = world.hosts[TURN], world.coordinator.runs["run"]
    for _ in range(3):
        host.work("run")
    second, first, round_one = host.outbox
    assert (first.seq, second.seq, round_one.seq) == (0, 1, 1)

    host.outbox.clear()
    host.outbox.extend([second, first, round_one])
    for heard in ("the second begins", "the first began before", "the first is over"):
        world.hear(TURN)
        assert run.busy_since is not None, heard
    world.lose(TURN)
    assert run.losses == 1


def test_that_tools_begin_is_old_news_once_their_results_are_there() -> None:
    world = World({**Team().handlers, AGENT_TURN: a_round_and_another})
    world.submit(a_spec())
    move_until(world, TURN)
    host, run = world.hosts[TURN], world.coordinator.runs["run"]
    for _ in range(2):
        host.work("run")
    began, round_one = host.outbox
    host.outbox.clear()
    host.outbox.extend([round_one, began])
    for heard in ("their results", "that they begin"):
        world.hear(TURN)
        assert run.busy_since is None, heard
    world.lose(TURN)
    assert run.losses == 0


def test_thousands_of_calls_that_are_not_idempotent_make_changes_of_one_size() -> None:
    calls = [ToolCall(f"call_{number}", "tool", "{}") for number in range(3000)]

    def many_calls(run: Served, signal: Signal) -> Work:
        message = run.add(Message.assistant(None, calls))
        yield StateDelta((Write(OPEN_CALLS.name, "set", [_listed(c) for c in calls]),), message)
        for call in calls:
            result = run.add(Message.tool_result(call.id, "done"))
            yield StateDelta((Write(OPEN_CALLS.name, "drop", 1),), result)
        return StateDelta(), TurnComplete(ending="completed")

    world = World({**Team().handlers, AGENT_TURN: many_calls})
    world.submit(a_spec())
    began = time.process_time()
    world.settle()

    assert world.ends()[0].status == "done"
    assert world.stored().state.values[OPEN_CALLS.name] == []
    snapshots = [entry for entry in world.disk if isinstance(entry, SnapshotTaken)]
    assert snapshots, "one follows when the index is short again"
    assert sum(len(s.values.get(OPEN_CALLS.name) or ()) for s in snapshots) < 200
    assert time.process_time() - began < 60


def _listed(call: ToolCall) -> dict[str, object]:
    return {"call_id": call.id, "tool_name": call.name, "idempotent": False, "turn": 1}


def lose_with_open_call(world: World, slot: Slot, run_id: str = "run") -> None:
    move_until(world, slot, run_id)
    work_until_open(world, slot, run_id)
    world.lose(slot)
    world.settle(hosts=False)


def test_a_host_that_dies_before_it_did_anything_is_no_loss_after_one_that_was() -> None:
    world = started("effect", "effect")
    lose_with_open_call(world, TURN)
    move_until(world, TURN)
    world.lose(TURN)
    assert world.coordinator.runs["run"].losses == 1
    move_until(world, TURN)
    world.settle()
    assert world.ends()[0].status == "done"


def test_results_that_repair_makes_up_do_not_hide_a_loss() -> None:
    world = started("effect", "effect", "effect")
    lose_with_open_call(world, TURN)
    move_until(world, TURN)
    assert world.log()[-1].text == UNKNOWN_OUTCOME
    assert world.coordinator.runs["run"].losses == 1


def test_a_committed_result_of_a_tool_forgives_losses() -> None:
    world = started("effect", "effect", "turn")
    lose_with_open_call(world, TURN)
    move_until(world, Slot(STOP_DECISION))
    assert world.coordinator.runs["run"].losses == 0
    assert world.stored().losses == 0


def test_after_two_losses_a_run_is_served_alone() -> None:
    world = started("effect", "effect", "effect")
    lose_with_open_call(world, TURN)
    lose_with_open_call(world, TURN)
    move_until(world, ALONE)
    world.settle()
    assert world.ends()[0].status == "done"


def test_the_third_loss_alone_ends_the_run() -> None:
    world = started("effect", "effect", "effect", "effect")
    for slot in (TURN, TURN, ALONE):
        lose_with_open_call(world, slot)
    (result,) = world.ends()
    assert (result.status, result.reason.kind) == ("failed", "executor_lost")
    assert "quarantine" in result.reason.message
    assert "while the tool 'tool' of this run was running" in result.reason.message
    assert repaired(world.log())[1] == 0
    assert world.events().count("executor_lost") == 3
    assert not world.coordinator.runs


def test_losses_survive_the_coordinator() -> None:
    world = started("effect", "effect", "effect")
    lose_with_open_call(world, TURN)
    lose_with_open_call(world, TURN)
    world.crash()
    move_until(world, ALONE)


def test_the_end_of_a_run_is_told_where_it_was_served_last() -> None:
    world = started("effect", "effect", "effect", "turn", "effect", "turn")
    lose_with_open_call(world, TURN)
    lose_with_open_call(world, TURN)
    move_until(world, ALONE)
    move_until(world, TURN)
    world.settle()
    told = [(post.slot, post.envelope.body) for post in world.sent]
    ends = [slot for slot, body in told if isinstance(body, Forget) and body.end is not None]
    assert ends == [TURN], "and not alone, where it was before that"


def suspected(runs: int) -> World:
    """Runs with two losses: the first is alone at the quarantine host, the others wait."""
    world = started("effect", runs=runs)
    for run in world.coordinator.runs.values():
        run.losses = LOSSES_BEFORE_QUARANTINE
    move_until(world, ALONE, "run0")
    while not all(run.hop.to == AGENT_TURN for run in world.coordinator.runs.values()):
        for name in (REPAIR, COMPACTION):
            world.settle(hosts=False)
            if Slot(name) in world.hosts:
                world.move(world.hosts[Slot(name)])
    world.settle(hosts=False)
    return world


def test_the_quarantine_host_serves_one_run_at_a_time() -> None:
    world = suspected(3)
    slots = {run_id: run.slot for run_id, run in world.coordinator.runs.items()}
    assert slots == {"run0": ALONE, "run1": None, "run2": None}
    world.settle()
    assert all(world.ends(run)[0].status == "done" for run in slots)
    order = [e.run_id for e in world.posts(Deliver, ALONE)]
    assert order == ["run0", "run1", "run2"]


@pytest.mark.parametrize("how", ["cancel", "park_now", "loss"])
def test_whoever_leaves_quarantine_lets_the_next_run_in(how: str) -> None:
    world = suspected(3)
    if how == "loss":
        world.lose(ALONE)
    else:
        world.perform(world.coordinator.stop("run0", how))
    move_until(world, ALONE, "run1")
    world.settle()
    assert world.ends("run1")[0].status == world.ends("run2")[0].status == "done"


def test_a_run_that_waits_for_quarantine_can_be_stopped() -> None:
    world = suspected(4)
    world.perform(world.coordinator.stop("run1", "park"))
    world.perform(world.coordinator.stop("run2", "cancel"))
    world.settle(hosts=False)
    assert world.events("run1")[-1] == "run_parked", "at once: there is no round to finish"
    assert world.ends("run2")[0].status == "cancelled"
    world.settle()
    assert world.ends("run0")[0].status == "done"
    assert world.ends("run3")[0].status == "done", "nobody who is gone has its place"


def test_neighbours_of_a_run_that_kills_its_host_go_on() -> None:
    world = started("effect", "effect", runs=2)
    move_until(world, TURN, "run0")
    move_until(world, TURN, "run1")
    work_until_open(world, TURN, "run0")
    world.lose(TURN)
    assert world.coordinator.runs["run0"].losses == 1
    assert world.coordinator.runs["run1"].losses == 0
    world.settle()
    assert all(world.ends(run)[0].status == "done" for run in ("run0", "run1"))


def test_runs_are_spread_over_the_agent_turns_and_stay_where_they_are() -> None:
    world = started("effect", "turn", "effect", agent_turns=2, runs=4)
    world.settle()
    homes = {
        run: {post.slot.index for post in world.sent if _serves(post.envelope.body, post.slot)
              and post.envelope.run_id == run}
        for run in world.run_ids()
    }  # fmt: skip
    assert all(len(indices) == 1 for indices in homes.values())
    assert sorted(min(indices) for indices in homes.values()) == [0, 0, 1, 1]


def _serves(body: object, slot: Slot) -> bool:
    return isinstance(body, Deliver) and slot.executor == AGENT_TURN


# ---- a user's own executor ---------------------------------------------------------------------


def passes_on(run: Served, signal: Signal) -> Work:
    yield StateDelta(messages=run.add(Message.user("from the outside")))
    return StateDelta(), signal


def custom_world(handler: Handler = passes_on) -> World:
    world = World({**Team(plan=["effect"]).handlers, "mine": handler})
    edges = (
        (REPAIR, COMPACTION),
        (COMPACTION, AGENT_TURN),
        (AGENT_TURN, "mine"),
        ("mine", STOP_DECISION),
        (STOP_DECISION, REPAIR),
    )
    world.submit(a_spec(edges=edges, custom=("mine",)))
    return world


MINE = Slot(CUSTOM, "code", pool="mine")


def test_a_users_executor_is_served_by_a_host_of_its_code() -> None:
    world = custom_world()
    world.settle()
    assert MINE in world.hosts
    assert world.ends()[0].status == "done"
    assert world.log()[-1].text == "from the outside"


def test_a_users_executor_is_sent_all_of_the_state_and_the_log() -> None:
    world = custom_world()
    move_until(world, MINE)
    served = world.hosts[MINE].runs["run"]
    run = world.coordinator.runs["run"]
    assert served.values == run.state.values
    assert served.values is not run.state.values
    assert [message.role for message in served.log] == ["user", "assistant", "tool"]


def test_a_users_executor_that_kills_its_host_three_times_ends_the_run() -> None:
    world = custom_world()
    for _ in range(3):
        move_until(world, MINE)
        world.lose(MINE)
        world.settle(hosts=False)
    assert world.ends()[0].reason.kind == "executor_lost"
    message = world.ends()[0].reason.message
    assert "the process of mine died 3 times while it worked on this run" in message
    assert "tool" not in message
    lost = [e for c in world.changes() for e in c.delta.events if isinstance(e, ExecutorLost)]
    assert [event.tools for event in lost] == [()] * 3, "those of the turn before do not run"


def test_a_users_repair_that_dies_is_not_told_of_with_the_calls_that_it_is_to_close() -> None:
    world = World(Team(plan=["effect"]).handlers)
    world.submit(a_spec(custom=(REPAIR,)))
    move_until(world, TURN)
    work_until_open(world, TURN)
    world.lose(TURN)
    move_until(world, Slot(CUSTOM, "code", pool=REPAIR))
    assert world.coordinator.runs["run"].tools == ("tool",)
    world.lose(Slot(CUSTOM, "code", pool=REPAIR))
    world.settle(hosts=False)
    lost = [e for c in world.changes() for e in c.delta.events if isinstance(e, ExecutorLost)]
    assert [event.tools for event in lost] == [("tool",), ()]


def test_a_users_executor_in_place_of_ours_gets_the_runs_of_its_code() -> None:
    world = World({**Team(plan=["effect"]).handlers})
    world.submit(a_spec(custom=(COMPACTION,)))
    world.settle()
    assert Slot(CUSTOM, "code", pool=COMPACTION) in world.hosts
    assert Slot(COMPACTION) not in world.hosts
    assert world.ends()[0].status == "done"


def test_a_signal_that_was_being_committed_when_its_host_died_does_not_reach_the_next() -> None:
    team = Team(plan=["lookup"])
    world = World(team.handlers)
    world.submit(a_spec())
    move_until(world, Slot(COMPACTION))
    world.hosts[Slot(COMPACTION)].work("run")
    effects = world.hear(Slot(COMPACTION))
    assert [post.slot for post in effects.posts] == [TURN]
    assert world.unwritten, "the turn is not on disk, so its signal has not left"
    world.lose(TURN)
    world.settle(hosts=False)
    assert not world.posts(Deliver, TURN), "the run is at repair by now"
    world.settle()
    assert world.ends()[0].status == "done"


def test_the_end_of_a_run_is_told_with_the_traceback_of_what_failed() -> None:
    reason = Reason(
        kind="agent_error", message="it fell", details={"error": {"traceback": "in line 3"}}
    )
    (told,) = last_words(SharedState(), RunEnd(status="failed", reason=reason)).events
    assert told == RunCompleted(
        status="failed", reason="agent_error", message="it fell", traceback="in line 3"
    )


SILENT = "the process was silent for 10 s"
TOOL, OWN = Slot(AGENT_TURN), Slot(CUSTOM, "code", pool="mine")


@pytest.mark.parametrize(
    ("slot", "tools", "cause", "said"),
    [
        (TOOL, ["a"], "", "while the tool 'a' of this run was running; the tool probably crashes"),
        (TOOL, ["a", "b"], "", "while one of the tools 'a', 'b' of this run was running; the tool"),
        (TOOL, list("abcdef"), "", "while one of the tools 'a', 'b', 'c', 'd', 'e', … of this run"),
        (TOOL, list("abcde"), "", "while one of the tools 'a', 'b', 'c', 'd', 'e' of this run was"),
        (TOOL, ["a"], SILENT, f"; the last time {SILENT}; a tool probably blocks the event loop: "),
        (TOOL, ["a"], SILENT, "declare it with `def`, not `async def`"),
        (TOOL, [], "", "took in an answer of this run's model; the answer probably crashes"),
        (TOOL, [], SILENT, f"took in an answer of this run's model; the last time {SILENT}"),
        (OWN, [], "", "while it worked on this run; the executor probably crashes its process"),
        (OWN, [], SILENT, f"; the last time {SILENT}; the executor probably blocks the event loop"),
        (OWN, [], SILENT, "have it do so in `asyncio.to_thread`"),
    ],
)
def test_who_reads_of_a_lost_run_is_told_what_to_mend(
    slot: Slot, tools: list[str], cause: str, said: str
) -> None:
    message = executor_lost(slot, 3, tools, cause).reason.message
    assert said in message
    assert ("event loop" in message) == bool(cause and (tools or slot.code))
    assert ("crashes its process" in message) == (not cause)
