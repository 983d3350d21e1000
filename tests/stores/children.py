"""What other processes do to a journal: ``python -m tests.stores.children WHAT PATH``."""

import json
import resource
import sys
from pathlib import Path


def commit_for_ever(path: Path) -> None:
    """Commit groups of three rounds of one run; print the last position of each, once on disk."""
    from harness_actors.records import Entry
    from harness_actors.stores import SqliteJournal
    from tests.stores.entries import a_round, added

    journal = SqliteJournal(path)
    term = journal.begin_term()
    stored = journal.load_run("run-1")
    if stored is None:
        journal.commit(term, [added()])
    version = 0 if stored is None else stored.state.version
    while True:
        group: list[Entry] = [a_round(version + at) for at in (1, 2, 3)]
        version += 3
        print(journal.commit(term, group)[-1], flush=True)


def begin_a_term(path: Path) -> None:
    from harness_actors.stores import SqliteJournal

    journal = SqliteJournal(path)
    print(journal.begin_term(), flush=True)
    journal.close()


def read_without_pickle(path: Path) -> None:
    """Read all of a journal where whoever would unpickle gets an `ImportError`."""
    for name in ("pickle", "_pickle", "cloudpickle", "marshal", "shelve"):
        sys.modules[name] = None  # type: ignore[assignment]
    from harness_actors.stores import SqliteJournal

    journal = SqliteJournal(path)
    run = journal.load_run("run-1")
    assert run is not None
    code = journal.load_code("c0de")
    seen = {
        "messages": len(run.state.log),
        "events": len(journal.load_events(0)),
        "headings": len(journal.headings()),
        "code": code and code.decode(),
    }
    print(json.dumps(seen), flush=True)
    journal.close()


def write_beyond_the_limit(path: Path) -> None:
    """Commit until files may not grow any more; print the last position and the error."""
    from harness_actors.errors import StoreError
    from harness_actors.stores import SqliteJournal
    from tests.stores.entries import a_round, added

    journal = SqliteJournal(path)
    term = journal.begin_term()
    (position,) = journal.commit(term, [added()])
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    version = 0
    try:
        while True:
            version += 1
            (position,) = journal.commit(term, [a_round(version)])
    except StoreError as error:
        print(json.dumps({"position": position, "error": str(error)}), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
