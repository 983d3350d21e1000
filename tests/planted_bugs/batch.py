"""Bugs of the work on many tasks."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="a task that is run again has no retries left",
        path="harness_actors/batch/engine.py",
        before=(
            "        if attempt.retries < self._settings.retry_on_error "
            "and may_help_again(result):\n"
        ),
        after=(
            "        if attempt.number <= self._settings.retry_on_error "
            "and may_help_again(result):\n"
        ),
        promise="an attempt by --retry-failed is retried as often as the first one",
        tests=("tests/batch/test_batch.py::test_a_task_that_is_run_again_has_all_its_retries",),
    ),
    Bug(
        name="a check is laid over what a link of the agent leads to",
        path="harness_actors/batch/check_copy.py",
        before="            if place.is_symlink() or not place.is_dir():\n",
        after="            if not place.is_dir():\n",
        promise="a check changes nothing but its own copy of the workspace",
        tests=(
            "tests/batch/test_checks.py::test_a_link_of_the_agent_does_not_lead_hidden_files_elsewhere",
        ),
    ),
    Bug(
        name="a check counts whatever was changed while it ran",
        path="harness_actors/batch/checks.py",
        before="                if found == changed:\n",
        after="                if found.library == changed.library:\n",
        promise="a check stands on no package or program that a run has changed",
        tests=(
            "tests/batch/test_checks.py::test_packages_and_programs_that_are_changed_are_left_out_and_the_check_made_again",
        ),
    ),
    Bug(
        name="a run that ended before it was taken up is waited for",
        path="harness_actors/batch/engine.py",
        before="            step = Continue(self._history.newest_of(step.attempt))\n",
        after="            step = Continue(step.attempt)\n",
        promise="the same command collects what has ended in a warm cell",
        tests=(
            "tests/batch/test_attaching.py::test_what_ends_while_the_next_command_starts_is_collected_and_paid_for_once",
        ),
    ),
    Bug(
        name="failures of earlier commands do not count",
        path="harness_actors/batch/tally.py",
        before='        return self.verdicts["ok"] == self.done\n',
        after='        return self.verdicts["ok"] >= self.ended\n',
        promise="the exit status is 0 only where every run ended done",
        tests=(
            "tests/batch/test_batch.py::test_every_ending_is_final_unless_failures_are_retried",
        ),
    ),
    Bug(
        name="a run on its way to the runtime is not stopped with the others",
        path="harness_actors/batch/starting.py",
        before="""\
        await self._submissions.submit(ready.spec, ready.program)
        await self._stop_late(ready.flight)
""",
        after="        await self._submissions.submit(ready.spec, ready.program)\n",
        promise="Ctrl-C parks whatever is in flight",
        tests=(
            "tests/batch/test_batch.py::test_a_run_on_its_way_to_the_runtime_is_stopped_with_the_others",
        ),
    ),
    Bug(
        name="rounds of a run that goes on are paid for twice",
        path="harness_actors/batch/starting.py",
        before=(
            "                case RoundCompleted(cost_usd=cost_usd) if event.position <= told:\n"
        ),
        after="                case RoundCompleted(cost_usd=cost_usd):\n",
        promise="a budget is spent by what runs cost, and by nothing else",
        tests=(
            "tests/batch/test_attaching.py::test_what_ends_while_the_next_command_starts_is_collected_and_paid_for_once",
        ),
    ),
    Bug(
        name="of several lines of a task the oldest is kept",
        path="harness_actors/batch/results_file.py",
        before="            newest[name] = number\n",
        after="            newest.setdefault(name, number)\n",
        promise="a task that was run again has the line of its last attempt",
        tests=(
            "tests/batch/test_batch.py::test_every_ending_is_final_unless_failures_are_retried",
        ),
    ),
    Bug(
        name="a share of failures is of what has ended",
        path="harness_actors/batch/brakes.py",
        before="            most *= self._total or ended\n",
        after="            most *= ended\n",
        promise="a batch stops when the named share of its tasks has failed",
        tests=("tests/batch/test_batch.py::test_too_many_failures_start_nothing_new",),
    ),
    Bug(
        name="a batch asks where it is after its runs",
        path="harness_actors/batch/engine.py",
        before="""\
        self._cursor = await self._runtime.position()
        directory, headings = self._directory, await self._runtime.headings()
