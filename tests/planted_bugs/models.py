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
    Bug(
        name="a call whose wait is over is cut when waits are given up",
        path="harness_actors/models/waits.py",
        before="""\
            raise
        finally:
            self._tasks.discard(task)
""",
        after="            raise\n",
        promise="Ctrl-C finishes the round in flight",
        tests=(
            "tests/models/test_given_up_waits.py::test_a_call_that_is_in_flight_behind_its_wait_is_left_alone",
        ),
    ),
    Bug(
        name="of several waits one is given up",
        path="harness_actors/models/waits.py",
        before="        for task in self._tasks:\n            task.cancel()\n",
        after="        for task in list(self._tasks)[:1]:\n            task.cancel()\n",
        promise="after Ctrl-C no request follows",
        tests=(
            "tests/models/test_given_up_waits.py::test_each_of_several_waits_at_once_is_given_up",
        ),
    ),
    Bug(
        name="the key of a process goes before that of the run",
        path="harness_actors/models/keys.py",
        before="""\
            self._handed.get(self.name)
            or os.environ.get(self.name)
""",
        after="""\
            os.environ.get(self.name)
            or self._handed.get(self.name)
""",
        promise="a run asks its model with the key of whoever began it",
        tests=(
            "tests/models/test_keys.py::test_a_key_that_was_handed_in_goes_before_that_of_the_process",
        ),
    ),
    Bug(
        name="calls that begin together open a client each",
        path="harness_actors/models/connection.py",
        before="""\
        module = await asyncio.to_thread(import_module, "harness_actors.models.client")
        if (client := self._usable(endpoint, loop)) is not None:
            return client
""",
        after="""\
        module = await asyncio.to_thread(import_module, "harness_actors.models.client")
""",
        promise="no more sockets are open than are allowed",
        tests=("tests/models/test_connection.py::test_calls_that_begin_together_share_one_client",),
    ),
    Bug(
        name="waits grow, but do not double",
        path="harness_actors/models/backoff.py",
        before="""\
        return random.uniform(0.0, min(self.longest_s, self.first_s * 2.0**retries))
""",
        after="""\
        return random.uniform(0.0, min(self.longest_s, self.first_s * (1 + retries)))
""",
        promise="a provider that is overloaded is asked ever more seldom",
        tests=("tests/models/test_backoff.py::test_waits_are_spread_over_all_of_their_bound",),
    ),
    Bug(
        name="that an endpoint has answered is forgotten",
        path="harness_actors/models/openai.py",
        before="        self._answered = True\n",
        after="",
        promise="an endpoint that has answered is given time to come back",
        tests=(
            "tests/models/test_openai.py::test_an_endpoint_that_has_answered_is_given_time_to_come_back",
        ),
    ),
)
