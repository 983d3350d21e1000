"""A Ray of another user of this machine: not believed, not joined, and shown no token."""

import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from harness_actors.actors import cell_processes
from harness_actors.actors.joining import connect
from harness_actors.actors.joining.address import Found, find_ray, note_path
from harness_actors.actors.joining.connect import check_user, own_folder
from harness_actors.actors.joining.listeners import is_ours, users_behind
from harness_actors.actors.joining.token import make_own_token
from harness_actors.actors.joining.trust import (
    TRUST,
    is_believed,
    read_own,
    trusts_strangers,
)
from harness_actors.actors.processes import mark_of
from harness_actors.cli import options
from harness_actors.errors import CellError
from tests.joining.other_users import STRANGER, Kind, Listener, can_be_another, listener, note
from tests.joining.rays import environment

SECRET = "a-token-that-nobody-else-may-see"

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture(params=["locked", "open"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def stranger(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """Another user's; where that cannot be, our own one seen with another user's eyes."""
    with listener(
        kind, user=STRANGER if can_be_another() else None, ray=version("ray")
    ) as listening:
        if not can_be_another():
            as_another(monkeypatch)
        yield listening


def as_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


@pytest.fixture
def token(bare: Path) -> Path:
    """That of this user's own Rays."""
    path = bare / "home" / ".ray" / "auth_token"
    path.parent.mkdir(parents=True)
    path.write_text(SECRET)
    make_own_token().write_text(SECRET)
    return path


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("planted_by", [None, STRANGER])
def test_a_note_that_names_anothers_ray_leads_to_one_of_our_own(
    stranger: Listener, bare: Path, planted_by: int | None
) -> None:
    note(bare, stranger.address, user=planted_by if can_be_another() else None)

    assert find_ray(None) is None
    assert SECRET.encode() not in stranger.heard()


def test_our_own_ray_is_believed_by_our_own_note_alone(
    bare: Path, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listener("open", ray=version("ray")) as ours:
        note(bare, ours.address)
        believed = find_ray(None)
        if can_be_another():
            note(bare, ours.address, user=STRANGER)
        else:
            as_another(monkeypatch)
        disbelieved = find_ray(None)

        assert believed is not None
        assert believed.problem is None
        assert disbelieved is None
        assert SECRET.encode() in ours.heard()
        assert token.exists()


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("by_variable", [False, True])
def test_a_named_ray_of_another_user_is_told_and_sees_no_token(
    stranger: Listener, by_variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", stranger.address)
    found = find_ray(None if by_variable else stranger.address)

    with pytest.raises(CellError, match=r"it is not yours but .*--trust-ray") as raised:
        found_one(found).check()
    assert stranger.address in str(raised.value)
    assert SECRET.encode() not in stranger.heard()


@pytest.mark.usefixtures("token")
def test_a_named_ray_of_another_user_is_joined_where_it_is_trusted(
    stranger: Listener, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRUST, "1")
    found = found_one(find_ray(stranger.address))

    # Those of our own Rays are not shown even then.
    assert ("is not shown to another user's" in str(found.problem)) == (kind == "locked")
    assert (found.problem is None) == (kind == "open")
    assert found.token.value is None
    assert SECRET.encode() not in stranger.heard()


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("value", ["theirs", SECRET])
def test_the_token_of_that_cluster_is_shown_where_it_asks_for_one(
    stranger: Listener, kind: Kind, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", value)
    found = found_one(find_ray(stranger.address))

    heard = stranger.heard()
    assert (b"Bearer theirs" in heard) == (kind == "locked" and value == "theirs")
    assert SECRET.encode() not in heard
    if kind == "open" or value == SECRET:
        assert "--trust-ray" in str(found.problem)


@pytest.mark.usefixtures("token")
def test_an_address_that_was_found_on_the_machine_is_never_trusted(
    stranger: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRUST, "1")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "theirs")
    found = found_one(find_ray(stranger.address, is_named=False))

    with pytest.raises(CellError, match="it is not yours"):
        found.check()
    assert b"Bearer" not in stranger.heard()


def test_our_own_token_is_shown_to_our_own_rays_alone(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_own_token().write_text(SECRET)
    with listener("locked") as ours, ExitStack() as stack:
        find_ray(ours.address)
        assert f"Bearer {SECRET}".encode() in ours.heard()

        theirs = stack.enter_context(
            listener("locked", user=STRANGER if can_be_another() else None)
        )
        if not can_be_another():
            as_another(monkeypatch)
        find_ray(theirs.address)
        assert SECRET.encode() not in theirs.heard()


def test_what_is_no_note_is_not_read(bare: Path) -> None:
    folder = bare / "ray"
    folder.mkdir()
    os.mkfifo(note_path())
    assert find_ray(None) is None  # and nobody waits for a writer

    note_path().unlink()
    (bare / "elsewhere").write_text("127.0.0.1:1")
    note_path().symlink_to(bare / "elsewhere")
    assert read_own(note_path()) is None
    assert read_own(bare / "elsewhere") == "127.0.0.1:1"


@pytest.mark.parametrize(
    ("users", "here", "believed"),
    [
        (frozenset({0}), 1000, True),
        (frozenset({1000}), 1000, True),
        (frozenset({0, 1000}), 1000, True),
        (frozenset({1001}), 1000, False),
        (frozenset({1000, 1001}), 1000, False),
        (frozenset(), 1000, False),
        (frozenset({1000}), 0, False),
        (None, 1000, False),
    ],
)
def test_a_found_ray_is_believed_by_its_user(
    users: frozenset[int] | None, here: int, believed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: here)

    assert is_believed("10.0.0.1:6379", users, set()) == believed
    assert is_believed("10.0.0.1:6379", None, {"10.0.0.1:6379"})


def connected(family: socket.AddressFamily, host: str, to: str) -> set[int] | None:
    with (
        socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::") as server,
        socket.create_connection((to, server.getsockname()[1])) as connection,
    ):
        waiting = users_behind(connection)
        taken, _ = server.accept()
        with taken:
            assert users_behind(connection) == waiting
        return None if waiting is None else set(waiting)


@pytest.mark.parametrize(
    ("family", "host", "to"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0", "127.0.0.2"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.1"),
    ],
)
def test_the_user_of_a_listener_is_seen_before_and_after_it_takes_the_connection(
    family: socket.AddressFamily, host: str, to: str
) -> None:
    assert connected(family, host, to) == {os.geteuid()}


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid
   0: {local}:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  {user}  0 1 1
   1: 0100007F:{port:04X} 0100007F:{mine:04X} 01 00000000:00000000 00:00000000 00000000  {of} 0 2 1
"""


@pytest.mark.parametrize(
    ("local", "user", "accepted_by", "seen"),
    [
        ("0100007F", 1001, 0, {1001}),
        ("00000000", 1001, 0, {1001}),
        ("0100007F", 0, 1001, {1001}),
        ("0200007F", 1001, 0, set()),
    ],
)
def test_users_are_read_from_the_kernels_lists(
    local: str, user: int, accepted_by: int, seen: set[int], tmp_path: Path
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as connection,
    ):
        port, mine = server.getsockname()[1], connection.getsockname()[1]
        table = tmp_path / "tcp"
        table.write_text(TABLE.format(local=local, port=port, mine=mine, user=user, of=accepted_by))

        assert users_behind(connection, [table, tmp_path / "none"]) == frozenset(seen)
        # Who cannot look takes nobody for theirs.
        assert users_behind(connection, [tmp_path]) == frozenset()
        assert not is_ours(frozenset())


def test_processes_of_others_lead_to_no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import os, sys, time\n"
        "if sys.argv[1]: os.setuid(int(sys.argv[1]))\n"
        "worker = os.fork()\n"
        "if not worker: time.sleep(600)\n"
        "print(worker, flush=True)\n"
        "os.wait()"
    )
    user = str(STRANGER) if can_be_another() else ""
    raylet = subprocess.Popen(
        [sys.executable, "-I", "-c", script, user, "--gcs-address=127.0.0.1:1"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert raylet.stdout is not None
        mark = mark_of(int(raylet.stdout.readline()), cell_processes.COORDINATOR)
        if not can_be_another():
            assert cell_processes.ray_of(mark) == "127.0.0.1:1"
            as_another(monkeypatch)
        assert cell_processes.ray_of(mark) is None
    finally:
        os.killpg(raylet.pid, 9)
        raylet.communicate(timeout=60)


def test_no_command_is_led_to_anothers_ray(stranger: Listener, tmp_path: Path) -> None:
    """A user's whole process, with the note that a stranger left."""
    if not can_be_another():
        pytest.skip("the rule is proved above by values; a process of another user needs root")
    variables = environment(tmp_path, RAY_AUTH_TOKEN=SECRET)
    note(tmp_path, stranger.address, user=STRANGER)

    doctor = subprocess.run(
        [sys.executable, "-m", "harness_actors", "doctor", "--json"],
        env={**variables, "OPENAI_BASE_URL": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    (live,) = [one for one in json.loads(doctor.stdout) if one["what"] == "Ray that is up"]

    assert "none" in live["found"]
    assert stranger.heard() == b"" or SECRET.encode() not in stranger.heard()


def test_whoever_listens_when_ray_connects_must_be_who_was_asked(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "canonicalize_bootstrap_address", lambda address: address)
    with listener("open", ray=version("ray")) as ours:
        found = found_one(find_ray(ours.address))
        check_user(found)

        theirs = replace(found, answer=replace(found.answer, users=frozenset({STRANGER})))
        elsewhere = replace(found, answer=replace(found.answer, users=None))
        for one in (theirs, elsewhere):
            with pytest.raises(CellError, match="somebody else listens"):
                check_user(one)
    check_user(found)  # nobody does, which Ray itself says


def test_the_option_trusts_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST, "")
    app = typer.Typer()

    @app.command()
    def trusting(trust_ray: options.TrustRayOption = False) -> None:
        assert trusts_strangers() == trust_ray
        print(trust_ray)

    assert [CliRunner().invoke(app, words).stdout for words in ([], ["--trust-ray"])] == [
        "False\n",
        "True\n",
    ]


@pytest.mark.parametrize("planted", ["nothing", "wide", "link", "another's", "file"])
def test_a_ray_of_our_own_keeps_its_files_where_nobody_else_gets_in(
    planted: str, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, theirs = bare / f"ray-{os.geteuid()}", bare / "theirs"
    theirs.mkdir(0o777)
    match planted:
        case "wide":
            folder.mkdir()
            folder.chmod(0o777)
        case "link":
            folder.symlink_to(theirs)
        case "another's":
            folder = bare / f"ray-{STRANGER}"
            folder.mkdir()
            as_another(monkeypatch)
        case "file":
            folder.touch()
    own = own_folder()

    assert (own == folder) == (planted in ("nothing", "wide"))
    assert own.parent == bare
    assert not own.is_symlink()
    assert own.stat().st_mode & 0o777 == 0o700
    assert list(theirs.iterdir()) == []


def found_one(found: Found | None) -> Found:
    assert found is not None
    assert found.answer.python in (None, platform.python_version())
    return found
