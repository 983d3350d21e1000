"""Bugs of the models."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="of the waits before a stream only the last one is told",
        path="harness_actors/models/openai.py",
        before="""\
                    raise failure.error from None
                waited_s += await""",
        after="""\
                    raise failure.error from None
                waited_s = await""",
        promise="a run's working time leaves out waits on rate limits",
        tests=("tests/models/test_openai.py::test_the_waits_of_several_retries_add_up",),
    ),
    Bug(
        name="a second wait of a call makes the first begin anew",
        path="harness_actors/models/waits.py",
        before="""\
        if not self._waiting:
            self._since = _now()
""",
        after="        self._since = _now()\n",
        promise="a run's working time leaves out waits on rate limits",
        tests=(
            "tests/turn/test_deadline.py::test_waits_of_one_call_that_overlap_count_from_the_first_to_the_last",
        ),
    ),
    Bug(
        name="a wait begins after all were given up",
        path="harness_actors/models/waits.py",
        before="""\
        if self._given_up:
            raise NotAskedAgainError
        if not self._waiting:
""",
        after="""\
        if not self._waiting:
""",
        promise="after Ctrl-C no request follows",
        tests=(
            "tests/models/test_given_up_waits.py::test_no_wait_begins_after_they_were_given_up",
        ),
    ),
)
