"""Bugs of approvals."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="what waits for approval behind a call that begins no run is on disk as begun",
        path="harness_actors/turn/call_scheduler.py",
        before="self._asking.release(self._waiting(left))",
        after="self._asking.release(())",
        promise="of a call that waits for approval everybody knows that it was not made",
        tests=(
            "tests/subagents/test_fencing.py"
            "::test_a_call_that_waits_for_approval_is_at_no_moment_on_disk_as_begun",
        ),
    ),
    Bug(
        name="what waits for approval is on disk as begun when the run before it has ended",
        path="harness_actors/turn/call_scheduler.py",
        before="            self._asking.release(self._waiting(plans))\n",
        after="            self._asking.release(())\n",
        promise="of a call that waits for approval everybody knows that it was not made",
        tests=(
            "tests/subagents/test_fencing.py"
            "::test_a_call_that_waits_for_approval_is_at_no_moment_on_disk_as_begun",
        ),
    ),
    Bug(
        name="what waits for approval is lost with the calls before it",
        path="harness_actors/turn/call_scheduler.py",
        before="                self._asking.hold(plans[held:])\n",
        after="                pass\n",
        promise="a call that nobody was asked about has not begun, and is asked about",
        tests=(
            "tests/turn/test_approvals.py::test_wherever_its_process_dies_a_call_is_asked_once_and_made_at_most_once",
        ),
    ),
    Bug(
        name="what a person has refused has an unknown outcome after a death",
        path="harness_actors/turn/call_scheduler.py",
        before="""\
                self._context.set(OPEN_CALLS, self._index(plans))
            self._asking.release(self._waiting(plans))
""",
        after="            self._asking.release(self._waiting(plans))\n",
        promise="of what a person refused everybody knows that it was not made",
        tests=(
            "tests/turn/test_approvals.py::test_wherever_its_process_dies_a_call_is_asked_once_and_made_at_most_once",
        ),
    ),
    Bug(
        name="calls wait no longer though nobody was asked",
        path="harness_actors/turn/call_scheduler.py",
        before="""\
        if held and (self._asking.has_asked or self._delegating.has_results):
            if first_to_approve(judged) is not None:
                self._asking.keep_standing(judged)
                # What is not to be made after all may be refused, or answered, twice.
                self._context.set(OPEN_CALLS, self._index(plans))
            self._asking.release(self._waiting(plans))
""",
        after="""\
        if held:
            self._asking.release(())
""",
        promise="a call that nobody was asked about has not begun, and is asked about",
        tests=(
            "tests/turn/test_approvals.py::test_wherever_its_process_dies_a_call_is_asked_once_and_made_at_most_once",
        ),
    ),
    Bug(
        name="what stands for later calls is forgotten",
        path="harness_actors/turn/call_scheduler.py",
        before="                self._asking.keep_standing(judged)\n",
        after="",
        promise="a standing decision holds for later calls of the run",
        tests=("tests/turn/test_approvals.py::test_a_decision_may_stand_for_later_calls",),
    ),
    Bug(
        name="calls that only read do not wait for approval where two stand together",
        path="harness_actors/turn/approvals.py",
        before="    return replace(plan, approval=need, alone=True)\n",
        after="    return replace(plan, approval=need)\n",
        promise="no call is made that needs approval and has none",
        tests=(
            "tests/turn/test_approvals.py::test_calls_that_only_read_and_could_be_made_at_once_wait_all_the_same",
        ),
    ),
    Bug(
        name="other arguments of a person are left out",
        path="harness_actors/turn/approvals.py",
        before="            return replace(made, arguments=encoded_arguments(changed))\n",
        after="""\
            encoded_arguments(changed)
            return made
