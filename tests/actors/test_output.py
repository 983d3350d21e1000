"""What code of users prints is kept in the log of its run, and in no other."""

import asyncio
import contextlib
import io
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.actors import output
from harness_actors.actors.output import Keeping, RunOutput, terminal_taken
from harness_actors.actors.tapping import tap_for_a_while
from harness_actors.agents import Program
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.messages import Message
from harness_actors.ports.origins import ORIGIN
from harness_actors.stores.expiry import expire
from harness_actors.stores.logs import RunLog, log_of
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.turn.threads import ToolThreads
from tests.actors.followers import opened, results, submit


def told(log: Path) -> list[str]:
    """The lines of a log, without their times."""
    return [line.split(" ", 1)[1] for line in log.read_text().splitlines()]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


# ---- the file ---------------------------------------------------------------------------


def test_a_log_is_made_with_its_first_line_and_ends_at_its_bound(store: Path) -> None:
    log = RunLog(store, "run/../1", most_bytes=1000)
    path = log_of(store, "run/../1")
    assert path.parent == store.parent / "logs"
    assert not path.parent.exists()

    for number in range(1000):
        log.append(f"line {number}\n")
    RunLog(store, "run/../1", most_bytes=1000).append("of another process\n")

    text = path.read_text()
    assert text.startswith("line 0\nline 1\n")
    assert "… the log ends here, at its limit of 1,000 bytes" in text
    assert "of another process" not in text
    assert path.stat().st_size < 1100


def test_where_nothing_can_be_written_nothing_happens(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the place of the folder")
    RunLog(tmp_path / "runs.db", "run").append("lost\n")

    gone = tmp_path / "removed"
    RunLog(gone / "runs.db", "run").append("lost\n")
    assert not gone.exists(), "a run directory that was removed does not come back"


# ---- lines ------------------------------------------------------------------------------


def test_lines_are_put_together_by_stream_and_thread(store: Path) -> None:
    kept = RunOutput(RunLog(store, "run"), "agent_turn")
    kept.write("stdout", "a")
    kept.write("stderr", "warned\n")
    thread = threading.Thread(target=kept.write, args=("stdout", "x\ny"))
    thread.start()
    thread.join()
    kept.write("stdout", "b\n\nc")
    kept.write("stdout", "\r 10 %\r 90 %")
    kept.write("stdout", "\r100 %\r\n")
    kept.close()

    assert told(log_of(store, "run")) == [
        "[agent_turn stderr] warned",
        "[agent_turn] x",
        "[agent_turn] ab",
        "[agent_turn] ",
        "[agent_turn] 100 %",
        "[agent_turn] y",
    ]


def test_a_line_without_an_end_is_kept_in_several_where_it_is_long(store: Path) -> None:
    kept = RunOutput(RunLog(store, "run"), "agent_turn")
    kept.write("stdout", "x" * output.LINE_CHARS)
    assert not log_of(store, "run").exists(), "it may end yet"
    kept.write("stdout", "x")
    kept.write("stdout", "end\n")

    line = "x" * (output.LINE_CHARS + 1)
    assert told(log_of(store, "run")) == [f"[agent_turn] {line}", "[agent_turn] end"]


@pytest.mark.parametrize("shown", ["\r{}", "{}\r"])
def test_a_bar_that_is_drawn_again_and_again_is_one_line(store: Path, shown: str) -> None:
    kept = RunOutput(RunLog(store, "run"), "agent_turn")
    for number in range(1000):
        kept.write("stdout", shown.format(f"{number:>100}"))
    kept.write("stdout", "\n")

    assert told(log_of(store, "run")) == [f"[agent_turn] {999:>100}"]


def test_each_line_has_its_time_to_the_millisecond(store: Path) -> None:
    RunOutput(RunLog(store, "run"), "agent_turn").write("stdout", "one\ntwo\n")

    for line in log_of(store, "run").read_text().splitlines():
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} \[agent_turn\] \w+", line)


def test_a_lock_that_nobody_releases_holds_nobody_up_for_long(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "LOCKED_S", 0.05)
    kept = RunOutput(RunLog(store, "run"), "agent_turn")
    kept.write("stdout", "begun")
    # As in a process that was forked while another thread was printing.
    taken = threading.Thread(target=kept._lock.acquire)
    taken.start()
    taken.join()

    kept.write("stdout", "lost\n")
    kept.close()
    assert not log_of(store, "run").exists()


def test_what_is_printed_after_the_end_of_a_hop_is_kept_too(store: Path) -> None:
    kept = RunOutput(RunLog(store, "run"), "agent_turn")
    kept.write("stdout", "begun")
    kept.close()
    late = threading.Thread(target=kept.write, args=("stdout", "late\n"))
    late.start()
    late.join()

    assert told(log_of(store, "run")) == ["[agent_turn] begun", "[agent_turn] late"]