""",
        after="""\
        directory, headings = self._directory, await self._runtime.headings()
        self._cursor = await self._runtime.position()
""",
        promise="the same command collects what has ended in a warm cell",
        tests=(
            "tests/batch/test_attaching.py::test_what_ends_while_the_next_command_starts_is_collected_and_paid_for_once",
        ),
    ),
    Bug(
        name="a failure after the brakes keeps its place",
        path="harness_actors/batch/engine.py",
        before="""\
            if self.brakes.are_on():
                self._free()
            else:
                await self._retry(flight)
""",
        after="""\
            if not self.brakes.are_on():
                await self._retry(flight)
""",
        promise="a batch that starts nothing new ends when all has landed",
        tests=(
            "tests/batch/test_batch.py::test_a_failure_that_spends_the_budget_is_retried_by_the_next_command",
        ),
    ),
    Bug(
        name="an end that is told twice is paid for twice",
        path="harness_actors/batch/history.py",
        before="        return cost_usd - (known.counted_usd or 0.0)\n",
        after="        return cost_usd\n",
        promise="a budget is spent by what runs cost, and by nothing else",
        tests=(
            "tests/batch/test_attaching.py::test_what_ends_while_the_next_command_starts_is_collected_and_paid_for_once",
        ),
    ),
    Bug(
        name="tasks that were done before are counted again on the way",
        path="harness_actors/batch/tally.py",
        before="        self._skipped_known = True\n",
        after="",
        promise="a batch is complete when each of its tasks has ended",
        tests=("tests/batch/test_batch.py::test_what_was_done_before_is_counted_once",),
    ),
    Bug(
        name="a run goes on that another takes the place of",
        path="harness_actors/batch/history.py",
        before="""\
                return Begin(newest.number + 1, None if newest.end else newest.run_id)
""",
        after="                return Begin(newest.number + 1)\n",
        promise="a task has one run at a time",
        tests=(
            "tests/batch/test_changes.py::test_changed_ones_are_done_again_by_choice_and_then_nothing_is_mixed",
        ),
    ),
    Bug(
        name="runs that were put aside are shown as running",
        path="harness_actors/batch/engine.py",
        before="""\
    def _free(self) -> None:
        self._tally.running = len(self._flights)
""",
        after="    def _free(self) -> None:\n",
        promise="the figures of a batch are those of now",
        tests=("tests/batch/test_commands.py::test_whatever_commands_follow_one_another",),
    ),
    Bug(
        name="tasks that were not come by count as removed",
        path="harness_actors/batch/spending.py",
        before="            found.stranded += roster.is_whole and not is_ours\n",
        after="            found.stranded += not is_ours\n",
        promise="what a summary says of removed tasks is so",
        tests=(
            "tests/batch/test_summary.py::test_unfinished_runs_of_tasks_that_were_not_come_by_are_of_no_removed_task",
        ),
    ),
    Bug(
        name="Ctrl-C is not heeded while the runtime starts",
        path="harness_actors/batch/batch.py",
        before="""\
            if not self._parks:
                await self._engine.run()
""",
        after="            await self._engine.run()\n",
        promise="from Ctrl-C on nothing new is started",
        tests=(
            "tests/batch/test_batch.py::test_a_batch_that_is_stopped_while_its_runtime_starts_begins_nothing",
        ),
    ),
    Bug(
        name="who begins anew what was changed does not begin anew what failed",
        path="harness_actors/batch/history.py",
        before="        again |= retries_changed and differ(line.setup, now)\n",
        after="""\
        if retries_changed:
            again = differ(line.setup, now)
""",
        promise="retry_failed runs again what failed, whatever else is asked for",
        tests=("tests/batch/test_commands.py::test_whatever_commands_follow_one_another",),
    ),
    Bug(
        name="a check that cannot be prepared leaves its copy",
        path="harness_actors/batch/checks.py",
        before="""\
            finally:
                await asyncio.to_thread(remove_tree, copy)
