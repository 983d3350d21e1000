"""What the process of a host is given, by what it hosts."""

from contextlib import closing, redirect_stdout
from contextvars import copy_context
from io import StringIO
from pathlib import Path

import pytest

from harness_actors.actors.host.shipped_executors import (
    companions_of,
    executor_for,
    keeping_for,
    processes_for,
    runs_users_code,
)
from harness_actors.actors.processes import is_alive
from harness_actors.actors.tapping import tap_for_a_while
from harness_actors.coordination.protocol import Slot
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION
from harness_actors.stores.logs import log_of
from harness_actors.testing import ManualClock

OURS = (REPAIR, COMPACTION, AGENT_TURN, STOP_DECISION)
OF_USERS = (Slot("critic", code="hash"), Slot(AGENT_TURN, code="hash"))
"""An executor of a user's own beside ours, and in the place of one."""


@pytest.mark.parametrize("name", OURS)
def test_ours_are_made_by_name_and_those_of_users_come_in_their_code(name: str) -> None:
    made = executor_for(Slot(name), ManualClock())
    assert made is not None
    assert made.name == name
    assert executor_for(Slot(name, code="hash"), ManualClock()) is None


def test_an_executor_that_nobody_has_is_told() -> None:
    with pytest.raises(ValueError, match="'critic'"):
        executor_for(Slot("critic"), ManualClock())


def test_only_our_agent_turn_starts_processes_of_tools() -> None:
    assert processes_for(Slot(AGENT_TURN, index=1), own_process=False) is not None
    others = [*(Slot(name) for name in OURS if name != AGENT_TURN), *OF_USERS]
    assert [processes_for(slot, own_process=False) for slot in others] == [None] * len(others)


@pytest.mark.parametrize("slot", [*map(Slot, OURS), *OF_USERS], ids=repr)
def test_what_code_of_users_prints_is_kept_and_nothing_else(tmp_path: Path, slot: Slot) -> None:
    def step(store: Path | None) -> None:
        with keeping_for(slot, store)("run"):
            print("one")

    is_theirs = slot.executor == AGENT_TURN or slot in OF_USERS
    with redirect_stdout(StringIO()):
        end = tap_for_a_while()
        for store in (tmp_path / "runs.db", None):
            copy_context().run(step, store)
        end()

    assert runs_users_code(slot) is is_theirs
    path = log_of(tmp_path / "runs.db", "run")
    kept = path.read_text().splitlines() if path.exists() else []
    assert [line.split(" ", 1)[1] for line in kept] == (
        [f"[{slot.executor}] one"] if is_theirs else []
    )


def test_the_supervisor_is_the_companion_of_its_host_as_long_as_there_is_one() -> None:
    slot = Slot(AGENT_TURN, index=2)
    assert companions_of(slot, None)() == ()
    processes = processes_for(slot, own_process=False)
    assert processes is not None
    with closing(processes):
        (mark,) = companions_of(slot, processes)()
        assert is_alive(mark)
        assert mark.role.endswith(str(slot))