async def test_what_has_no_end_of_line_is_kept_with_the_end_of_its_hop(store: Path) -> None:
    async def hop() -> None:
        with Keeping(store, "run", "agent_turn"):
            sys.stdout.writelines(["one\n", "two"])
            with pytest.raises(TypeError):
                sys.stdout.write(3)  # type: ignore[arg-type]

    with contextlib.redirect_stdout(io.StringIO()) as terminal:
        end = tap_for_a_while()
        # Who serves the run is not the tool of whoever began this task.
        ORIGIN.set("another tool")
        await asyncio.create_task(hop())
        end()

    assert told(log_of(store, "run")) == ["[agent_turn] one", "[agent_turn] two"]
    assert terminal.getvalue() == "one\ntwo"


async def test_where_a_command_has_the_terminal_threads_of_a_run_print_for_it(store: Path) -> None:
    async def hop() -> None:
        with Keeping(store, "run", "agent_turn"):
            thread = threading.Thread(target=print, args=("from a thread",))
            thread.start()
            thread.join()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(print, "from a pool")

    as_it_was = threading.Thread.start
    with contextlib.redirect_stdout(io.StringIO()) as terminal:
        end = tap_for_a_while()
        assert threading.Thread.start is as_it_was, "a process of the user's keeps its own"
        end()
        with terminal_taken():
            end = tap_for_a_while()
            await asyncio.create_task(hop())
            end()

    assert told(log_of(store, "run")) == ["[agent_turn] from a thread", "[agent_turn] from a pool"]
    assert terminal.getvalue() == ""
    assert threading.Thread.start is as_it_was


def test_threads_are_as_they_were_when_the_last_of_several_has_ended() -> None:
    as_it_was = threading.Thread.start, ThreadPoolExecutor.submit
    with terminal_taken():
        ends = [tap_for_a_while(), tap_for_a_while()]
        assert as_it_was[0] is not threading.Thread.start
        for end in ends:
            end()
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == as_it_was


def test_a_process_without_streams_stays_one() -> None:
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
        end = tap_for_a_while()
        assert (sys.stdout, sys.stderr) == (None, None)
        end()
        assert (sys.stdout, sys.stderr) == (None, None)


def test_what_stands_over_a_tap_stays_and_lines_are_kept_once(store: Path) -> None:
    terminal, over = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(terminal):
        end = tap_for_a_while()
        with contextlib.redirect_stdout(over):
            end()
            assert sys.stdout is over
        # The tap is back, though nobody uses it: a second one would keep each line twice.
        end = tap_for_a_while()
        with Keeping(store, "run", "agent_turn"):
            print("one")
        end()

    assert told(log_of(store, "run")) == ["[agent_turn] one"]
    assert terminal.getvalue() == "one\n"


async def test_a_tap_keeps_what_is_a_runs_and_passes_it_on(store: Path) -> None:
    async def hop(run_id: str) -> None:
        with Keeping(store, run_id, "agent_turn"):
            print("of", run_id)
            await asyncio.sleep(0)
            await ToolThreads(1).run(print, "in a thread of", run_id)
            await asyncio.to_thread(print, "in another of", run_id)

    with contextlib.redirect_stdout(io.StringIO()) as terminal:
        end, and_again = tap_for_a_while(), tap_for_a_while()
        await asyncio.gather(asyncio.create_task(hop("a")), asyncio.create_task(hop("b")))
        print("of nobody")
        with terminal_taken():
            await asyncio.create_task(hop("c"))
        and_again()
        and_again()
        assert sys.stdout is not terminal, "another one still needs it"
        end()
        assert sys.stdout is terminal

    for run_id in ("a", "b", "c"):
        assert told(log_of(store, run_id)) == [
            f"[agent_turn] of {run_id}",
            f"[agent_turn] in a thread of {run_id}",
            f"[agent_turn] in another of {run_id}",
        ]
    # Not its lines: two threads that print at once mix them, as they do without a tap.
    shown = terminal.getvalue()
    assert all(text in shown for text in ("of a", "in a thread of b", "of nobody"))
    assert "of c" not in shown


def test_logging_that_was_configured_before_is_kept_too(store: Path) -> None:
    root = logging.getLogger()
    with contextlib.redirect_stderr(io.StringIO()) as terminal:
        handler = logging.StreamHandler(sys.stderr)
        root.addHandler(handler)
        end = tap_for_a_while()
        try:
            with Keeping(store, "run", "agent_turn"):
                logging.getLogger("shop").warning("%d left", 3)
        finally:
            end()
            root.removeHandler(handler)
        assert handler.stream is terminal

    assert told(log_of(store, "run")) == ["[agent_turn stderr] 3 left"]
    assert "3 left" in terminal.getvalue()


HOLDS_A_STREAM = """
import sys
from harness_actors import ChatAgent
from harness_actors.actors.tapping import tap_for_a_while
from harness_actors.agents import Program
from harness_actors.testing import ScriptedModel

before = sys.stdout
tap_for_a_while()
assert sys.stdout is not before
model = ScriptedModel([])
model.streams = [before, sys.stdout]
Program.of(ChatAgent(model=model)).blob
assert sys.stdout is not before
"""


def test_what_holds_on_to_a_stream_is_pickled_while_it_is_tapped() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HOLDS_A_STREAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


