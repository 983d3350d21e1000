"""Escape sequences in all that a run says, does and is called, looked for on a real terminal."""

import asyncio
import json
import os
import pty
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from harness_actors.messages import Message
from harness_actors.testing import LoopbackServer, Reply, over_messages
from harness_actors.testing.faults import Refuse, always
from tests.attack.attacks import Attack, Outcome

WORD = "CANARY"
CANARY = (
    f"\x1b]0;{WORD}\x07\x1b]52;c;{WORD}\x1b\\\x1b[2J\x1b[8m\x9b2J\x9d0;{WORD}\x9c"
    f"\u202e{WORD}\u2066\u2028\r{WORD}\x08\x7f"
)
NAME = "\x1b]0;CANARY\x07\x9b2J\u202e"
"""For what is a name: of a file, a model, a run."""

OWN = re.compile(r"\x1b\[(?:[0-79;]|38;|48;)*m|\x1b\[\?25[lh]|\x1b\[\d*[ABCDGK]|\x1b\[\?2004[lh]")
"""What Rich and readline write: colours without concealment, the cursor, and lines erased."""
FORBIDDEN = re.compile(
    "[\x00-\x06\x07\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028]"
)
HARNESS = (sys.executable, "-c", "from harness_actors.cli import main; main()")
END_WITHIN_S = 120.0

TOOLS = f'''
import logging
from harness_actors import tool

CANARY = {CANARY!r}

@tool
def fetch(order: str) -> str:
    """Fetch an order.

    Args:
        order: Its name.
    """
    print("printed", CANARY)
    logging.getLogger(CANARY).warning("logged %s", CANARY)
    if order.startswith("good"):
        return "answered " + CANARY
    raise KeyError("failed " + CANARY)

@tool(effect="network")
def pay(order: str, why: str) -> str:
    """Pay an order.

    Args:
        order: Its name.
        why: What for.
    """
    return "paid " + CANARY

def asks(event):
    from harness_actors.policies import Ask
    return Ask("asked because " + CANARY) if "asked" in event.arguments["order"] else None
'''
AGENT = f"""
environment: {{tools: ["hostile_tools:fetch"]}}
persona: {{instructions: {json.dumps(CANARY)}}}
"""
APPROVING = f"""
environment: {{tools: ["hostile_tools:pay"]}}
persona:
  instructions: Pay.
  hooks: {{pre_tool: ["hostile_tools:asks"]}}
  approvals:
    rules:
      - {{decide: ask, tools: [pay], why: {json.dumps(CANARY)}}}
"""
PROMPT = re.compile(rb"(?:y/n/e[a-z/]*|why not)>")
"""What stands where somebody is to decide."""


def _pays(messages: Sequence[Message]) -> Reply:
    answered = sum(message.role == "tool" for message in messages)
    # Long ones are cut where they are shown, and whole texts shown when they are asked for.
    if answered < 2:
        order = f"{'asked' if answered else 'ruled'} {CANARY}"
        return Reply.call("pay", {"order": order, "why": f"{CANARY} {'x' * 9000} {CANARY}"})
    return Reply.call("work_complete", {"summary": f"done {CANARY}"})


pays = over_messages(_pays)


def _says(messages: Sequence[Message]) -> Reply:
    answered = sum(message.role == "tool" for message in messages)
    if answered == 0:
        return Reply.call("fetch", {"order": f"good {CANARY}"}, said=f"said {CANARY}")
    if answered == 1:
        return Reply.call("fetch", {"order": f"bad {CANARY}"})
    if answered == 2:
        return Reply.call(f"none{CANARY}", {CANARY: CANARY})
    if answered == 3:
        return Reply.call("work_complete", {"summary": f"done {CANARY}"})
    # A chat has no such tool.
    return Reply.text(f"answered {CANARY}")


says = over_messages(_says)


