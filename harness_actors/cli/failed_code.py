"""Where code of users failed in a task of a batch, for `--debug`."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness_actors.batch.outcomes import TaskOutcome


def failed_code(store: Path, outcome: "TaskOutcome") -> str:
    """The tracebacks of a task's last run, each below what failed; empty where there is none.

    Args:
        store: The journal of the batch, which may go on.
        outcome: How the task ended.

    Raises:
        StoreError: The journal cannot be read.
    """
    return "\n".join(_parts(store, outcome))


def _parts(store: Path, outcome: "TaskOutcome") -> Iterator[str]:
    from harness_actors.cli.ctl.whole import tool_errors
    from harness_actors.stores import JournalReader

    if outcome.run_id is None:
        return
    for error in tool_errors(JournalReader(store), outcome.run_id):
        yield f"{outcome.id}: a call of {error['tool']} failed ({error['call_id']})"
        yield indent(error["traceback"], "    ")
    if where := outcome.reason.traceback:
        yield f"{outcome.id}: run {outcome.run_id} failed"
        yield indent(where, "    ")
