"""Merging keeps what is known, however often, and gives the same whatever is merged first."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from harness_actors.plan import Decision, OpenItem, Reference, Summary
from harness_actors.plan.merging import MOST_OUTCOMES, NEWEST_OUTCOMES, comparable, merged
from tests.plan.summaries import outcome, summaries

NONE = Summary()
MANY = st.lists(summaries(most=3), max_size=6)


@given(MANY)
def test_facts_survive_any_number_of_merges(parts: list[Summary]) -> None:
    pinned = Summary(facts=("The port is 8080.",))
    whole = reduce(merged, [pinned, *parts])

    assert whole.facts[0] == "The port is 8080."
    known = [comparable(fact) for fact in whole.facts]
    assert len(known) == len(set(known))
    for part in parts:
        assert {comparable(fact) for fact in part.facts} - {""} <= set(known)


@given(MANY)
def test_decisions_are_never_lost(parts: list[Summary]) -> None:
    whole = reduce(merged, parts, NONE)

    assert set(whole.decisions) == {one for part in parts for one in part.decisions}
    assert len(set(whole.decisions)) == len(whole.decisions)


@given(summaries())
def test_merging_with_nothing_gives_the_normal_form(one: Summary) -> None:
    normal = merged(one, NONE)

    assert merged(NONE, one) == normal
    assert merged(normal, NONE) == normal
    assert merged(normal, normal).facts == normal.facts
    assert merged(normal, normal).decisions == normal.decisions


@given(summaries(), summaries())
def test_the_same_two_give_the_same(older: Summary, newer: Summary) -> None:
    assert merged(older, newer) == merged(older, newer)
    assert merged(older, newer).as_plain() == merged(older, newer).as_plain()


@given(summaries(done=False), summaries(done=False), summaries(done=False))
def test_it_does_not_matter_which_two_are_merged_first(
    one: Summary, two: Summary, three: Summary
) -> None:
    assert merged(merged(one, two), three) == merged(one, merged(two, three))


@given(*[st.sets(st.integers(0, 400), max_size=150)] * 3)
def test_nor_does_it_if_there_are_too_many_outcomes(
    one: set[int], two: set[int], three: set[int]
) -> None:
    first, second, third = (
        Summary(outcomes=tuple(map(outcome, sorted(ats)))) for ats in (one, two, three)
    )
    whole = merged(merged(first, second), third)

    assert whole == merged(first, merged(second, third))
    assert len(whole.outcomes) == min(MOST_OUTCOMES, len(one | two | three))
    newest = sorted(one | two | three)[-NEWEST_OUTCOMES:]
    assert [one.at for one in whole.outcomes][-len(newest) :] == newest


def test_failures_are_kept_rather_than_what_went_well() -> None:
    summary = merged(Summary(outcomes=tuple(map(outcome, range(120)))), NONE)

    older = summary.outcomes[:-NEWEST_OUTCOMES]
    assert all(one.came == "failure" for one in older)
    assert older[-1].at == 87


def test_the_first_wording_of_a_fact_is_kept_in_its_place() -> None:
    older = Summary(facts=("Port 80", "IPv6"))
    newer = Summary(facts=("port  80 ", "TLS"))

    assert merged(older, newer).facts == ("Port 80", "IPv6", "TLS")


def test_a_newer_item_replaces_an_open_one_where_it_stands() -> None:
    older = Summary(
        open_items=(OpenItem(what="write docs", context="in docs/"), OpenItem(what="x"))
    )
    newer = Summary(open_items=(OpenItem(what="Write  docs", priority="high"),))

    assert merged(older, newer).open_items == (
        OpenItem(what="Write  docs", context="in docs/", priority="high"),
        OpenItem(what="x"),
    )


def test_what_is_done_closes_an_item_that_was_open_before() -> None:
    is_open = Summary(open_items=(OpenItem(what="write docs"),))
    is_done = Summary(open_items=(OpenItem(what="Write docs", done=True),))

    assert merged(is_open, is_done) == NONE
    assert merged(is_done, NONE) == NONE
    assert merged(is_done, is_open) == is_open


def test_the_same_decision_made_again_is_another_one() -> None:
    first, again = Decision(what="use A", at=1), Decision(what="use A", at=9)

    whole = merged(Summary(decisions=(first,)), Summary(decisions=(first, again)))

    assert whole.decisions == (first, again)


def test_references_are_one_for_each_position_in_order() -> None:
    older = Summary(references=(Reference(at=5, what="b"), Reference(at=2, what="a")))
    newer = Summary(references=(Reference(at=5, what="other"), Reference(at=3, what="c")))

    assert [one.what for one in merged(older, newer).references] == ["a", "c", "b"]


def test_the_newest_task_and_plan_count_if_there_are_any() -> None:
    older = Summary(current_task="old", current_plan=("one",))

    assert merged(older, Summary(current_task=" ")) == older
    newer = Summary(current_task="new", current_plan=("two",))
    assert merged(older, newer) == newer