""",
        after="""\
            except asyncio.CancelledError:
                await asyncio.to_thread(remove_tree, copy)
                raise
            await asyncio.to_thread(remove_tree, copy)
""",
        promise="each copy is removed when its check is over",
        tests=("tests/batch/test_checks.py::test_a_check_that_cannot_be_prepared_says_why",),
    ),
    Bug(
        name="a look at programs that began before a check ended is good enough",
        path="harness_actors/batch/check_programs.py",
        before="""\
            # Who asks from here on needs a look that begins later.
            self._next = None
            self._now = compare(self._begun, await self._read())
""",
        after="""\
            self._now = compare(self._begun, await self._read())
            self._next = None
""",
        promise="a check counts only if nothing that it ran on was changed before it ended",
        tests=(
            "tests/batch/test_checks.py::test_what_is_changed_during_a_look_is_seen_by_the_next",
        ),
    ),
    Bug(
        name="a recipe in a file of sections may be the run's own",
        path="harness_actors/batch/check_files.py",
        before="        if place.name in SECTIONED - self._recipes:\n",
        after="        if place.name in SECTIONED:\n",
        promise="which tests run, and how, is the task's to say and not the run's",
        tests=(
            "tests/batch/test_checks.py::test_a_recipe_is_the_tasks_own_though_no_section_of_it_steers_tests",
        ),
    ),
    Bug(
        name="a run that waits keeps its place",
        path="harness_actors/batch/engine.py",
        before="""\
                self._go_on(self._waiting.answered(flight.attempt.run_id), group)
        finally:
            self._free()
""",
        after="""\
                self._go_on(self._waiting.answered(flight.attempt.run_id), group)
        finally:
            self._tally.running = len(self._flights)
""",
        promise="a run that waits for its user gives its place to the next",
        tests=(
            "tests/batch/test_waiting.py::test_a_run_that_waits_gives_its_place_to_the_next_and_has_no_line",
        ),
    ),
    Bug(
        name="a run that waits is taken up before it is answered",
        path="harness_actors/batch/history.py",
        before="            waits=_waits(heading),\n",
        after="",
        promise="of runs that wait no model is asked anything",
        tests=(
            "tests/batch/test_waiting.py::test_a_run_that_was_answered_in_part_waits_for_the_rest",
        ),
    ),
    Bug(
        name="what waiting runs have cost is not spent",
        path="harness_actors/batch/history.py",
        before='        is_counted = heading.phase in ("ended", "waiting")\n',
        after='        is_counted = heading.phase == "ended"\n',
        promise="a budget counts what waiting runs have cost",
        tests=("tests/batch/test_waiting.py::test_what_waiting_runs_have_cost_is_spent",),
    ),
    Bug(
        name="an answer that comes while a command starts is missed",
        path="harness_actors/batch/engine.py",
        before="                self._history.answered(event.run_id, question_id)\n",
        after="                pass\n",
        promise="a run that is answered is taken up",
        tests=(
            "tests/batch/test_waiting.py::test_what_happens_to_a_waiting_run_while_a_command_starts_is_not_missed",
        ),
    ),
    Bug(
        name="a run that is answered behind the brakes goes on",
        path="harness_actors/batch/engine.py",
        before="""\
        elif self.brakes.are_on():
            # The next command goes on with it.
            self._free()
""",
        after="",
        promise="from Ctrl-C on nothing new is started",
        tests=(
            "tests/batch/test_waiting.py::test_ctrl_c_leaves_what_waits_as_it_is_and_the_next_command_goes_on",
        ),
    ),
    Bug(
        name="a run that ended behind its answer is taken up",
        path="harness_actors/batch/waiting.py",
        before="                waiter.end = news.results[event.run_id]\n",
        after="""\
                if not waiter.is_ready:
                    waiter.end = news.results[event.run_id]
