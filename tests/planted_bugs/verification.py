"""Bugs of contracts as gates of runs."""

from tests.planted_bugs.bug import Bug

RUNS = "tests/turn/test_contract.py::"

BUGS = (
    Bug(
        name="who is let through without what its contract wants is a success",
        path="harness_actors/batch/outcomes.py",
        before="        if self.contract is not None and not self.contract.satisfied:\n",
        after="        if False:\n",
        promise="what was not met is not counted as done",
        tests=(
            "tests/batch/test_outcomes.py"
            "::test_who_is_let_through_without_what_its_contract_wants_is_no_success",
        ),
    ),
    Bug(
        name="an older success of a tool counts",
        path="harness_actors/turn/tool_results.py",
        before="            for call in reversed(message.tool_calls):\n",
        after="            for call in message.tool_calls:\n",
        promise="the newest result of a tool counts",
        tests=("tests/turn/test_tool_results.py::test_of_one_message_the_last_call_is_the_newest",),
    ),
    Bug(
        name="results of earlier runs of a conversation count",
        path="harness_actors/turn/tool_results.py",
        before="        if begun_by and message.encoded == begun_by[-1].encoded:\n",
        after="        if begun_by and message is begun_by[-1].encoded:\n",
        promise="the results of a run are its own",
        tests=(
            "tests/turn/test_tool_results.py::test_what_stands_before_the_task_is_of_other_runs",
        ),
    ),
    Bug(
        name="judges cost nothing",
        path="harness_actors/turn/verification.py",
        before='            self.meter.used_aside(Usage(**record["usage"]))\n',
        after='            Usage(**record["usage"])\n',
        promise="what judges use is in the usage of the run",
        tests=(f"{RUNS}test_a_judge_is_a_model_of_its_own_and_the_run_pays_for_it",),
    ),
    Bug(
        name="judges are asked beyond the bounds of a run",
        path="harness_actors/turn/judges.py",
        before="        if (kind := self._reached(self.usage)) is not None:\n",
        after="        if (kind := self._reached(self.usage)) is not None and self.said:\n",
        promise="no judge is asked when a bound of the run is reached",
        tests=(f"{RUNS}test_no_judge_is_asked_beyond_the_bounds_of_the_run",),
    ),
    Bug(
        name="a verification has time of its own",
        path="harness_actors/turn/verification.py",
        before="            Allowance(wall, working_s),\n",
        after="            Allowance(Due(None), working_s),\n",
        promise="a verification ends with the time of its run",
        tests=(f"{RUNS}test_a_verification_ends_with_the_time_of_its_run",),
    ),
    Bug(
        name="each attempt writes the whole ledger",
        path="harness_actors/turn/verification_record.py",
        before="    if marks == before:\n        return []\n    return [\n",
        after='    before = ""\n    return [\n',
        promise="an attempt writes what has changed",
        tests=(f"{RUNS}test_a_large_contract_fits_on_record_and_changes_one_item_at_a_time",),
    ),
    Bug(
        name="an end that a hook denies is not verified",
        path="harness_actors/turn/gates.py",
        before="        if self.contract is not None:\n            came",
        after="        if self.contract is not None and not causes:\n            came",
        promise="all gates are asked, and every cause is told",
        tests=(f"{RUNS}test_every_gate_is_asked_and_every_cause_told_in_the_one_message",),
    ),
    Bug(
        name="what stands better is no progress",
        path="harness_actors/turn/gates.py",
        before="            better = came.better\n",
        after="            better = False\n",
        promise="a finding that changed for the better is progress",
        tests=(f"{RUNS}test_a_finding_that_changed_for_the_better_is_progress",),
    ),
    Bug(
        name="runs of one agent share how they are answered",
        path="harness_actors/executors/agent_turn.py",
        before="(config.artifacts is not None, config.contract is not None, reads_back)\n",
        after="(config.artifacts is not None, True, reads_back)\n",
        promise="work_complete answers as the gates of its own run have it",
        tests=("tests/test_contract_runs.py::test_the_contract_of_a_run_is_its_own",),
    ),
    Bug(
        name="a rerun counts judges twice",
        path="harness_actors/replay/tape.py",
        before="            if used in told:\n",
        after="            if used not in told:\n",
        promise="a run with a contract comes out the same from its journal",
        tests=("tests/replay/test_contracts.py::test_a_run_with_a_contract_comes_out_the_same",),
    ),
    Bug(
        name="a result forgets what is not met",
        path="harness_actors/coordination/coverage.py",
        before='        why="nobody has looked" if entry is None else entry.get("notes", ""),\n',
        after='        why="",\n',
        promise="the result says what is missing",
        tests=("tests/test_contract_runs.py::test_the_result_says_what_is_not_met",),
    ),
    Bug(
        name="what the user has answered is not counted",
        path="harness_actors/turn/verification.py",
        before="        held = with_answers(self._plain, answers)\n",
        after="        held = with_answers(self._plain, {})\n",
        promise="answers to the questions of a contract count in each verification",
        tests=(
            "tests/test_contract_questions.py::test_all_are_asked_before_the_model_and_answered_in_another_harness",
        ),
    ),
    Bug(
        name="the model is not told what the user has answered",
        path="harness_actors/turn/contract_questions.py",
        before="    if not asked or asked[0].call_id:\n",
        after="    if not asked or not asked[0].call_id:\n",
        promise="the answers to the questions of a contract are one message to the model",
        tests=(
            "tests/test_contract_questions.py::test_all_are_asked_before_the_model_and_answered_in_another_harness",
        ),
    ),
)
