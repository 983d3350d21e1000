"""`harness ctl run answer`: who answers what, and what is no answer."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness_actors.cli.app import app
from harness_actors.stores import JournalReader
from harness_actors.stores.schema import VERSION
from tests.actors.joined import Drivers, coordinator
from tests.chaos.rays import RayByHand
from tests.cli.asking_agents import (
    COLOUR,
    SIZE,
    answers_of,
    asking_agent,
    asking_server,
    waiting_run,
)
from tests.cli.commands import finished, started
from tests.stores.test_versions import unpacked, version_of

Harness = Callable[..., Result]
LOCAL = ("--runtime", "local")


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
    """A journal with a run that waits for two answers, and one that waits for one."""
    asyncio.run(waiting_run(home / "runs.db", "both1", [COLOUR, SIZE]))
    asyncio.run(waiting_run(home / "runs.db", "size1", [SIZE]))
    return home / "runs.db"


def refused(result: Result) -> str:
    """The one clear line of a command that refused what it was given."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    return result.stderr


# ---- who waits ----------------------------------------------------------------------------


def test_those_that_wait_are_listed_with_what_they_ask(harness: Harness, store: Path) -> None:
    harness("answer", "both1", "q1", "red")
    table = harness("list", "--status", "waiting").stdout.splitlines()
    listed = json.loads(harness("list", "--status", "waiting", "--json").stdout)

    assert table[0].split()[-2:] == ["asks", "what"]
    assert [line.split()[:2] for line in table[1:]] == [["both1", "waiting"], ["size1", "waiting"]]
    assert "1 of 2" in table[1]
    assert "1 of 1" in table[2]
    assert [[q["answer"] for q in run["questions"]] for run in listed] == [["red", None], [None]]
    assert listed[0]["questions"][0] == {
        "id": "q1", "text": "Which colour?", "options": ["red", "blue"],
        "why": "to paint the door", "answer": "red", "call_id": "call_2_0",
    }  # fmt: skip


def test_a_list_of_runs_that_ask_nothing_has_no_column_for_it(harness: Harness, home: Path) -> None:
    unpacked(4, "", home)
    assert "asks" not in harness("list", "--status", "ended").stdout


def test_one_that_has_all_its_answers_is_listed_as_answered(harness: Harness, store: Path) -> None:
    harness("answer", "size1", "M")
    table = harness("list", "--status", "waiting").stdout
    assert "waiting(answered)" in table
    assert "0 of 1" in table


def test_a_run_is_shown_with_all_that_it_asked_and_was_answered(
    harness: Harness, home: Path
) -> None:
    asyncio.run(waiting_run(home / "runs.db", "run1", [COLOUR], [SIZE]))
    harness("answer", "run1", "blue")
    harness("resume", "run1", *LOCAL)

    shown = harness("show", "run1").stdout
    asked = json.loads(harness("show", "run1", "--json").stdout)["questions"]

    assert [(one["id"], one["answer"]) for one in asked] == [("q1", "blue"), ("q2", None)]
    assert "answered: blue" in shown
    harness("answer", "run1", "M", "--resume", *LOCAL)
    over = json.loads(harness("show", "run1", "--json").stdout)
    assert [one["answer"] for one in over["questions"]] == ["blue", "M"]
    assert over["result"]["output_text"] == "told: blue, M"


# ---- answers that are taken ---------------------------------------------------------------


def test_an_answer_is_taken_and_it_is_said_what_is_still_open(
    harness: Harness, store: Path
) -> None:
    first = harness("answer", "both1", "q1", "blue")
    second = harness("answer", "bo", "q2", "the large one")

    assert first.exit_code == second.exit_code == 0
    assert first.stdout == "both1: q1 is answered\nstill open:\n  q2: Which size?\n"
    assert second.stdout == (
        "both1: q2 is answered\nall is answered; go on by harness ctl run resume both1\n"
    )
    assert answers_of(store, "both1") == {"q1": "blue", "q2": "the large one"}
    assert JournalReader(store).load_result("both1") is None, "an answer takes up no run"


