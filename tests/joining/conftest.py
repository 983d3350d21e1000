from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.actors.joining import probe
from tests.joining.rays import RayByHand


@pytest.fixture(scope="session")
def ray_by_hand() -> Iterator[RayByHand]:
    """One for all tests here; it takes some seconds to start."""
    ray = RayByHand()
    yield ray
    ray.close()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody here is as far away as the time allows for that an answer takes."""
    monkeypatch.setattr(probe, "ANSWER_S", 1.0)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user in whose environment nothing is set for Ray, and who has no token."""
    for name in ("ADDRESS", "AUTH_MODE", "AUTH_TOKEN", "AUTH_TOKEN_PATH"):
        monkeypatch.delenv(f"RAY_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "harness"))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    return tmp_path
