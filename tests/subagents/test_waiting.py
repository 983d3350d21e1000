"""What is true of a run while it waits for those that it has begun."""

from pathlib import Path

from tests.replay.families import begun, family, scouts
from tests.replay.recorded_runs import FIRST_COMMAND, Session, done, opened_locally


async def test_a_run_that_waits_for_others_does_not_work(tmp_path: Path) -> None:
    agent = family([scouts("be silent"), done()])
    session = Session(tmp_path / "runs.db", agent, {"limits": {"working_s": 60}})
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await begun(session, runtime)
        run = runtime._coordinator._coordinator.runs["run"]

        assert run.waits_for_children
        assert run.busy_since is None
        assert run.due is None