def test_where_one_question_is_open_it_need_not_be_named(harness: Harness, store: Path) -> None:
    assert harness("answer", "size1", "M").exit_code == 0
    harness("answer", "both1", "q2", "M")
    assert harness("answer", "both1", "red").exit_code == 0
    assert answers_of(store, "both1") == {"q1": "red", "q2": "M"}


def test_an_answer_may_be_told_to_a_script(harness: Harness, store: Path) -> None:
    told = json.loads(harness("answer", "both1", "q1", "red", "--json").stdout)
    assert (told["run_id"], told["answered"]) == ("both1", ["q1"])
    assert [asked["id"] for asked in told["open"]] == ["q2"]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_an_answer_may_come_from_standard_input_or_a_file(
    harness: Harness, store: Path, tmp_path: Path, end: str
) -> None:
    (tmp_path / "answer.txt").write_bytes(f"two\nlines{end}".encode())
    harness("answer", "size1", "-", given=f"two\nlines{end}")
    harness("answer", "both1", "q2", "--file", str(tmp_path / "answer.txt"))
    harness("answer", "both1", "q1", "--file", "-", given=f"red{end}")

    assert answers_of(store, "size1") == {"q1": "two\nlines"}
    assert answers_of(store, "both1") == {"q1": "red", "q2": "two\nlines"}


@pytest.mark.parametrize(
    "text",
    [
        '{"q1": "red", "q2": "17 \\ud83d\\ude00"}',
        "q1: red\nq2: '17 😀'\n",
        "\ufeffq1: red\nq2: 17 😀",
    ],
    ids=["json", "yaml", "marked"],
)
def test_many_answers_to_one_run_are_in_a_mapping(
    harness: Harness, store: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "answers").write_text(text, encoding="utf-8")
    assert harness("answer", "both1", "--file", str(tmp_path / "answers")).exit_code == 0
    assert answers_of(store, "both1") == {"q1": "red", "q2": "17 😀"}


def test_words_that_yaml_has_a_meaning_for_are_answers_as_they_stand(
    harness: Harness, store: Path
) -> None:
    harness("answer", "size1", "--file", "-", given="q1: yes\n")
    assert answers_of(store, "size1") == {"q1": "yes"}


def test_answers_to_many_runs_are_lines_and_each_run_s_are_taken_or_none(
    harness: Harness, store: Path, home: Path
) -> None:
    asyncio.run(waiting_run(home / "runs-2.db", "other1", [COLOUR, SIZE]))
    lines = [
        {"run": "both1", "question": "q2", "answer": "M"},
        {"run": "other1", "question": "q1", "answer": "red"},
        {"run": "size1", "answer": "L"},
        {"run": "both1", "question": "q1", "answer": "red"},
        {"run": "other1", "question": "q7", "answer": "?"},
    ]
    given = "\n".join(map(json.dumps, lines)) + "\n\n"

    result = harness("answer", "--file", "-", "--json", given=given)

    assert result.exit_code == 1
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["run_id"], one["answered"], one["open"]) for one in told] == [
        ("both1", ["q2", "q1"], []),
        ("size1", ["q1"], []),
    ]
    assert "it has no question 'q7'" in json.loads(result.stderr)["error"]["message"]
    assert answers_of(home / "runs-2.db", "other1") == {"q1": None, "q2": None}


def test_what_is_answered_goes_on_at_once_if_that_is_wanted(harness: Harness, store: Path) -> None:
    ended = harness("answer", "size1", "M", "--resume", *LOCAL)
    assert (ended.exit_code, ended.stdout) == (0, "size1: q1 is answered\ntold: M\n")

    part = harness("answer", "both1", "q1", "red", "--resume", *LOCAL)
    assert part.exit_code == 1
    assert "run both1 waits for 1 question to answer" in part.stderr
    assert JournalReader(store).load_result("both1") is None


def test_an_answer_needs_neither_code_nor_key(harness: Harness, store: Path) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE code SET blob = x'00'")
    connection.close()
    assert harness("answer", "size1", "M").exit_code == 0