@dataclass
class Terminal:
    """Runs commands on a terminal of their own, and keeps what they wrote to it."""

    home: Path
    folder: Path
    written: list[tuple[str, str]] = field(default_factory=list)

    async def run(self, *words: str | Path, typed: str = "", decided: Sequence[str] = ()) -> str:
        """Run one command.

        Args:
            words: What it is called with.
            typed: What is typed at once.
            decided: What is typed at each place at which somebody is to decide.
        """
        ours, theirs = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
        try:
            process = await asyncio.create_subprocess_exec(
                *HARNESS,
                *map(str, words),
                cwd=self.folder,
                env={**environment, "HARNESS_HOME": str(self.home), "TERM": "xterm"},
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
            )
        finally:
            os.close(theirs)
        os.write(ours, typed.encode())
        async with asyncio.timeout(END_WITHIN_S):
            text = (await asyncio.to_thread(_read_all, ours, decided)).decode(
                "utf-8", "surrogateescape"
            )
            await process.wait()
        self.written.append((" ".join(map(str, words[:3])), text))
        return text


def _read_all(handle: int, decided: Sequence[str]) -> bytes:
    found, left, told = b"", list(decided), 0
    try:
        while piece := os.read(handle, 1 << 16):
            found += piece
            if left and (prompt := PROMPT.search(found, told)):
                told = prompt.end()
                os.write(handle, f"{left.pop(0)}\n".encode())
    except OSError:
        pass  # so the end of a terminal is told
    finally:
        os.close(handle)
    return found


def raw_in(text: str) -> Iterator[str]:
    """What a terminal would obey that is none of our own sequences."""
    for found in FORBIDDEN.finditer(OWN.sub("", text)):
        rest = OWN.sub("", text)
        yield f"{rest[max(0, found.start() - 30) : found.end() + 20]!r}"
    if f"\r{WORD}" in text:
        yield f"a carriage return before {WORD}"


def run(tries: int) -> Outcome:
    """Give each command once, for each of so many rounds."""
    through: list[str] = []
    written: list[tuple[str, str]] = []
    given = seen = 0
    for _ in range(tries):
        with TemporaryDirectory(prefix="harness-escapes-") as folder:
            written = asyncio.run(_commands(Path(folder)))
        for words, text in written:
            given += 1
            seen += WORD in text
            through += [f"{words!a}: {raw}" for raw in list(raw_in(text))[:2]]
    if seen < given / 2:
        through.append(f"only {seen} of {given} commands showed anything of it: {written!a:.2000}")
    return Outcome(
        tries=given, through=tuple(through), figures=(("commands that showed it", seen),)
    )


