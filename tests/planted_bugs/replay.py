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
    Bug(
        name="calls of all answers are taken for those of the first",
        path="harness_actors/replay/tape.py",
        before="        return self._answers[min(self._place, len(self._messages))], call.id\n",
        after="        return self._answers[0] + 1, call.id\n",
        promise="what became of a call is found by its id among the results of the same answer",
        tests=(
            "tests/replay/test_data.py::test_what_became_of_a_call_is_found_by_its_id_wherever_it_stands",
        ),
    ),
    Bug(
        name="what was observed is made again in a rerun",
        path="harness_actors/replay/rerun.py",
        before="            recorded=observed.answer,\n",
        after="",
        promise="a rerun reads what was observed, and nobody looks again",
        tests=(
            "tests/replay/test_observations.py::test_what_was_observed_is_read_in_a_rerun_and_not_made",
        ),
    ),
)
