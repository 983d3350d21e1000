"""Bugs of commands."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="whether all are over is said of the last journal alone",
        path="harness_actors/cli/ctl/cancel.py",
        before="            done = done and len(ended) == len(named)\n",
        after="            done = len(ended) == len(named)\n",
        promise="cancel exits with 0 where all of the runs are over now",
        tests=(
            "tests/cli/test_ctl_command.py::test_where_one_run_of_several_is_not_over_yet_the_status_says_so",
        ),
    ),
)
