"""What becomes of checks at work where somebody leaves at once."""

import asyncio
from typing import Any, cast

from harness_actors.batch.checks import Checks
from harness_actors.batch.outcomes import CheckResult
from harness_actors.batch.scoring import Scoring
from harness_actors.batch.tally import Tally
from harness_actors.batch.tasks import Check, Task
from harness_actors.results import HarnessResult, Reason

PASSED = CheckResult(passed=True, exit_code=0, seconds=0.0, output="")
TASK = Task(task="do it", check=Check(command="true"))
DONE = HarnessResult(run_id="run", status="done", reason=Reason(kind="completed", message=""))


class Held:
    """Checks, the first of which has passed at once, and the next never does."""

    def __init__(self) -> None:
        self.begun = 0

    async def run(self, *_: Any) -> CheckResult:
        self.begun += 1
        return PASSED if self.begun == 1 else await asyncio.Event().wait()  # type: ignore[return-value]


async def test_who_leaves_at_once_cuts_what_is_checked_and_not_what_is_written_down() -> None:
    tally, may_write = Tally(2), asyncio.Event()
    scoring = Scoring(cast(Checks, Held()), tally)

    async def finish() -> CheckResult | None:
        result = await scoring.score(TASK, DONE, None, None)
        await may_write.wait()
        return result

    scored, checked = (asyncio.create_task(finish()) for _ in range(2))
    await asyncio.sleep(0)
    assert tally.checking == 1

    scoring.cut()
    may_write.set()

    assert await scored == PASSED
    await asyncio.wait((checked,))
    assert checked.cancelled()
    assert tally.checking == 0
