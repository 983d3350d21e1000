"""Bugs of the turn, and of the executors around it."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="what a call leaves out touches nothing",
        path="harness_actors/turn/keys.py",
        before="    known = _defaults(spec.parameters) | given\n",
        after="    known = given\n",
        promise="calls of one tree that touch the same are not made at once",
        tests=(
            "tests/turn/test_keys.py::test_a_call_touches_what_its_arguments_say_and_their_defaults",
        ),
    ),
    Bug(
        name="a run beside its children holds no keys",
        path="harness_actors/turn/execution.py",
        before="        if spec.parent is None and not above:\n",
        after="        if spec.parent is None:\n",
        promise="calls of one tree that touch the same are not made at once",
        tests=("tests/subagents/test_one_file.py::test_a_run_and_those_beside_it_lose_no_change",),
    ),
    Bug(
        name="the keys of long arguments are not held",
        path="harness_actors/turn/keys.py",
        before="            keys = await self._in_thread(keys_touched, spec, arguments)\n",
        after="            keys = ()\n",
        promise="calls of one tree that touch the same are not made at once",
        tests=("tests/turn/test_keys.py::test_keys_of_long_arguments_are_held_too",),
    ),
    Bug(
        name="a file has as many keys as it has names",
        path="harness_actors/turn/keys.py",
        before="        if (workspace := self._workspace) is None:\n",
        after="        if (workspace := self._workspace) is None or workspace.path:\n",
        promise="calls of one tree that touch the same are not made at once",
        tests=(
            "tests/turn/test_keys.py::test_a_file_has_one_key_by_whatever_way_it_is_named",
            "tests/turn/test_keys.py::test_the_same_path_in_a_copy_is_another_file",
        ),
    ),
    Bug(
        name="a run parks a model call late",
        path="harness_actors/turn/loop.py",
        before="""\
            if self._awaited is not None:
                await self._awaited
            # Looked at after that: what is told meanwhile holds for this round, too.
            if self._context.parking:
""",
        after="""\
            parking = self._context.parking
            if self._awaited is not None:
                await self._awaited
            if parking:
""",
        promise="from Ctrl-C on no further model call is made",
        tests=(
            "tests/turn/test_loop.py::test_a_run_that_is_asked_to_park_while_it_waits_for_the_disk_asks_no_more",
        ),
    ),
    Bug(
        name="work is complete though the outcome of a call is unknown",
        path="harness_actors/turn/call_scheduler.py",
        before="            failed=any(result.is_error for result in results),\n",
        after="            failed=False,\n",
        promise="work_complete is not accepted beside a call that failed, deaths or not",
        tests=(
            "tests/turn/test_loop.py::test_a_completion_left_open_is_refused_when_a_call_before_it_failed",
        ),
    ),
    Bug(
        name="waits are taken out of the working time again each round",
        path="harness_actors/turn/meter.py",
        before="        self._working_since, self._waited_s = now, 0.0\n",
        after="        self._working_since = now\n",
        promise="a run's working time is bounded, and is what was worked",
        tests=(
            "tests/turn/test_bounds.py::test_a_wait_is_left_out_of_the_round_that_it_is_in_and_of_no_other",
        ),
    ),
    Bug(
        name="the thread of a call that was stopped never becomes free",
        path="harness_actors/turn/threads.py",
        before="""\
        self._slots.release()
        if future.cancelled():
            self.held -= 1
        elif error is None:
            future.set_result(value)
""",
        after="""\
        if future.cancelled():
            self.held -= 1
            return
        self._slots.release()
        if error is None:
            future.set_result(value)
""",
        promise="a tool that returns late has its thread until then, and no longer",
        tests=(
            "tests/turn/test_threads.py::test_a_thread_that_returns_late_is_free_for_the_next_call",
        ),
    ),
    Bug(
        name="progress in a turn that goes on does not reset the nudges",
        path="harness_actors/executors/stop_decision.py",
        before="            context.set(NUDGES, 0)\n            return 0\n",
        after="            return 0\n",
        promise="a run has five nudges in a row, and progress resets them",
        tests=(
            "tests/executors/test_stop_decision.py::test_a_turn_of_all_its_rounds_goes_on_without_a_message",
        ),
    ),
    Bug(
        name="one message may make more calls than are left",
        path="harness_actors/turn/one_call.py",
        before="""\
            if calls_left is not None and tool is not prepared.completion:
                calls_left -= 1
