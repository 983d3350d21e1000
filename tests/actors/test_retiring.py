"""Which cells of other Rays have to leave a journal, for whoever needs it for itself."""

from pathlib import Path

import pytest

from harness_actors.actors import retiring
from harness_actors.actors.retiring import make_way
from harness_actors.errors import StoreInUseError
from harness_actors.records import ProcessMark
from tests.joining.strangers import closed_port, silent_server

STORE = Path("/somewhere/runs.db")


def coordinator(pid: int) -> ProcessMark:
    return ProcessMark(role="coordinator", node="", pid=pid, started=0)


async def test_a_cell_is_asked_to_leave_whose_ray_is_there_and_that_may_not_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    in_progress = 0

    async def retired(store: Path, address: str, mark: ProcessMark) -> int:
        asked.append(mark.pid)
        return in_progress

    with closed_port() as dead, silent_server() as alive:
        # Of the first nobody can say any more whose it is; the second ends with its Ray.
        rays = {1: None, 2: dead, 3: alive, 4: alive}
        marks = [coordinator(pid) for pid in rays]
        monkeypatch.setattr(retiring, "coordinators_of", lambda _: marks)
        monkeypatch.setattr(retiring, "ray_of", lambda mark: rays[mark.pid])
        monkeypatch.setattr(retiring, "_retired", retired)

        await make_way(STORE, spare=[coordinator(3)])
        assert asked == [4]

        in_progress = 2
        with pytest.raises(StoreInUseError, match=r"2 runs are in progress .* process 3"):
            await make_way(STORE)
        assert asked == [4, 3]
