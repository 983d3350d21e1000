"""Programs that a host loads, each once for all runs that wait for it."""

import asyncio
import threading

import pytest

from harness_actors.actors.host import host_programs
from harness_actors.actors.host.host_programs import LoadedPrograms
from harness_actors.actors.mailbox import Code
from harness_actors.coordination.graph import Workflow
from harness_actors.testing import an_agent


async def test_a_run_that_is_cut_while_its_program_is_loaded_leaves_it_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_load, workflow = threading.Event(), Workflow(an_agent())
    loaded: list[str] = []

    def load(code: Code) -> Workflow:
        assert may_load.wait(30)
        loaded.append(code.code)
        return workflow

    monkeypatch.setattr(host_programs, "_load", load)
    programs = LoadedPrograms()
    programs.take(Code("code", b"", {}, 1))
    cut, other = (asyncio.create_task(programs.find("code")) for _ in range(2))
    await asyncio.sleep(0)
    cut.cancel()
    await asyncio.wait((cut,))
    may_load.set()

    assert cut.cancelled()
    assert await other is workflow
    assert await programs.find("code") is workflow
    assert loaded == ["code"]