""",
        after="",
        promise="a run makes no more tool calls than it may",
        tests=(
            "tests/turn/test_bounds.py::test_calls_beyond_the_bound_are_not_made_and_end_the_run",
        ),
    ),
    Bug(
        name="a call that was done as its time was up counts as stopped",
        path="harness_actors/turn/deadline.py",
        before="""\
            # as if it was not.
            return returned
""",
        after="""\
            # as if it was not.
            return TimedOut(due, left=False)
""",
        promise="a call that was made is told as made",
        tests=(
            "tests/turn/test_deadline.py::test_work_that_was_done_when_it_was_told_to_end_counts",
        ),
    ),
    Bug(
        name="calls that were answered for a dead process stay listed as open",
        path="harness_actors/executors/repair.py",
        before=(
            "        context.set(OPEN_CALLS, tuple(call for call in calls if call not in lost))\n"
        ),
        after="",
        promise="every call has exactly one result",
        tests=("tests/executors/test_crashes.py::test_a_run_may_die_once_at_every_step",),
    ),
    Bug(
        name="a stream that breaks off ends its run",
        path="harness_actors/turn/voice.py",
        before="""\
            if said and error.retryable:
                raise _RefusedError from None
""",
        after="",
        promise="a stream that breaks off is made up for by a whole answer",
        tests=(
            "tests/turn/test_voice.py::test_what_is_no_whole_stream_is_asked_for_whole_and_told_anew",
        ),
    ),
    Bug(
        name="waits of a call that fails are work",
        path="harness_actors/turn/answers.py",
        before="    return Answer(response, max(told_s, meter.waited_s), tries)\n",
        after="    return Answer(response, told_s, tries)\n",
        promise="a run's working time leaves out waits on rate limits",
        tests=(
            "tests/turn/test_deadline.py::test_what_a_model_waited_before_it_failed_is_no_work",
        ),
    ),
    Bug(
        name="a call that was refused runs when its process has died",
        path="harness_actors/turn/call_scheduler.py",
        before="""\
        plans = [plan if plan.call.id in held else _still_refused(plan) for plan in settled]
""",
        after="""\
        plans = settled
""",
        promise="what is not idempotent starts only when its record is on disk",
        tests=(
            "tests/turn/test_loop.py::test_a_call_that_was_refused_before_a_crash_does_not_run_after_it",
        ),
    ),
    Bug(
        name="what is in progress goes on when its turn is cut",
        path="harness_actors/turn/deadline.py",
        before="""\
        if not task.done():
            stopping(Due(None))
            await _stopped(task, name, Due(None))
        raise
""",
        after="        raise\n",
        promise="a run that is cut does nothing any more",
        tests=(
            "tests/turn/test_deadline.py::test_a_caller_that_is_cancelled_waits_until_work_has_cleaned_up",
        ),
    ),
    Bug(
        name="a refusal hides the limit that was reached before it",
        path="harness_actors/turn/call_scheduler.py",
        before="                failed, limit = failed or result.is_error, limit or result.limit\n",
        after="                failed, limit = failed or result.is_error, result.limit\n",
        promise="a message that asks for more calls than there are ends the run",
        tests=(
            "tests/turn/test_bounds.py::test_a_call_beyond_the_bound_ends_the_run_whatever_else_is_refused_after_it",
        ),
    ),
    Bug(
        name="a success hides the failure of a call before it",
        path="harness_actors/turn/call_scheduler.py",
        before="                failed, limit = failed or result.is_error, limit or result.limit\n",
        after="                failed, limit = result.is_error, limit or result.limit\n",
        promise="what is said to be complete had no failed call beside it",
        tests=(
            "tests/executors/test_agent_turn.py::test_a_completion_beside_a_failed_call_is_refused_and_the_model_told",
        ),
    ),
    Bug(
        name="work is due by the later of two bounds",
        path="harness_actors/turn/bounds.py",
        before="""\
        if left is None or (wall.seconds is not None and wall.seconds <= left):