""",
        promise="a call is made with the arguments that were approved",
        tests=("tests/turn/test_approvals.py::test_a_person_decides",),
    ),
    Bug(
        name="a policy is asked about what the model wrote",
        path="harness_actors/turn/approvals.py",
        before="        spec, arguments = tool.spec, plan.given.arguments\n",
        after="        spec, arguments = tool.spec, plan.call.arguments\n",
        promise="a policy decides about the call as it would be made",
        tests=(
            "tests/turn/test_approvals.py::test_what_hooks_have_changed_is_what_is_decided_about",
        ),
    ),
    Bug(
        name="an answer in the place of a tool may be lost with its process",
        path="harness_actors/turn/one_call.py",
        before="        if self.tool is None or self.answer is not None:\n",
        after="        if self.tool is None:\n",
        promise="an answer reaches the model exactly once",
        tests=(
            "tests/turn/test_approvals.py::test_wherever_its_process_dies_a_call_is_asked_once_and_made_at_most_once",
        ),
    ),
    Bug(
        name="an approval is taken after its time",
        path="harness_actors/coordination/waiting.py",
        before='            problem = _too_late(question_id) if question_id in late else ""\n',
        after='            problem = ""\n',
        promise="a decision after its time is refused",
        tests=(
            "tests/test_approvals.py::test_what_nobody_decides_in_time_is_decided_when_it_is_taken_up",
        ),
    ),
    Bug(
        name="each answer is written with all that were given before it",
        path="harness_actors/coordination/waiting.py",
        before="""\
        writes = tuple(Write(ANSWERS.name, "put", list(answer)) for answer in answers.items())
""",
        after="""\
        given = run.state.values.get(ANSWERS.name) or {}
        writes = (Write(ANSWERS.name, "set", {**given, **answers}),)
""",
        promise="what is written of a change grows with the change, and not with the history",
        tests=(
            "tests/coordination/test_waiting.py::test_an_answer_costs_the_same_however_many_there_are",
        ),
    ),
    Bug(
        name="an item that is put takes the place of all others",
        path="harness_actors/state/shared.py",
        before="            return {**(old or {}), item[0]: item[1]}\n",
        after="            return {item[0]: item[1]}\n",
        promise="each answer stays until all are there",
        tests=(
            "tests/core/test_state.py::test_put_gives_one_item_another_value_and_leaves_the_others",
            "tests/coordination/test_waiting.py::test_answers_may_come_one_by_one_and_in_any_order",
        ),
    ),
    Bug(
        name="an approval that has expired is asked for again",
        path="harness_actors/coordination/taking_up.py",
        before="            self._waits.expire(run, effects)\n",
        after="            pass\n",
        promise="what has expired is decided when the run is taken up",
        tests=(
            "tests/test_approvals.py::test_what_nobody_decides_in_time_is_decided_when_it_is_taken_up",
        ),
    ),
    Bug(
        name="an argument that is too long to be searched is harmless",
        path="harness_actors/policies/approval_rules.py",
        before="""\
            if len(text) > SEARCHED_CHARS:
                if self.decide == "auto":
                    return False
""",
        after="""\
            if len(text) > SEARCHED_CHARS:
                return False
""",
        promise="what cannot be looked at is taken for the worse",
        tests=(
            "tests/policies/test_approvals.py::test_an_argument_that_is_too_long_to_be_searched_is_taken_for_the_worse",
        ),
    ),
    Bug(
        name="arguments that break a schema are taken",
        path="harness_actors/actors/coordinator/admission.py",
        before="            check_edits(run_id, edits, {} if head is None else head.schemas)\n",
        after="            check_edits(run_id, edits, {})\n",
        promise="arguments that break the schema of their tool are refused when they are given",
        tests=("tests/test_approvals.py::test_what_is_no_decision_changes_nothing",),
    ),
    Bug(
        name="a batch ends before its answered runs go on",
        path="harness_actors/batch/engine.py",
        before="            if await self._waiting.tell(flight, asked):\n",
        after="            if await self._waiting.tell(flight, asked) and False:\n",
        promise="a batch goes on with what a program answers",
        tests=(
            "tests/batch/test_waiting.py::test_a_run_goes_on_with_what_a_program_answered_also_where_that_is_heard_of_late",
        ),
    ),
    Bug(
        name="what was decided first for later calls stands",
        path="harness_actors/turn/approvals.py",
        before="        for one in reversed(of_tool):\n",
        after="        for one in of_tool:\n",
        promise="of standing decisions the newest counts",
        tests=("tests/turn/test_approvals.py::test_of_two_decisions_that_stand_the_newest_counts",),
    ),
)
