import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.messages import ToolCall
from harness_actors.ports import Effect, ToolContext, ToolSpec
from harness_actors.turn.keys import LONG_ARGUMENTS
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.waves import shared_keys, waves_of


@dataclass(frozen=True)
class Declared:
    """A tool that says what it touches."""

    effect: Effect = "read_only"
    keys: tuple[str, ...] = ()
    name: str = "tool"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="A tool.",
            parameters={"type": "object"},
            effect=self.effect,
            resource_keys=self.keys,
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Case:
    """A call with what must be known of it: the keys that it may share, None for none at all."""

    plan: PlannedCall
    keys: frozenset[str] | None = field(compare=False)


def a_call(tool: Declared | None, arguments: Any = None, *, alone: bool = False) -> PlannedCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return PlannedCall(call=ToolCall("c", "tool", text), tool=tool, alone=alone)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    effect: Effect = draw(
        st.sampled_from(("read_only", "read_only", "read_only", "local_write", "network"))
    )
    given = draw(
        st.fixed_dictionaries({}, optional={"x": st.integers(0, 2), "y": st.sampled_from("pq")})
    )
    templates = draw(st.lists(st.sampled_from(("x:{x}", "y:{y}", "all", "x:0")), max_size=2))
    whole = draw(st.sampled_from((True, True, True, False)))
    alone = draw(st.sampled_from((False, False, False, True)))
    exists = draw(st.sampled_from((True, True, True, False)))
    arguments = json.dumps(given) if whole else draw(st.sampled_from(("", "[1]", '{"x": 1', "7")))
    tool = Declared(effect, tuple(templates)) if exists else None
    return Case(a_call(tool, arguments, alone=alone and exists), _known(tool, whole, given, alone))


def _known(
    tool: Declared | None, whole: bool, given: dict[str, Any], alone: bool
) -> frozenset[str] | None:
    if tool is None:
        return frozenset()
    if alone or tool.effect != "read_only":
        return None
    keys: set[str] = set()
    for template in tool.keys:
        name = template[0] if "{" in template else ""
        if not whole or (name and name not in given):
            return None
        keys.add(f"{name}:{given[name]}" if name else template)
    return frozenset(keys)


def _may_join(wave: list[frozenset[str] | None], keys: frozenset[str] | None) -> bool:
    if keys is None or None in wave:
        return False
    return all(keys.isdisjoint(other or ()) for other in wave)


@given(st.lists(cases(), min_size=1, max_size=12))
def test_waves_part_a_message_in_order_and_nothing_overlaps_and_no_wave_could_be_longer(
    message: list[Case],
) -> None:
    waves = waves_of([case.plan for case in message])
    assert [plan for wave in waves for plan in wave] == [case.plan for case in message]
    left = iter(message)
    known = [[next(left).keys for _ in wave] for wave in waves]
    for wave in known:
        for place, keys in enumerate(wave):
            assert place == 0 or _may_join(wave[:place], keys)
    for before, after in pairwise(known):
        assert not _may_join(before, after[0])


def test_neighbours_that_only_read_are_one_wave() -> None:
    reads = [a_call(Declared()) for _ in range(3)]
    assert waves_of(reads) == [reads]


@pytest.mark.parametrize("effect", ["local_write", "network", "destructive"])
def test_what_may_write_is_alone_whatever_it_touches(effect: Effect) -> None:
    read, write = a_call(Declared(keys=("a",))), a_call(Declared(effect, ("b",)))
    assert waves_of([read, write, read]) == [[read], [write], [read]]


def test_calls_that_read_the_same_come_after_each_other() -> None:
    read = Declared(keys=("crm:{customer}",))
    one, same, other = (a_call(read, {"customer": name}) for name in ("a", "a", "b"))
    assert waves_of([one, same, other]) == [[one], [same, other]]


def test_a_call_that_must_not_run_stands_in_nobodys_way() -> None:
    read, refused = a_call(Declared()), a_call(None)
    assert waves_of([read, refused, read]) == [[read, refused, read]]


@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        ("file:{path}", {}),
        ("file:{path}", "not json"),
        ("file:{path}", "[]"),
        ("file:{path}", {"path": "x" * LONG_ARGUMENTS}),
        ("file:{path.name}", {"path": "x"}),
        ("file:{path:d}", {"path": "x"}),
        ("file:{path:{width}}", {"path": "x", "width": 10**15}),
    ],
)
def test_a_call_of_which_nobody_knows_what_it_touches_is_alone(
    template: str, arguments: Any
) -> None:
    read, unknown = a_call(Declared()), a_call(Declared(keys=(template,)), arguments)
    assert shared_keys(unknown) is None
    assert waves_of([read, unknown, read]) == [[read], [unknown], [read]]


def test_a_key_is_taken_by_whichever_call_of_a_wave_has_it() -> None:
    read = Declared(keys=("crm:{customer}",))
    first, second, again = (a_call(read, {"customer": name}) for name in ("a", "b", "b"))
    assert waves_of([first, second, again]) == [[first, second], [again]]