""",
        promise="a run that is cancelled while it waits is over",
        tests=(
            "tests/batch/test_waiting.py::test_a_run_that_is_answered_and_then_cancelled_is_over",
        ),
    ),
    Bug(
        name="the end of an attempt ends the one that took its place",
        path="harness_actors/batch/history.py",
        before="        if key is None or known is None or known.run_id != run_id:\n",
        after="        if key is None or known is None:\n",
        promise="the outcome of a task is that of its newest run",
        tests=(
            "tests/batch/test_attaching.py::test_an_attempt_that_is_cancelled_late_does_not_end_the_one_that_took_its_place",
        ),
    ),
    Bug(
        name="a runtime is opened behind a Ctrl-C",
        path="harness_actors/batch/batch.py",
        before="            if not self._parks:\n                await self._do_rest(looking)\n",
        after="            await self._do_rest(looking)\n",
        promise="what is stopped before it began starts nothing",
        tests=(
            "tests/batch/test_batch.py::test_a_batch_that_is_stopped_while_it_looks_around_opens_no_runtime",
        ),
    ),
    Bug(
        name="a line that is written before a refusal is not in the summary",
        path="harness_actors/batch/engine.py",
        before="""\
        self.has_begun = True
        await self._directory.results.append(outcome)
""",
        after="        await self._directory.results.append(outcome)\n",
        promise="the summary says what is in the results",
        tests=(
            "tests/batch/test_changes.py::test_what_was_told_before_a_refusal_is_in_the_summary",
        ),
    ),
    Bug(
        name="a run that ends while the next command starts costs nothing",
        path="harness_actors/batch/engine.py",
        before=(
            "                self.brakes.spend("
            "self._history.ended(event.run_id, news.results[event.run_id]))\n"
        ),
        after="                self._history.ended(event.run_id, news.results[event.run_id])\n",
        promise="a budget is spent by what runs cost, whoever began them",
        tests=(
            "tests/batch/test_attaching.py::test_what_was_spent_while_the_next_command_starts_begins_nothing_more",
        ),
    ),
    Bug(
        name="a batch has landed though a place was promised meanwhile",
        path="harness_actors/batch/flights.py",
        before="        while self._busy:\n            await self._idle.wait()\n",
        after="        if self._busy:\n            await self._idle.wait()\n",
        promise="a run that is answered is taken up",
        tests=(
            "tests/batch/test_flights.py::test_all_have_landed_only_when_no_place_is_promised_any_more",
        ),
    ),
    Bug(
        name="waiting runs of another folder are left to write there",
        path="harness_actors/batch/changes.py",
        before="""\
        place = step.attempt.elsewhere if isinstance(step, Continue | Wait) else None
""",
        after="        place = step.attempt.elsewhere if isinstance(step, Continue) else None\n",
        promise="runs of a directory that was copied are asked about before anything runs",
        tests=(
            "tests/batch/test_waiting.py::test_a_run_that_waits_in_another_folder_is_asked_about",
        ),
    ),
    Bug(
        name="rounds before a question are paid for twice",
        path="harness_actors/batch/engine.py",
        before="                    attempt = replace(flight.attempt, counted_usd=0.0)\n",
        after="                    attempt = flight.attempt\n",
        promise="a budget is spent by what runs cost, and by nothing else",
        tests=("tests/batch/test_waiting.py::test_what_is_answered_meanwhile_is_paid_for_once",),
    ),
    Bug(
        name="an answered run goes on before it is noted what its check stands on",
        path="harness_actors/batch/engine.py",
        before="""\
        # Before it goes on: what its check stands on is as an earlier command left it.
        await self._scoring.begin(task, self._agents.source_for(task))
