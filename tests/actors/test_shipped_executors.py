"""What the process of a host is given, by what it hosts."""

from contextlib import closing

import pytest

from harness_actors.actors.host.shipped_executors import (
    host_executor,
    marks_of_host,
    supervised_processes,
)
from harness_actors.actors.kinds import KINDS
from harness_actors.actors.processes import is_alive
from harness_actors.coordination.protocol import COMPACTION_WORKER, CUSTOM, Slot
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION
from tests.actors.places import a_place


@pytest.mark.parametrize("name", [REPAIR, COMPACTION, AGENT_TURN, STOP_DECISION])
def test_ours_are_made_by_name(name: str) -> None:
    host_executor(a_place(Slot(name)))


def test_those_of_users_come_in_their_code() -> None:
    host_executor(a_place(Slot(CUSTOM, code="hash", pool="critic")))


def test_an_executor_that_nobody_has_is_told() -> None:
    with pytest.raises(ValueError, match="'critic'"):
        host_executor(a_place(Slot("critic")))


def test_only_our_agent_turn_starts_processes_of_tools() -> None:
    assert [name for name, kind in KINDS.items() if kind.runs_tools] == [AGENT_TURN]


def test_only_where_code_of_users_runs_programs_come_and_prints_are_kept() -> None:
    given = {name for name, kind in KINDS.items() if kind.gets_programs}
    assert given == {AGENT_TURN, CUSTOM, COMPACTION_WORKER}


def test_the_supervisor_is_the_companion_of_its_host_as_long_as_there_is_one() -> None:
    slot = Slot(AGENT_TURN, index=2)
    (own,) = marks_of_host(slot)
    with closing(supervised_processes(own_process=False)) as processes:
        first, companion = marks_of_host(slot, processes)
        assert first == own
        assert is_alive(companion)
        assert companion.role.endswith(str(slot))
