"""Plans that are made beside runs: when a job begins, what comes of it, and who waits for it."""

from typing import Any

import pytest

from harness_actors.actors.host.shipped_executors import executor_needs
from harness_actors.config import CompactionConfig, HarnessConfig
from harness_actors.coordination.active import Effects, Post
from harness_actors.coordination.at_once import AnswerAtOnce
from harness_actors.coordination.background import (
    ATTEMPTS,
    FAILURES_BEFORE_REST,
    REMEMBERED_RUNS,
    WAIT_S,
)
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.protocol import (
    COMPACTION_WORKER,
    Answered,
    Changed,
    Cut,
    Deliver,
    Envelope,
    Offer,
    Offered,
    Proposed,
    Slot,
    Summarize,
    Summarized,
    SummaryWanted,
)
from harness_actors.executors.at_once import answer_at_once
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, Span, Summary
from harness_actors.records import RunChanged, RunSpec, StoredRun, SummaryStored
from harness_actors.results import Usage
from harness_actors.signals import (
    CompactionComplete,
    RepairComplete,
    RepairTrigger,
    TurnComplete,
    Yielded,
)
from harness_actors.state import (
    AGENT_TURN,
    COMPACTION,
    REPAIR,
    REQUEST_TOKENS,
    SIDE_USAGE,
    STOP_DECISION,
    USAGE,
    SharedState,
    StateDelta,
    Write,
)
from harness_actors.testing import ManualClock
from tests.coordination.world import a_spec

WORKER = Slot(COMPACTION_WORKER)
TURN = Slot(AGENT_TURN)
WINDOW = 1_000
SUMMARY = Summary(facts=("It is so.",))
USED = Usage(model_calls=1, input_tokens=100, output_tokens=10, cost_usd=0.5)


def summarizing(**settings: Any) -> HarnessConfig:
    compaction = CompactionConfig(**settings)
    return HarnessConfig(max_input_tokens=WINDOW, compaction=compaction)


def ladder_alone() -> HarnessConfig:
    return HarnessConfig(max_input_tokens=WINDOW, compaction=CompactionConfig(summaries=False))


class Desk:
    """A coordinator with one run, moved by hand."""

    def __init__(
        self,
        config: HarnessConfig | None = None,
        at_once: AnswerAtOnce | None = None,
        **spec: Any,
    ) -> None:
        self.clock = ManualClock()
        self.coordinator = Coordinator(
            term=1,
            command="command",
            needs=executor_needs(),
            agent_turns=1,
            clock=self.clock,
            at_once=at_once,
        )
        self.spec = a_spec(config=config or summarizing(), **spec)
        self.entries: list[Any] = []
        self.posts: list[Post] = []
        self.seq = 0
        self.take(self.coordinator.submit(self.spec))

    def take(self, effects: Effects) -> None:
        self.entries += effects.entries
        self.posts = effects.posts

    def another(self, run_id: str) -> RunSpec:
        return a_spec(run_id, config=summarizing())

    @property
    def run(self) -> Any:
        return self.coordinator.runs["run"]

    @property
    def version(self) -> int:
        version: int = self.run.state.version
        return version

    def say(self, slot: Slot, body: Any, *, number: int | None = None, seq: int = 0) -> None:
        """A host, or a worker, says something."""
        self.seq += 1
        hop = self.run.hop_number if number is None else number
        envelope = Envelope("run", 1, hop, seq or self.seq, body)
        self.take(self.coordinator.received(slot, envelope))

    def to_its_turn(self) -> None:
        self.say(Slot(REPAIR), Answered(StateDelta(), RepairComplete(repairs_made=0)))
        self.say(Slot(COMPACTION), Answered(StateDelta(), compacted()))

    def round(self, tokens: int) -> None:
        """A round of a turn, after which the next request is so much larger."""
        message = Message.assistant("said", tokens=tokens)
        writes = (Write(REQUEST_TOKENS.name, "increment", tokens),)
        self.say(TURN, Changed(StateDelta(writes, (message,))))

    def jobs(self) -> list[Post]:
        return [post for post in self.posts if isinstance(post.envelope.body, Summarize)]

    def a_job(self) -> int:
        """Number of the job that has just begun."""
        (post,) = self.jobs()
        return post.envelope.hop_number

    def offer(self, **facts: Any) -> Offer:
        base = self.run.plan_version
        span = Span(start=0, end=1, action="summarize")
        given = {"version": base + 1, "base": base, "upto": 1, "spans": (span,), **facts}
        return Offer(CompactionPlan(**given, summary=SUMMARY, made_of=("key",)), 500)


