"""What a run asks its user: at the terminal, and where there is none."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness_actors.cli.questions import answer_in, put
from harness_actors.results import OpenQuestion
from harness_actors.stores import JournalReader
from tests.cli.asking_agents import (
    COLOUR,
    SIZE,
    Question,
    answers_of,
    asking_agent,
    asking_server,
    question,
    waiting_run,
)
from tests.cli.commands import HARNESS, finished, started
from tests.cli.terminals import Terminal, at_a_terminal, environment

PROMPT = "answer> "


@asynccontextmanager
async def asked_at_a_terminal(folder: Path, *rounds: list[Question]) -> AsyncIterator[Terminal]:
    """A run at a terminal, whose model asks."""
    async with asking_server(*rounds) as server:
        words = ["run", "paint", "--runtime", "local", "--agent", asking_agent(folder, server)]
        async with at_a_terminal(folder, words) as terminal:
            yield terminal


def the_run(home: Path) -> str:
    (heading,) = JournalReader(home / "runs.db").headings()
    return heading.run_id


async def test_a_terminal_is_asked_and_the_run_goes_on(tmp_path: Path) -> None:
    async with asked_at_a_terminal(tmp_path, [COLOUR, SIZE], [COLOUR]) as terminal:
        shown = await terminal.until_shown(PROMPT)
        assert "q1: Which colour?\r\n    to paint the door\r\n    1 red\r\n    2 blue\r\n" in shown
        assert shown.count("Which colour?") == 2, "once as the call that is made, once as asked"
        terminal.type("2\n")
        assert "q2: Which size?\r\n" in await terminal.until_shown(PROMPT)
        terminal.type("  large one\n")
        assert "q3: Which colour?" in await terminal.until_shown(PROMPT)
        terminal.type("red\n")
        await terminal.until_shown("done(completed)")
        await terminal.until_shown("\r\ntold: blue, large one, red\r\n")
        assert await terminal.left() == 0


async def test_what_is_no_answer_is_asked_again_with_what_is_allowed(tmp_path: Path) -> None:
    async with asked_at_a_terminal(tmp_path, [COLOUR, SIZE]) as terminal:
        await terminal.until_shown(PROMPT)
        for typed in ("green\n", "3\n", "\n", b"caf\xe9\n"):
            terminal.type(typed)
            shown = await terminal.until_shown(PROMPT)
            assert "answer one of red, blue, or a number of these" in shown
            assert "q1: Which colour?" in shown
        terminal.type("1\n")
        await terminal.until_shown(PROMPT)
        terminal.type("   \n")
        assert "an answer is needed" in await terminal.until_shown(PROMPT)
        # Typed at once: a terminal takes no longer line.
        terminal.type("x" * 5000 + "\n")
        assert "takes no more of a line" in await terminal.until_shown(PROMPT)
        terminal.type("M\n")
        await terminal.until_shown("told: red, M\r\n")
        assert await terminal.left() == 0


async def test_an_answer_is_on_disk_before_the_next_question_is_asked(tmp_path: Path) -> None:
    async with asked_at_a_terminal(tmp_path, [COLOUR, SIZE]) as terminal:
        await terminal.until_shown(PROMPT)
        terminal.type("red\n")
        await terminal.until_shown("q2: Which size?")
        terminal.process.kill()
        await terminal.left()

    assert answers_of(tmp_path / "runs.db", the_run(tmp_path)) == {"q1": "red", "q2": None}


async def test_ctrl_c_at_a_question_leaves_the_run_waiting_and_says_how_to_go_on(
    tmp_path: Path,
) -> None:
    async with asked_at_a_terminal(tmp_path, [COLOUR, SIZE]) as terminal:
        await terminal.until_shown(PROMPT)
        terminal.type("red\n")
        await terminal.until_shown(PROMPT)
        terminal.type("\x03")
        run_id = the_run(tmp_path)
        shown = await terminal.until_shown(f"harness ctl run resume {run_id}")
        assert f"run {run_id} waits for 1 question to answer" in shown
        assert f"harness ctl run answer {run_id} q2 TEXT" in shown
        assert "stopping after this round" not in shown
        assert await terminal.left() == 130

    assert answers_of(tmp_path / "runs.db", run_id) == {"q1": "red", "q2": None}


async def test_the_end_of_input_at_a_question_leaves_all_that_is_open_waiting(
    tmp_path: Path,
) -> None:
    async with asked_at_a_terminal(tmp_path, [SIZE, COLOUR]) as terminal:
        await terminal.until_shown(PROMPT)
        terminal.type("\x04")
        assert PROMPT not in await terminal.until_shown("harness ctl run resume")
        assert await terminal.left() == 1


async def test_a_terminal_that_goes_away_in_mid_question_loses_nothing(tmp_path: Path) -> None:
    async with asked_at_a_terminal(tmp_path, [COLOUR, SIZE]) as terminal:
        await terminal.until_shown(PROMPT)
        terminal.type("red\n")
        await terminal.until_shown(PROMPT)
        terminal.hang_up()
        assert await terminal.left() == -signal.SIGHUP

    assert answers_of(tmp_path / "runs.db", the_run(tmp_path)) == {"q1": "red", "q2": None}


async def test_a_command_that_outlives_its_terminal_leaves_the_run_waiting(tmp_path: Path) -> None:
    stays = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")
    async with asking_server([SIZE, COLOUR]) as server:
        words = ["run", "paint", "--runtime", "local", "--agent", asking_agent(tmp_path, server)]
        async with at_a_terminal(tmp_path, words, stays) as terminal:
            await terminal.until_shown(PROMPT)
            terminal.hang_up()
            assert await terminal.left() == 1

    run_id = the_run(tmp_path)
    assert answers_of(tmp_path / "runs.db", run_id) == {"q1": None, "q2": None}


async def test_a_command_in_the_background_asks_nobody_and_is_not_stopped(tmp_path: Path) -> None:
    # A shell with job control: what it starts by & is in a process group of its own.
    apart = ("bash", "-c", 'set -m; "$@" & wait $!', "bash")
    async with asking_server([SIZE]) as server:
        words = ["run", "paint", "--runtime", "local", "--agent", asking_agent(tmp_path, server)]
        async with at_a_terminal(tmp_path, words, apart) as terminal:
            shown = await terminal.until_shown("and go on by")
            assert PROMPT not in shown
            assert await terminal.left() == 1


async def test_a_question_cannot_order_a_terminal_about(tmp_path: Path) -> None:
    asked = question("Red\x1b[2J?\nq9: fake", options=["a\x1b]0;x\x07", "b"], why="\x9b2J")
    async with asked_at_a_terminal(tmp_path, [asked]) as terminal:
        shown = await terminal.until_shown(PROMPT)
        assert "\x1b" not in shown
        assert "q1: Red␛[2J?␊q9: fake" in shown
        terminal.type("1\n")
        shown = await terminal.until_shown("done(completed)")
        assert "\x1b" not in shown


@pytest.mark.parametrize("flags", [(), ("--json",), ("--json", "--stream")])
async def test_where_there_is_no_terminal_the_run_waits_and_it_is_said_how_to_answer(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    async with asking_server([COLOUR, SIZE]) as server:
        words = ["run", "paint", "--runtime", "local", "--agent", asking_agent(tmp_path, server)]
        running = await started([*words, *flags], HARNESS_HOME=str(tmp_path))
        status, out, error = await finished(running)

    run_id = the_run(tmp_path)
    assert status == 1
    assert error.endswith(
        f"run {run_id} waits for 2 questions to answer:\n"
        "  q1: Which colour?\n"
        "      one of: red, blue\n"
        "      to paint the door\n"
        "  q2: Which size?\n"
        "answer by\n"
        f"  harness ctl run answer {run_id} q1 TEXT\n"
        f"  harness ctl run answer {run_id} q2 TEXT\n"
        "and go on by\n"
        f"  harness ctl run resume {run_id} --runtime local\n"
    )
    if not flags:
        assert out == ""
        return
    result = json.loads(out.splitlines()[-1])
    assert (result["status"], result["reason"]["kind"]) == ("awaiting_input", "question")
    assert [one["id"] for one in result["reason"]["details"]["questions"]] == ["q1", "q2"]


async def test_a_command_whose_input_is_closed_waits_as_well(tmp_path: Path) -> None:
    async with asking_server([SIZE]) as server:
        words = ["run", "paint", "--runtime", "local", "--agent", asking_agent(tmp_path, server)]
        script = 'exec "$@" <&-'
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", script, "sh", *HARNESS, *words,
            env=environment(tmp_path),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, error = await process.communicate()

    assert process.returncode == 1
    assert "q1 TEXT" in error.decode()
    assert "Traceback" not in error.decode()


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("fail", 1, "the model asked its user ('Which size?'), and on_question is 'fail'"),
        ("deny", 0, "told: Not asked: nobody is there to answer in this run."),
    ],
)
async def test_a_run_that_is_to_ask_nobody_does_not_wait(
    tmp_path: Path, how: str, status: int, said: str
) -> None:
    async with asking_server([SIZE]) as server:
        agent = asking_agent(tmp_path, server, f"{{on_question: {how}}}")
        words = ["run", "paint", "--runtime", "local", "--agent", agent]
        ended, out, error = await finished(await started(words, HARNESS_HOME=str(tmp_path)))

    assert ended == status
    assert said in out + error
    assert "Traceback" not in error


async def test_a_model_that_offers_100_options_is_told_that_these_are_too_many(
    tmp_path: Path,
) -> None:
    options = [f"option {number}" for number in range(100)]
    async with asking_server([question("Which?", options=options)]) as server:
        words = ["run", "paint", "--runtime", "local", "--agent", asking_agent(tmp_path, server)]
        status, out, _ = await finished(await started(words, HARNESS_HOME=str(tmp_path)))

    assert status == 0
    assert "there are more than 20 options; ask an open question" in out


# ---- runs that are taken up ---------------------------------------------------------------


@asynccontextmanager
async def taken_up_at_a_terminal(home: Path, *run_ids: str) -> AsyncIterator[Terminal]:
    words = ["ctl", "run", "resume", *run_ids, "--runtime", "local"]
    async with at_a_terminal(home, words) as terminal:
        yield terminal


async def test_who_takes_a_run_up_at_a_terminal_is_asked_there(tmp_path: Path) -> None:
    await waiting_run(tmp_path / "runs.db", "run1", [COLOUR, SIZE], [COLOUR])
    async with taken_up_at_a_terminal(tmp_path, "run1") as terminal:
        for typed in ("1\n", "M\n", "blue\n"):
            await terminal.until_shown(PROMPT)
            terminal.type(typed)
        await terminal.until_shown("done(completed)")
        await terminal.until_shown("told: red, M, blue\r\n")
        assert await terminal.left() == 0


async def test_of_several_runs_each_is_asked_and_those_that_are_answered_go_on(
    tmp_path: Path,
) -> None:
    store = tmp_path / "runs.db"
    await waiting_run(store, "aaa1", [COLOUR])
    await waiting_run(store, "bbb1", [SIZE])
    async with taken_up_at_a_terminal(tmp_path, "aaa1", "bbb1") as terminal:
        assert "Which colour?" in await terminal.until_shown(PROMPT)
        terminal.type("red\n")
        assert "Which size?" in await terminal.until_shown(PROMPT)
        terminal.type("\x04")
        await terminal.until_shown("done(completed)")
        await terminal.until_shown("run bbb1 waits for 1 question to answer")
        assert await terminal.left() == 1

    assert answers_of(store, "bbb1") == {"q1": None}


async def test_ctrl_c_at_a_question_of_a_run_that_is_taken_up_keeps_what_was_answered(
    tmp_path: Path,
) -> None:
    store = tmp_path / "runs.db"
    await waiting_run(store, "aaa1", [COLOUR])
    await waiting_run(store, "bbb1", [SIZE])
    async with taken_up_at_a_terminal(tmp_path, "aaa1", "bbb1") as terminal:
        await terminal.until_shown(PROMPT)
        terminal.type("red\n")
        await terminal.until_shown(PROMPT)
        terminal.type("\x03")
        await terminal.until_shown(
            "harness ctl run resume aaa1 --runtime local goes on with what is answered"
        )
        await terminal.until_shown("harness ctl run answer bbb1 q1 TEXT")
        assert await terminal.left() == 130

    assert answers_of(store, "aaa1") == {"q1": "red"}


async def test_json_asks_nobody_at_a_terminal_either(tmp_path: Path) -> None:
    await waiting_run(tmp_path / "runs.db", "run1", [SIZE])
    words = ["ctl", "run", "resume", "run1", "--runtime", "local", "--json"]
    async with at_a_terminal(tmp_path, words) as terminal:
        shown = await terminal.until_shown("harness ctl run resume run1")
        assert '"status": "awaiting_input"' in shown
        assert await terminal.left() == 1


@pytest.mark.parametrize("flags", [(), ("--json",)])
async def test_without_a_terminal_it_is_said_what_a_run_still_waits_for(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    store = tmp_path / "runs.db"
    await waiting_run(store, "run1", [SIZE])
    before = JournalReader(store).position()
    words = ["ctl", "run", "resume", "run1", *flags]
    status, out, error = await finished(await started(words, HARNESS_HOME=str(tmp_path)))

    assert status == 1
    assert "run run1 waits for 1 question to answer:\n  q1: Which size?\n" in error
    assert "starting the actors" not in error, "nobody need be started for that"
    assert JournalReader(store).position() == before
    if flags:
        result = json.loads(out)
        assert (result["status"], result["usage"]["model_calls"]) == ("awaiting_input", 1)
    else:
        assert out == ""


async def test_a_run_that_asks_again_when_it_is_taken_up_waits_again(tmp_path: Path) -> None:
    await waiting_run(tmp_path / "runs.db", "run1", [SIZE], [COLOUR])
    words = ["ctl", "run", "answer", "run1", "M", "--resume", "--runtime", "local"]
    status, out, error = await finished(await started(words, HARNESS_HOME=str(tmp_path)))

    assert (status, out) == (1, "run1: q1 is answered\n")
    assert "answer by\n  harness ctl run answer run1 q2 TEXT\n" in error


async def test_a_journal_elsewhere_is_named_in_the_commands(tmp_path: Path) -> None:
    store = tmp_path / "my runs.db"
    await waiting_run(store, "run1", [SIZE])
    words = ["ctl", "run", "resume", "run1", "--store", str(store)]
    _, _, error = await finished(await started(words, HARNESS_HOME=str(tmp_path / "home")))

    assert f"  harness ctl run answer run1 q1 TEXT --store '{store}'\n" in error


def test_options_that_are_numbers_themselves_are_chosen_by_their_texts_alone() -> None:
    asked = OpenQuestion(id="q1", text="How many?", options=("2", "1"))
    assert answer_in(asked, "1") == "1"
    assert answer_in(asked, "3") is None
    assert list(put(asked))[1:] == ["    - 2", "    - 1"]
