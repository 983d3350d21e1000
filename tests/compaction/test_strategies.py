"""Strategies of one's own: which messages make room first, and which are spared."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors import ChatAgent
from harness_actors.agents import Program
from harness_actors.compaction import Compacted, Ladder
from harness_actors.compaction.strategies import named
from harness_actors.config import CompactionConfig, HarnessConfig
from harness_actors.conversation import Conversation, repaired
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import ConfigError
from harness_actors.executors import Compaction
from harness_actors.plan import CompactionPlan, View, is_pinned
from harness_actors.ports import Candidate
from harness_actors.testing import ScriptedModel, an_agent
from tests.compaction.logs import joined, logs
from tests.compaction.test_ladder import a_group, a_run, pressure

Choose = Callable[[Sequence[Candidate]], Iterable[Any]]


@dataclass
class Own:
    """A strategy that chooses by a function.

    Attributes:
        choose: What it names.
    """

    choose: Choose
    action: str = "drop"
    name: str = "own"


def climbed(log: Conversation, window: int, own: Sequence[Any], *names: str) -> Compacted:
    plain = pressure(log, window)
    strategies = CompactionConfig(strategies=names or None)
    ladder = Ladder(log, None, plain, strategies, own=own)
    for _ in ladder.climb():
        pass
    return ladder.result()


def of_tool(tool: str) -> Choose:
    return lambda candidates: [one for one in candidates if tool in one.tools]


def shown_numbers(log: Conversation, result: Compacted) -> list[int]:
    """Of the rounds that `a_run` makes: those that are shown as they are."""
    plan = result.plan
    messages = list(log) if plan is None else View(log, plan).messages()
    whole = {message.encoded for message in messages}
    results = [message for message in log if message.role == "tool"]
    return [number for number, message in enumerate(results) if message.encoded in whole]


def plan_of(result: Compacted) -> CompactionPlan:
    assert result.plan is not None
    return result.plan


def two_kinds(rounds: int) -> Conversation:
    parts = [
        a_group(n, "run_tests" if n % 2 else "read_file", f"{n} " + "x" * 4000)
        for n in range(rounds)
    ]
    return joined(parts)


def test_what_it_names_goes_first_and_the_rest_is_spared() -> None:
    log = two_kinds(40)
    result = climbed(log, 60_000, [Own(of_tool("read_file"))], "own", "drop")

    assert result.fits
    shown = shown_numbers(log, result)
    # Of those that it named, the oldest first; and none of the others.
    assert [number for number in range(40) if number % 2] == [n for n in shown if n % 2]
    even = [number for number in shown if number % 2 == 0]
    assert even == list(range(40 - 2 * len(even), 40, 2))
    assert 0 < len(even) < 20
    # What notices take was gained by those that it named, too.
    assert 100 + sum(message.tokens for message in View(log, plan_of(result)).messages()) <= 27_000


def test_what_it_leaves_out_makes_room_only_in_an_emergency() -> None:
    log = two_kinds(40)
    spares_tests = Own(of_tool("read_file"), name="spare_tests")
    roomy = climbed(log, 30_000, [spares_tests], "spare_tests")
    assert roomy.fits
    assert sum(1 for number in shown_numbers(log, roomy) if number % 2) == 20

    narrow = climbed(log, 10_000, [spares_tests], "spare_tests")
    assert narrow.fits
    assert sum(1 for number in shown_numbers(log, narrow) if number % 2) < 20


def test_it_is_asked_in_its_order() -> None:
    log = a_run(40, "run_tests")
    newest_first = Own(lambda candidates: list(reversed(candidates)))
    result = climbed(log, 40_000, [newest_first], "own")
    assert result.plan is not None
    shown = shown_numbers(log, result)
    assert 0 in shown
    # The newest ones are no candidates.
    assert 39 in shown
    assert 25 not in shown


def test_the_milder_ones_have_their_turn_first_and_ones_own_before_the_shipped() -> None:
    mild, hard = Own(list, "clear", "mild"), Own(list, "drop", "hard")
    names = [one.name for one in named(None, [hard, mild])]
    assert names == ["mild", "clear", "externalize", "hard", "drop"]
    assert [one.name for one in named(("drop", "hard", "clear"), [hard])] == [
        "clear",
        "drop",
        "hard",
    ]


def test_shipped_ones_can_be_left_out() -> None:
    log = a_run(30)
    cleared = climbed(log, 30_000, [])
    assert (cleared.cleared > 0, cleared.dropped) == (True, 0)
    dropped = climbed(log, 30_000, [], "drop")
    assert (dropped.cleared, dropped.dropped > 0) == (0, True)
    assert dropped.fits


def test_candidates_say_what_they_are() -> None:
    seen: list[Candidate] = []

    def look(candidates: Sequence[Candidate]) -> list[Candidate]:
        seen.extend(candidates)
        return []

    log = two_kinds(10)
    climbed(log, 5_000, [Own(look, "clear")])
    assert [one.start for one in seen][:3] == [0, 2, 4]
    assert (seen[0].tools, seen[1].tools) == (("read_file",), ("run_tests",))
    at, message, call = seen[0].messages[1]
    assert (at, message.role) == (1, "tool")
    assert call is not None
    assert call.name == "read_file"
    assert seen[0].shown.policy(call).durability == "replayable"
    assert (seen[0].action, seen[0].tokens) == (None, sum(m.tokens for m in log[:2]))


def raises(_: Sequence[Candidate]) -> list[Candidate]:
    raise ZeroDivisionError("its own fault")


@pytest.mark.parametrize(
    ("choose", "problem"),
    [
        (raises, "ZeroDivisionError: its own fault"),
        (lambda _: 7, "not iterable"),
        (lambda _: [1, 2], "must choose of the candidates"),
        (lambda _: None, "not iterable"),
        (lambda found: [found[0], object()], "must choose of the candidates"),
    ],
)
def test_room_is_made_without_one_that_fails(choose: Choose, problem: str) -> None:
    log = two_kinds(40)
    result = climbed(log, 30_000, [Own(choose, "clear")])
    assert result.fits
    assert [name for name, _ in result.problems] == ["own"]
    assert problem in result.problems[0][1]
    without = climbed(log, 30_000, [])
    assert result.plan == without.plan


def test_the_same_one_named_twice_is_taken_once() -> None:
    log = two_kinds(40)
    twice = climbed(log, 30_000, [Own(lambda found: [*found, *found])], "own")
    assert twice.plan == climbed(log, 30_000, [Own(list)], "own").plan


@settings(deadline=None, max_examples=150)
@given(logs(), st.integers(500, 20_000), st.data())
def test_any_log_fits_whatever_it_names(
    log: Conversation, window: int, data: st.DataObject
) -> None:
    def drawn(candidates: Sequence[Candidate]) -> list[Candidate]:
        return data.draw(st.permutations(candidates)) if candidates else []

    actions: list[str] = data.draw(st.lists(st.sampled_from(["clear", "externalize", "drop"])))
    own = [Own(drawn, action, f"own{at}") for at, action in enumerate(actions)]
    names = data.draw(st.none() | st.just(tuple(one.name for one in own)) if own else st.none())
    result = climbed(log, window, own, *(names or ()))

    assert result.problems == ()
    shown = list(log) if result.plan is None else View(log, result.plan).messages()
    assert repaired(shown)[1] == 0
    assert result.fits == (100 + sum(message.tokens for message in shown) <= window)
    if window > 2 * log.tokens:
        assert [m for m in log if is_pinned(m)] == [m for m in shown if is_pinned(m)]


# ---- where they are given --------------------------------------------------------------


class Late:
    """Answers some time."""

    name, action = "late", "drop"

    async def choose(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates


def an_agent_with(*own: Any) -> ChatAgent:
    return ChatAgent(model=ScriptedModel([]), strategies=own)


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ((Own,), "must have a name, an action and a method choose"),
        (("drop",), "must have a name, an action and a method choose"),
        ((Own(list, name="drop"),), "must each have a name of its own"),
        ((Own(list), Own(list)), "must each have a name of its own"),
        ((Own(list, name=""),), "must each have a name of its own"),
        ((Own(list, action="summarize"),), "must be one of clear, externalize, drop"),
        ((Late(),), "must answer at once, not be async"),
    ],
)
def test_an_agent_refuses_what_is_no_strategy(own: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        an_agent_with(*own)


@pytest.mark.parametrize("own", ["drop", None, Own(list), 7])
def test_an_agent_refuses_what_is_no_list_of_strategies(own: Any) -> None:
    with pytest.raises(ConfigError, match="must be a list of strategies"):
        ChatAgent(model=ScriptedModel([]), strategies=own)


@pytest.mark.parametrize("names", ["drop", [], ["drop", "drop"], [1], 7])
def test_settings_refuse_what_are_no_names(names: Any) -> None:
    with pytest.raises(ConfigError, match=r"compaction\.strategies"):
        CompactionConfig(strategies=names)


def test_a_strategy_that_nobody_knows_is_named_with_those_there_are() -> None:
    program = Program.of(an_agent_with(Own(list)))
    config = HarnessConfig(compaction=CompactionConfig(strategies=("own", "dorp")))
    with pytest.raises(
        ConfigError, match=r"no strategy 'dorp'; there are clear, externalize, drop, own"
    ):
        program.check_bounds(config)


def test_a_run_names_them_and_its_compaction_travels_with_the_agent() -> None:
    program = Program.of(an_agent_with(Own(list)))
    spec = program.spec("the task", HarnessConfig())
    assert spec.custom == ("compaction",)
    assert spec.config.compaction is not None
    assert spec.config.compaction.strategies == ("clear", "externalize", "own", "drop")
    assert not spec.replaces_compaction
    assert program.setup.parts["strategies"] == ["own"]

    usual = Program.of(an_agent()).spec("the task", HarnessConfig())
    assert (usual.custom, usual.config.compaction) == ((), CompactionConfig())


@pytest.mark.parametrize("compaction", [CompactionConfig(strategies=("drop", "clear")), None])
def test_a_run_that_names_none_of_them_is_a_usual_one(compaction: CompactionConfig | None) -> None:
    program = Program.of(an_agent_with(Own(list)))
    spec = program.spec("the task", HarnessConfig(compaction=compaction))
    assert spec.custom == ()
    assert spec.is_summarized == (compaction is not None)
    assert spec.config.compaction == compaction


def test_a_workflow_with_a_compaction_of_its_own_asks_no_strategies() -> None:
    builder = HarnessWorkflowBuilder(an_agent_with(Own(list))).replace("compaction", Compaction())
    with pytest.raises(ConfigError, match="does not ask them"):
        Program.of(builder.build())
    replaced = HarnessWorkflowBuilder(an_agent()).replace("compaction", Compaction()).build()
    spec = Program.of(replaced).spec("the task", HarnessConfig())
    assert spec.replaces_compaction
    assert not spec.is_summarized


def test_a_workflow_without_compaction_asks_no_strategies() -> None:
    builder = HarnessWorkflowBuilder(an_agent_with(Own(list))).add_edge("repair", "agent_turn")
    with pytest.raises(ConfigError, match="has no compaction"):
        Program.of(builder.build())
    plain = HarnessWorkflowBuilder(an_agent()).add_edge("repair", "agent_turn").build()
    assert not Program.of(plain).spec("the task", HarnessConfig()).is_summarized
