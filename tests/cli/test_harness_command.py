import subprocess
import sys

import pytest

from tests.cli.commands import finished, started

# The library of the command line itself loads pydantic.
HEAVY = ("ray", "openai", "tiktoken", "aiohttp", "xllamacpp", "harness_actors.turn")
HELP_ONLY = f"""
import sys
from harness_actors.cli import main
try:
    main()
except SystemExit:
    pass
print([name for name in {HEAVY!r} if name in sys.modules])
"""


ESCAPES = """
import atexit, threading
from harness_actors.cli import main
def fails():
    raise ValueError("\\x1b]2;owned\\x07")
class Fails:
    def __del__(self):
        fails()
def threads():
    thread = threading.Thread(target=fails, name="\\x1b[2J")
    thread.start()
    thread.join()
    Fails()
atexit.register(threads)
main()
"""


def test_what_nobody_catches_is_printed_without_what_a_terminal_obeys() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", ESCAPES, "--version"], capture_output=True, text=True, check=True
    )

    assert shown.stderr.count("ValueError: ␛]2;owned␇") == 2
    assert "Exception in thread ␛[2J:" in shown.stderr
    assert "\x1b" not in shown.stderr
    assert "\x07" not in shown.stderr


@pytest.mark.parametrize(
    "command",
    [["{}"], ["--{}"], ["doctor", "{}"], ["run", "--{}"], ["ctl", "run", "show", "a", "{}"]],
)
async def test_arguments_that_are_repeated_are_printed_without_what_a_terminal_obeys(
    command: list[str],
) -> None:
    # What turns the direction of writing, a screen that is cleared, and a line of its own.
    hostile = "q\u202ez\u009b2J\x1b[2J\ry\nerror: none"
    status, _, said = await finished(await started([part.format(hostile) for part in command]))

    assert status == 2
    assert "q" in said
    assert not set("\u202e\u009b\x1b\r") & set(said)
    assert not any(line.startswith("error:") for line in said.splitlines())


@pytest.mark.parametrize("command", [[], ["run"], ["batch"], ["doctor"], ["ctl", "run", "list"]])
def test_help_loads_nothing_that_is_slow(command: list[str]) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", HELP_ONLY, *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "Usage" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "[]"


async def test_the_version_is_that_of_the_package() -> None:
    status, out, _ = await finished(await started(["--version"]))

    assert status == 0
    assert out.startswith("harness_actors ")


async def test_an_unknown_flag_is_bad_input() -> None:
    status, _, error = await finished(await started(["batch", "--colour"]))

    assert status == 2
    assert "--colour" in error
