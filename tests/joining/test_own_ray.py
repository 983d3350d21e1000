"""A Ray of our own: what a driver leaves behind, and what it does when that Ray is lost."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from harness_actors.tools.processes import carries, end_processes, list_processes
from tests.joining import keyed
from tests.joining.rays import END_WITHIN_S, environment, start_script, told

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]


@pytest.fixture
def variables() -> Iterator[dict[str, str]]:
    """Those of a user without a token, whose processes can be told by them."""
    # Short: the paths of Ray's sockets, which lie in it, must be.
    folder = Path(tempfile.mkdtemp(prefix="hj"))
    yield environment(folder)
    asyncio.run(end_processes({"RAY_TMPDIR": str(folder)}))
    shutil.rmtree(folder, ignore_errors=True)


def names_of(variables: Mapping[str, str]) -> list[str]:
    """The processes of this user, by name."""
    mark = {"RAY_TMPDIR": variables["RAY_TMPDIR"]}
    found = []
    for pid in list_processes():
        if carries(pid, mark):
            try:
                found.append(Path(f"/proc/{pid}/comm").read_text().strip())
            except OSError:
                continue  # it ended meanwhile
    return found


AGENTS = ("ray::DashboardA", "ray::RuntimeEnv")
"""Ray's own helpers of a raylet, as the system shortens their names. Of one that was killed they
end when they notice, which takes them minutes now and then."""


def wait_until_gone(variables: Mapping[str, str], *, but: Sequence[str] = ()) -> None:
    until = time.monotonic() + 60.0
    while (left := set(names_of(variables)) - set(but)) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_driver_that_is_interrupted_while_its_ray_starts_leaves_nothing(
    number: signal.Signals, variables: dict[str, str], tmp_path: Path
) -> None:
    script = start_script("driver", str(tmp_path / "store.db"), "local", variables=variables)
    while "gcs_server" not in names_of(variables):
        assert script.poll() is None
        time.sleep(0.02)
    script.send_signal(number)
    out, error = script.communicate(timeout=END_WITHIN_S)

    assert script.returncode != 0
    assert out == ""
    # What Python says of Ctrl-C, and nothing of Ray's.
    assert error == "" or error.splitlines()[-1] == "KeyboardInterrupt"
    assert "site-packages/ray" not in error
    wait_until_gone(variables)
    home = Path(variables["HOME"])
    assert list(home.iterdir()) == [], "the token of our own Ray is none of the user's"
    assert (Path(variables["HARNESS_HOME"]) / "ray_auth_token").stat().st_mode & 0o777 == 0o600


def test_no_process_but_the_driver_shows_a_key_and_tools_have_theirs(
    variables: dict[str, str], tmp_path: Path
) -> None:
    keys = {"OPENAI_API_KEY": keyed.MODELS, "TOOL_API_KEY": keyed.TOOLS}

    seen = told(start_script("keyed", str(tmp_path / "store.db"), variables={**variables, **keys}))

    assert seen["key"] == keyed.TOOLS
    (driver,) = seen["shown"]
    assert "tests.joining.keyed" in driver


def test_a_folder_too_long_for_its_sockets_is_told_with_what_to_do(
    variables: dict[str, str], tmp_path: Path
) -> None:
    long = str(Path(variables["RAY_TMPDIR"]) / ("x" * 100))
    named = {**variables, "RAY_TMPDIR": long}
    script = start_script("driver", str(tmp_path / "store.db"), "local", variables=named)
    _, error = script.communicate(timeout=END_WITHIN_S)

    assert script.returncode != 0
    last = error.splitlines()[-1]
    assert "CellError: a Ray of our own: " in last
    assert last.endswith("; set RAY_TMPDIR to a shorter folder")


@pytest.mark.parametrize(
    ("taken", "loop"),
    # All others on a Ray are on the loop that it takes by itself, which is uvloop here.
    [("0", "asyncio"), pytest.param("1", "uvloop", marks=pytest.mark.long)],
)
def test_whichever_loop_ray_takes_batches_pass_it_by(
    taken: str, loop: str, variables: dict[str, str], tmp_path: Path
) -> None:
    named = {**variables, "RAY_USE_UVLOOP": taken}
    script = start_script("looping", str(tmp_path / "store.db"), variables=named)
    # Nobody stands behind what else the machine does, as workers of a Ray do by themselves.
    assert told(script) == {"behind": [0], "loop": loop, "hosts": 1, "channels": 1}
    # All that this Ray keeps, its sockets among it, is where nobody else gets in.
    (kept,) = Path(variables["RAY_TMPDIR"]).glob("ray*")
    assert kept.stat().st_mode & 0o777 == 0o700
    assert list(kept.glob("ray/session_*/sockets"))


def test_a_driver_whose_raylet_dies_alone_goes_on_and_one_that_gives_up_can_begin_anew(
    variables: dict[str, str], tmp_path: Path
) -> None:
    whole = tmp_path / "report.json"
    script = start_script("losing", str(tmp_path / "store.db"), str(whole), variables=variables)
    _, error = script.communicate(timeout=END_WITHIN_S)
    assert (script.returncode, error) == (0, "")
    wait_until_gone(variables, but=AGENTS)
    report = json.loads(whole.read_text())

    assert report["one"] == "done after 1 raylets"
    (told,) = report["told"]
    assert "its raylet on this machine has ended; another one is started" in told
    assert len(set(report["begun"])) == 2, "no call is made twice, each by another process"
    assert report["parent"] != os.getpid()
    assert report["all"].startswith("Ray was lost: its raylet on this machine has ended; and ")
    assert report["none"] == "done after 0 raylets"