""",
        after="",
        promise="a check stands on nothing that its run has changed",
        tests=(
            "tests/batch/test_waiting.py::test_a_check_stands_on_what_there_was_before_an_answered_run_went_on",
        ),
    ),
    Bug(
        name="a program is asked the next question behind a Ctrl-C",
        path="harness_actors/batch/waiting.py",
        before="        if self.answerer is None or self._is_cut:\n",
        after="        if self.answerer is None:\n",
        promise="after Ctrl-C no program is waited for",
        tests=(
            "tests/batch/test_waiting.py::test_ctrl_c_asks_a_program_nothing_more_of_whatever_run",
        ),
    ),
    Bug(
        name="a run is on its way before it is on disk what it is made with",
        path="harness_actors/batch/starting.py",
        before="""\
        self.directory.setups.add(ready.setup)
        self._take_off(ready.flight)
        await self._submissions.submit(ready.spec, ready.program)
""",
        after="""\
        self._take_off(ready.flight)
        await self._submissions.submit(ready.spec, ready.program)
        self.directory.setups.add(ready.setup)
""",
        promise="of each run it is known what it was made with, whatever dies",
        tests=(
            "tests/batch/test_changes.py::test_what_a_run_is_made_with_is_on_disk_before_it_is_run",
        ),
    ),
    Bug(
        name="a run goes on behind the first of its answers",
        path="harness_actors/batch/history.py",
        before="            self._attempts[key] = replace(known, waits=waits)\n",
        after="            self._attempts[key] = replace(known, waits=None)\n",
        promise="a run that was answered in part waits for the rest",
        tests=(
            "tests/batch/test_waiting.py::test_what_is_answered_in_part_while_a_command_starts_waits_for_the_rest",
        ),
    ),
    Bug(
        name="programs are as the run before has left them",
        path="harness_actors/batch/check_programs.py",
        before="""\
            if not self.python:
                self._begun = await self._read()
""",
        after="""\
            self._begun = await self._read()
            if not self.python:
""",
        promise="checks stand on what was installed when the command began",
        tests=(
            "tests/batch/test_checks.py::test_what_an_earlier_run_has_changed_counts_for_the_checks_of_later_ones",
        ),
    ),
    Bug(
        name="checks find programs that were on no path before",
        path="harness_actors/batch/check_programs.py",
        before=(
            "        if names_it and shutil.which(path.name, path=os.pathsep.join(folders)):\n"
        ),
        after="        if names_it:\n",
        promise="a check finds the programs that a command finds",
        tests=(
            "tests/batch/test_checks.py::test_programs_of_the_interpreters_packages_are_there_where_they_were_found_before",
        ),
    ),
    Bug(
        name="each retry counts as the first",
        path="harness_actors/batch/engine.py",
        before=(
            "        attempt = Attempt(number=failed.number + 1, "
            "retries=failed.retries + 1, run_id=new_run_id())\n"
        ),
        after=(
            "        attempt = Attempt(number=failed.number + 1, retries=1, run_id=new_run_id())\n"
        ),
        promise="a task has as many retries as --retry-on-error says",
        tests=("tests/batch/test_batch.py::test_a_task_has_no_more_retries_than_it_was_given",),
    ),
    Bug(
        name="a run that is served while others are stopped goes on",
        path="harness_actors/batch/starting.py",
        before="""\
        self._stop_mode = mode
        await self.runtime.stop(self.flights.run_ids, mode)
""",
        after="""\
        await self.runtime.stop(self.flights.run_ids, mode)
        self._stop_mode = mode
""",
        promise="Ctrl-C parks whatever is in flight",
        tests=(
            "tests/batch/test_batch.py::test_a_run_that_is_served_while_the_others_are_stopped_is_stopped_too",
        ),
    ),
    Bug(
        name="an outcome is told before its line is on disk",
        path="harness_actors/batch/engine.py",
        before="""\
        await self._directory.results.append(outcome)
        self._tally.add(outcome)
        self.brakes.count_failed(self._tally.failed, self._tally.ended)
        await self._deliver(outcome)
""",
        after="""\
        self._tally.add(outcome)
        self.brakes.count_failed(self._tally.failed, self._tally.ended)
        await self._deliver(outcome)
        await self._directory.results.append(outcome)
