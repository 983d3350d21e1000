"""A Ray that is up, with a token, joined in the ways that there are."""

import json
import os
import platform
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from harness_actors.actors.joining.address import Found, find_ray, note_path
from harness_actors.actors.joining.grpc_call import call
from harness_actors.actors.joining.token import make_own_token
from harness_actors.cli.ctl.facts import is_served
from harness_actors.cli.findings import look_at_live_ray
from harness_actors.errors import CellError
from tests.joining.rays import END_WITHIN_S, TOKEN, RayByHand, environment, start_script, told
from tests.test_interrupted_scripts import INTERRUPTED, Script, endings

# The processes of a Ray have up to a minute each on a machine that has much else to do.
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("bare"), pytest.mark.timeout(400)]

WRONG = "f" * 64
WITHIN_S = 5.0


def asked(address: str | None) -> Found:
    """Who answers, which must be known in time."""
    since = time.monotonic()
    found = find_ray(address)
    assert time.monotonic() - since < WITHIN_S
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, "there is none in RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or"),
        ({"RAY_AUTH_MODE": "token"}, "there is none in RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH or"),
        ({"RAY_AUTH_TOKEN": WRONG}, "it refuses the token of RAY_AUTH_TOKEN,"),
        ({"RAY_AUTH_TOKEN_PATH": "wrong"}, "it refuses the token of RAY_AUTH_TOKEN_PATH (wrong)"),
        ({"RAY_AUTH_TOKEN_PATH": "gone"}, "RAY_AUTH_TOKEN_PATH (gone) cannot be read"),
        ({"RAY_AUTH_TOKEN": TOKEN, "RAY_AUTH_MODE": "disabled"}, "unset RAY_AUTH_MODE"),
    ],
    ids=["none", "mode", "wrong", "wrong_file", "no_file", "disabled"],
)
def test_a_missing_and_a_wrong_token_are_named_and_not_shown(
    ray_by_hand: RayByHand,
    variables: dict[str, str],
    named: str,
    bare: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(bare)
    (bare / "wrong").write_text(WRONG)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    found = asked(ray_by_hand.address)

    with pytest.raises(CellError) as raised:
        found.check()
    assert named in str(raised.value)
    assert ray_by_hand.address in str(raised.value)
    assert WRONG not in str(raised.value)
    assert TOKEN not in str(raised.value)


def test_our_own_token_is_tried_where_the_users_is_refused(
    ray_by_hand: RayByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_own_token().write_text(TOKEN)
    monkeypatch.setenv("RAY_AUTH_TOKEN", WRONG)

    assert asked(ray_by_hand.address).problem is None


def test_the_doctor_says_which_ray_is_joined_and_whether_its_token_lets_us_in(
    ray_by_hand: RayByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_path().parent.mkdir()
    note_path().write_text(ray_by_hand.address)
    refused = look_at_live_ray()
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(ray_by_hand.token_path))
    joined = look_at_live_ray()

    assert (refused.state, joined.state) == ("missing", "ok")
    assert "cannot be joined" in refused.found
    assert "RAY_AUTH_TOKEN_PATH" in refused.fix
    assert f"{ray_by_hand.address} ({note_path()}), will be joined" in joined.found
    assert "with the token of RAY_AUTH_TOKEN_PATH" in joined.found
    assert TOKEN not in joined.found


@pytest.mark.parametrize(
    ("ray", "python"), [("2.49.0", platform.python_version()), (version("ray"), "3.12.1")]
)
def test_another_version_is_told_with_both(
    ray_by_hand: RayByHand, ray: str, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    with running_versions(ray_by_hand.address, ray, python):
        found = asked(ray_by_hand.address)

    assert f"Ray {ray} on Python {python}" in str(found.problem)
    assert f"Ray {version('ray')} on Python {platform.python_version()}" in str(found.problem)
    assert asked(ray_by_hand.address).problem is None


@contextmanager
def running_versions(address: str, ray: str, python: str) -> Iterator[None]:
    """Have the Ray say that it runs other versions than it does."""
    true = {"ray_version": version("ray"), "python_version": platform.python_version()}
    _put(address, {"ray_version": ray, "python_version": python})
    try:
        yield
    finally:
        _put(address, true)


def _put(address: str, versions: dict[str, str]) -> None:
    host, _, port = address.rpartition(":")
    key, value, namespace = b"CLUSTER_METADATA", json.dumps(versions).encode(), b"cluster"
    fields = ((b"\x0a", key), (b"\x12", value), (b"\x22", namespace))
    message = b"".join(tag + bytes((len(text),)) + text for tag, text in fields) + b"\x18\x01"
    with socket.create_connection((host, int(port))) as connection:
        path = "/ray.rpc.InternalKVGcsService/InternalKVPut"
        status, _ = call(connection, path, message, TOKEN, time.monotonic() + WITHIN_S)
    assert status == 0


@pytest.mark.usefixtures("soon")
def test_a_ray_that_does_not_answer_is_told_and_not_taken_for_dead(
    ray_by_hand: RayByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_path().parent.mkdir()
    note_path().write_text(ray_by_hand.address)
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    head = ray_by_hand.pid_of("gcs_server")
    os.kill(head, signal.SIGSTOP)
    try:
        found = asked("auto")
    finally:
        os.kill(head, signal.SIGCONT)

    assert "no Ray answers there (it says nothing)" in str(found.problem)
    assert asked("auto").problem is None


def test_two_drivers_with_two_stores_join_one_ray_at_once_and_the_terminal_stays_clean(
    ray_by_hand: RayByHand, tmp_path: Path
) -> None:
    token = {"RAY_AUTH_TOKEN_PATH": str(ray_by_hand.token_path)}
    # One by the note of `ray start`, one by the variable, with another name of the machine.
    noted = environment(ray_by_hand.folder, **token)
    port = ray_by_hand.address.rpartition(":")[2]
    named = environment(tmp_path, RAY_ADDRESS=f"localhost:{port}", RAY_AUTH_TOKEN=TOKEN)
    scripts = [
        start_script("driver", str(tmp_path / f"{number}.db"), variables=variables)
        for number, variables in enumerate((noted, named))
    ]

    for script in scripts:
        texts = ["done: task 0", "done: task 1"]
        assert told(script) == {"texts": texts, "ray": ray_by_hand.address}


def test_a_refused_driver_ends_with_our_error_alone(ray_by_hand: RayByHand, tmp_path: Path) -> None:
    variables = environment(tmp_path)
    store = str(tmp_path / "store.db")
    script = start_script("driver", store, ray_by_hand.address, variables=variables)
    out, error = script.communicate(timeout=60)

    assert script.returncode == 1
    assert out == ""
    assert "CellError: Ray at" in error.splitlines()[-1]
    assert "it asks for a token" in error.splitlines()[-1]
    # One traceback, which Python prints for an error that nobody catches, and none of Ray's.
    assert error.count("Traceback") == 1
    assert "site-packages/ray" not in error


def test_a_script_of_the_users_has_the_harness_everywhere_in_its_ray(
    ray_by_hand: RayByHand, tmp_path: Path
) -> None:
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(ray_by_hand.token_path)}
    variables = environment(tmp_path, **token)
    script = start_script("user_script", ray_by_hand.address, str(tmp_path), variables=variables)
    out, error = script.communicate(timeout=END_WITHIN_S)
    assert (error, script.returncode) == ("", 0)
    # What Ray says on stdout is the script's own affair, which connected by itself.
    answer = json.loads(out.splitlines()[-1])

    places = ("driver", "task", "actor", "async_actor")
    for place in places:
        assert answer[place]["text"] == answer[place]["expected"], place
        assert answer[place]["on_my_node"], place
        assert answer[place]["namespace"] == "mine", place
    assert answer["task"]["node"] != answer["driver"]["node"]
    assert answer["left"] == "done: left open"
    assert answer["after_its_worker"].startswith("done: in process")
    assert answer["cells_left"] == 0
    assert answer["still_mine"] == "mine"
    assert answer["before_shutdown"] == "done: before"
    assert answer["after_shutdown"] == "done: after"


@pytest.mark.parametrize("way", [pytest.param("run", marks=pytest.mark.long), "run_batch"])
def test_a_second_ctrl_c_in_a_script_cuts_rounds_in_a_cell_that_stays(
    ray_by_hand: RayByHand, way: str, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    joining = environment(
        tmp_path, RAY_ADDRESS=ray_by_hand.address, RAY_AUTH_TOKEN_PATH=str(ray_by_hand.token_path)
    )
    script = Script(tmp_path, way, "joined", variables=joining)
    script.until_held()
    script.interrupt()
    script.until_said("press Ctrl-C again to leave at once")
    script.interrupt()
    status, error = script.finish()

    # By then the cell was told, so no tool learns of what comes now.
    script.release()
    assert (status in INTERRUPTED, "KeyboardInterrupt" in error.splitlines()) == (True, True), error
    while is_served(tmp_path / "run" / "runs.db"):
        time.sleep(0.1)
    assert endings(tmp_path) == [(True, [])] * script.in_flight
    assert script.held() == script.in_flight
