"""Bugs of the coordinator's state machine."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="a new incarnation forgets the budget",
        path="harness_actors/coordination/coordinator.py",
        before="        self._closing.note(run, step, restored=ours)\n",
        after="        self._closing.note(run, step)\n",
        promise="what is allowed survives the coordinator with the runs that it has begun",
        tests=("tests/coordination/test_budget.py::test_the_budget_outlives_the_coordinator",),
    ),
    Bug(
        name="a run that ended keeps its place in the queue for the quarantine",
        path="harness_actors/coordination/routing.py",
        before="""\
        if run_id in self._waiting:
            self._waiting.remove(run_id)
        if self._isolated != run_id:
""",
        after="        if self._isolated != run_id:\n",
        promise="the quarantine serves one run at a time, and then the next",
        tests=(
            "tests/coordination/test_router.py::test_quarantine_is_handed_over_in_the_order_of_asking",
        ),
    ),
    Bug(
        name="a run that is out of time is not cut",
        path="harness_actors/coordination/coordinator.py",
        before="""\
            self._cut(run, step)
            self._books.end(run, StateDelta(), limit_reached("time", run), step)
""",
        after='            self._books.end(run, StateDelta(), limit_reached("time", run), step)\n',
        promise="a limit ends a run from the middle of a call, and its processes with it",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_whose_time_is_over_ends_wherever_it_hangs",
        ),
    ),
    Bug(
        name="a pending record forgives losses",
        path="harness_actors/coordination/books.py",
        before='            if any(message.role == "tool" for message in delta.messages):\n',
        after="            if delta.messages:\n",
        promise="a run that kills its process again and again is isolated, and ends",
        tests=("tests/coordination/test_losses.py::test_after_two_losses_a_run_is_served_alone",),
    ),
    Bug(
        name="a run that parked as it was resumed stays parked",
        path="harness_actors/coordination/coordinator.py",
        before="            run.parking, run.unparked_in = False, run.step\n",
        after="            run.parking = False\n",
        promise="a run that is resumed goes on, also where it was about to park",
        tests=(
            "tests/coordination/test_stop_requests.py::test_an_answer_that_it_parked_crosses_the_request_to_go_on",
        ),
    ),
    Bug(
        name="a run that was put aside still belongs to its command",
        path="harness_actors/coordination/books.py",
        before="""\
        step.entries.append(RunAdded(spec=run.spec, command="", at=self._clock.now(), again=True))
        self._forget(run, step)
""",
        after="        self._forget(run, step)\n",
        promise="a run that is parked does not go on unasked",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_that_was_to_park_parks_although_the_coordinator_dies",
        ),
    ),
    Bug(
        name="a run that is taken up again is paid for twice",
        path="harness_actors/coordination/budget.py",
        before="""\
        if run_id not in self._unfinished_usd:
            self._unfinished_usd[run_id] = cost_usd
            self.spent_usd += cost_usd
""",
        after="""\
        self._unfinished_usd[run_id] = cost_usd
        self.spent_usd += cost_usd
""",
        promise="a budget is spent by what runs cost, and by nothing else",
        tests=(
            "tests/coordination/test_budget.py::test_a_run_that_is_put_aside_and_taken_up_again_is_counted_once",
        ),
    ),
    Bug(
        name="a request to park dies with the coordinator",
        path="harness_actors/coordination/coordinator.py",
        before="""\
        if ours and not asked and run.state.values.get(PARKING.name):
            self._books.put_aside(run, StateDelta(), step)
            return step
""",
        after="",
        promise="a run that was asked to stop does not go on unasked, whoever dies",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_that_was_to_park_parks_although_the_coordinator_dies",
        ),
    ),
    Bug(
        name="a budget that was raised is not held a second time",
        path="harness_actors/coordination/closing.py",
        before="        self._all_closing = False\n        for run in list(self._runs.values()):\n",
        after="        for run in list(self._runs.values()):\n",
        promise="where a budget is spent, no run makes a further model call",
        tests=(
            "tests/coordination/test_budget.py::test_a_budget_that_is_raised_is_held_as_the_first_one_was",
        ),
    ),
    Bug(
        name="a run that parks for want of money waits to be taken up",
        path="harness_actors/coordination/coordinator.py",
        before="""\
            case Parked() if run.closing is not None:
                self._books.end(run, delta, run.closing, step)
""",
        after="",
        promise="a run ends limit(budget) where its budget is spent",
        tests=(
            "tests/coordination/test_budget.py::test_a_spent_budget_ends_all_runs_behind_their_round",
        ),
    ),
    Bug(
        name="tools of a dead host are taken for those of the next one",
        path="harness_actors/coordination/dispatch.py",
        before="""\
        run.tools_running = False
        if slot.index == QUARANTINE and not self._router.isolate(run_id):
""",
        after="        if slot.index == QUARANTINE and not self._router.isolate(run_id):\n",
        promise="only a death in the middle of a tool counts as a loss",
        tests=(
            "tests/coordination/test_losses.py::test_a_host_that_dies_before_it_did_anything_is_no_loss_behind_one_that_was",
        ),
    ),
)
