import asyncio
import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness_actors.cli.answers import Answers
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.screen import JsonLines
from harness_actors.events import RunEvent, RunStarted
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply, over_messages
from tests.cli.asking_agents import COLOUR, SIZE, answers_of, asking_agent
from tests.cli.commands import END_WITHIN_S, HARNESS
from tests.cli.terminals import at_a_terminal, environment


def _remembers(messages: Sequence[Message]) -> Reply:
    """Says what users have said to it, word by word."""
    said = [message.text for message in messages if message.role == "user"]
    return Reply.text("You said " + " and ".join(said))


remembers = over_messages(_remembers)


def command(server: LoopbackServer, *flags: str) -> list[str]:
    model = ("--model", "scripted", "--model-base-url", server.base_url)
    return ["chat", "--runtime", "local", *model, *flags]


async def piped(
    home: Path, given: str | bytes, arguments: Sequence[str], **variables: str
) -> tuple[int, str, str]:
    """Chat with lines of a script: its exit status, its stdout and its stderr."""
    process = await asyncio.create_subprocess_exec(
        *HARNESS,
        *arguments,
        env={**environment(home), **variables},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(END_WITHIN_S):
        given = given if isinstance(given, bytes) else given.encode()
        out, error = await process.communicate(given)
    assert process.returncode is not None
    return process.returncode, out.decode(), error.decode()


async def test_lines_of_a_script_are_one_conversation_until_a_new_one_is_asked_for(
    tmp_path: Path,
) -> None:
    async with LoopbackServer(remembers) as server:
        given = "red\n\nblue\n/new\ngreen\n/exit\nnever\n"
        status, out, error = await piped(tmp_path, given, command(server))

    assert status == 0
    assert out == "You said red\nYou said red and blue\nYou said green\n"
    assert "Traceback" not in error


@pytest.mark.ray
async def test_on_a_ray_it_is_one_conversation_as_well(tmp_path: Path) -> None:
    async with LoopbackServer(remembers) as server:
        flags = command(server, "--runtime", "ray", "--address", "local")
        status, out, error = await piped(tmp_path, "red\nblue\n/new\ngreen\n", flags)

    assert (status, out) == (0, "You said red\nYou said red and blue\nYou said green\n")
    assert "Traceback" not in error


async def test_a_command_that_there_is_not_is_told_and_not_asked_but_a_path_is(
    tmp_path: Path,
) -> None:
    async with LoopbackServer(remembers) as server:
        given = "/help\n/quit\n/etc/passwd\n/new please\n/exit\n"
        status, out, error = await piped(tmp_path, given, command(server))

    assert status == 0
    assert out == "You said /etc/passwd\nYou said /etc/passwd and /new please\n"
    told = [line for line in error.splitlines() if "there is no command" in line]
    assert told == [
        "there is no command '/help'; there are /new, /compact and /exit",
        "there is no command '/quit'; there are /new, /compact and /exit",
    ]


async def test_bytes_that_are_no_text_end_no_conversation(tmp_path: Path) -> None:
    async with LoopbackServer(remembers) as server:
        status, out, error = await piped(
            tmp_path,
            b"one\ncaf\xe9\nnext\n",
            command(server),
            PYTHONIOENCODING="utf-8:strict",
        )
    assert (status, error.count("Traceback")) == (0, 0)
    assert out.splitlines()[-1] == "You said one and caf? and next"


async def test_json_has_the_text_in_pieces_and_a_result_for_each_answer(tmp_path: Path) -> None:
    async with LoopbackServer(remembers, piece_s=0.0) as server:
        status, out, _ = await piped(tmp_path, "red\nblue\n", command(server, "--json"))

    items = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    ends = [item for item in items if item["type"] == "result"]
    assert [end["output_text"] for end in ends] == ["You said red", "You said red and blue"]
    pieces = [item["text"] for item in items if item["type"] == "text_delta"]
    assert "".join(pieces) == "You said redYou said red and blue"


async def test_an_answer_that_fails_is_told_and_the_next_line_is_answered(tmp_path: Path) -> None:
    async with LoopbackServer(remembers, models=["another"]) as server:
        status, out, error = await piped(tmp_path, "red\nblue\n", command(server))

    assert status == 1
    assert error.count("failed(model_error)") == 2
    assert out == "", "there is no answer, not even an empty line"


async def test_tools_are_noted_in_one_line_beside_the_answer(tmp_path: Path) -> None:
    def script(messages: Sequence[Message]) -> Reply:
        if messages[-1].role == "tool":
            return Reply.text("It is written.")
        return Reply.call("write_file", {"path": "b.txt", "content": "hello\n"})

    folder = tmp_path / "mine"
    folder.mkdir()
    async with LoopbackServer(over_messages(script)) as server:
        arguments = command(server, "--workspace", str(folder))
        status, out, error = await piped(tmp_path / "home", "write\n", arguments)

    assert (status, out) == (0, "It is written.\n")
    assert [line for line in error.splitlines() if "write_file" in line] == [
        '  → write_file {"path":"b.txt","content":"hello\\n"}'
    ]
    assert (folder / "b.txt").read_text() == "hello\n"


async def test_at_a_terminal_an_answer_is_written_while_it_is_said_and_ctrl_c_cuts_it(
    tmp_path: Path,
) -> None:
    def script(messages: Sequence[Message]) -> Reply:
        if messages[-1].text == "count":
            return Reply.text(" ".join(str(number) for number in range(100_000)))
        return Reply.text("You said " + messages[-1].text)

    async with (
        LoopbackServer(over_messages(script), piece_s=0.02) as server,
        at_a_terminal(tmp_path, command(server)) as terminal,
    ):
        await terminal.until_shown("> ")
        terminal.type("count\n")
        # The server is far from its end when this is on the screen.
        await terminal.until_shown("5 6 7 8")
        assert server.open_now == 1
        terminal.type("\x03")
        await terminal.until_shown("cut; harness ctl run resume")
        await terminal.until_shown("> ")
        terminal.type("\x03")
        await terminal.until_shown("> ")
        terminal.type("hello\n")
        await terminal.until_shown("You said hello")
        shown = await terminal.until_shown("> ")
        assert "You said hello" not in shown
        terminal.type("\x04")
        assert await terminal.left() == 0


class Endless:
    """Stands where a harness stands whose runs go on, however they are asked to stop."""

    store = Path("elsewhere.db")
    run_id = "run1"
    window_tokens = 128_000

    def __init__(self) -> None:
        self.waits = asyncio.Event()

    async def run_stream(
        self, message: str, *, text: bool, children: bool
    ) -> AsyncIterator[RunEvent]:
        started = RunStarted(task_preview=message, stop_policy="answer", max_turns=1)
        yield RunEvent(position=1, run_id="run1", at=0.0, event=started)
        self.waits.set()
        await asyncio.Event().wait()


async def test_who_leaves_while_an_answer_is_cut_is_told_how_to_go_on() -> None:
    endless, told = Endless(), io.StringIO()
    lines = EventLines(quiet=True, out=told)
    harness: Any = endless
    answering = asyncio.create_task(
        Answers(harness, lines, JsonLines(lines), "local").answer("count")
    )
    await endless.waits.wait()
    answering.cancel()
    await asyncio.wait([answering])

    assert answering.cancelled()
    assert told.getvalue() == (
        "cut; harness ctl run resume run1 --store elsewhere.db --runtime local "
        "would go on with it\n"
    )


# ---- questions of the agent -------------------------------------------------------------


def asked_in_chat(messages: Sequence[Message]) -> Reply:
    """Asks twice in one message, whatever is said, and repeats what it was told."""
    if messages[-1].role != "tool":
        return Reply.calls([COLOUR, SIZE])
    return Reply.text("You chose " + " ".join(m.text for m in messages if m.role == "tool"))


@asynccontextmanager
async def asking_chat(folder: Path) -> AsyncIterator[list[str]]:
    """The command of a conversation in which the agent asks."""
    async with LoopbackServer(over_messages(asked_in_chat)) as server:
        yield ["chat", "--runtime", "local", "--agent", asking_agent(folder, server)]


async def test_the_next_lines_of_a_script_answer_what_is_asked(tmp_path: Path) -> None:
    async with asking_chat(tmp_path) as words:
        given = "paint\n\ngreen\n2\nlarge\n/exit\n"
        status, out, error = await piped(tmp_path, given, words)

    assert (status, out) == (0, "You chose blue large\n")
    assert error.count("q1: Which colour?\n    to paint the door\n    1 red\n    2 blue\n") == 3
    assert error.count("answer one of red, blue, or a number of these") == 2
    assert error.count("q2: Which size?") == 1


@pytest.mark.parametrize("left", ["/exit\n", "/new\n", ""], ids=["exit", "new", "end"])
async def test_a_question_that_is_left_open_waits_and_it_is_said_how_to_answer(
    tmp_path: Path, left: str
) -> None:
    async with asking_chat(tmp_path) as words:
        status, out, error = await piped(tmp_path, f"paint\nred\n{left}", words)

    (run,) = JournalReader(tmp_path / "runs.db").headings()
    assert (status, out) == (1, "")
    assert f"harness ctl run answer {run.run_id} q2 TEXT" in error
    assert f"harness ctl run answer {run.run_id} q1 TEXT" not in error
    assert answers_of(tmp_path / "runs.db", run.run_id) == {"q1": "red", "q2": None}


async def test_an_answer_that_is_not_taken_is_told_and_asked_for_again(tmp_path: Path) -> None:
    async with asking_chat(tmp_path) as words:
        given = f"paint\nred\n{'x' * 100_001}\nM\n"
        status, out, error = await piped(tmp_path, given, words)

    assert (status, out) == (0, "You chose red M\n")
    assert "has 100001 characters, and may have 100000" in error
    assert error.count("q2: Which size?") == 2


async def test_scripts_that_read_json_answer_by_their_next_lines_as_well(tmp_path: Path) -> None:
    async with asking_chat(tmp_path) as words:
        status, out, _ = await piped(tmp_path, "paint\nred\nM\n", [*words, "--json"])

    ends = [item for item in map(json.loads, out.splitlines()) if item["type"] == "result"]
    assert status == 0
    assert [end["status"] for end in ends] == ["awaiting_input", "awaiting_input", "done"]


async def test_at_a_terminal_the_prompt_names_the_question_and_ctrl_c_leaves_it_open(
    tmp_path: Path,
) -> None:
    async with asking_chat(tmp_path) as words, at_a_terminal(tmp_path, words) as terminal:
        await terminal.until_shown("> ")
        terminal.type("paint\n")
        assert "1 red" in await terminal.until_shown("q1> ")
        terminal.type("gre\x03")
        shown = await terminal.until_shown("q1> ")
        assert "waits: type the answer, or leave it by /new or /exit" in shown
        terminal.type("1\n")
        await terminal.until_shown("q2> ")
        terminal.type("\n")
        assert "an answer is needed" in await terminal.until_shown("q2> ")
        terminal.type("M\n")
        await terminal.until_shown("You chose red M")
        await terminal.until_shown("> ")
        terminal.type("\x04")
        assert await terminal.left() == 0
