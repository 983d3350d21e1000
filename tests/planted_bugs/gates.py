"""Bugs of what stands before, around and after calls."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="what a user has refused is told as a bound, once others have made the last call",
        path="harness_actors/turn/questions.py",
        before="            return decided(plan, said) if isinstance(said, Refuse) else plan\n",
        after="            return plan\n",
        promise="a refused call is told so, once",
        tests=(
            "tests/turn/test_approvals.py"
            "::test_a_call_that_was_refused_is_told_so_though_none_are_left_by_then",
        ),
    ),
    Bug(
        name="the answer to a question is taken for a decision about its call",
        path="harness_actors/turn/questions.py",
        before="question.call_id == plan.call.id and question.kind == kind\n",
        after="question.call_id == plan.call.id\n",
        promise="a run ends as its bounds have it, whatever its user has said",
        tests=(
            "tests/turn/test_approvals.py"
            "::test_the_answer_to_a_question_is_no_decision_though_no_calls_are_left_by_then",
        ),
    ),
    Bug(
        name="the end is judged before it is on disk",
        path="harness_actors/turn/loop.py",
        before="            await self._keep(ended)\n",
        after="",
        promise="no model is asked again for an end that gates are judging",
        tests=(
            "tests/turn/test_gates.py::test_who_dies_while_its_end_is_judged_asks_no_model_again",
        ),
    ),
    Bug(
        name="middleware that returns nothing is the tool's fault",
        path="harness_actors/policies/middleware.py",
        before="            self._check_is_text(value)\n",
        after="",
        promise="a call that was made is told as made, whatever becomes of its result",
        tests=(
            "tests/policies/test_middleware.py::test_what_a_middleware_returns_for_a_result_is_its_own_fault_and_not_the_tools",
        ),
    ),
    Bug(
        name="what a tool tells passes its filters by",
        path="harness_actors/turn/execution.py",
        before="            self._prepared.middleware.text_filters,\n",
        after="",
        promise="a secret is in nothing that is told",
        tests=(
            "tests/test_gates.py::test_a_secret_is_in_nothing_that_a_tool_tells_while_it_works",
        ),
    ),
    Bug(
        name="a call that a hook has denied is made",
        path="harness_actors/turn/call_gates.py",
        before="    if verdict.denied is not None:\n",
        after="    if verdict.denied is not None and plan.idempotent:\n",
        promise="a denied call never runs",
        tests=(
            "tests/turn/test_gates.py::test_a_call_that_a_hook_denies_is_not_made_and_the_model_told_why",
        ),
        seeds=2_000,
    ),
    Bug(
        name="a hook that fails allows",
        path="harness_actors/policies/hooks.py",
        before="""\
        return (self.on_error or ("deny" if kind == "pre_tool" else "allow")) == "deny"
""",
        after='        return self.on_error == "deny"\n',
        promise="a pre_tool hook that raises, hangs or returns nonsense denies",
        tests=(
            "tests/turn/test_gates.py::test_a_hook_that_fails_denies_unless_it_was_told_to_allow",
        ),
    ),
    Bug(
        name="hooks after a call are not asked where it was not made",
        path="harness_actors/turn/call_gates.py",
        before="""\
        if plan.tool is not None and plan.tool is self.prepared.completion:
""",
        after="""\
        if plan.tool in (None, self.prepared.completion):
""",
        promise="post_tool hooks hear of each call, whatever became of it",
        tests=(
            "tests/turn/test_gates.py::test_after_hooks_hear_of_every_outcome_and_may_replace_what_is_told",
        ),
    ),
    Bug(
        name="hooks are asked again after a death",
        path="harness_actors/turn/hook_calls.py",
        before="        plain = await context.observe(kind, about, make)\n",
        after="        plain = await make()\n",
        promise="nobody is asked again about a call whose record is on disk",
        tests=(
            "tests/turn/test_gates.py::test_a_verdict_of_a_fenced_call_outlives_its_process",
            "tests/replay/test_gates.py::test_a_run_behind_gates_comes_out_the_same",
        ),
    ),
    Bug(
        name="changed arguments are lost with the process",
        path="harness_actors/turn/call_scheduler.py",
        before="""\
        judged = await self._judged(planned, unasked={plan.call.id for plan in refused})
""",
        after="        judged = planned\n",
        promise="a call that is made again is made as it was",
        tests=("tests/turn/test_gates.py::test_a_verdict_of_a_fenced_call_outlives_its_process",),
    ),
    Bug(
        name="a hook sees what the model wrote and not what one before it has changed",
        path="harness_actors/turn/call_gates.py",
        before="            arguments = verdict.arguments or plan.call.arguments\n",
        after="            arguments = plan.call.arguments\n",
        promise="changes of several hooks add up",
        tests=("tests/turn/test_gates.py::test_changes_add_up_and_each_hook_sees_those_before_it",),
    ),
    Bug(
        name="an agent that works on between refusals is given up",
        path="harness_actors/executors/stop_decision.py",
        before="""\
        if end is None and signal.findings:
            nudges = self._nudges_without_progress(signal, context)
""",
        after="""\
        if end is None and signal.findings:
            nudges = context.get(NUDGES)