""",
        after="""\
        if left is None or (wall.seconds is not None and wall.seconds >= left):
""",
        promise="a limit ends a run from the middle of a call",
        tests=("tests/turn/test_bounds.py::test_work_is_due_by_the_bound_that_is_first",),
    ),
    Bug(
        name="what is allowed is what is left by the later bound",
        path="harness_actors/turn/deadline.py",
        before="        if wall_s is not None and wall_s <= work_s:\n",
        after="        if wall_s is not None and wall_s >= work_s:\n",
        promise="a limit ends a run from the middle of a call",
        tests=("tests/turn/test_bounds.py::test_work_is_due_by_the_bound_that_is_first",),
    ),
    Bug(
        name="a thread that came back is counted as held",
        path="harness_actors/turn/threads.py",
        before="""\
        if future.cancelled():
            self.held -= 1
""",
        after="""\
        if future.cancelled():
            pass
""",
        promise="a call fails for lack of threads only where none will come back",
        tests=(
            "tests/turn/test_threads.py::test_a_call_that_is_stopped_leaves_its_thread_taken_until_it_returns",
        ),
    ),
    Bug(
        name="of the calls of a round only the last one counts",
        path="harness_actors/turn/meter.py",
        before="        self._pending_calls += counts\n",
        after="        self._pending_calls = int(counts)\n",
        promise="a run makes no more tool calls than it may",
        tests=("tests/turn/test_bounds.py::test_usage_is_summed_with_each_round",),
    ),
    Bug(
        name="a round without words takes back what was said",
        path="harness_actors/turn/loop.py",
        before="for message in islice(answers, rounds) if message.text), ",
        after="for message in islice(answers, rounds)), ",
        promise="what was said last is what came of a run that reached a limit",
        tests=(
            "tests/turn/test_bounds.py::test_what_was_said_last_is_kept_though_a_round_says_nothing_after_it",
        ),
    ),
    Bug(
        name="a completion takes a call from those after it",
        path="harness_actors/turn/one_call.py",
        before="            if calls_left is not None and tool is not prepared.completion:\n",
        after="            if calls_left is not None:\n",
        promise="a run may make all of its tool calls",
        tests=(
            "tests/turn/test_bounds.py::test_a_completion_that_comes_too_early_takes_no_call_from_those_after_it",
        ),
    ),
    Bug(
        name="a turn that died in its last round parks before it is judged",
        path="harness_actors/turn/loop.py",
        before="        return await self._end_round(await self._calls.finish())\n",
        after="""\
        self._meter.rounds -= 1
        ended = await self._end_round(await self._calls.finish())
        self._meter.rounds += 1
        return ended
""",
        promise="no turn can be found that is over but was not judged",
        tests=(
            "tests/turn/test_loop.py::test_a_last_round_that_died_is_written_with_the_answer_when_it_is_made_up_for",
        ),
    ),
    Bug(
        name="calls run though the workspace went away while the model was asked",
        path="harness_actors/turn/loop.py",
        before="""\
        # A model may take long to answer, and what it asks for would be done nowhere.
        self._check_workspace()