# ---- what is no answer --------------------------------------------------------------------

WRONG: tuple[tuple[tuple[str, ...], str], ...] = (
    (("nobody1", "red"), "no run begins with 'nobody1'"),
    (("both1", "q7", "red"), "it has no question 'q7'; open are q1, q2"),
    (("both1", "red"), "2 of its questions are open, so name one: q1, q2"),
    (("both1", "q1", "green"), "the answer to 'q1' must be one of 'red', 'blue'"),
    (("both1", "q1", "1"), "must be one of 'red', 'blue'"),
    (("size1", ""), "the answer to 'q1' is empty"),
    (("size1", " \n"), "the answer to 'q1' is empty"),
    (("size1", "x" * 100_001), "has 100001 characters, and may have 100000"),
    (("size1", "caf\udce9"), "TEXT: it is not UTF-8"),
    (("size1",), "give the answer, or --file with it"),
    (("size1", "q1", "the", "large", "one"), "put an answer of several words in quotes"),
    (("size1", "q1", "M", "--file", "x"), "not both"),
    (("size1", "--file", "missing"), "missing: it cannot be read: No such file"),
    ((), "give the answer, or --file with it"),
)


@pytest.mark.parametrize(("words", "problem"), WRONG)
def test_what_is_no_answer_is_refused_in_a_line_and_changes_nothing(
    harness: Harness, store: Path, words: tuple[str, ...], problem: str
) -> None:
    assert problem in refused(harness("answer", *words))
    assert answers_of(store, "both1") == {"q1": None, "q2": None}
    assert answers_of(store, "size1") == {"q1": None}


FILES: tuple[tuple[tuple[str, ...], bytes, str], ...] = (
    (("size1", "q1"), b"x" * 10_000_000, "it has more than 1,000,000 bytes"),
    (("size1", "q1"), b"x" * 200_000, "has 200000 characters"),
    (("size1", "q1"), b"caf\xe9", "it is not UTF-8, at byte 3"),
    (("size1", "q1"), b"", "the answer to 'q1' is empty"),
    (("size1",), b"q1: " + b"x" * 10_000_000, "it has more than 2,000,000 bytes"),
    (("size1",), b"q1: caf\xe9", "it is not UTF-8, at byte 7"),
    (("size1",), b"just words", "it must map the ids of questions to answers"),
    (("size1",), b"", "it must map the ids of questions to answers"),
    (("size1",), b"[" * 100_000, "it is neither JSON nor YAML"),
    (("size1",), b"q1: [a, b]", "the answer to 'q1' must be a text"),
    (("size1",), b'{"q1": 17}', "the answer to 'q1' must be a text, not 17"),
    (("size1",), b"q1: {", "it is neither JSON nor YAML in line 1"),
    (("size1",), b"q1: red\nq1: blue\n", "'q1' is given twice"),
    (("size1",), b'{"q1": "red", "q1": "blue"}', "'q1' is given twice"),
    ((), b"q1: M", "line 1: it is no JSON"),
    ((), b'{"run": "a", "answer": "x", "answer": "y"}', "the key 'answer' is given twice"),
    ((), b"[" * 100_000, "line 1: it is nested too deep"),
    ((), b"\n", "there is no answer in it"),
    ((), b'{"run": "size1", "answer": 3}', "line 1: answer must be a text"),
    ((), b'\n{"run": "size1"}', "line 2: answer must be a text"),
    ((), b'{"run": "", "answer": "M"}', "line 1: run is empty"),
    ((), b'{"run": "size1", "answr": "M"}', "line 1: there is no field 'answr'"),
    ((), b'{"run": "size1", "answer": "M"}\n' * 2, "line 2: answered in line 1 before"),
    ((), b'{"run": "siz", "answer": "M"}', "there is no run 'siz'"),
    ((), b'{"run": "size1", "answer": "\\ud800"}', "is not valid Unicode"),
    ((), b'{"run": "size1", "answer": "caf\xe9"}', "it is not UTF-8"),
)