""",
        promise="only refusals in a row without progress are counted",
        tests=(
            "tests/turn/test_gates.py::test_who_works_on_between_refusals_is_ended_by_its_turns",
        ),
    ),
    Bug(
        name="middleware may make a call twice that may be made once",
        path="harness_actors/policies/middleware.py",
        before="        if self._begun and (original is None or not original.idempotent):\n",
        after="        if self._begun and original is None:\n",
        promise="a call that is not idempotent is made at most once",
        tests=(
            "tests/policies/test_middleware.py::test_what_is_not_idempotent_is_called_once_though_middleware_asks_again",
        ),
    ),
    Bug(
        name="text leaves that may yet become a secret",
        path="harness_actors/policies/redaction.py",
        before="            if grows:\n                return max(begin, key)\n",
        after="",
        promise="no piece of a secret is told while its text comes",
        tests=("tests/policies/test_redaction.py::test_pieces_leave_as_the_whole_text_would",),
    ),
    Bug(
        name="the end of a run is told to no hook",
        path="harness_actors/actors/host/executor_host.py",
        before="                if run is not None and end is not None:\n",
        after="                if run is not None and end is None:\n",
        promise="session_end hooks hear of ends",
        tests=(
            "tests/test_gates.py::test_hooks_of_a_harness_hear_when_a_run_begins_and_when_its_end_is_on_disk",
        ),
    ),
    Bug(
        name="a result passes that a hook had no time to look at",
        path="harness_actors/turn/hook_calls.py",
        before="""\
                    raise _FailedError(problem, cut=True)
""",
        after="                    raise _FailedError(problem)\n",
        promise="no result is on record that a hook had to look at first and could not",
        tests=(
            "tests/turn/test_late_hooks.py::test_what_a_hook_had_no_time_to_look_at_is_withheld_whatever_it_says_of_failures",
        ),
    ),
    Bug(
        name="a hook that must see each result has no time past the end of its run",
        path="harness_actors/turn/hook_calls.py",
        before="""\
            left_s = max(0.0, of_run + LATE_S) if kind == "post_tool" else max(0.0, of_run)
""",
        after="            left_s = max(0.0, of_run)\n",
        promise="a hook that takes secrets out of results may finish when its run's time is over",
        tests=(
            "tests/turn/test_late_hooks.py::test_a_hook_may_finish_its_look_when_the_time_of_its_run_is_over",
        ),
    ),
    Bug(
        name="a run is ended while its hooks look at its last results",
        path="harness_actors/coordination/deadlines.py",
        before="    return GRACE_S + LATE_S if run.spec.late_hooks else GRACE_S\n",
        after="    return GRACE_S\n",
        promise="results that hooks saw within 5 s of the end of a run's time are in its log",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_whose_hooks_must_see_each_result_may_be_late_by_their_time",
            "tests/replay/test_gates.py::test_a_result_that_hooks_saw_late_or_not_at_all_comes_out_the_same",
        ),
    ),
    Bug(
        name="a hook lets pass what one before it has withheld",
        path="harness_actors/turn/call_gates.py",
        before="""\
            elif isinstance(answer, Replace) and "withheld" not in asked.plain:
                text = shortened""",
        after="""\
            elif isinstance(answer, Replace):
                asked.plain.pop("withheld", None)
                text = shortened""",
        promise="what is withheld is never passed",
        tests=(
            "tests/turn/test_late_hooks.py::test_hooks_after_one_that_withholds_hear_of_the_call_and_cannot_let_it_pass",
        ),
    ),
    Bug(
        name="what a withheld failure raised stays in its traceback",
        path="harness_actors/turn/call_gates.py",
        before="        if why is not None and isinstance(outcome, ToolFailure):\n",
        after="        if why is None and isinstance(outcome, ToolFailure):\n",
        promise="of a result that is withheld nothing is on record",
        tests=(
            "tests/turn/test_late_hooks.py::test_nothing_of_a_failure_that_is_withheld_is_on_record",
        ),
    ),
    Bug(
        name="a hook may run on when the time of its run is over",
        path="harness_actors/turn/hook_calls.py",
        before="            limit_s = min(limit_s, left_s)\n",
        after="            limit_s = max(limit_s, 0.0)\n",
        promise="a run ends within its time, and keeps what it has done by then",
        tests=(
            "tests/turn/test_gates.py::test_a_hook_has_no_more_time_than_what_is_left_of_its_run",
        ),
    ),
    Bug(
        name="what middleware took before it called next is not counted",
        path="harness_actors/policies/middleware.py",
        before="            self._left_s = (self._bound.when() or now) - now\n",
        after="            self._left_s = OWN_TIME_S\n",
        promise="one middleware takes no more than its own time",
        tests=(
            "tests/policies/test_middleware.py::test_what_it_takes_before_and_after_and_between_two_calls_is_its_time_together",
        ),
    ),
    Bug(
        name="what a filter held back passes the next one by",
        path="harness_actors/turn/voice.py",
        before='            left = (one.feed(left) if left else "") + one.end()\n',
        after="            left += one.end()\n",
        promise="the end of a text that is told has passed all filters, as the rest of it has",
        tests=(
            "tests/turn/test_voice.py::test_what_a_filter_lets_go_at_the_end_passes_those_after_it",
        ),
    ),
    Bug(
        name="the shown part of a large result keeps its secrets",
        path="harness_actors/policies/redact.py",
        before="""\
        return LargeResult(self._redactor.text(str(large)), file, besides=large.besides)
""",
        after="        return LargeResult(str(large), file, besides=large.besides)\n",
        promise="secrets are taken out of results before they are on record",
        tests=(
            "tests/policies/test_redaction.py::test_what_is_shown_of_a_result_in_a_file_is_searched_too",
        ),
    ),
)