# ---- runs -------------------------------------------------------------------------------


@tool
async def say(what: str) -> str:
    """Say something.

    Args:
        what: What.
    """
    for number in range(3):
        print(what, number)
        await asyncio.sleep(0)
    thread = threading.Thread(target=print, args=(what, "in a thread of its own"))
    thread.start()
    thread.join()
    logging.getLogger("shop").info("%s was said", what)
    return "said"


@tool(effect="read_only")
async def listen() -> str:
    """Say nothing."""
    return "heard"


class Announcer:
    """A user's own executor, which prints."""

    name = "announcer"
    reads = ()
    reads_log = False

    async def handle(self, signal: object, context: object) -> object:
        print("announced")
        return signal


def _speaks(messages: Sequence[Message]) -> Reply:
    if messages[-1].role == "tool":
        return Reply.call("work_complete", {"summary": "done"})
    task = next(message.text for message in messages if message.role == "user")
    if task == "listen":
        return Reply.call("listen")
    return Reply.call("say", {"what": task})


def speaker() -> ChatAgent:
    return ChatAgent(model=ScriptedModel(_speaks), tools=[say, listen])


async def test_two_runs_at_once_have_a_log_each_and_a_quiet_one_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program.of(speaker())
    async with opened("local", tmp_path / "runs.db") as runtime:
        runs = [program.spec(task, HarnessConfig()) for task in ("one", "two", "listen")]
        await submit(runtime, program, runs)
        await results(runtime, [spec.run_id for spec in runs])

    for spec, word in zip(runs, ("one", "two"), strict=False):
        lines = told(log_of(tmp_path / "runs.db", spec.run_id))
        assert lines[:3] == [f"[say] {word} {number}" for number in range(3)]
    assert not log_of(tmp_path / "runs.db", runs[2].run_id).exists()
    # A script sees what its tools print, as it always has.
    assert "two in a thread of its own" in capsys.readouterr().out


@pytest.mark.ray
async def test_on_ray_everything_is_kept_by_run(tmp_path: Path) -> None:
    workflow = HarnessWorkflowBuilder(speaker()).insert_after("repair", Announcer()).build()  # type: ignore[arg-type]
    program = Program.of(workflow)
    store = tmp_path / "runs.db"
    async with opened("ray", store) as runtime:
        runs = [program.spec(task, HarnessConfig()) for task in ("one", "two", "listen")]
        await submit(runtime, program, runs)
        await results(runtime, [spec.run_id for spec in runs])

    for spec, word in zip(runs, ("one", "two"), strict=False):
        lines = told(log_of(store, spec.run_id))
        assert lines.pop(0) == "[announcer] announced"
        assert lines == [
            *(f"[say] {word} {number}" for number in range(3)),
            f"[say] {word} in a thread of its own",
            f"[say INFO shop] {word} was said",
        ]
    assert told(log_of(store, runs[2].run_id)) == ["[announcer] announced"]


OWN_PROCESS = """
import asyncio, logging, sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from harness_actors.actors import output
from harness_actors.actors.output import Keeping
from harness_actors.actors.tapping import tap_own_process

tap_own_process()
pool = ThreadPoolExecutor(1)

async def hop(run_id):
    with Keeping(Path(sys.argv[1]), run_id, "agent_turn"):
        await asyncio.get_running_loop().run_in_executor(pool, print, "in a pool")
        pool.submit(print, "in it again").result()
        thread = threading.Thread(target=print, args=("in a thread",))
        thread.start()
        thread.join()
        assert "run" not in vars(thread)
        logging.getLogger("shop").info("informed")
        logging.getLogger("shop").info("broken %d", "x")
        logging.getLogger("httpx").info("not a user's")
        logging.basicConfig(format="%(name)s says %(message)s", force=True, level=logging.DEBUG)
        logging.getLogger("shop").debug("configured")
        logging.basicConfig(force=True, handlers=[])

async def main():
    await asyncio.create_task(hop("a"))
    await asyncio.create_task(hop("b"))
    pool.submit(print, "of nobody").result()

asyncio.run(main())
"""


def test_threads_and_logging_of_a_process_of_ours(store: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", OWN_PROCESS, str(store)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    for run_id in ("a", "b"):
        lines = told(log_of(store, run_id))
        assert lines[:4] == [
            "[agent_turn] in a pool",
            "[agent_turn] in it again",
            "[agent_turn] in a thread",
            "[agent_turn INFO shop] informed",
        ]
        assert any("--- Logging error ---" in line for line in lines)
        assert lines[-1] == "[agent_turn stderr] shop says configured"
        assert not any("httpx" in line or "nobody" in line for line in lines)
    assert "of nobody" in ended.stdout


async def test_a_log_goes_with_its_run(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    ids = []
    for task in ("old", "young"):
        async with AgentHarness(speaker(), runtime="local", store=store) as harness:
            ids.append((await harness.run(task)).run_id)
    assert all(log_of(store, run_id).exists() for run_id in ids)

    assert expire(store, ended_before=1e12).runs == 1

    assert [log_of(store, run_id).exists() for run_id in ids] == [False, True]