def compacted() -> CompactionComplete:
    return CompactionComplete(
        repairs_made=0, tokens=0, plan_updated=False, tokens_freed=0, compaction_needed=False
    )


def at_work(tokens: int = 850, **settings: Any) -> tuple[Desk, int]:
    """A run for which a job has begun, and its number."""
    desk = Desk(summarizing(**settings))
    desk.to_its_turn()
    desk.round(tokens)
    return desk, desk.a_job()


def test_a_job_begins_where_the_window_fills_and_not_before() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.round(799)
    assert not desk.jobs()
    desk.round(1)
    (post,) = desk.jobs()
    job = post.envelope.body
    assert isinstance(job, Summarize)
    assert (post.slot, job.request_tokens, job.window_tokens) == (WORKER, 800, WINDOW)
    assert [message.text for message in job.log] == ["said", "said"]


def test_only_one_job_at_a_time_is_done_for_a_run() -> None:
    desk, _ = at_work()
    desk.round(10)
    assert not desk.jobs()


@pytest.mark.parametrize(
    "desk",
    [
        Desk(ladder_alone()),
        Desk(HarnessConfig(max_input_tokens=WINDOW, compaction=None)),
        Desk(custom=(COMPACTION,)),
    ],
    ids=["turned off", "compaction off", "compaction is the user's own"],
)
def test_nothing_is_begun_where_nobody_wants_it_or_would_take_it(desk: Desk) -> None:
    run = desk.run
    assert run.summarizes_at is None
    run.state.values[REQUEST_TOKENS.name] = 990
    effects = Effects()
    desk.coordinator._background.consider(run, effects)
    assert (effects.posts, run.background) == ([], None)


def test_a_summary_is_kept_with_what_it_cost_and_is_no_model_call_of_the_run() -> None:
    desk, number = at_work()
    desk.say(WORKER, Summarized("key", SUMMARY, USED), number=number, seq=1)
    assert SummaryStored(run_id="run", key="key", summary=SUMMARY) in desk.entries
    values = desk.run.state.values
    assert values[SIDE_USAGE.name]["model_calls"] == 1
    assert (values[USAGE.name]["model_calls"], values[USAGE.name]["cost_usd"]) == (0, 0.5)


def test_what_comes_twice_counts_once() -> None:
    desk, number = at_work()
    for _ in range(2):
        desk.say(WORKER, Summarized("key", SUMMARY, USED), number=number, seq=1)
    assert desk.run.state.values[SIDE_USAGE.name]["cost_usd"] == 0.5


@pytest.mark.parametrize("number", [0, 10_000])
def test_what_a_worker_says_of_another_job_is_dropped(number: int) -> None:
    desk, _ = at_work()
    before = desk.version
    desk.say(WORKER, Summarized("key", SUMMARY, USED), number=number, seq=1)
    desk.say(WORKER, Proposed(desk.offer()), number=number, seq=2)
    assert (desk.version, desk.run.offer) == (before, None)


def test_an_offer_is_told_to_the_turn_and_given_to_whoever_makes_room() -> None:
    desk, number = at_work()
    offer = desk.offer()
    desk.say(WORKER, Proposed(offer), number=number, seq=1)
    (told,) = desk.posts
    assert (told.slot, told.envelope.body) == (TURN, Offered(1))

    desk.say(TURN, Answered(StateDelta(), Yielded()))
    (post,) = desk.posts
    assert post.slot == Slot(REPAIR)
    desk.say(Slot(REPAIR), Answered(StateDelta(), RepairComplete(repairs_made=0)))
    (post,) = desk.posts
    assert isinstance(post.envelope.body, Deliver)
    assert post.envelope.body.offer == offer


