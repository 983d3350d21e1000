"""Bugs of the replay."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="a turn that lists its open calls again seems to be a death",
        path="harness_actors/replay/open_calls.py",
        before="        if only_lists and not (listed and before == list(listed)):\n",
        after="        if only_lists:\n",
        promise="the runs of a journal are replayed byte for byte, whatever died",
        tests=(
            "tests/replay/test_open_calls.py::test_calls_were_answered_elsewhere_only_where_they_are_open_no_more",
        ),
    ),
    Bug(
        name="a call that was refused beside others seems to have begun a run",
        path="harness_actors/replay/tape.py",
        before="        refused = place in self._handed_on.not_begun or any(\n",
        after="        refused = any(\n",
        promise="what is on disk of a run is replayed, wherever it was cut",
        tests=(
            "tests/replay/test_children.py::test_what_is_on_disk_of_a_run_at_any_moment_is_replayed",
        ),
    ),
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
    Bug(
        name="what a rerun does not make at the end is no difference",
        path="harness_actors/replay/rerun.py",
        before="        if not cell.differences and cell.is_behind:\n",
        after="        if not cell.differences and cell.is_behind and cell.end:\n",
        promise="a rerun tells whatever comes out otherwise than the journal has it",
        tests=("tests/replay/test_replay.py::test_a_last_change_that_no_rerun_makes_is_told",),
    ),
    Bug(
        name="a failed call and one that did not fail are the same in as many words",
        path="harness_actors/replay/rerun.py",
        before="        if (left.encoded, left.is_error) != (right.encoded, right.is_error):\n",
        after="        if left.encoded != right.encoded:\n",
        promise="a rerun counts the messages that came out the same",
        tests=(
            "tests/replay/test_replay.py::test_whether_a_call_failed_counts_as_well_as_its_words",
        ),
    ),
    Bug(
        name="pages of a run's changes are counted and not placed",
        path="harness_actors/replay/recording.py",
        before="        after = page[-1].position\n",
        after="        after += len(page)\n",
        promise="a run is read whole, however long it is and whatever went on beside it",
        tests=(
            "tests/replay/test_recording.py::test_a_run_of_more_changes_than_are_read_at_once_is_read_whole",
        ),
    ),
    Bug(
        name="a run that is over by now is read with what it had not said before",
        path="harness_actors/replay/recording.py",
        before="        changes=changes if stored.end else changes[: stored.state.version],\n",
        after="        changes=changes,\n",
        promise="a run in flight is replayed as far as it is",
        tests=(
            "tests/replay/test_recording.py::test_a_run_that_goes_on_while_it_is_read_is_read_as_it_stood",
        ),
    ),
    Bug(
        name="who cancelled a run while it waited is not said",
        path="harness_actors/replay/waits.py",
        before="        cell.tell(_CANCELLED)\n        cell.end_idle(visit.end)\n    elif",
        after="        cell.end_idle(visit.end)\n    elif",
        promise="a replay says what came from outside",
        tests=("tests/replay/test_questions.py::test_a_run_that_was_cancelled_while_it_waited",),
    ),
    Bug(
        name="of messages only those are compared that both have",
        path="harness_actors/replay/differences.py",
        before="    for place in range(max(len(stored), len(made))):\n",
        after="    for place in range(min(len(stored), len(made))):\n",
        promise="a rerun tells whatever comes out otherwise than the journal has it",
        tests=(
            "tests/replay/test_differences.py::test_a_message_too_many_or_too_few_is_told_by_its_place",
        ),
    ),
    Bug(
        name="a rerun that goes on behind the end breaks down",
        path="harness_actors/replay/cell.py",
        before="""\
        if not self.is_behind:
            raise DivergedError("the rerun went on after the end of the journal's run")
""",
        after="",
        promise="a rerun tells whatever comes out otherwise than the journal has it",
        tests=(
            "tests/replay/test_own_workflows.py::test_a_rerun_that_goes_on_where_the_journal_has_ended_is_told",
        ),
    ),
    Bug(
        name="a sum of seconds gives a turn time that it did not have",
        path="harness_actors/replay/stand_ins.py",
        before="        return limits.time_s + ROUNDING_S if over else 0.0\n",
        after="        return limits.time_s if over else 0.0\n",
        promise="a replay ends a turn where it ended",
        tests=(
            "tests/replay/test_replay.py::test_a_turn_that_was_out_of_time_is_so_again_whatever_was_used_before_it",
        ),
    ),
)
