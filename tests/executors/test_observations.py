"""What an executor learns from elsewhere is made once, and is the same ever after."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from harness_actors.errors import WorkflowError
from harness_actors.executors import DeltaContext
from harness_actors.executors.observations import MOST_BYTES, MOST_PLACE_BYTES, encoded_plain
from harness_actors.ports import Agent
from harness_actors.records import RunSpec
from harness_actors.signals import Parked, RepairTrigger, Waiting
from harness_actors.state import SharedState, StateDelta, observed_by
from tests.bounded import bounded
from tests.executors.driver import RecordingModel, SimpleAgent

AGENT: Agent = SimpleAgent(RecordingModel([]))
SPEC = RunSpec(run_id="run", conversation_id="run", task=(), code="", config=bounded({}), edges=())


class Disk:
    """What is on disk of a run, and contexts of one executor that look at it."""

    def __init__(self, executor: str = "judge") -> None:
        self.executor = executor
        self.state = SharedState()
        self.deltas: list[StateDelta] = []

    def comes(self) -> DeltaContext:
        """The executor is sent a signal: a process of its own, which knows what is on disk."""
        return DeltaContext(
            spec=SPEC,
            agent=AGENT,
            writer_name=self.executor,
            reads=(),
            values=dict(self.state.values),
            log=None,
            started_at=0.0,
            send=self._send,
        )

    def answers(self, context: DeltaContext, outcome: Any = RepairTrigger()) -> None:  # noqa: B008
        self._write(context.last(outcome))

    async def _written(self) -> None:
        return

    def _send(self, delta: StateDelta) -> Awaitable[None]:
        self._write(delta)
        return asyncio.ensure_future(self._written())

    def _write(self, delta: StateDelta) -> None:
        self.deltas.append(delta)
        self.state.apply(delta)


def makes(*answers: Any) -> Callable[[], Awaitable[Any]]:
    """Gives these answers, one after the other, and fails when it is asked for more."""
    left = list(answers)

    async def make() -> Any:
        return left.pop(0)

    return make


def as_read(values: Any) -> Any:
    """As a journal gives them back."""
    return json.loads(json.dumps(values))


async def never() -> Any:
    raise AssertionError("it is on record")


async def test_an_observation_is_made_and_goes_with_the_change() -> None:
    disk = Disk()
    context = disk.comes()

    assert await context.observe("verdict", {"call": "c1"}, makes("allow")) == "allow"
    await context.flush()

    assert disk.state.values == {
        observed_by("judge"): [
            {"kind": "verdict", "question": {"call": "c1"}, "number": 1, "answer": "allow"}
        ]
    }


async def test_whoever_comes_again_in_the_same_place_is_given_what_is_on_disk() -> None:
    disk = Disk()
    before = disk.comes()
    await before.observe("verdict", "c1", makes("allow"))
    await before.flush()
    await before.observe("verdict", "c2", makes("deny"))  # lost with its process

    again = disk.comes()

    assert await again.observe("verdict", "c1", never) == "allow"
    assert await again.observe("verdict", "c2", makes("ask")) == "ask"


async def test_the_same_question_twice_makes_two_observations_each_with_its_own_answer() -> None:
    disk = Disk()
    context, make = disk.comes(), makes(3, 5, 8)
    drawn = [await context.observe("draw", None, make) for _ in range(3)]
    await context.flush()

    again = disk.comes()

    assert drawn == [3, 5, 8]
    assert [await again.observe("draw", None, never) for _ in range(3)] == drawn
    assert await again.observe("draw", None, makes(13)) == 13


async def test_two_of_one_question_at_once_keep_their_numbers_whichever_ends_first() -> None:
    disk = Disk()
    context, go = disk.comes(), asyncio.Event()

    async def late() -> str:
        await go.wait()
        return "first"

    first = asyncio.ensure_future(context.observe("draw", None, late))
    await asyncio.sleep(0)
    assert await context.observe("draw", None, makes("second")) == "second"
    await context.flush()
    again = disk.comes()  # the first is not on disk
    go.set()
    await first
    await context.flush()

    assert await again.observe("draw", None, makes("another first")) == "another first"
    assert await again.observe("draw", None, never) == "second"


async def test_a_place_ends_with_the_answer_of_its_executor() -> None:
    for outcome in (RepairTrigger(), Parked()):
        disk = Disk()
        context = disk.comes()
        await context.observe("draw", None, makes(1))
        await context.flush()
        disk.answers(context, outcome)

        assert await disk.comes().observe("draw", None, makes(2)) == 2
        assert disk.state.values[observed_by("judge")] == []


async def test_a_place_goes_on_while_its_run_waits_for_its_user() -> None:
    disk = Disk()
    context = disk.comes()
    await context.observe("draw", None, makes(1))
    disk.answers(context, Waiting())

    assert await disk.comes().observe("draw", None, never) == 1


async def test_each_executor_has_a_place_of_its_own() -> None:
    disk = Disk("judge")
    context = disk.comes()
    await context.observe("draw", None, makes(1))
    await context.flush()

    disk.executor = "other"
    assert await disk.comes().observe("draw", None, makes(2)) == 2


async def test_a_place_that_is_closed_begins_anew() -> None:
    disk = Disk()
    context = disk.comes()
    await context.observe("draw", None, makes(1))
    context.close_place()
    assert await context.observe("draw", None, makes(2)) == 2
    await context.flush()

    assert await disk.comes().observe("draw", None, never) == 2


async def test_who_never_observes_writes_nothing_of_it() -> None:
    disk = Disk()
    context = disk.comes()
    context.close_place()
    disk.answers(context)

    assert disk.deltas == [StateDelta()]
    assert disk.state.values == {}


async def test_what_making_it_raises_is_raised_and_nothing_is_kept() -> None:
    disk = Disk()
    context = disk.comes()

    async def fail() -> Any:
        raise OSError("no such host")

    with pytest.raises(OSError, match="no such host"):
        await context.observe("listing", "/", fail)
    await context.flush()

    assert not disk.state.values
    assert await disk.comes().observe("listing", "/", makes(["a"])) == ["a"]


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ((1, ("a", None)), [1, ["a", None]]),
        ({1: "one"}, {"1": "one"}),
        (2**70, 2**70),
        ("\ud800", "\ud800"),
        (None, None),
        (0.1, 0.1),
    ],
)
async def test_an_answer_is_the_same_before_and_after_a_death(answer: Any, read: Any) -> None:
    disk = Disk()
    context = disk.comes()
    assert await context.observe("any", 1, makes(answer)) == read
    await context.flush()
    assert await disk.comes().observe("any", 1, never) == read


@pytest.mark.parametrize("question", [{2: "b", 10: "a"}, {"ä": [1, (2, 3)]}, "\ud800", 0.1, True])
async def test_a_question_is_known_again_after_a_death(question: Any) -> None:
    disk = Disk()
    context = disk.comes()
    await context.observe("any", question, makes("so"))
    await context.flush()
    disk.state.values = as_read(disk.state.values)
    assert await disk.comes().observe("any", question, never) == "so"


async def test_who_changes_what_it_was_given_changes_nothing_else() -> None:
    disk = Disk()
    context = disk.comes()
    given = await context.observe("any", 1, makes({"a": [1]}))
    given["a"].append(2)
    await context.flush()

    again = disk.comes()
    read = await again.observe("any", 1, never)
    assert read == {"a": [1]}
    read["a"].append(3)
    assert await disk.comes().observe("any", 1, never) == {"a": [1]}


@pytest.mark.parametrize("value", [{1, 2}, b"x", float("nan"), object(), [[[...]]]])
async def test_what_is_no_plain_json_is_refused(value: Any) -> None:
    context = Disk().comes()
    with pytest.raises(WorkflowError, match="the answer of observation 'any' must be"):
        await context.observe("any", 1, makes(value))
    with pytest.raises(WorkflowError, match="the question of observation 'any' must be"):
        await context.observe("any", value, never)


@pytest.mark.parametrize("kind", ["", None, 3])
async def test_a_kind_is_a_text(kind: Any) -> None:
    with pytest.raises(WorkflowError, match="observes a kind that is no text"):
        await Disk().comes().observe(kind, None, never)


async def test_one_that_is_too_large_is_refused_by_its_kind_and_its_size() -> None:
    context = Disk().comes()
    fits = "x" * (MOST_BYTES - len("any") - len("1") - len('""'))
    assert await context.observe("any", 1, makes(fits)) == fits

    with pytest.raises(WorkflowError, match=r"observes 'any' in 65,537 bytes, and 65,536 is most"):
        await context.observe("any", 2, makes(fits + "x"))


SIMPLE = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
KEYS = st.text(max_size=3) | st.integers(0, 9) | st.booleans() | st.none()
PLAIN = st.recursive(
    SIMPLE | st.floats(allow_nan=False, allow_infinity=False),
    lambda of: st.lists(of, max_size=3) | st.dictionaries(KEYS, of, max_size=3),
)


@given(PLAIN | st.tuples(SIMPLE, SIMPLE))
def test_a_value_is_kept_as_it_is_read_again_with_its_keys_in_order(value: Any) -> None:
    as_read = json.loads(json.dumps(value))
    assert encoded_plain("judge", "it", value) == json.dumps(as_read, sort_keys=True)


def test_a_number_of_too_many_digits_is_refused_wherever_it_stands() -> None:
    for value in (10**5000, [10**5000], {"n": 10**5000}, [[10**5000]]):
        with pytest.raises(WorkflowError, match="must be a plain JSON value"):
            encoded_plain("judge", "it", value)


async def test_a_place_with_too_much_is_refused_also_by_whoever_comes_again() -> None:
    disk = Disk()
    context = disk.comes()
    count = MOST_PLACE_BYTES // MOST_BYTES
    for number in range(count):
        await context.observe("any", number, makes("x" * (MOST_BYTES - 100)))
    await context.flush()

    for one in (context, disk.comes()):
        with pytest.raises(WorkflowError, match="in one place 1,048,576 is most"):
            await one.observe("any", "more", makes("x" * 10_000))
    context.close_place()
    assert await context.observe("any", "more", makes("x")) == "x"