@pytest.mark.parametrize(("words", "content", "problem"), FILES)
def test_a_file_that_is_no_answer_is_refused_and_changes_nothing(
    harness: Harness,
    store: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    content: bytes,
    problem: str,
) -> None:
    (tmp_path / "given").write_bytes(content)

    assert problem in refused(harness("answer", *words, "--file", str(tmp_path / "given")))
    assert answers_of(store, "size1") == {"q1": None}


def test_the_first_answer_counts(harness: Harness, store: Path) -> None:
    harness("answer", "both1", "q1", "red")

    second = refused(harness("answer", "both1", "q1", "blue"))
    unnamed = harness("answer", "size1", "M"), harness("answer", "size1", "L")

    assert "'q1' was answered before; the first answer counts" in second
    assert "were answered before; the first answer counts" in refused(unnamed[1])
    assert answers_of(store, "both1")["q1"] == "red"
    assert answers_of(store, "size1") == {"q1": "M"}


def test_a_run_that_is_over_takes_no_answer(harness: Harness, store: Path) -> None:
    harness("cancel", "size1")
    assert "it is over: cancelled" in refused(harness("answer", "size1", "M"))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_runs_of_earlier_journals_wait_for_no_answer_and_go_on_as_ever(
    harness: Harness, home: Path, version: int
) -> None:
    path = unpacked(version, "", home)
    parked = [one.run_id for one in JournalReader(path).headings() if one.phase == "parked"]
    assert parked
    before = path.read_bytes()

    for run_id in parked:
        assert "it waits for no answer" in refused(harness("answer", run_id, "M"))

    assert path.read_bytes() == before, "nothing is brought up to date for that"
    assert version_of(path) == version
    listed = json.loads(harness("list", "--status", "parked", "--json").stdout)
    assert [run["run_id"] for run in listed] == parked


@pytest.mark.parametrize(
    "words", [("answer", "size1", "M"), ("resume", "size1", *LOCAL), ("pause", "size1"), ("list",)]
)
def test_a_journal_of_a_later_version_is_refused_as_it_is(
    harness: Harness, store: Path, words: tuple[str, ...]
) -> None:
    with store.open("r+b") as file:
        file.seek(60)
        file.write((VERSION + 1).to_bytes(4, "big"))
    before = store.read_bytes()

    result = harness(*words, "--store", str(store))

    assert result.exit_code == 1
    assert f"version {VERSION + 1}" in result.stderr
    assert store.read_bytes() == before


# ---- while somebody works on the journal --------------------------------------------------


async def test_of_two_commands_that_answer_at_once_one_is_taken(home: Path) -> None:
    await waiting_run(home / "runs.db", "size1", [SIZE])
    words = ["ctl", "run", "answer", "size1"]
    both = [await started([*words, text], HARNESS_HOME=str(home)) for text in ("M", "L")]
    ended = await asyncio.gather(*map(finished, both))

    assert sorted(status for status, _, _ in ended) == [0, 2]
    (text,) = [text for text, (status, _, _) in zip("ML", ended, strict=True) if status == 0]
    (error,) = [error for status, _, error in ended if status == 2]
    assert "the first answer counts" in error
    assert answers_of(home / "runs.db", "size1") == {"q1": text}


async def test_a_journal_that_a_command_holds_without_ray_is_left_alone(
    home: Path, harness: Harness
) -> None:
    await waiting_run(home / "runs.db", "size1", [SIZE])
    async with asking_server([SIZE]) as server:
        server.hold()
        running = await started(
            ["run", "x", *LOCAL, "--agent", asking_agent(home, server)], HARNESS_HOME=str(home)
        )
        await server.until_open(1)
        held = await asyncio.to_thread(harness, "answer", "size1", "M")
        paused = await asyncio.to_thread(harness, "pause", "size1")
        server.release()
        await finished(running)

    assert f"process {running.process.pid} works on it without Ray" in refused(held)
    assert (paused.exit_code, paused.stdout) == (0, "size1: waiting\n")
    assert answers_of(home / "runs.db", "size1") == {"q1": None}


