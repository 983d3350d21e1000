"""How long agents stand still is read off a server; without any other framework being there."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.peers.bench_stalls import findings_of, parse_arguments, read, row
from benchmarks.peers.contenders import AS_IT_COMES, EARLY, SUMMARIZERS
from benchmarks.peers.reading import NotReadError, Reading, reading_of
from benchmarks.peers.watched import Asked


def asked(
    *answers: tuple[float, float], summaries: Sequence[tuple[float, float | None]] = ()
) -> list[Asked]:
    """Requests with their answers, in the order in which they came."""
    agents = [Asked(False, came, 100, answered) for came, answered in answers]
    agents[-1].ends = True
    others = [Asked(True, came, 900, answered) for came, answered in summaries]
    return sorted([*agents, *others], key=lambda one: one.came)


def test_an_agent_that_waits_for_its_summaries_stands_still_for_as_long() -> None:
    waits = asked(
        (0.0, 0.1),
        (3.2, 3.3),
        (3.4, 3.5),
        (7.6, 7.7),
        (11.0, 11.1),
        summaries=[(0.12, 3.15), (3.55, 7.5), (7.75, 10.9)],
    )

    found = reading_of(waits)

    assert found.stalls == pytest.approx((3.1, 4.1, 3.3))
    assert found.longest_s == pytest.approx(4.1)
    assert found.usual_s == pytest.approx(3.2)
    assert found.wall_s == pytest.approx(11.1)
    assert (found.rounds, found.most_tokens) == (4, 100)


def test_one_that_goes_on_beside_them_does_not_and_an_unfinished_summary_is_none() -> None:
    answers = [(at + 0.0, at + 0.9) for at in range(10)]
    summaries = [(1.0, 3.0), (3.5, 5.5), (6.0, 8.0), (9.5, None)]

    found = reading_of(asked(*answers, summaries=summaries))

    assert found.stalls == pytest.approx((0.1, 0.1, 0.1))
    assert found.longest_s == pytest.approx(0.1)


def test_the_longest_gap_counts_whatever_it_was_for() -> None:
    answers = [(0.0, 0.1), (0.2, 0.3), (0.4, 0.5), (0.6, 0.7), (2.7, 2.8)]
    summaries = [(0.1, 0.2), (0.3, 0.4), (0.5, 0.6)]

    found = reading_of(asked(*answers, summaries=summaries))

    assert found.longest_s == pytest.approx(2.0)
    assert max(found.stalls) == pytest.approx(0.1)


THREE = [(0.1, 0.2)] * 3


@pytest.mark.parametrize(
    ("requests", "why"),
    [
        (asked((0.0, 0.1), (0.2, 0.3), summaries=THREE)[:-1], "asked 1 times, .* to no end"),
        ([*asked((0.0, 0.1), summaries=THREE), Asked(False, 0.3, 100, 0.4)], "after the end"),
        (asked((0.0, 0.1), (0.2, 0.3), (0.4, 0.5), summaries=THREE[:2]), "had 2 summaries"),
        (asked((0.0, 0.3), (0.2, 0.4), (0.5, 0.6), summaries=THREE), "before it had its answer"),
    ],
)
def test_another_conversation_is_not_compared(requests: list[Asked], why: str) -> None:
    with pytest.raises(NotReadError, match=why):
        reading_of(requests)


def reading(longest_s: float) -> Reading:
    return Reading(
        rounds=2, wall_s=9.0, gaps=(0.01, longest_s), stalls=(longest_s,), most_tokens=90
    )


@pytest.mark.parametrize(("ours", "met"), [(0.7, True), (0.8, False)])
def test_the_bar_is_a_quarter_of_the_shortest_of_the_others(ours: float, met: bool) -> None:
    found = {
        EARLY: [reading(ours)],
        AS_IT_COMES: [reading(1.5)],
        "langchain": [reading(3.0)],
        "deepagents": [reading(3.3)],
    }

    findings = findings_of(found, compared=True)

    assert [one.met for one in findings] == [None, None, None, None, met]


def test_without_a_bar_there_are_figures_and_with_nobody_to_compare_it_is_not_met() -> None:
    ours = {EARLY: [reading(0.1)]}

    assert [one.met for one in findings_of(ours, compared=False)] == [None]
    assert [one.met for one in findings_of(ours, compared=True)] == [None, False]


def test_a_line_of_the_table_has_medians_and_all_stalls() -> None:
    readings = [reading(3.0), reading(3.2), reading(3.1)]

    assert row("other", readings)[:3] == ("other", "3.10 s", "3.00–3.20 s")


async def test_ours_reads_the_whole_book_and_is_summarized_again_and_again() -> None:
    options = parse_arguments(
        ["--rounds", "90", "--window", "6000", "--answer-s", "0.01", "--summary-s", "0.05"]
    )

    found = await read(SUMMARIZERS[EARLY], Path(sys.executable), options)

    assert len(found.gaps) == found.rounds
    assert 3 <= len(found.stalls) <= 11
    assert found.most_tokens <= 6000


@pytest.mark.parametrize("wrong", [["--only", "langgraf"], ["--repeats", "0"]])
def test_a_framework_that_is_not_there_is_bad_input(wrong: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(wrong)
