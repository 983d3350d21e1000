import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_actors.batch.hiding import HIDE_VARIABLE
from harness_actors.cli.findings import (
    examine,
    look_at_endpoint,
    look_at_journal,
    look_at_key,
    look_at_live_ray,
    look_at_ray,
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


async def test_whoever_answers_with_any_status_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LoopbackServer(key="right") as server:
        for url in (server.base_url, f"{server.base_url}/nothing"):
            monkeypatch.setenv("OPENAI_BASE_URL", url)

            finding = await asyncio.to_thread(look_at_endpoint, None)

            assert (finding.state, finding.found, finding.fix) == ("ok", url, "")


def test_an_address_that_is_none_is_told_whole() -> None:
    assert look_at_endpoint("nonsense").found.startswith("nonsense: ")


def test_what_is_amiss_is_told_with_what_helps_and_nothing_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    findings = examine("http://127.0.0.1:9/v1")

    assert len({one.what for one in findings}) == len(findings)
    assert all(one.found for one in findings)
    assert {one.what for one in findings if one.essential} == {"Python", "Ray", "journal"}
    assert [one for one in findings if (one.state == "ok") is bool(one.fix)] == []
    states = {one.what: one.state for one in findings}
    assert (states["Python"], states["Ray"], states["token counts"]) == ("ok", "ok", "ok")
    assert (states["API key"], states["model endpoint"]) == ("note", "note")


def test_a_ray_that_cannot_be_imported_is_told_with_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('libfoo.so is not there')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    finding = look_at_ray()

    assert (finding.state, finding.essential) == ("missing", True)
    assert finding.found.endswith("but: ImportError: libfoo.so is not there")
    assert "--runtime local" in finding.fix


FEW_FILES = """
import resource
from harness_actors.cli.findings import look_at_open_files

resource.setrlimit(resource.RLIMIT_NOFILE, (256, {most}))
found = look_at_open_files()
print(found.state, found.found, found.fix[:6])
"""


@pytest.mark.parametrize(
    ("most", "told"), [(4095, "note 256 to 4095 ulimit"), (4096, "ok 256 to 4096 ")]
)
def test_too_few_open_files_are_those_that_a_command_cannot_get(most: int, told: str) -> None:
    code = FEW_FILES.format(most=most)
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout == f"{told}\n"


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
    assert "127.0.0.1:9" in finding.found
    assert "unset RAY_ADDRESS" in finding.fix


def test_the_journal_is_tried_and_nothing_of_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))

    finding = look_at_journal()

    roomy = shutil.disk_usage(tmp_path).free >= 1 << 30
    assert finding.state == ("ok" if roomy else "note")
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


def test_a_place_where_no_journal_can_be_is_an_essential_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "file" / "home"))

    finding = look_at_journal()

    assert (finding.what, finding.state, finding.essential) == ("journal", "missing", True)
    assert finding.found.startswith(str(tmp_path / "file"))
    assert "HARNESS_HOME" in finding.fix
