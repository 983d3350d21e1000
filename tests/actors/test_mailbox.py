"""Outboxes: one call in flight, batches that grow, and what becomes of broken calls."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from harness_actors.actors.mailbox import (
    FIRST_RETRY_S,
    LONGEST_RETRY_S,
    REMEMBERED_RUNS,
    Code,
    Outbox,
    Parcel,
    SeenEnvelopes,
    UnreachableError,
)
from harness_actors.coordination.protocol import Committed, Envelope
from harness_actors.errors import ActorLostError
from harness_actors.records import ProcessMark
from tests.actors.test_simulated_loop import World


def an_envelope(
    number: int, *, run_id: str = "run", hop_number: int = 1, term: int = 1
) -> Envelope:
    return Envelope(run_id, term, hop_number, number, Committed(number))


class Receiver:
    """The other end: takes batches when it is let, and fails when it is told to."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.called_at: list[float] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.failures: list[Exception | None] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._changed = asyncio.Condition()

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        self.in_flight += 1
        self.called_at.append(asyncio.get_running_loop().time())
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.batches.append([parcel.seq for parcel in batch if isinstance(parcel, Envelope)])
        async with self._changed:
            self._changed.notify_all()
        try:
            await self.gate.wait()
            if self.failures and (failure := self.failures.pop(0)) is not None:
                raise failure
            return [parcel for parcel in batch if isinstance(parcel, Envelope)]
        finally:
            self.in_flight -= 1

    async def until(self, met: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(met)

    async def hello(self) -> tuple[ProcessMark, ...]:
        raise NotImplementedError

    async def watch(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError


async def test_what_a_peer_answers_is_told_also_where_its_first_answer_was_lost() -> None:
    receiver = Receiver()
    receiver.failures = [UnreachableError("the connection broke")]
    told: list[int] = []
    heard = asyncio.Event()

    def answered(answer: Sequence[Envelope]) -> None:
        told.extend(envelope.seq for envelope in answer)
        heard.set()

    outbox = Outbox(answered=answered)
    outbox.connect(receiver)
    outbox.post(an_envelope(1))
    async with asyncio.timeout(10):
        await heard.wait()
    assert told == [1]
    assert receiver.batches == [[1], [1]]


def telling(receiver: Receiver) -> tuple[Outbox, list[Parcel]]:
    """An outbox that can tell at once, and what it has told so."""
    told: list[Parcel] = []

    def tell(batch: Sequence[Parcel]) -> bool:
        told.extend(batch)
        return True

    outbox = Outbox(tell=tell)
    outbox.connect(receiver)
    return outbox, told


def connected(receiver: Receiver) -> Outbox:
    outbox = Outbox()
    outbox.connect(receiver)
    return outbox


async def test_a_message_leaves_at_once() -> None:
    receiver = Receiver()
    connected(receiver).post(an_envelope(1))
    await receiver.until(lambda: receiver.batches == [[1]])


async def test_what_is_posted_while_a_call_is_in_flight_goes_with_the_next_one() -> None:
    receiver = Receiver()
    outbox = connected(receiver)
    receiver.gate.clear()
    outbox.post(an_envelope(1))
    await receiver.until(lambda: receiver.in_flight == 1)
    for number in range(2, 50):
        outbox.post(an_envelope(number))
    receiver.gate.set()
    await receiver.until(lambda: len(receiver.batches) == 2)
    assert receiver.batches == [[1], list(range(2, 50))]
    assert receiver.most_in_flight == 1


async def test_a_message_alone_is_never_kept_waiting_by_the_one_before() -> None:
    receiver = Receiver()
    outbox = connected(receiver)
    for number in range(1, 20):
        outbox.post(an_envelope(number))
        await until_idle()
        assert len(receiver.batches) == number
    assert receiver.batches == [[number] for number in range(1, 20)]


async def test_what_needs_no_answer_leaves_before_telling_returns() -> None:
    receiver = Receiver()
    outbox, told = telling(receiver)
    outbox.tell(an_envelope(1))
    assert told == [an_envelope(1)]
    await until_idle()
    assert receiver.batches == [], "it was not sent a second time"


async def test_what_needs_no_answer_leaves_at_once_though_a_call_waits_for_its_answer() -> None:
    receiver = Receiver()
    outbox, told = telling(receiver)
    receiver.gate.clear()
    outbox.post(an_envelope(1))
    await receiver.until(lambda: receiver.in_flight == 1)
    outbox.post(an_envelope(2))
    outbox.tell(an_envelope(3))
    assert told == [an_envelope(3)]
    receiver.gate.set()
    await until_idle()
    assert receiver.batches == [[1], [2]]


async def test_nothing_is_told_of_an_outbox_that_is_closed() -> None:
    receiver = Receiver()
    outbox, told = telling(receiver)
    outbox.close()
    outbox.tell(an_envelope(1))
    await until_idle()
    assert (told, receiver.batches) == ([], [])


async def test_where_nothing_can_be_told_at_once_it_is_posted() -> None:
    receiver = Receiver()
    outbox = connected(receiver)
    outbox.tell(an_envelope(1))
    await receiver.until(lambda: receiver.batches == [[1]])


async def test_what_the_peer_fails_on_is_told_and_keeps_nothing_else_from_it() -> None:
    receiver = Receiver()
    told: list[int] = []
    outbox = Outbox(undeliverable=lambda parcel, _: told.append(parcel.seq))  # type: ignore[union-attr]
    for number in (1, 2, 3):
        outbox.post(an_envelope(number))
    # The batch, then its second message alone.
    receiver.failures = [ValueError("no"), None, ValueError("never")]
    outbox.connect(receiver)
    await receiver.until(lambda: len(receiver.batches) >= 1)
    outbox.post(an_envelope(4))
    await receiver.until(lambda: len(receiver.batches) == 5)
    assert receiver.batches == [[1, 2, 3], [1], [2], [3], [4]]
    assert told == [2]


async def test_what_was_posted_before_the_peer_is_known_is_not_through() -> None:
    outbox = Outbox()
    assert outbox.is_idle
    outbox.post(an_envelope(1))
    assert not outbox.is_idle


async def test_what_was_posted_before_the_peer_is_known_waits_for_it() -> None:
    outbox, receiver = Outbox(), Receiver()
    outbox.post(an_envelope(1))
    outbox.post(an_envelope(2))
    outbox.connect(receiver)
    await receiver.until(lambda: receiver.batches == [[1, 2]])


async def test_a_broken_call_is_made_again_with_the_same_batch() -> None:
    receiver = Receiver()
    receiver.failures = [UnreachableError("cut"), UnreachableError("cut again")]
    outbox = connected(receiver)
    receiver.gate.clear()
    outbox.post(an_envelope(1))
    await receiver.until(lambda: receiver.in_flight == 1)
    outbox.post(an_envelope(2))
    receiver.gate.set()
    await receiver.until(lambda: len(receiver.batches) == 4)
    assert receiver.batches == [[1], [1], [1], [2]], "what came later does not join the old batch"


def test_a_peer_that_stays_away_is_called_again_every_second() -> None:
    receiver = Receiver()
    receiver.failures = [UnreachableError("cut")] * 60

    async def calls() -> list[float]:
        outbox = connected(receiver)
        outbox.post(an_envelope(1))
        await receiver.until(lambda: len(receiver.called_at) == 60)
        outbox.close()
        return receiver.called_at

    called_at = World().run(calls)
    pauses_s = [after - before for before, after in pairwise(called_at)]
    assert pauses_s[0] == pytest.approx(FIRST_RETRY_S)
    assert pauses_s[-30:] == pytest.approx(30 * [LONGEST_RETRY_S])


async def test_nothing_is_sent_to_a_dead_peer() -> None:
    receiver = Receiver()
    receiver.failures = [ActorLostError("host", "killed")]
    outbox = connected(receiver)
    outbox.post(an_envelope(1))
    outbox.post(an_envelope(2))
    await receiver.until(lambda: len(receiver.batches) == 1)
    await until_idle()
    outbox.post(an_envelope(3))
    await until_idle()
    assert receiver.batches == [[1, 2]]
    assert not outbox.is_idle, "what was posted has not come through"


async def test_a_batch_that_the_receiver_refuses_does_not_hold_up_the_next_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver = Receiver()
    receiver.failures = [ValueError("a fault of the receiver's")]
    outbox = connected(receiver)
    receiver.gate.clear()
    outbox.post(an_envelope(1))
    await receiver.until(lambda: receiver.in_flight == 1)
    outbox.post(an_envelope(2))
    receiver.gate.set()
    await receiver.until(lambda: receiver.batches == [[1], [2]])
    assert "a message was not taken: run" in caplog.text


async def test_closing_drops_what_waits_and_the_call_in_flight() -> None:
    receiver = Receiver()
    outbox = connected(receiver)
    receiver.gate.clear()
    outbox.post(an_envelope(1))
    await receiver.until(lambda: receiver.in_flight == 1)
    outbox.post(an_envelope(2))
    outbox.close()
    outbox.post(an_envelope(3))
    await until_idle()
    assert receiver.in_flight == 0
    outbox.post(an_envelope(4))
    await until_idle()
    assert receiver.batches == [[1]]
    assert not outbox.is_idle


async def test_closing_ends_a_retry() -> None:
    receiver = Receiver()
    receiver.failures = [UnreachableError("cut")] * 100
    outbox = connected(receiver)
    outbox.post(an_envelope(1))
    await receiver.until(lambda: len(receiver.batches) == 2)
    outbox.close()
    await until_idle()
    assert len(receiver.batches) == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_outbox_can_be_closed_before_it_is_connected() -> None:
    outbox, receiver = Outbox(), Receiver()
    outbox.post(an_envelope(1))
    outbox.close()
    outbox.connect(receiver)
    await until_idle()
    assert receiver.batches == []


async def until_idle() -> None:
    """Let every task that can go on do so: none of them waits for time here."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_an_envelope_is_new_once() -> None:
    seen = SeenEnvelopes()
    assert seen.is_new(an_envelope(1))
    assert not seen.is_new(an_envelope(1))
    assert seen.is_new(an_envelope(2))
    assert not seen.is_new(an_envelope(1)), "it is older than what was seen"


def test_a_later_step_or_term_begins_to_count_anew() -> None:
    seen = SeenEnvelopes()
    assert seen.is_new(an_envelope(5, hop_number=1))
    assert seen.is_new(an_envelope(1, hop_number=2))
    assert not seen.is_new(an_envelope(6, hop_number=1))
    assert seen.is_new(an_envelope(1, hop_number=1, term=2))
    assert not seen.is_new(an_envelope(9, hop_number=9, term=1))


def test_runs_are_counted_apart_and_forgotten() -> None:
    seen = SeenEnvelopes()
    assert seen.is_new(an_envelope(1, run_id="a"))
    assert seen.is_new(an_envelope(1, run_id="b"))
    assert len(seen) == 2
    seen.forget("a")
    seen.forget("nobody")
    assert len(seen) == 1


def test_what_was_seen_of_a_run_that_is_over_is_not_new() -> None:
    seen = SeenEnvelopes()
    assert seen.is_new(an_envelope(1, run_id="a", hop_number=3))
    seen.forget("a")
    assert not seen.is_new(an_envelope(1, run_id="a", hop_number=3))
    assert not seen.is_new(an_envelope(7, run_id="a", hop_number=2))
    assert seen.is_new(an_envelope(1, run_id="a", hop_number=4)), "it was taken up again"
    assert len(seen) == 1
    seen.forget("a")
    assert not seen.is_new(an_envelope(1, run_id="a", hop_number=4))


def test_of_so_many_runs_that_are_over_the_newest_are_remembered() -> None:
    seen = SeenEnvelopes()
    for number in range(REMEMBERED_RUNS + 1):
        assert seen.is_new(an_envelope(1, run_id=f"run{number}"))
        seen.forget(f"run{number}")
    assert seen.is_new(an_envelope(1, run_id="run0")), "the oldest is not known any more"
    assert not seen.is_new(an_envelope(1, run_id="run1"))
    assert not seen.is_new(an_envelope(1, run_id=f"run{REMEMBERED_RUNS}"))


def test_a_run_that_was_taken_up_again_is_remembered_from_its_newest_end_on() -> None:
    seen = SeenEnvelopes()
    assert seen.is_new(an_envelope(1, run_id="again"))
    seen.forget("again")
    for number in range(REMEMBERED_RUNS):
        if number == 1:
            assert seen.is_new(an_envelope(2, run_id="again"))
            seen.forget("again")
        assert seen.is_new(an_envelope(1, run_id=f"run{number}"))
        seen.forget(f"run{number}")
    assert not seen.is_new(an_envelope(2, run_id="again"))
    assert seen.is_new(an_envelope(1, run_id="run0")), "that one is the oldest"


def test_whatever_prints_code_does_not_print_its_keys() -> None:
    code = Code("abc", b"blob", {"OPENAI_API_KEY": "secret-value"}, 1)
    assert "secret-value" not in repr(code)
    assert "secret-value" not in repr([code])
    assert "OPENAI_API_KEY" in repr(code)