@pytest.mark.ray
@pytest.mark.timeout(180)
async def test_on_ray_a_run_is_answered_and_another_paused_in_the_cell_that_serves_them(
    home: Path,
) -> None:
    # Among its runs is one that was interrupted, which the cell does not serve.
    before = JournalReader(unpacked(4, "", home)).headings()
    (broken,) = (one.run_id for one in before if one.phase == "running")
    await waiting_run(home / "runs.db", "size1", [SIZE])
    known = {"size1", *(one.run_id for one in before)}
    async with asking_server([SIZE]) as server:
        server.hold()
        flags = ("--address", "local", "--agent", asking_agent(home, server))
        running = await started(["run", "x", *flags], HARNESS_HOME=str(home))
        await server.until_open(1)
        (other,) = [
            one.run_id
            for one in JournalReader(home / "runs.db").headings()
            if one.run_id not in known
        ]
        environment: dict[str, Any] = {"HARNESS_HOME": str(home)}
        words = ["ctl", "run", "answer", "size1", "M"]
        answered = await finished(await started(words, **environment))
        words = ["ctl", "run", "pause", other, broken, "--now"]
        paused = await finished(await started(words, **environment))
        status, _, error = await finished(running)

    assert answered[:2] == (0, "size1: q1 is answered\nall is answered; go on by "
                               "harness ctl run resume size1\n")  # fmt: skip
    assert paused[:2] == (0, f"{other}: parked\n{broken}: interrupted\n")
    assert status == 130
    assert f"parked; harness ctl run resume {other} goes on with it" in error
    assert answers_of(home / "runs.db", "size1") == {"q1": "M"}


@pytest.mark.ray
@pytest.mark.timeout(240)
async def test_a_run_that_a_warm_cell_has_left_waiting_is_answered_and_goes_on_there(
    home: Path, harness: Harness
) -> None:
    async with RayByHand() as ray, asking_server([COLOUR], [SIZE]) as server:
        drivers = Drivers(ray, home)
        asked = await drivers.run("run", "x", "--agent", asking_agent(home, server))
        (run,) = JournalReader(home / "runs.db").headings()
        served_by = coordinator(home / "runs.db")

        answered = await drivers.run("ctl", "run", "answer", run.run_id, "blue")
        again = await drivers.run("ctl", "run", "answer", run.run_id, "q1", "red")
        on = await drivers.run("ctl", "run", "answer", run.run_id, "q1", "red", "--resume")
        resumed = await drivers.run("ctl", "run", "resume", run.run_id)
        ended = await drivers.run("ctl", "run", "answer", run.run_id, "M", "--resume")

        assert coordinator(home / "runs.db") == served_by, "there was never another"

    assert (asked.status, answered.status) == (1, 0), answered.error
    assert (again.status, on.status) == (2, 2)
    assert "q1' was answered before; the first answer counts" in again.error
    assert resumed.status == 1
    assert f"harness ctl run answer {run.run_id} q2 TEXT" in resumed.error
    assert (ended.status, ended.out.splitlines()[-1]) == (0, "told: blue, M")
    assert server.requests == 3, "nothing was asked of the model twice"


# ---- runs that are put aside --------------------------------------------------------------


def test_a_run_that_nobody_works_on_is_aside_already(harness: Harness, home: Path) -> None:
    unpacked(4, "", home)
    runs = {one.phase: one.run_id for one in JournalReader(home / "runs.db").headings()}
    parked, interrupted, over = runs["parked"], runs["running"], runs["ended"]

    told = harness("pause", parked, interrupted, over)
    plain = harness("pause", interrupted, "--json")

    assert told.exit_code == 0
    first, second, third = told.stdout.splitlines()
    assert (first, second) == (f"{parked}: parked", f"{interrupted}: interrupted")
    assert third.startswith(f"{over}: was over: ")
    assert json.loads(plain.stdout) == {"run_id": interrupted, "status": "interrupted"}
    assert "no run begins with" in refused(harness("pause", "nobody1"))
