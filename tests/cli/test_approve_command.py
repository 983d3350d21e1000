"""`harness ctl run approve` and `deny`: what is decided about which call, and what is not."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness_actors.cli.app import app
from tests.cli.approving_agents import WHY, a_refund, run_that_waits
from tests.cli.asking_agents import SIZE, answers_of

Harness = Callable[..., Result]
LOCAL = ("--runtime", "local")
YES, NO = '{"decision":"approve"}', '{"decision":"deny"}'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def harness(home: Path) -> Harness:
    runner = CliRunner()

    def invoke(*words: str, given: str | bytes | None = None) -> Result:
        return runner.invoke(app, ["ctl", "run", *words], input=given, catch_exceptions=False)

    return invoke


@pytest.fixture
def store(home: Path) -> Path:
    return home / "runs.db"


@pytest.fixture
def one(store: Path) -> str:
    """A run that waits for approval of one call."""
    return asyncio.run(run_that_waits(store, [a_refund(17)]))


@pytest.fixture
def two(store: Path) -> str:
    """A run that waits for approval of two calls, and for an answer."""
    return asyncio.run(run_that_waits(store, [a_refund(17), SIZE, a_refund(18)]))


def refused(result: Result) -> str:
    """The one clear line of a command that refused what it was given."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    return result.stderr


# ---- who waits ----------------------------------------------------------------------------


def test_a_call_that_waits_is_listed_and_shown_with_its_arguments(
    harness: Harness, one: str
) -> None:
    (listed,) = json.loads(harness("list", "--status", "waiting", "--json").stdout)
    (asked,) = listed["questions"]
    shown = harness("show", one).stdout

    assert (asked["kind"], asked["tool"], asked["why"]) == ("approval", "refund", WHY)
    assert json.loads(asked["arguments"]) == {"order": 17, "amount": 5}
    assert "q1: May refund be called?" in shown
    for line in ("refund(", "order: 17", "amount: 5", WHY):
        assert line in shown
    harness("deny", one, "--note", "not today")
    assert "denied: not today" in harness("show", one).stdout


# ---- decisions that are taken -------------------------------------------------------------


def test_the_only_call_that_waits_need_not_be_named(
    harness: Harness, store: Path, one: str
) -> None:
    told = harness("approve", one)
    assert told.exit_code == 0
    assert told.stdout == (
        f"{one}: q1 is approved\nall is answered; go on by harness ctl run resume {one}\n"
    )
    assert answers_of(store, one) == {"q1": YES}
    ended = harness("resume", one, *LOCAL)
    assert (ended.exit_code, ended.stdout) == (0, "told: 5 for 17\n")


def test_a_call_is_named_by_its_question_or_by_itself(
    harness: Harness, store: Path, two: str
) -> None:
    (listed,) = json.loads(harness("list", "--json").stdout)
    call_id = listed["questions"][2]["call_id"]

    first = harness("deny", two, "q1", "--note", "ask first")
    second = harness("approve", two, call_id)

    assert first.stdout.splitlines()[:2] == [f"{two}: q1 is denied", "still open:"]
    assert "  q3: May refund be called?" in first.stdout.splitlines()
    assert "      order: 18" in first.stdout.replace("          ", "      ")
    assert second.exit_code == 0
    assert answers_of(store, two) == {
        "q1": '{"decision":"deny","note":"ask first"}', "q2": None, "q3": YES,
    }  # fmt: skip
    ended = harness("answer", two, "M", "--resume", *LOCAL)
    told = ended.stdout.splitlines()[-1]
    assert "did not approve of it: ask first | M | 5 for 18" in told


def test_all_calls_that_wait_are_decided_about_at_once(
    harness: Harness, store: Path, two: str
) -> None:
    told = harness("approve", two, "--all", "--json")
    assert json.loads(told.stdout)["answered"] == ["q1", "q3"]
    assert answers_of(store, two) == {"q1": YES, "q2": None, "q3": YES}


@pytest.mark.parametrize("how", ["JSON", "@FILE", "-"])
def test_a_call_is_approved_with_other_arguments(
    harness: Harness, tmp_path: Path, one: str, how: str
) -> None:
    arguments = '{"order": 17, "amount": 3}'
    file = tmp_path / "arguments.json"
    file.write_text(f"{arguments}\n")
    word = {"JSON": arguments, "@FILE": f"@{file}", "-": "-"}[how]

    ended = harness("approve", one, "--arguments", word, "--resume", *LOCAL, given=arguments)

    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout == f"{one}: q1 is approved\ntold: 3 for 17\n"


@pytest.mark.parametrize(
    ("always", "asked_again"), [((), True), (("tool",), False), (("arguments",), False)]
)
def test_a_decision_stands_for_later_calls_if_that_is_wanted(
    harness: Harness, store: Path, always: tuple[str, ...], asked_again: bool
) -> None:
    run_id = asyncio.run(run_that_waits(store, [a_refund(17)], [a_refund(17)]))
    flags = ("--always", *always) if always else ()

    ended = harness("approve", run_id, *flags, "--resume", *LOCAL)

    if asked_again:
        assert ended.exit_code == 1
        assert f"approve or deny by\n  harness ctl run approve {run_id} q2\n" in ended.stderr
    else:
        assert ended.stdout.splitlines()[-1] == "told: 5 for 17 | 5 for 17"


