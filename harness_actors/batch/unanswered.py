"""Which runs of a batch wait for their user, as its summary names them."""

from collections.abc import Iterable
from typing import Any

from harness_actors.batch.roster import Roster
from harness_actors.batch.run_note import RunNote
from harness_actors.records import RunHeading

SHOWN_RUNS = 20


def waiting_runs(headings: Iterable[RunHeading], roster: Roster) -> dict[str, Any]:
    """The runs that wait for their user, as plain values, for `summary.json`.

    Args:
        headings: All runs of the journal.
        roster: The tasks of the command. Runs of others are left out, unless it did not come
            by all of its own.

    Returns:
        How many `tasks` have such a run; how many of these are `answered`, and wait to be taken
        up; and the first `runs` of the others, with their questions.
    """
    found, answered = [], 0
    for heading in headings:
        note = RunNote.read(heading.metadata)
        if heading.phase != "waiting" or note is None:
            continue
        if roster.is_whole and not roster.has(note.task_id, note.task_hash):
            continue
        if heading.is_answered:
            answered += 1
        else:
            found.append((note.task_id, heading))
    return {
        "tasks": len(found) + answered,
        "answered": answered,
        "runs": [
            {
                "id": task_id,
                "run_id": heading.run_id,
                "questions": list(heading.open_questions),
            }
            for task_id, heading in found[:SHOWN_RUNS]
        ],
    }
