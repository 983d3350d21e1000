"""Bugs of the replay."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="messages of other runs are brought in again at each taking up",
        path="harness_actors/replay/cell.py",
        before="        self._brought += len(fresh)\n",
        after="",
        promise="a rerun of what the journal holds has no differences",
        tests=("tests/replay/test_corpus.py::test_a_recorded_run_comes_out_the_same",),
    ),
    Bug(
        name="an entry of the state gets a better name",
        path="harness_actors/state/keys.py",
        before='"harness.nudges"',
        after='"harness.prompts"',
        promise="runs that were stored before come out the same",
        tests=(
            "tests/replay/test_corpus.py::test_a_recorded_run_comes_out_the_same[first-nudged]",
        ),
    ),
)