def test_with_other_arguments_it_is_asked_again_unless_the_tool_is_always_approved(
    harness: Harness, store: Path
) -> None:
    run_id = asyncio.run(run_that_waits(store, [a_refund(17)], [a_refund(18)], [a_refund(19)]))
    asked = harness("deny", run_id, "--always", "arguments", "--resume", *LOCAL)
    assert f"harness ctl run approve {run_id} q2\n" in asked.stderr
    ended = harness("approve", run_id, "--always", "tool", "--resume", *LOCAL)
    assert ended.stdout.splitlines()[-1].endswith("| 5 for 18 | 5 for 19")


@pytest.mark.parametrize(("word", "answer"), [("yes", YES), ("No", NO), (NO, NO)])
def test_a_word_is_an_answer_as_well(
    harness: Harness, store: Path, one: str, word: str, answer: str
) -> None:
    told = harness("answer", one, word)
    assert told.exit_code == 0
    assert told.stdout.startswith(f"{one}: q1 is {'approved' if answer == YES else 'denied'}\n")
    assert answers_of(store, one) == {"q1": answer}
    assert harness("answer", one, "q1", word).exit_code == 0, "the same, said again"


def test_calls_of_many_runs_are_decided_about_by_lines(
    harness: Harness, store: Path, one: str, two: str
) -> None:
    lines = [{"run": one, "answer": "yes"}, {"run": two, "question": "q3", "answer": "no"}]
    told = harness("answer", "--file", "-", given="\n".join(map(json.dumps, lines)))
    assert told.exit_code == 0, told.stderr
    assert answers_of(store, one) == {"q1": YES}
    assert answers_of(store, two) == {"q1": None, "q2": None, "q3": NO}


# ---- what decides nothing -----------------------------------------------------------------

BIG = json.dumps({"order": "x" * 60_000})

WRONG: tuple[tuple[tuple[str, ...], str], ...] = (
    (("approve", "two"), "2 of its calls wait for approval: q1 (refund "),
    (("deny", "two", "q7"), "no call 'q7' of it waits for approval; there are q1 (refund "),
    (("approve", "two", "q2"), "'q2' is a question, and no call to decide about; answer it by "),
    (("approve", "two", "q1", "--all"), "CALL: name one, or give --all"),
    (("approve", "two", "--all", "--arguments", "{}"), "for one call alone; leave out --all"),
    (("approve", "two", "q1", "--arguments", "{}", "--always", "tool"), "leave out --always"),
    (("approve", "two", "q1", "--arguments", "{"), "--arguments: it is no JSON"),
    (("approve", "two", "q1", "--arguments", "[1]"), "the arguments must be an object"),
    (("approve", "two", "q1", "--arguments", '{"order": NaN}'), "there is no NaN"),
    (("approve", "two", "q1", "--arguments", "[" * 100_000), "it is nested too deep"),
    (("approve", "two", "q1", "--arguments", '{"a": 1, "a": 2}'), "the key 'a' is given twice"),
    (("approve", "two", "q1", "--arguments", BIG), "60,018 bytes; 49,152 are allowed"),
    (("approve", "two", "q1", "--arguments", "@missing"), "it cannot be read: No such file"),
    (("approve", "two", "q1", "--arguments", '{"a": "\udce9"}'), "--arguments: it is not UTF-8"),
    (("approve", "two", "q1", "--arguments", '{"order": 1}'), "of refund: $: 'amount' is missing"),
    (("deny", "two", "q1", "--note", "x" * 2_001), "the note has 2,001 characters, and may have "),
    (("approve", "nobody1"), "no run begins with 'nobody1'"),
    (("answer", "two", "q1", "perhaps"), "'perhaps' is no decision: say yes or no, or use harness"),
    (("answer", "two", "q1", '{"decision": "run"}'), "must be one of approve, deny, respond"),
    (("answer", "two", "q1", '{"decision": "approve", "x": 1}'), "has no field 'x'"),
    (("answer", "two", "yes"), "3 of its questions are open, so name one: q1, q2, q3"),
)


def test_what_decides_nothing_is_refused_in_a_line_and_changes_nothing(
    harness: Harness, store: Path, two: str
) -> None:
    for words, problem in WRONG:
        given = [two if word == "two" else word for word in words]
        assert problem in refused(harness(*given)), words
    assert answers_of(store, two) == {"q1": None, "q2": None, "q3": None}


def test_the_first_decision_counts(harness: Harness, store: Path, one: str) -> None:
    harness("approve", one)
    assert "the first decision counts" in refused(harness("deny", one))
    assert "'q1' was answered before; the first answer counts" in refused(
        harness("deny", one, "q1")
    )
    assert "the first decision counts" in refused(harness("approve", one, "--all"))
    assert harness("approve", one, "q1").exit_code == 0, "the same, said again"
    assert answers_of(store, one) == {"q1": YES}


def test_a_run_that_is_over_or_asks_for_no_approval_takes_no_decision(
    harness: Harness, store: Path, one: str
) -> None:
    asking = asyncio.run(run_that_waits(store, [SIZE]))
    assert "no call of it waits for approval" in refused(harness("approve", asking))
    harness("cancel", one)
    assert "it is over: cancelled" in refused(harness("approve", one))
    assert "it is over: cancelled" in refused(harness("deny", one, "q1"))
