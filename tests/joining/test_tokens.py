"""Where the token comes from, and that it goes nowhere else."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_actors.actors.joining.token import find_token, make_own_token, own_token

VALUE = "a-secret-that-nobody-may-see"


def given(folder: Path) -> Path:
    path = folder / "home" / ".ray" / "auth_token"
    path.parent.mkdir(parents=True)
    path.write_text(f"{VALUE}\n")
    return path


def test_the_variable_comes_before_the_file_and_that_before_the_default(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_token().value is None
    assert ".ray/auth_token" in find_token().source

    default = given(bare)
    assert (find_token().value, find_token().source) == (VALUE, str(default))

    (bare / "other").write_text("other")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(bare / "other"))
    assert find_token().value == "other"

    monkeypatch.setenv("RAY_AUTH_TOKEN", "third")
    assert (find_token().value, find_token().source) == ("third", "RAY_AUTH_TOKEN")


def test_a_token_file_that_is_not_there_or_empty_is_told_by_its_name(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(bare)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(bare / "gone"))
    assert "gone) cannot be read (No such file" in find_token().problem

    (bare / "gone").touch()
    assert "gone) is empty" in find_token().problem


def test_a_mode_that_shows_no_token_keeps_it_back(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(bare)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")

    assert find_token().value is None
    assert "unset RAY_AUTH_MODE" in find_token().problem


def test_a_token_is_in_no_text(bare: Path) -> None:
    given(bare)

    assert VALUE not in repr(find_token())


def test_our_own_token_is_made_once_and_for_this_user_only(bare: Path) -> None:
    assert own_token() is None

    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: make_own_token(), range(8)))
    token = own_token()
    (path,) = paths

    assert token is not None
    assert token.value == path.read_text()
    assert len(token.value) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert not (bare / "home").exists()