""",
        promise="a line is on disk before anybody is told",
        tests=("tests/batch/test_batch.py::test_an_outcome_is_told_when_its_line_is_in_the_file",),
    ),
    Bug(
        name="a run that was cancelled is scored",
        path="harness_actors/batch/scoring.py",
        before='UNSCORED = ("failed", "cancelled")\n',
        after='UNSCORED = ("failed",)\n',
        promise="what a run left in the middle of something is not scored",
        tests=(
            "tests/batch/test_batch.py::test_what_was_left_in_the_middle_of_something_is_not_scored",
        ),
    ),
    Bug(
        name="the folder of a batch goes before that of a task's agent",
        path="harness_actors/batch/agents.py",
        before="            workspace = loaded.workspace or self._workspace\n",
        after="            workspace = self._workspace or loaded.workspace\n",
        promise="a task begins with the folder that is named nearest to it",
        tests=(
            "tests/batch/test_agents.py::test_a_task_begins_with_the_folder_that_is_named_nearest_to_it",
        ),
    ),
    Bug(
        name="a waiting run that is cancelled behind the brakes has no line",
        path="harness_actors/batch/engine.py",
        before="""\
        if end is not None:
            await self._finish(flight, end)
        elif self.brakes.are_on():
            # The next command goes on with it.
            self._free()
""",
        after="""\
        if self.brakes.are_on():
            # The next command goes on with it.
            self._free()
        elif end is not None:
            await self._finish(flight, end)
""",
        promise="a run that is cancelled while it waits has its line",
        tests=(
            "tests/batch/test_waiting.py::test_a_waiting_run_that_is_cancelled_behind_a_ctrl_c_has_its_line",
        ),
    ),
    Bug(
        name="a run that waited before is told of when a place is free",
        path="harness_actors/batch/engine.py",
        before="""\
        if not self._waiting.are_answered_here:
            await self._waiting.tell(flight)
            return
""",
        after="",
        promise="a run that waits for its user takes no place",
        tests=(
            "tests/batch/test_waiting.py::test_a_run_that_waited_before_is_told_of_while_all_places_are_taken",
        ),
    ),
    Bug(
        name="where runs only wait a key is asked for",
        path="harness_actors/batch/survey.py",
        before="        case Done() | Wait():\n            return False\n",
        after="        case Done():\n            return False\n",
        promise="of runs that wait no model is asked anything",
        tests=(
            "tests/batch/test_survey.py::test_a_run_that_waits_needs_its_model_only_when_it_is_answered",
        ),
    ),
    Bug(
        name="a runtime is opened before results of another set-up are looked at",
        path="harness_actors/batch/batch.py",
        before="""\
        if self._settings.on_change == "refuse" and not self._agents.have(known):
            return False
""",
        after="",
        promise="what was made with another set-up is refused before anything is started",
        tests=(
            "tests/batch/test_changes.py::test_results_alone_are_refused_before_a_runtime_is_opened",
        ),
    ),
    Bug(
        name="a question that a program leaves open hides those after it",
        path="harness_actors/batch/waiting.py",
        before="            if answer is None:\n                continue\n",
        after="            if answer is None:\n                break\n",
        promise="a program is asked each question of a run",
        tests=(
            "tests/batch/test_waiting.py::test_what_a_program_does_not_answer_waits_and_all_else_is_answered",
        ),
    ),
    Bug(
        name="packages that are changed during a check go unnoticed",
        path="harness_actors/batch/checks.py",
        before="                if found == changed:\n",
        after="                if found.programs == changed.programs:\n",
        promise="a check counts only if nothing that it stood on was changed",
        tests=(
            "tests/batch/test_checks.py::test_packages_alone_that_are_changed_have_the_check_made_again",
        ),
    ),
    Bug(
        name="of several sections that steer tests the first alone is compared",
        path="harness_actors/batch/check_files.py",
        before="""\
    return "".join(one for one in sections if "pytest" in one.partition("]")[0])
""",
        after="""\
    return next((one for one in sections if "pytest" in one.partition("]")[0]), "")
