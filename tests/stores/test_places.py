"""Which journals are looked in, and which run is meant by an id or its beginning."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import BadInputError, StoreError
from harness_actors.records import ParentLink
from harness_actors.stores import SqliteJournal
from harness_actors.stores.home import home
from harness_actors.stores.lock import hold, release
from harness_actors.stores.places import CANDIDATES, find_run, holder_of, journals_in
from tests.stores.entries import added
from tests.stores.test_expiry import held_by_another_process


def kept(path: Path, *run_ids: str, at: float = 100.0) -> Path:
    """A closed journal of these runs, each submitted a second after the one before."""
    journal = SqliteJournal(path)
    entries = [added(run_id, at=at + number) for number, run_id in enumerate(run_ids)]
    journal.commit(journal.begin_term(), entries)
    journal.close()
    return path


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_journals_of_the_home_come_in_the_order_in_which_they_were_made(at_home: Path) -> None:
    assert journals_in() == []
    at_home.mkdir()
    names = ["runs.db", "runs-2.db", "runs-9.db", "runs-10.db", "runs-11.db"]
    for name in [*reversed(names), "runs.db-wal", "runs.db.lock", "others.db"]:
        (at_home / name).touch()

    assert journals_in() == [at_home / name for name in names]


@pytest.mark.parametrize("named", [None, ""])
def test_a_home_that_nobody_named_is_that_of_the_platform(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: str | None
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("HARNESS_HOME", raising=False)
    if named is not None:
        monkeypatch.setenv("HARNESS_HOME", named)

    assert home() == tmp_path / "harness_actors"


def test_a_named_place_is_looked_in_alone(at_home: Path, tmp_path: Path) -> None:
    at_home.mkdir()
    kept(at_home / "runs.db", "at home")
    run_dir = tmp_path / "work"
    store = kept(run_dir / "runs.db", "a run")
    (tmp_path / "link.db").symlink_to(store)

    assert journals_in(run_dir=run_dir) == journals_in(store=store) == [store]
    assert journals_in(store=tmp_path / "link.db") == [store]


def test_a_place_without_a_journal_or_named_twice_is_bad_input(tmp_path: Path) -> None:
    store = kept(tmp_path / "runs.db", "a run")
    for named, problem in (
        ({"run_dir": tmp_path, "store": store}, "--store: give --run-dir or --store, not both"),
        ({"run_dir": tmp_path / "x"}, f"--run-dir: there is no journal '{tmp_path}/x/runs.db'"),
        ({"store": tmp_path}, f"--store: there is no journal '{tmp_path}'"),
    ):
        with pytest.raises(BadInputError) as refused:
            journals_in(**named)
        assert str(refused.value) == problem


def test_a_run_is_found_by_its_id_or_by_a_beginning_of_its_own(tmp_path: Path) -> None:
    first = kept(tmp_path / "a.db", "run-1", "run-10", "other-1")
    second = kept(tmp_path / "b.db", "run-2", "run-20")

    for given, store, run_id in (
        # Others begin with these, before and after them, in the same journal and in another.
        ("run-1", first, "run-1"),
        ("run-10", first, "run-10"),
        ("run-2", second, "run-2"),
        ("run-20", second, "run-20"),
        ("o", first, "other-1"),
    ):
        found = find_run(iter([first, second]), given)
        assert (found.store, found.heading.run_id) == (store, run_id)


def a_family(path: Path) -> Path:
    """A journal of a run with twelve children, of which the first has two of its own."""
    journal = SqliteJournal(path)
    entries = [added("run-1"), added("other")]
    for number in (*range(1, 13), "1.1", "1.2"):
        parent = "run-1" if isinstance(number, int) else "run-1.1"
        link = ParentLink(run_id=parent, root="run-1", call_id="c", agent="explore", pool="explore")
        child = added(f"run-1.{number}", at=200.0)
        entries.append(replace(child, spec=replace(child.spec, parent=link)))
    journal.commit(journal.begin_term(), entries)
    journal.close()
    return path


@pytest.mark.parametrize(
    ("given", "run_id"),
    [
        ("run-1", "run-1"),
        ("r", "run-1"),
        ("run-1.1", "run-1.1"),
        ("run-1.12", "run-1.12"),
        ("r.1", "run-1.1"),
        ("r.12", "run-1.12"),
        ("ru.1.2", "run-1.1.2"),
    ],
)
def test_a_run_and_its_children_share_a_beginning(tmp_path: Path, given: str, run_id: str) -> None:
    found = find_run([a_family(tmp_path / "a.db")], given)

    assert found.heading.run_id == run_id


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("run-1.1.", "2 runs begin with 'run-1.1.': run-1.1.1, run-1.1.2"),
        ("r.13", "no run begins with 'r.13'; the newest are run-1, other"),
        (".1", "no run begins with '.1'; the newest are run-1, other"),
    ],
)
def test_children_that_are_not_one_run_are_told(tmp_path: Path, given: str, problem: str) -> None:
    with pytest.raises(BadInputError) as refused:
        find_run([a_family(tmp_path / "a.db")], given)
    assert str(refused.value) == f"RUN_ID: {problem}"


def test_what_is_not_one_run_is_told_with_those_that_could_be_meant(tmp_path: Path) -> None:
    few = kept(tmp_path / "few.db", "few-1", "few-2")
    many = kept(tmp_path / "many.db", *(f"many-{n}" for n in range(CANDIDATES + 2)), at=50.0)
    just = kept(tmp_path / "just.db", *(f"just-{n}" for n in range(CANDIDATES)))
    empty = kept(tmp_path / "empty.db")
    for stores, given, problem in (
        ([few, many], "few", "2 runs begin with 'few': few-1, few-2"),
        (
            [few, many],
            "many",
            "7 runs begin with 'many': many-0, many-1, many-2, many-3, many-4 and 2 more",
        ),
        (
            [just],
            "x",
            "no run begins with 'x'; the newest are just-4, just-3, just-2, just-1, just-0",
        ),
        (
            [many, few],
            "",
            "no run begins with ''; the newest are few-2, few-1, many-6, many-5, many-4 and 4 more",
        ),
        (
            [empty],
            "x",
            f"there are no runs in {empty}; name a place with --run-dir or --store",
        ),
        ([], "x", f"there are no runs in {home()}; name a place with --run-dir or --store"),
    ):
        with pytest.raises(BadInputError) as refused:
            find_run(iter(stores), given)
        assert str(refused.value) == f"RUN_ID: {problem}"


def test_a_journal_that_cannot_be_read_hides_no_run_of_another(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("no journal")
    sound = kept(tmp_path / "sound.db", "run-1", "other-1", "other-2")

    for stores in ([broken, sound], [sound, broken]):
        assert find_run(stores, "run-1").store == find_run(stores, "ru").store == sound
        # It may be in the other one.
        with pytest.raises(StoreError, match=str(broken)):
            find_run(stores, "x")
        with pytest.raises(BadInputError, match="2 runs begin with 'other': other-1, other-2"):
            find_run(stores, "other")


def test_who_works_on_a_journal_is_told_and_nothing_is_locked_for_it(tmp_path: Path) -> None:
    store, other = kept(tmp_path / "runs.db", "run"), kept(tmp_path / "other.db", "run")
    assert holder_of(store) is None
    hold(other)
    assert (holder_of(store), holder_of(other)) == (None, os.getpid())
    (tmp_path / "link.db").symlink_to(store)

    with held_by_another_process(store) as pid:
        assert holder_of(store) == holder_of(tmp_path / "link.db") == pid
        assert holder_of(other) == os.getpid()
    release(other)

    assert (holder_of(store), holder_of(other)) == (None, None)