def test_an_offer_is_given_to_whoever_makes_room_where_others_need_not_be_asked() -> None:
    desk = Desk(at_once=answer_at_once)
    desk.round(950)
    number, offer = desk.a_job(), desk.offer()
    desk.say(WORKER, Proposed(offer), number=number, seq=1)
    desk.say(TURN, Answered(StateDelta(), Yielded()))
    (post,) = desk.posts
    assert (post.slot, post.envelope.body.offer) == (Slot(COMPACTION), offer)  # type: ignore[union-attr]


def test_an_offer_that_is_taken_is_over_and_its_summaries_are_in_the_plan() -> None:
    desk, number = at_work()
    offer = desk.offer()
    desk.say(WORKER, Summarized("key", SUMMARY, USED), number=number, seq=1)
    desk.say(WORKER, Summarized("of another job", SUMMARY, USED), number=number, seq=2)
    desk.say(WORKER, Proposed(offer), number=number, seq=3)
    desk.say(TURN, Answered(StateDelta(), Yielded()))
    desk.say(Slot(REPAIR), Answered(StateDelta(), RepairComplete(repairs_made=0)))
    writes = (Write(REQUEST_TOKENS.name, "increment", -500),)
    desk.say(Slot(COMPACTION), Answered(StateDelta(writes, plan=offer.plan), compacted()))
    assert desk.run.plan_version == 1
    assert desk.run.offer is None
    assert desk.run.background.summaries == {"of another job": SUMMARY}


def test_an_offer_of_a_plan_that_was_overtaken_is_dropped_and_its_summaries_stay() -> None:
    desk, number = at_work()
    desk.say(WORKER, Summarized("key", SUMMARY, USED), number=number, seq=1)
    desk.say(WORKER, Proposed(desk.offer()), number=number, seq=2)
    other = CompactionPlan(version=1, base=0, upto=1, spans=(Span(start=0, end=1, action="drop"),))
    desk.say(TURN, Changed(StateDelta(plan=other)))
    assert desk.run.offer is None
    # It is begun anew, from the plan that there is now.
    (post,) = desk.jobs()
    assert isinstance(post.envelope.body, Summarize)
    assert post.envelope.body.known == {"key": SUMMARY}
    assert post.envelope.body.plan == other


def test_a_job_whose_plan_was_overtaken_is_cut() -> None:
    desk, number = at_work()
    other = CompactionPlan(version=1, base=0, upto=1, spans=(Span(start=0, end=1, action="drop"),))
    desk.say(TURN, Changed(StateDelta(plan=other)))
    cuts = [post for post in desk.posts if isinstance(post.envelope.body, Cut)]
    assert [(post.slot, post.envelope.hop_number) for post in cuts] == [(WORKER, number)]


def test_a_proposal_that_follows_no_more_is_no_offer() -> None:
    desk, number = at_work()
    desk.say(WORKER, Proposed(desk.offer(version=3, base=2)), number=number, seq=1)
    assert desk.run.offer is None


def test_where_nothing_is_gained_it_rests_until_the_request_has_grown() -> None:
    desk, number = at_work(850)
    desk.say(WORKER, Proposed(None), number=number, seq=1)
    desk.round(50)
    assert not desk.jobs()
    desk.round(50)
    assert desk.jobs()


def test_it_rests_after_some_failures_each_of_which_is_told() -> None:
    desk, number = at_work()
    for _ in range(FAILURES_BEFORE_REST):
        desk.say(WORKER, Proposed(problem="it is tired"), number=number, seq=1)
        desk.round(1)
        number = desk.jobs()[0].envelope.hop_number if desk.jobs() else 0
    assert number == 0
    told = [e for c in desk.entries if isinstance(c, RunChanged) for e in c.delta.events]
    assert [e.type for e in told].count("summary_failed") == FAILURES_BEFORE_REST


def test_a_job_whose_worker_dies_is_begun_again_and_then_given_up() -> None:
    desk, number = at_work()
    for _ in range(ATTEMPTS - 1):
        desk.take(desk.coordinator.host_lost(WORKER))
        assert desk.a_job() != number
    desk.take(desk.coordinator.host_lost(WORKER))
    assert not desk.jobs()
    assert desk.run.background.is_idle


