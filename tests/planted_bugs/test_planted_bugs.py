"""The list of planted bugs is kept up with the code, and planting one finds it."""

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.planted_bugs import BUGS, Bug, NotPlantableError
from tests.planted_bugs.drawn import drawn
from tests.planted_bugs.hunt import _finder, hunt
from tests.planted_bugs.tree import LEFT_OUT, ROOT, Ran, Tree, WrongTreeError
from tests.sweep.drawn import CHOICE

TEST = "tests/core/test_values.py::test_usage_adds_up_field_by_field"
SUBTRACTED = Bug(
    name="tokens are subtracted",
    path="harness_actors/results.py",
    before="        return self.input_tokens + self.output_tokens\n",
    after="        return self.input_tokens - self.output_tokens\n",
    promise="tokens are those of both directions",
    tests=("tests/core/test_values.py",),
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_can_still_be_planted(bug: Bug) -> None:
    text = (ROOT / bug.path).read_text("utf-8")
    assert ast.dump(ast.parse(bug.planted(text))) != ast.dump(ast.parse(text))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_names_tests_that_are_there(bug: Bug) -> None:
    assert bug.tests or bug.seeds, "say where it is found"
    for test in bug.tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text("utf-8")
        assert f"def {name.partition('[')[0]}(" in text, f"{path} has no test {name}"


def test_no_two_bugs_are_told_by_one_name() -> None:
    assert not [name for name, count in Counter(bug.name for bug in BUGS).items() if count > 1]


def test_no_bug_is_there_twice() -> None:
    names: dict[tuple[str, str], list[str]] = {}
    for bug in BUGS:
        code = ast.parse(bug.planted((ROOT / bug.path).read_text("utf-8")))
        names.setdefault((bug.path, ast.dump(code)), []).append(bug.name)
    assert not [same for same in names.values() if len(same) > 1]


def test_every_room_that_can_lose_something_has_bugs() -> None:
    rooms = Counter(bug.room for bug in BUGS)
    assert {"coordination", "turn", "actors", "stores", "batch", "tools"} <= rooms.keys()


def test_a_drawn_choice_can_be_planted_and_is_the_same_each_time() -> None:
    choice = drawn(1)
    assert choice == drawn(1) != drawn(2)
    assert Counter(bug.room for bug in choice) == {
        Path(room).parts[0]: count for room, count in CHOICE.items()
    }
    assert len({bug.path for bug in choice}) == len(choice)
    for bug in choice:
        text = (ROOT / bug.path).read_text("utf-8")
        assert ast.dump(ast.parse(bug.planted(text))) != ast.dump(ast.parse(text))


@pytest.mark.parametrize("text", ["nothing of it\n", 2 * SUBTRACTED.before])
def test_code_that_is_not_there_once_is_refused(text: str) -> None:
    with pytest.raises(NotPlantableError, match="tokens are subtracted: its code is"):
        SUBTRACTED.planted(text)


def test_a_bug_is_found_by_a_test_that_passes_without_it() -> None:
    verdict = hunt(SUBTRACTED)
    assert verdict.found_by == TEST
    assert not verdict.problem


@pytest.mark.parametrize("case", ["", "[one]", "[two words - and [more]]"])
@pytest.mark.parametrize("why", ["", " - AssertionError: assert [1] == [2]"])
def test_a_test_is_told_with_its_case(case: str, why: str) -> None:
    ran = Ran(1, f"= short test summary info =\nFAILED {TEST}{case}{why}\n1 failed in 0.1s\n")
    found_by, again = _finder(ran, ["-m", "pytest"])
    assert (found_by, again[-1]) == (TEST + case, TEST + case)


def test_a_bug_that_no_test_notices_survives() -> None:
    unnoticed = replace(SUBTRACTED, tests=("tests/core/test_public_names.py",))
    verdict = hunt(unnoticed)
    assert (verdict.found_by, verdict.problem) == ("", "")
    assert "SURVIVED" in str(verdict)


def test_a_run_that_takes_too_long_finds_nothing() -> None:
    verdict = hunt(replace(SUBTRACTED, tests=(TEST,)), limit_s=0.01)
    assert not verdict.found_by
    assert "too long" in verdict.problem


def test_a_test_that_fails_anyway_finds_nothing() -> None:
    # These ask for the files of a repository, which a copy is not.
    verdict = hunt(replace(SUBTRACTED, tests=("tests/test_repository.py",)))
    assert not verdict.found_by
    assert "fails without the bug" in verdict.problem


def test_a_tree_that_is_not_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with pytest.raises(WrongTreeError, match="imports"):
        Tree(tmp_path).check()


def test_a_copy_leaves_out_what_others_compile_just_now() -> None:
    assert LEFT_OUT("tests", ["a.py", "a.pyc", "a.pyc.140737", "runs"]) == {"a.pyc.140737", "runs"}