""",
        after="",
        promise="a run whose workspace is gone fails, and works nowhere",
        tests=(
            "tests/turn/test_loop.py::test_where_its_folder_goes_away_nothing_more_is_asked_or_done",
        ),
    ),
    Bug(
        name="a tool's own limit does not hold where the run has one",
        path="harness_actors/turn/one_call.py",
        before="    by_run = own is None or (due.seconds is not None and due.seconds <= own)\n",
        after="    by_run = own is None or due.seconds is not None\n",
        promise="a tool ends within its limit",
        tests=(
            "tests/turn/test_call_scheduler.py::test_a_tool_past_its_own_time_is_stopped_and_the_turn_goes_on",
        ),
    ),
    Bug(
        name="a call that returned as it was stopped holds its thread",
        path="harness_actors/turn/threads.py",
        before="""\
            if future.cancelled():
                self.held += 1
                cancelled""",
        after="""\
            self.held += 1
            if future.cancelled():
                cancelled""",
        promise="a call fails for lack of threads only where none will come back",
        tests=(
            "tests/turn/test_threads.py::test_a_call_that_returns_as_it_is_stopped_holds_no_thread",
        ),
    ),
    Bug(
        name="a call that waits for busy threads fails where one of them is held",
        path="harness_actors/turn/threads.py",
        before="                    if self.held == self._size:\n",
        after="                    if self.held:\n",
        promise="a call fails for lack of threads only where none will come back",
        tests=(
            "tests/turn/test_threads.py::test_behind_a_busy_thread_a_call_waits_though_another_is_held",
        ),
    ),
    Bug(
        name="waits that a model measures and tells are left out twice",
        path="harness_actors/turn/answers.py",
        before="    return Answer(response, max(told_s, meter.waited_s), tries)\n",
        after="    return Answer(response, told_s + meter.waited_s, tries)\n",
        promise="a run's working time is bounded, and is what was worked",
        tests=(
            "tests/turn/test_deadline.py::test_a_wait_that_is_measured_and_told_is_left_out_once",
        ),
    ),
    Bug(
        name="progress before a pause is forgotten with it",
        path="harness_actors/turn/meter.py",
        before="        self.progressed = self._progress.progressed\n",
        after="        self.progressed = False\n",
        promise="a run has five nudges in a row, and progress resets them",
        tests=(
            "tests/executors/test_crashes.py::test_a_run_that_is_put_aside_after_each_round_is_the_same_run",
        ),
    ),
    Bug(
        name="runs of one agent share how they end",
        path="harness_actors/executors/agent_turn.py",
        before="        key = (id(agent), config.completion, *facts, delegates)\n",
        after='        key = (id(agent), "", *facts, delegates)\n',
        promise="a run ends as its config says",
        tests=(
            "tests/executors/test_agent_turn.py::test_runs_of_one_agent_end_each_as_its_own_config_says",
        ),
    ),
    Bug(
        name="what a round cost is lost with the workspace",
        path="harness_actors/turn/loop.py",
        before="""\
        except HarnessError:
            self._meter.write()
            raise
""",
        after="""\
        except HarnessError:
            raise
""",
        promise="a result tells all that its run has cost",
        tests=(
            "tests/turn/test_loop.py::test_where_its_folder_goes_away_nothing_more_is_asked_or_done",
        ),
    ),
    Bug(
        name="a call that was stopped for its time is said to have failed",
        path="harness_actors/turn/one_call.py",
        before="    return ToolTimeout(text=text, by=limit)\n",
        after="    return ToolFailure(text=text)  # type: ignore[return-value]\n",
        promise="a result says what became of its call",
        tests=("tests/turn/test_dispositions.py::test_a_call_says_what_became_of_it",),
    ),
    Bug(
        name="a question that is asked again is not counted",
        path="harness_actors/executors/observations.py",
        before="        self._numbers[kind, encoded] += 1\n",
        after="        self._numbers[kind, encoded] = 1\n",
        promise="the same question twice makes two observations",
        tests=(
            "tests/executors/test_observations.py::test_the_same_question_twice_makes_two_observations_each_with_its_own_answer",
        ),
        seeds=5000,
    ),
    Bug(
        name="an observation is known in the next visit, too",
        path="harness_actors/executors/context.py",
        before="        if not isinstance(outcome, Waiting):\n            self.close_place()\n",
        after="",
        promise="a place ends with the answer of its executor",
        tests=(
            "tests/executors/test_observations.py::test_a_place_ends_with_the_answer_of_its_executor",
        ),
        seeds=5000,
    ),
    Bug(
        name="what was observed in a round is known in the next one, too",
        path="harness_actors/turn/loop.py",
        before="        self._context.close_place()\n",
        after="",
        promise="the place of an agent turn is one of its rounds",
        tests=(
            "tests/turn/test_loop.py::test_what_was_observed_in_a_round_is_at_hand_until_it_is_over",
        ),
    ),
    Bug(
        name="a short result of wide characters is kept as an artifact",
        path="harness_actors/turn/artifacts.py",
        before="        if len(read) > 4 * most_chars:\n",
        after="        if len(read) > most_chars:\n",
        promise="a result of so many characters stands in the conversation, whatever its bytes",
        tests=(
            "tests/turn/test_artifacts.py::test_a_file_that_is_short_after_all_stays_in_the_conversation",
        ),
    ),
)