""",
        promise="how a check tests is the task's to say",
        tests=(
            "tests/batch/test_check_copy.py::test_a_check_finds_what_the_run_made_and_what_the_task_gives",
        ),
    ),
    Bug(
        name="who leaves at once cuts what has been scored and is being written down",
        path="harness_actors/batch/scoring.py",
        before="            self._at_work.discard(scoring)\n",
        after="",
        promise="what is in the results was told",
        tests=(
            "tests/batch/test_scoring.py::test_who_leaves_at_once_cuts_what_is_checked_and_not_what_is_written_down",
        ),
    ),
    Bug(
        name="a run is taken up when the first of its approvals has expired",
        path="harness_actors/batch/waiting.py",
        before="        return max(known) if known and len(known) == len(self.open) else None\n",
        after="        return min(known) if known and len(known) == len(self.open) else None\n",
        promise="a run is taken up when all that it asks has been decided",
        tests=(
            "tests/batch/test_expiries.py::test_a_run_is_taken_up_when_the_last_of_its_approvals_has_expired",
        ),
    ),
    Bug(
        name="a run with a question that does not expire is taken up without an answer",
        path="harness_actors/batch/waiting.py",
        before="        return max(known) if known and len(known) == len(self.open) else None\n",
        after="        return max(known, default=None)\n",
        promise="a question waits for its answer for as long as it takes",
        tests=(
            "tests/batch/test_expiries.py::test_a_question_that_does_not_expire_is_waited_for_and_then_nothing_else",
        ),
    ),
    Bug(
        name="a run that is answered in part is not taken up when the rest has expired",
        path="harness_actors/batch/waiting.py",
        before="                    self._expiries.expect(event.run_id, waiter.due)\n",
        after="",
        promise="a batch that still works takes up what has expired",
        tests=(
            "tests/batch/test_expiries.py::test_the_last_approval_is_given_and_the_others_expire",
        ),
    ),
    Bug(
        name="a command whose clock is ahead takes up what has not expired, over and over",
        path="harness_actors/batch/waiting.py",
        before="    return None if expires_at is None else expires_at + ahead_s\n",
        after="    return None if expires_at is None else expires_at\n",
        promise="the clock of the cell says what has expired",
        tests=(
            "tests/batch/test_expiries.py::test_a_command_whose_clock_is_ahead_does_not_come_too_early",
        ),
    ),
    Bug(
        name="what expires while a machine sleeps is taken up as if it had been awake",
        path="harness_actors/batch/expiries.py",
        before=(
            "        nap = asyncio.ensure_future(self._clock.sleep(min(seconds, LONGEST_NAP_S)))\n"
        ),
        after="        nap = asyncio.ensure_future(self._clock.sleep(seconds))\n",
        promise="a batch that still works takes up what has expired",
        tests=(
            "tests/batch/test_expiries.py::test_a_machine_that_was_asleep_looks_at_the_clock_when_it_is_up_again",
        ),
    ),
    Bug(
        name="only the last task says whether an agent is needed",
        path="harness_actors/batch/task_file.py",
        before="            self.needs_agent |= parsed.agent is None\n",
        after="            self.needs_agent = parsed.agent is None\n",
        promise="a task without an agent is refused before anything runs, wherever it stands",
        tests=(
            "tests/batch/test_task_file.py::test_a_file_says_whether_a_task_of_it_needs_the_agent_of_the_command",
        ),
    ),
    Bug(
        name="a task's contract is looked at when others have been paid for",
        path="harness_actors/cli/batch.py",
        before="        if source.has_contracts:\n",
        after="        if not source.has_contracts:\n",
        promise="bad input is told before anything runs",
        tests=(
            "tests/cli/test_batch_command.py::test_bad_input_is_told_in_a_line_and_nothing_is_run",
        ),
    ),
    Bug(
        name="the questions of a task's contract wait where nobody can answer",
        path="harness_actors/batch/agents.py",
        before="            self.program.check_unattended(config)\n",
        after="            self.program.check_unattended(self.config)\n",
        promise="no run waits for an answer that nobody could give",
        tests=(
            "tests/batch/test_agents.py::test_a_contract_that_asks_what_nobody_could_answer_is_refused_for_its_task",
        ),
    ),
)
