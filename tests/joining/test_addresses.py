"""Which Ray an address stands for, where no Ray is at all."""

import re
import socket
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from harness_actors.actors.joining.address import find_ray, note_path
from harness_actors.errors import CellError
from tests.joining.strangers import black_hole, closed_port, http_server, silent_server

pytestmark = pytest.mark.usefixtures("bare")

WITHIN_S = 5.0


@pytest.mark.parametrize(
    ("stranger", "seen"),
    [
        (http_server(), "another protocol"),
        (silent_server(), "says nothing"),
        (black_hole(), "takes no connection"),
        (closed_port(), "nobody listens"),
        (closed_port(socket.AF_INET6), "nobody listens|address family"),
    ],
    ids=["http", "silent", "black_hole", "closed", "ipv6"],
)
def test_who_is_no_ray_is_told_within_five_seconds(
    stranger: AbstractContextManager[str], seen: str
) -> None:
    with stranger as address:
        since = time.monotonic()
        found = find_ray(address)
        took = time.monotonic() - since

    assert took < WITHIN_S
    assert found is not None
    with pytest.raises(CellError, match=seen) as raised:
        found.check()
    assert address in str(raised.value)
    assert "ray start --head" in str(raised.value)
    assert "--address local" in str(raised.value)


def test_a_host_that_does_not_exist_is_told() -> None:
    found = find_ray("no-such-host.invalid:6379")

    assert found is not None
    assert "no Ray answers there" in str(found.problem)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("ray://10.0.0.1:10001", "Ray Client"),
        ("http://10.0.0.1:8265", "dashboard"),
        ("redis://10.0.0.1:6379", "redis:// are not supported"),
        ("10.0.0.1", "not HOST:PORT"),
        ("10.0.0.1:head", "not HOST:PORT"),
        ("10.0.0.1:66000", "not HOST:PORT"),
        (":6379", "not HOST:PORT"),
    ],
)
def test_an_address_of_another_kind_is_told_whoever_gives_it(
    address: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CellError, match=problem):
        find_ray(address)

    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(CellError, match=f"RAY_ADDRESS.*{problem}"):
        find_ray("auto")


def test_local_is_a_ray_of_our_own_wherever_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_port() as address:
        note_path().parent.mkdir()
        note_path().write_text(address)

        assert find_ray("local") is None
        monkeypatch.setenv("RAY_ADDRESS", "local")
        assert find_ray(None) is None


def test_ray_address_says_auto_as_if_it_said_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "auto")

    assert find_ray(None) is None


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("stranger", [closed_port, http_server, silent_server])
def test_the_note_of_a_dead_ray_leads_to_one_of_our_own(stranger: type) -> None:
    with stranger() as address:
        note_path().parent.mkdir()
        note_path().write_text(f"{address}\n")

        assert find_ray("auto") is None


@pytest.mark.parametrize("note", [b"", b"half", b"\xff\xfe", b"ray://10.0.0.1:1"])
def test_a_note_that_makes_no_sense_leads_to_one_of_our_own(note: bytes) -> None:
    note_path().parent.mkdir()
    note_path().write_bytes(note)

    assert find_ray(None) is None


def test_the_note_is_where_ray_has_its_files(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert note_path() == bare / "ray" / "ray_current_cluster"

    monkeypatch.delenv("RAY_TMPDIR")
    assert re.fullmatch(".*/ray/ray_current_cluster", str(note_path()))


def test_a_ray_of_ours_is_found_though_tls_keeps_anybody_from_asking_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with silent_server() as address:
        note_path().parent.mkdir()
        note_path().write_text(address)
        found = find_ray(None)

    assert found is not None
    assert (found.address, found.answer.verdict, found.problem) == (address, "unknown", None)