async def _commands(outside: Path) -> list[tuple[str, str]]:
    folder = outside / f"work{NAME}"
    folder.mkdir()
    (folder / "hostile_tools.py").write_text(TOOLS)
    (folder / "agent.yaml").write_text(AGENT)
    (folder / "approving.yaml").write_text(APPROVING)
    tasks = [
        {"id": f"task{NAME}", "task": f"do {CANARY}"},
        {"id": "check", "task": "do it", "check": {"command": f"echo '{CANARY[:20]}'; false"}},
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    terminal = Terminal(folder / "home", folder)
    approving = Terminal(folder / "approving", folder, terminal.written)
    async with LoopbackServer(pays) as paying, asyncio.TaskGroup() as both:
        both.create_task(_decide(approving, paying.base_url))
        both.create_task(_show_all(terminal, folder))
    return terminal.written


async def _show_all(terminal: Terminal, folder: Path) -> None:
    """Every command, after runs that say all that they can."""
    agent = ("--agent", folder / "agent.yaml", "--runtime", "local")
    refusing = LoopbackServer(faults=always(Refuse(400, message=f"refused {CANARY}")))
    async with LoopbackServer(says) as good, refusing as bad:
        model = ("--model", f"scripted{NAME}", "--model-base-url", good.base_url)
        failing = ("--model", "scripted", "--model-base-url", bad.base_url)
        run_dir = folder / f"runs{NAME}"
        batch = ("batch", folder / "tasks.jsonl", "--run-dir", run_dir)
        await terminal.run("run", f"do {CANARY}", *agent, *model, "-v", "--debug")
        await terminal.run("run", f"do {CANARY}", *agent, *model, "--json", "--stream")
        await terminal.run("run", "do it", *agent, *failing)
        await terminal.run("run", "do it", "--agent", folder / f"{NAME}.yaml", *failing)
        typed = "hello\n/none\n/exit\n"
        await terminal.run("chat", *agent, *model, "-v", "--debug", typed=typed)
        await terminal.run(*batch, *agent, *model, "--debug")
        other = ("batch", folder / "tasks.jsonl", "--run-dir", folder / "failing")
        await terminal.run(*other, *agent, *failing, "--json")
        # Only now, for they need no model.
        for where in (("--run-dir", run_dir), ()):
            await _look(terminal, where)
        _rename_all(terminal.home / "runs.db")
        await _look(terminal, (), f"renamed{NAME}")
        await terminal.run("replay", "renamed", "--from", "1", "--runtime", "local", *model)
        await terminal.run("doctor", "--model-base-url", f"http://127.0.0.1:1/{NAME}")
        await terminal.run("doctor", "--json")
        await terminal.run("ctl", "cell", "list")


async def _look(terminal: Terminal, where: Sequence[str | Path], run_id: str = "") -> None:
    """All commands that need nothing but a journal."""
    listed = await terminal.run("ctl", "run", "list", *where, "--json")
    run_id = run_id or json.loads(listed)[0]["run_id"]
    await terminal.run("ctl", "run", "list", *where)
    for words in (["show", run_id, "--full"], ["events", run_id], ["export"], ["cancel", run_id]):
        await terminal.run("ctl", "run", *words, *where)
    await terminal.run("ctl", "run", "show", run_id, "--json", *where)
    await terminal.run("ctl", "run", "show", f"no{NAME}", *where)
    await terminal.run("ctl", "run", "resume", run_id, "--runtime", "local", *where)
    await terminal.run("replay", run_id, *where)
    await terminal.run("ctl", "store", "compact", *where)
    await terminal.run("ctl", "store", "expire", *where)


async def _decide(terminal: Terminal, base_url: str) -> None:
    """Calls that wait for approval: shown, listed, decided about with words of people."""
    model = ("--model", "scripted", "--model-base-url", base_url, "--runtime", "local")
    pay = ("run", f"pay {CANARY}", "--agent", terminal.folder / "approving.yaml", *model)
    edited = json.dumps({"order": f"other {CANARY}", "why": CANARY})
    await terminal.run(*pay, "-v", decided=("v", "y", "n", "no"))
    await terminal.run(*pay, decided=("what?", f"e {edited}", "y"))
    for words in (
        ("deny", "--note", f"denied {CANARY}"),
        ("approve", "--note", f"approved {CANARY}", "--arguments", edited),
    ):
        # Whoever wants lines of JSON is asked nothing, so that the run waits.
        await terminal.run(*pay, "--json")
        listed = json.loads(await terminal.run("ctl", "run", "list", "--json"))
        run_id = next(one["run_id"] for one in listed if one["status"].startswith("waiting"))
        await terminal.run("ctl", "run", "list", "--status", "waiting")
        await terminal.run("ctl", "run", "show", run_id)
        await terminal.run("ctl", "run", "approve", run_id, NAME)
        await terminal.run("ctl", "run", "approve", run_id, "--arguments", json.dumps({NAME: NAME}))
        await terminal.run("ctl", "run", words[0], run_id, *words[1:])
        await terminal.run("ctl", "run", "show", run_id, "--full")
        await terminal.run("ctl", "run", "resume", run_id, "--runtime", "local", decided=("y",))
        await terminal.run("ctl", "run", "show", run_id, "--full")
        await terminal.run("ctl", "run", "events", run_id)


def _rename_all(store: Path) -> None:
    """Write it into columns that no run of ours would have it in."""
    with closing(sqlite3.connect(store)) as journal, journal:
        journal.execute("UPDATE runs SET command = ?, conversation_id = ?", (CANARY, CANARY))
        journal.execute("UPDATE runs SET run_id = ? || id WHERE id > 1", (f"other{CANARY}",))
        journal.execute("UPDATE runs SET run_id = ? WHERE id = 1", (f"renamed{NAME}",))


ATTACKS = (
    Attack(
        name="terminal_escapes",
        what="Escape sequences in texts, names, errors, journals and calls that wait for approval.",
        run=run,
        tries=3,
        quick=1,
    ),
)
