import asyncio
import json
from pathlib import Path

import pytest

from harness_actors.batch.hiding import HIDE_VARIABLE
from harness_actors.cli.findings import (
    look_at_endpoint,
    look_at_journal,
    look_at_key,
    look_at_live_ray,
    look_at_workspaces,
)
from harness_actors.testing import LoopbackServer
from harness_actors.tools.supervision.trial import hides_workspaces
from tests.cli.commands import finished, started


async def test_the_doctor_looks_at_everything_and_is_content_with_the_essentials(
    tmp_path: Path,
) -> None:
    async with LoopbackServer() as server:
        arguments = ["doctor", "--json", "--model-base-url", server.base_url]
        running = await started(arguments, HARNESS_HOME=str(tmp_path))
        status, out, _ = await finished(running)

    findings = {one["what"]: one for one in json.loads(out)}
    assert status == 0
    assert findings["model endpoint"]["state"] == "ok"
    assert findings["API key"]["state"] == "note"
    assert {"Python", "Ray", "journal", "open files", "token counts"} <= set(findings)


async def test_a_place_where_no_journal_can_be_is_told_by_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    running = await started(["doctor"], HARNESS_HOME=str(tmp_path / "file"))
    status, out, error = await finished(running)

    assert status == 1
    assert "HARNESS_HOME" in out
    assert "Traceback" not in error


def test_a_dead_endpoint_is_told_with_what_to_do() -> None:
    finding = look_at_endpoint("http://127.0.0.1:9/v1")

    assert finding.state == "note"
    assert "127.0.0.1:9" in finding.found
    assert finding.fix


@pytest.mark.parametrize(("key", "state"), [("", "note"), ("sk-x", "ok")])
def test_a_key_is_looked_for_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, key: str, state: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)

    finding = look_at_key()

    assert finding.state == state
    assert "sk-x" not in finding.found


def test_a_ray_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")

    finding = look_at_live_ray()

    assert finding.state == "missing"
    assert "unset RAY_ADDRESS" in finding.fix


def test_the_journal_is_tried_and_nothing_of_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))

    finding = look_at_journal()

    assert finding.state in ("ok", "note")
    assert list((tmp_path / "home").iterdir()) == []


def test_whether_workspaces_are_hidden_is_said_with_what_to_do() -> None:
    finding = look_at_workspaces()

    assert finding.state == ("ok" if asyncio.run(hides_workspaces(required=False)) else "note")
    assert bool(finding.fix) is (finding.state == "note")


def test_that_workspaces_are_not_hidden_by_wish_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDE_VARIABLE, "never")

    finding = look_at_workspaces()

    assert (finding.state, finding.fix) == ("note", f"unset {HIDE_VARIABLE}")


def test_a_wish_that_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDE_VARIABLE, "perhaps")

    finding = look_at_workspaces()

    assert finding.state == "missing"
    assert "auto, always, never" in finding.found