def test_the_death_of_a_worker_is_no_loss_of_the_run() -> None:
    desk, _ = at_work()
    hop = desk.run.hop_number
    desk.take(desk.coordinator.host_lost(WORKER, "it was silent"))
    assert (desk.run.losses, desk.run.hop_number) == (0, hop)


def test_more_jobs_than_one_worker_does_are_done_by_the_next() -> None:
    desk = Desk()
    background = desk.coordinator._background
    background._proven.add(WORKER)
    for _ in range(5):
        background._jobs[background._worker()] += 1
    assert dict(background._jobs) == {WORKER: 4, Slot(COMPACTION_WORKER, index=1): 1}


def test_workers_come_up_one_after_the_other() -> None:
    desk, number = at_work()
    background = desk.coordinator._background
    background._jobs[WORKER] += 20
    assert background._worker() == WORKER
    desk.say(WORKER, Summarized("key", SUMMARY, USED), number=number, seq=1)
    assert background._worker() == Slot(COMPACTION_WORKER, index=1)
    desk.take(desk.coordinator.host_lost(WORKER))
    background._jobs[WORKER] += 4
    assert background._worker() == WORKER


def test_a_full_window_waits_for_the_plan_that_is_being_made() -> None:
    desk, number = at_work()
    desk.say(TURN, Answered(StateDelta(), Yielded()))
    assert (desk.posts, desk.run.slot) == ([], None)
    desk.say(WORKER, Proposed(desk.offer()), number=number, seq=1)
    (post,) = desk.posts
    assert post.slot == Slot(REPAIR)
    assert desk.coordinator.next_overdue_at is None


def test_it_waits_so_long_and_no_longer() -> None:
    desk, _ = at_work()
    desk.say(TURN, Answered(StateDelta(), Yielded()))
    due = desk.coordinator.next_overdue_at
    assert due == pytest.approx(desk.clock.now() + WAIT_S)
    desk.clock.advance(WAIT_S - 1)
    desk.take(desk.coordinator.overdue())
    assert not desk.posts
    desk.clock.advance(1)
    desk.take(desk.coordinator.overdue())
    assert [post.slot for post in desk.posts] == [Slot(REPAIR)]


def test_it_waits_no_longer_for_a_job_that_failed() -> None:
    desk, number = at_work()
    desk.say(TURN, Answered(StateDelta(), Yielded()))
    desk.say(WORKER, Proposed(problem="it is tired"), number=number, seq=1)
    assert Slot(REPAIR) in [post.slot for post in desk.posts]


def test_where_no_plan_is_being_made_a_full_window_does_not_wait() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.say(TURN, Answered(StateDelta(), Yielded()))
    assert [post.slot for post in desk.posts] == [Slot(REPAIR)]


@pytest.mark.parametrize("mode", ["park", "cancel"])
def test_a_run_that_waits_for_a_plan_can_be_stopped(mode: str) -> None:
    desk, number = at_work()
    desk.say(TURN, Answered(StateDelta(), Yielded()))
    desk.take(desk.coordinator.stop("run", mode))
    assert not desk.coordinator.runs
    assert desk.coordinator.next_overdue_at is None
    cuts = [post for post in desk.posts if isinstance(post.envelope.body, Cut)]
    assert [(post.slot, post.envelope.hop_number) for post in cuts] == [(WORKER, number)]


def test_a_run_whose_budget_is_spent_begins_none() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.take(desk.coordinator.allow(1.0, spent_usd=2.0))
    desk.round(900)
    assert not desk.jobs()


def test_the_next_cell_knows_what_was_summarized() -> None:
    desk = Desk()
    stored = StoredRun(
        spec=a_spec(config=summarizing()),
        command="command",
        added_at=0.0,
        state=SharedState(),
        hop=None,
        losses=0,
        end=None,
        summaries={"key": SUMMARY},
    )
    coordinator = Coordinator(
        term=2, command="command", needs=executor_needs(), agent_turns=1, clock=desk.clock
    )
    coordinator.adopt(stored)
    effects, will_be = coordinator.compact("run", "the names")
    assert will_be
    (post,) = effects.posts
    job = post.envelope.body
    assert isinstance(job, Summarize)
    assert (job.known, job.keep, job.asked) == ({"key": SUMMARY}, "the names", True)


