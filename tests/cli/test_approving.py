"""Calls that need approval: at the terminal, in a conversation, and where there is nobody."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from harness_actors.stores import JournalReader
from tests.cli.approving_agents import (
    Call,
    a_refund,
    approving_agent,
    calling_server,
    run_that_waits,
)
from tests.cli.asking_agents import SIZE, answers_of
from tests.cli.commands import finished, started
from tests.cli.terminals import Terminal, at_a_terminal

CHOICE = "y/n/e/a/t/s> "
LOCAL = ("--runtime", "local")


@asynccontextmanager
async def asked_at_a_terminal(
    folder: Path, *rounds: list[Call], command: tuple[str, ...] = ("run", "settle it")
) -> AsyncIterator[Terminal]:
    """A command at a terminal, whose model makes calls that need approval."""
    async with calling_server(*rounds, chats="chat" in command) as server:
        words = [*command, *LOCAL, "--agent", approving_agent(folder, server)]
        async with at_a_terminal(folder, words) as terminal:
            yield terminal


def the_run(home: Path) -> str:
    (heading,) = JournalReader(home / "runs.db").headings()
    return heading.run_id


async def test_each_call_is_shown_and_decided_about_by_a_key(tmp_path: Path) -> None:
    rounds = [[a_refund(number) for number in (1, 2, 3, 4)], [a_refund(5)], [a_refund(6)]]
    async with asked_at_a_terminal(tmp_path, *rounds) as terminal:
        shown = await terminal.until_shown(CHOICE)
        call = "    refund(\r\n        order: 1\r\n        amount: 5\r\n    )\r\n"
        assert f"q1: May refund be called?\r\n{call}    it cannot be undone\r\ny approve" in shown
        terminal.type("y\ny\n")  # what is typed ahead is of a call that was not shown yet
        assert "q2: May refund" in await terminal.until_shown(CHOICE)
        terminal.type("n\n")
        await terminal.until_shown("why not> ")
        terminal.type("not today\n")
        await terminal.until_shown(CHOICE)
        terminal.type("e\n")
        assert 'now: {"order": 3, "amount": 5}\r\n' in await terminal.until_shown("arguments> ")
        terminal.type("{order: 3}\n")
        assert "that is no JSON" in await terminal.until_shown("arguments> ")
        terminal.type('{"order": 3}\n')
        assert "break the schema of refund: $: 'amount' is missing" in await terminal.until_shown(
            CHOICE
        )
        terminal.type('e {"order": 3, "amount": 1}\n')
        await terminal.until_shown(CHOICE)
        terminal.type("a\n")
        await terminal.until_shown("in its place> ")
        terminal.type("it was refunded before\n")
        assert "order: 5" in await terminal.until_shown(CHOICE)
        terminal.type("yes, but less\n")
        await terminal.until_shown(CHOICE)
        terminal.type("t\n")
        ended = await terminal.until_shown("told: 5 for 1 | ")
        assert CHOICE not in ended, "the tool is approved of from here on"
        told = await terminal.until_shown(" | 5 for 5 | 5 for 6\r\n")
        assert "did not approve of it: not today | 1 for 3 | it was refunded before" in told
        assert await terminal.left() == 0


async def test_a_call_cannot_order_a_terminal_about_and_ctrl_c_leaves_it_waiting(
    tmp_path: Path,
) -> None:
    text = "hello\x1b[2J\nto: \u202eall\x9b"
    async with asked_at_a_terminal(tmp_path, [("send", {"text": text})]) as terminal:
        shown = await terminal.until_shown(CHOICE)
        assert "          | hello␛[2J\r\n          | to: \\u202eall\\x9b\r\n" in shown
        terminal.type("e\n")
        shown += await terminal.until_shown("arguments> ")
        terminal.type("\n")
        shown += await terminal.until_shown(CHOICE)
        terminal.type("n\n")
        shown += await terminal.until_shown("why not> ")
        terminal.type("\x03")
        shown += await terminal.until_shown(f"harness ctl run approve {the_run(tmp_path)} q1")
        assert not set(shown) & set("\x1b\x9b\u202e")
        assert await terminal.left() == 130

    assert answers_of(tmp_path / "runs.db", the_run(tmp_path)) == {"q1": None}


async def test_who_takes_a_run_up_at_a_terminal_decides_there(tmp_path: Path) -> None:
    run_id = await run_that_waits(tmp_path / "runs.db", [a_refund(1), SIZE])
    words = ["ctl", "run", "resume", run_id, *LOCAL]
    async with at_a_terminal(tmp_path, words) as terminal:
        assert "order: 1" in await terminal.until_shown(CHOICE)
        terminal.type('e {"order": 1}\n')
        assert "break the schema of refund: $: 'amount' is missing" in await terminal.until_shown(
            CHOICE
        )
        terminal.type("s\n")
        await terminal.until_shown("answer> ")
        terminal.type("M\n")
        await terminal.until_shown("told: 5 for 1 | M\r\n")
        assert await terminal.left() == 0


async def test_where_there_is_no_terminal_it_is_said_how_to_decide(tmp_path: Path) -> None:
    async with calling_server([a_refund(17), SIZE]) as server:
        agent = approving_agent(tmp_path, server, "{on_question: fail}")
        words = ["run", "settle it", *LOCAL, "--agent", agent, "--json", "--on-question", "wait"]
        status, out, error = await finished(await started(words, HARNESS_HOME=str(tmp_path)))

    run_id = the_run(tmp_path)
    assert status == 1
    assert error.endswith(
        f"run {run_id} waits for 1 call to approve and 1 question to answer:\n"
        "  q1: May refund be called?\n"
        "      refund(\n"
        "          order: 17\n"
        "          amount: 5\n"
        "      )\n"
        "      it cannot be undone\n"
        "  q2: Which size?\n"
        "answer by\n"
        f"  harness ctl run answer {run_id} q2 TEXT\n"
        "approve or deny by\n"
        f"  harness ctl run approve {run_id} q1\n"
        f"  harness ctl run deny {run_id} q1 --note WHY\n"
        "and go on by\n"
        f"  harness ctl run resume {run_id} --runtime local\n"
    )
    reason = json.loads(out)["reason"]
    assert (reason["kind"], reason["details"]["questions"][0]["tool"]) == ("approval", "refund")


async def test_in_a_conversation_the_next_lines_decide(tmp_path: Path) -> None:
    rounds = [[a_refund(1), a_refund(2)]]
    async with asked_at_a_terminal(tmp_path, *rounds, command=("chat",)) as terminal:
        await terminal.until_shown("> ")
        terminal.type("settle it\n")
        assert "order: 1" in await terminal.until_shown(f"q1 {CHOICE}")
        terminal.type("perhaps\n")
        await terminal.until_shown("y approve, n deny")
        await terminal.until_shown(f"q1 {CHOICE}")
        terminal.type("y\x03")
        await terminal.until_shown(f"q1 {CHOICE}")
        terminal.type("n\n")
        await terminal.until_shown("q1 why not> ")
        terminal.type("y\x03")
        await terminal.until_shown(f"q1 {CHOICE}")
        terminal.type("n\n")
        await terminal.until_shown("q1 why not> ")
        terminal.type("\n")
        assert "order: 2" in await terminal.until_shown(f"q2 {CHOICE}")
        terminal.type('e {"order": 2, "amount": 1}\n')
        told = await terminal.until_shown("| 1 for 2\r\n")
        assert "did not approve of it." in told
        await terminal.until_shown("> ")
        terminal.type("\x04")
        assert await terminal.left() == 0
