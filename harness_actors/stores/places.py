"""Finding journals and the runs in them, for those who only look."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness_actors.errors import BadInputError, HarnessError, StoreError
from harness_actors.records import CHILD_MARK, RunHeading
from harness_actors.stores.home import home
from harness_actors.stores.lock import holder_of_lock, lock_of
from harness_actors.stores.reader import JournalReader

CANDIDATES = 5
_CHILD = re.compile(rf"(?:{re.escape(CHILD_MARK)}\d+)+$")
"""Behind the id of the run at the top of its tree: which child, and of that which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A run with the journal that has it."""

    store: Path
    heading: RunHeading


def journals_in(run_dir: Path | None = None, store: Path | None = None) -> list[Path]:
    """The journals to look in.

    Args:
        run_dir: A run directory; its journal alone.
        store: A journal's file; that alone.

    Returns:
        With neither, all in ``$HARNESS_HOME``, in the order in which they were made;
        empty where there is none yet.

    Raises:
        BadInputError: Both are given, or there is no such file.
    """
    if run_dir is not None and store is not None:
        raise BadInputError("--store", ("give --run-dir or --store, not both",))
    if run_dir is None and store is None:
        found = (path.resolve() for path in home().glob("runs*.db"))
        return sorted(found, key=lambda path: (len(path.name), path.name))
    named = store if run_dir is None else run_dir / "runs.db"
    assert named is not None
    if not named.is_file():
        flag = "--store" if run_dir is None else "--run-dir"
        raise BadInputError(flag, (f"there is no journal {str(named)!r}",))
    return [named.resolve()]


def find_run(stores: Iterable[Path], given: str) -> FoundRun:
    """The run of an id, or of the beginning of one that no other run shares.

    A run and those that it has begun are one run here, and the beginning of the id of one may have
    the number of a child behind it.

    Raises:
        BadInputError: No run here has it, or several do; names some of them.
        StoreError: No journal could be read.
    """
    paths, matches = list(stores), []
    broken: StoreError | None = None
    for store in paths:
        try:
            headings = _beginning(JournalReader(store), given) if given else []
        except StoreError as error:
            broken = error
            continue
        for heading in headings:
            found = FoundRun(store=store, heading=heading)
            if heading.run_id == given:
                return found
            matches.append(found)
    if len(matches) == 1:
        return matches[0]
    if not matches and broken is not None:
        raise broken
    seen: list[RunHeading] = []
    for store in paths:
        with suppress(StoreError):
            seen += JournalReader(store).headings()
    # Journals come in the order of their names, and each has its runs in that of their ids.
    asked_for = [heading for heading in seen if not heading.root]
    newest = sorted(asked_for, key=lambda heading: heading.added_at, reverse=True)
    newest_ids = [heading.run_id for heading in newest]
    raise _not_one(given, [found.heading.run_id for found in matches], newest_ids, paths)


def _beginning(journal: JournalReader, given: str) -> Sequence[RunHeading]:
    """The runs whose ids begin so, without those that stand below one of them; where there is none,
    the children that are named by a beginning and a number."""
    found = journal.headings(given)
    if not found and (child := _CHILD.search(given)) is not None:
        number, beginning = child.group(), given[: child.start()]
        of_that_number = (one for one in journal.headings(beginning) if beginning)
        return [one for one in of_that_number if one.root and one.run_id == one.root + number]
    found_ids = {heading.run_id for heading in found}
    return [heading for heading in found if not found_ids.intersection(_above(heading))]


def _above(heading: RunHeading) -> list[str]:
    """The ids of the runs above one."""
    above, run_id = [], heading.run_id
    while heading.root and run_id != heading.root:
        run_id = run_id.rpartition(CHILD_MARK)[0]
        above.append(run_id)
    return above


def _not_one(given: str, matches: list[str], newest: list[str], paths: list[Path]) -> HarnessError:
    if matches:
        problem = f"{len(matches)} runs begin with {given!r}: {_some(matches)}"
    elif newest:
        problem = f"no run begins with {given!r}; the newest are {_some(newest)}"
        if all(path.is_relative_to(home().resolve()) for path in paths):
            problem += "; those of a batch are found with --run-dir"
    else:
        where = ", ".join(map(str, paths)) or str(home())
        problem = f"there are no runs in {where}; name a place with --run-dir or --store"
    return BadInputError("RUN_ID", (problem,))


def _some(run_ids: list[str]) -> str:
    more = f" and {len(run_ids) - CANDIDATES} more" if len(run_ids) > CANDIDATES else ""
    return ", ".join(run_ids[:CANDIDATES]) + more


def holder_of(store: Path) -> int | None:
    """The process that has locked a journal to work on it; None where none has.

    Nothing is locked to find out, so that no command that starts just now is refused.
    """
    return holder_of_lock(lock_of(store.resolve()))