def test_a_user_may_ask_however_full_the_window_is_and_once_is_once() -> None:
    desk = Desk()
    desk.to_its_turn()
    effects, will_be = desk.coordinator.compact("run", "the names")
    desk.take(effects)
    assert will_be
    number = desk.a_job()
    desk.say(WORKER, Proposed(None), number=number, seq=1)
    desk.round(1)
    assert not desk.jobs()


def test_nobody_is_summarized_who_is_not_served() -> None:
    assert Desk().coordinator.compact("another") == (Effects(), False)


def test_a_run_for_which_it_was_asked_before_it_came_waits_for_its_summary() -> None:
    desk = Desk(run_id="first", conversation_id="first")
    assert desk.coordinator.compact("run", "the names") == (Effects(), False)
    effects = desk.coordinator.submit(desk.another("run"), [Message.assistant("long", tokens=9)])
    desk.take(effects)
    number = desk.a_job()
    desk.say(Slot(REPAIR), Answered(StateDelta(), RepairComplete(repairs_made=0)))
    assert (desk.posts, desk.run.slot) == ([], None)
    offer = desk.offer()
    desk.say(WORKER, Proposed(offer), number=number, seq=1)
    (post,) = desk.posts
    assert post.slot == Slot(COMPACTION)
    assert isinstance(post.envelope.body, Deliver)
    assert post.envelope.body.offer == offer


def test_one_that_is_at_its_turn_does_not_wait() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.take(desk.coordinator.compact("run")[0])
    desk.a_job()
    assert desk.run.slot == TURN


def test_what_was_asked_for_runs_that_never_came_is_forgotten_some_time() -> None:
    background = Desk().coordinator._background
    for number in range(REMEMBERED_RUNS + 5):
        background.ask(f"run-{number}", "", Effects())
    assert len(background._asked) == REMEMBERED_RUNS


# ---- what a model asks for ---------------------------------------------------------------


def test_a_model_may_ask_however_full_the_window_is() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.say(TURN, SummaryWanted("the names"))
    (post,) = desk.jobs()
    job = post.envelope.body
    assert isinstance(job, Summarize)
    assert (job.keep, job.asked) == ("the names", True)
    desk.say(WORKER, Proposed(desk.offer()), number=desk.a_job(), seq=1)
    (told,) = desk.posts
    assert told.envelope.body == Offered(1)


def test_what_it_says_next_is_heard_as_well() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.say(TURN, SummaryWanted(), seq=7)
    before = desk.version
    desk.say(TURN, Changed(StateDelta((Write(REQUEST_TOKENS.name, "increment", 1),))), seq=7)
    assert desk.version == before + 1


def test_a_run_whose_model_has_asked_does_not_wait_for_that() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.say(TURN, SummaryWanted())
    desk.say(TURN, Answered(StateDelta(), TurnComplete(ending="rounds")))
    desk.say(Slot(STOP_DECISION), Answered(StateDelta(), RepairTrigger()))
    desk.say(Slot(REPAIR), Answered(StateDelta(), RepairComplete(repairs_made=0)))
    (post,) = [post for post in desk.posts if isinstance(post.envelope.body, Deliver)]
    assert post.slot == Slot(COMPACTION)


def test_asked_for_twice_while_it_is_made_is_once() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.say(TURN, SummaryWanted())
    number = desk.a_job()
    desk.say(TURN, SummaryWanted())
    assert not desk.jobs()
    desk.say(WORKER, Proposed(None), number=number, seq=1)
    desk.round(1)
    assert not desk.jobs()


def test_what_is_asked_of_an_older_hop_is_dropped() -> None:
    desk = Desk()
    desk.to_its_turn()
    desk.say(TURN, SummaryWanted(), number=desk.run.hop_number - 1)
    assert not desk.jobs()
