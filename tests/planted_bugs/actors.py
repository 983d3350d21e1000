"""Bugs of the actors: how they are started, watched, taught and listened to."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="an actor that starts as its cell ends works where nobody can find it",
        path="harness_actors/actors/coordinator/roster.py",
        before="                if not await self._started(mark):\n",
        after="                if await self._started(mark) is None:\n",
        promise="no run goes on before its last host's process is gone",
        tests=(
            "tests/actors/test_roster.py::test_a_host_that_nobody_could_find_any_more_never_works",
        ),
    ),
    Bug(
        name="failed starts of a host add up over the life of its cell",
        path="harness_actors/actors/coordinator/roster.py",
        before="            failures, has_served = 0, True\n",
        after="            has_served = True\n",
        promise="a process that is lost is replaced, as often as it is",
        tests=(
            "tests/actors/test_roster.py::test_failed_starts_do_not_add_up_over_the_deaths_of_hosts",
        ),
    ),
    Bug(
        name="the supervisor of a host is not put on record",
        path="harness_actors/actors/coordinator/roster.py",
        before="""\
            for mark in marks:
                if not await self._started(mark):
""",
        after="""\
            for mark in marks[:1]:
                if not await self._started(mark):
""",
        promise="both processes are on record, and whoever comes next ends them",
        tests=("tests/actors/test_roster.py::test_each_process_of_a_host_is_put_on_record",),
    ),
    Bug(
        name="a host that has a program is not taught its new key",
        path="harness_actors/actors/coordinator/seat.py",
        before="        return self.codes.get(code) == keys\n",
        after="        return code in self.codes\n",
        promise="the keys that the newest driver hands over are those that are used",
        tests=("tests/actors/test_roster.py::test_code_is_known_with_the_keys_that_came_with_it",),
    ),
    Bug(
        name="who reads the journal a page at a time misses all other pages",
        path="harness_actors/actors/coordinator/journal_reads.py",
        before="            cursor=stored[-1].position if stored else newest,\n",
        after="            cursor=newest,\n",
        promise="a cursor survives a new incarnation, and nothing after it is left out",
        tests=(
            "tests/actors/test_journal_reads.py::test_all_that_a_new_incarnation_has_on_disk_is_told_page_by_page",
        ),
    ),
    Bug(
        name="an actor that has answered once is not asked again",
        path="harness_actors/actors/liveness.py",
        before="""\
                    return False
                asking = None
            signs.tick()
""",
        after="""\
                    return False
            signs.tick()
""",
        promise="an actor that answers is left alone, however little it has to do",
        tests=(
            "tests/actors/test_roster.py::test_a_host_that_answers_is_left_alone_however_little_it_says",
        ),
    ),
    Bug(
        name="runs that ended in this term are earlier costs, too",
        path="harness_actors/actors/coordinator/earlier_costs.py",
        before="                self._ended_usd = total - ended_since\n",
        after="                self._ended_usd = total\n",
        promise="a budget is spent by what runs cost, and by nothing else",
        tests=(
            "tests/actors/test_unfinished_costs.py::test_what_ended_before_there_was_a_budget_counts_once",
        ),
    ),
    Bug(
        name="the end of a child waits for nothing",
        path="harness_actors/actors/coordinator/news.py",
        before="    if change.end is not None and CHILD_MARK not in change.run_id:\n",
        after="    if change.end is not None:\n",
        promise="who reads along is called once for what happens at the same time",
        tests=("tests/actors/test_news.py::test_what_comes_soon_after_that_is_told_together",),
    ),
    Bug(
        name="the newest change is told to its follower again",
        path="harness_actors/actors/coordinator/news.py",
        before="            if notice.position <= cursor:\n",
        after="            if notice.position < cursor:\n",
        promise="nothing is told twice after a cursor",
        tests=("tests/actors/test_news.py::test_endings_in_a_row_are_told_together",),
    ),
    Bug(
        name="what an idle run has left goes on when the run is cancelled",
        path="harness_actors/actors/coordinator/admission.py",
        before="        await self.end_processes(run_ids)\n",
        after="",
        promise="a run is cancelled with the same care, whether somebody serves it or not",
        tests=(
            "tests/actors/test_held_runs.py::test_cancelling_a_run_that_nobody_serves_ends_what_its_tools_left",
        ),
    ),
    Bug(
        name="a run of a list is begun though the journal has it",
        path="harness_actors/actors/coordinator/admission.py",
        before="            if spec.run_id in known:\n                continue\n",
        after="",
        promise="a run is begun once, however often it is submitted",
        tests=(
            "tests/actors/test_admission.py::test_runs_that_come_together_are_looked_up_together_and_known_ones_left_alone",
        ),
    ),
    Bug(
        name="a follower asks where it is after the beginning",
        path="harness_actors/actors/driver/following.py",
        before="""\
    if cursor is None:
        cursor = await runtime.position()
    await begin()
""",
        after="""\
    await begin()
    if cursor is None:
        cursor = await runtime.position()
""",
        promise="a run that ends at once has its events and its result told",
        tests=(
            "tests/actors/test_following.py::test_a_run_that_ends_as_it_begins_has_all_of_it_told",
        ),
    ),
    Bug(
        name="an alarm that rang is not set again for the same time",
        path="harness_actors/actors/coordinator/alarm.py",
        before="        self._at = self._timer = None\n        self._ring()\n",
        after="        self._timer = None\n        self._ring()\n",
        promise="a run whose time is over ends, whoever's clock is early",
        tests=(
            "tests/actors/test_time_and_money.py::test_an_alarm_that_rang_can_be_set_for_the_same_time_again",
        ),
    ),
    Bug(
        name="the store of a cell that did not start stays locked",
        path="harness_actors/actors/driver/open_cells.py",
        before="""\
        _cells.pop(store, None)
        release(store)
        if isinstance(error, Exception):
""",
        after="""\
        _cells.pop(store, None)
        if isinstance(error, Exception):
""",
        promise="a store on which nobody works is free for the next command",
        tests=(
            "tests/actors/test_open_cells.py::test_a_cell_that_does_not_start_leaves_its_store_to_others",
        ),
    ),
    Bug(
        name="code that was dropped from the journal is taken for kept",
        path="harness_actors/actors/coordinator/cell_programs.py",
        before="        self._blobs.clear()\n",
        after="        self._secrets.clear()\n",
        promise="code is in the journal, so that a resume finds it",
        tests=(
            "tests/actors/test_next_drivers.py::test_code_that_the_journal_has_dropped_since_is_stored_again",
        ),
    ),
    Bug(
        name="an answer of the head counts for nothing",
        path="harness_actors/actors/joining/current.py",
        before="""\
            case "there":
                answered_at = time.monotonic()
""",
        after="""\
            case "there":
                pass
""",
        promise="a Ray that is there is not given up",
        tests=(
            "tests/joining/test_watching.py::test_a_head_that_is_away_for_less_than_its_time_is_kept_however_often",
        ),
    ),
    Bug(
        name="the head of another's Ray is not waited for",
        path="harness_actors/actors/joining/current.py",
        before='            case "refuses" if watched.own is not None:\n',
        after='            case "refuses":\n',
        promise="a Ray that was there before is waited for",
        tests=(
            "tests/joining/test_watching.py::test_a_head_that_is_away_for_less_than_its_time_is_kept_however_often",
        ),
    ),
    Bug(
        name="what keeps our own Ray is never let go",
        path="harness_actors/actors/joining/current.py",
        before="""\
    if watched.own is not None and not watched.is_current:
        watched.own.release.set()
""",
        after="",
        promise="a Ray of our own ends with the connection to it",
        tests=(
            "tests/joining/test_watching.py::test_what_keeps_our_own_ray_is_let_go_when_this_process_has_disconnected",
        ),
    ),
    Bug(
        name="a cell that was replaced once is never replaced again",
        path="harness_actors/actors/on_ray/serving.py",
        before="""\
            self._placing = None
            placing.set_result(None)
""",
        after="            placing.set_result(None)\n",
        promise="a cell that is gone is replaced, as often as it is",
        tests=("tests/actors/test_served_cells.py::test_a_cell_is_replaced_as_often_as_it_goes",),
    ),
    Bug(
        name="each call that fails replaces the cell",
        path="harness_actors/actors/on_ray/serving.py",
        before="""\
        if self.calls is not calls:
            return
        if self._placing is not None:
""",
        after="        if self._placing is not None:\n",
        promise="calls that fail together have one cell started",
        tests=(
            "tests/actors/test_served_cells.py::test_calls_that_fail_together_have_one_cell_started_for_all",
        ),
    ),
    Bug(
        name="the next cell is not told of the budget",
        path="harness_actors/actors/on_ray/serving.py",
        before="            fresh.budget_usd = earlier.budget_usd\n",
        after="",
        promise="what runs may cost together holds whatever is lost",
        tests=(
            "tests/actors/test_served_cells.py::test_the_next_cell_is_given_the_keys_and_the_budget",
        ),
    ),
    Bug(
        name="a cut hop adds to the log of the next one",
        path="harness_actors/actors/host/executor_host.py",
        before="""\
            log = Conversation(known.log) if before else known.log
""",
        after="            log = known.log\n",
        promise="a hop that is over changes nothing",
        tests=(
            "tests/actors/test_cut_hops.py::test_what_a_cut_hop_adds_later_is_in_no_other_hops_log",
        ),
    ),
    Bug(
        name="a hop that ends its tools is cut once more",
        path="harness_actors/actors/host/executor_host.py",
        before="            if not task.cancelling():\n                task.cancel()\n",
        after="            task.cancel()\n",
        promise="nothing runs beside a call that may write",
        tests=(
            "tests/actors/test_cut_hops.py::test_a_run_that_comes_again_waits_for_what_a_cut_hop_ends",
        ),
    ),
    Bug(
        name="a commit is that of one change alone",
        path="harness_actors/actors/host/served_run.py",
        before="        for change in [number for number in self.commits if number <= newest]:\n",
        after="        for change in [number for number in self.commits if number == newest]:\n",
        promise="a commit is told with the newest change that it holds",
        tests=(
            "tests/actors/test_executor_host.py::test_a_commit_is_that_of_all_changes_before_it",
        ),
    ),
    Bug(
        name="a receipt overtakes what was posted before",
        path="harness_actors/actors/coordinator/host.py",
        before="        if isinstance(body, Committed) and self._seats.is_idle(post.slot):\n",
        after="        if isinstance(body, Committed):\n",
        promise="where a budget is spent, no run makes a further model call",
        seeds=1000,
    ),
    Bug(
        name="a follower just after what is kept misses a change",
        path="harness_actors/actors/coordinator/news.py",
        before="            self._since = oldest.position\n",
        after="            self._since = oldest.position - 1\n",
        promise="nothing after a cursor is left out",
        tests=(
            "tests/actors/test_news.py::test_memory_is_bounded_and_what_fell_out_is_known_to_be_missing",
        ),
    ),
    Bug(
        name="what changes nothing overtakes what is being committed",
        path="harness_actors/actors/coordinator/journal_writer.py",
        before="        if not entries and self._writing is None:\n",
        after="        if not entries:\n",
        promise="what follows from a commit leaves after it",
        tests=("tests/actors/test_journal_writer.py::test_a_step_without_entries_keeps_its_place",),
    ),
    Bug(
        name="pauses between two attempts double for ever",
        path="harness_actors/actors/mailbox.py",
        before="                pause = min(2 * pause, LONGEST_RETRY_S)\n",
        after="                pause = 2 * pause\n",
        promise="a peer that is back is called within a second",
        tests=(
            "tests/actors/test_mailbox.py::test_a_peer_that_stays_away_is_called_again_every_second",
        ),
    ),
    Bug(
        name="a host that is gone is called for ever",
        path="harness_actors/actors/coordinator/roster.py",
        before="""\
        self._seats[slot].outbox.close()
        self._seats[slot] = Seat(slot, next(self._incarnations))
""",
        after="        self._seats[slot] = Seat(slot, next(self._incarnations))\n",
        promise="nothing is kept of a host that is gone",
        tests=("tests/actors/test_roster.py::test_nothing_more_is_said_to_a_host_that_is_gone",),
    ),
    Bug(
        name="text that was dropped is told of with each piece after it",
        path="harness_actors/actors/text/speaking.py",
        before="""\
        self._texts.clear()
        self._dropped = 0
""",
        after="        self._texts.clear()\n",
        promise="gaps are reported, each once",
        tests=("tests/actors/test_streams.py::test_what_does_not_fit_is_dropped_and_counted",),
    ),
    Bug(
        name="a message that a cut hop could not send ends the hop after it",
        path="harness_actors/actors/host/executor_host.py",
        before="""\
        if run is None or not isinstance(parcel, Envelope) or run.hop_number != parcel.hop_number:
""",
        after="        if run is None or not isinstance(parcel, Envelope):\n",
        promise="a hop that is over changes nothing",
        tests=(
            "tests/actors/test_executor_host.py::test_what_a_cut_hop_could_not_say_is_no_fault_of_the_next",
        ),
    ),
    Bug(
        name="a run that was cancelled as it waited for its keys holds its conversation",
        path="harness_actors/actors/coordinator/admission.py",
        before="                for one in (stored, *tree):\n",
        after="                for one in tree:\n",
        promise="a conversation is free when its run is over",
        tests=(
            "tests/actors/test_admission.py::test_a_run_that_is_stopped_as_it_waits_for_its_keys_leaves_its_conversation",
        ),
    ),
    Bug(
        name="a run that is cancelled answers what another answers while it is looked who waits",
        path="harness_actors/actors/coordinator/admission.py",
        before="""\
            if self.coordinator.served_in(stored.spec.conversation_id) == served:
                return stored, is_behind
""",
        after="            return stored, is_behind\n",
        promise="every call of the log has exactly one result",
        tests=(
            "tests/actors/test_admission.py::test_a_run_that_is_cancelled_leaves_alone_what_another_answers_of_its_own_just_then",
        ),
    ),
    Bug(
        name="text that nobody read counts when it is gone",
        path="harness_actors/actors/text/streams.py",
        before="                self._chars -= run.chars\n                self._unwanted",
        after="                self._unwanted",
        promise="what is held is bounded, and no less is held than that",
        tests=(
            "tests/actors/test_streams.py::test_text_that_was_dropped_takes_no_room_from_what_comes",
        ),
    ),
    Bug(
        name="text is waited for once, however often it is late",
        path="harness_actors/actors/text/hearing.py",
        before="            self._late_at = None\n",
        after="",
        promise="the text of an answer comes before the event that tells of it",
        tests=(
            "tests/actors/test_listening.py::test_each_answer_whose_text_is_late_is_waited_for",
        ),
    ),
    Bug(
        name="work that begins after a Ctrl-C is not put aside",
        path="harness_actors/actors/driver/interrupts.py",
        before="""\
        if self.interrupted:
            self._ask(work)
""",
        after="",
        promise="Ctrl-C puts aside whatever is in progress",
        tests=(
            "tests/actors/test_interrupts.py::test_work_that_begins_after_ctrl_c_is_put_aside_like_the_rest",
        ),
    ),
    Bug(
        name="what was dropped before a loss is not told",
        path="harness_actors/actors/text/speaking.py",
        before="                speaker.lost(spoken.dropped + len(spoken.text))\n",
        after="                speaker.lost(len(spoken.text))\n",
        promise="a gap says how much is missing",
        tests=(
            "tests/actors/test_streams.py::test_what_a_dead_stream_actor_did_not_get_is_counted_for_the_next_one",
        ),
    ),
    Bug(
        name="a Ray that was only found counts as named when it is back",
        path="harness_actors/actors/joining/losses.py",
        before="        again = partial(self._connect, lost.address, is_named=lost.is_named)\n",
        after="        again = partial(self._connect, lost.address)\n",
        promise="another user's Ray is joined only where the user says so",
        tests=(
            "tests/joining/test_losses.py::test_only_a_ray_that_the_user_has_named_may_come_back_as_anybodys",
        ),
    ),
    Bug(
        name="an actor that cannot be reached counts as heard of",
        path="harness_actors/actors/liveness.py",
        before="            signs.heard()\n        return True\n",
        after="            pass\n        signs.heard()\n        return True\n",
        promise="one that stays out of reach is taken for stopped",
        tests=(
            "tests/actors/test_liveness.py::test_one_that_says_nothing_has_all_its_time_and_one_that_cannot_be_reached_half_of_it",
        ),
    ),
    Bug(
        name="a second Ctrl-C is told twice",
        path="harness_actors/actors/driver/interrupts.py",
        before="            if not self._is_passed_on:\n",
        after="            if True:\n",
        promise="a second Ctrl-C in a script cuts its rounds",
        tests=(
            "tests/joining/test_joining.py::test_a_second_ctrl_c_in_a_script_cuts_rounds_in_a_cell_that_stays",
        ),
    ),
    Bug(
        name="a driver takes any journal for that of its cell",
        path="harness_actors/actors/on_ray/serving.py",
        before="        if self._file is not None and found != self._file:\n",
        after="        if False:\n",
        promise="where a journal was removed or replaced no other is made in its place",
        tests=(
            "tests/actors/test_serving.py::test_a_driver_makes_a_journal_for_its_first_cell_alone",
        ),
    ),
    Bug(
        name="text that comes behind its answer is told all the same",
        path="harness_actors/actors/text/hearing.py",
        before="        self._on_disk = self._next_place or self._on_disk\n",
        after="",
        promise="the text of an answer comes before the event that tells of it",
        tests=(
            "tests/actors/test_listening.py::test_text_that_comes_behind_its_answer_is_not_told_any_more",
        ),
    ),
    Bug(
        name="the text of a cell that is gone is waited for",
        path="harness_actors/actors/text/hearing.py",
        before="        if self._reading is None or left_s <= 0:\n",
        after="        if left_s <= 0:\n",
        promise="where no text can come, answers are told without it",
        tests=(
            "tests/actors/test_listening.py::test_where_the_cell_is_gone_answers_are_told_without_their_text_and_at_once",
        ),
    ),
    Bug(
        name="the second who taps hooks the threads once more",
        path="harness_actors/actors/tapping.py",
        before="        if _users == 0:\n            _put_in()\n",
        after="        if True:\n            _put_in()\n",
        promise="when the last has ended the process is as it was",
        tests=(
            "tests/actors/test_output.py::test_threads_are_as_they_were_when_the_last_of_several_has_ended",
        ),
    ),
    Bug(
        name="a tap is put over a tap",
        path="harness_actors/actors/tapping.py",
        before="        if stream is not None and not isinstance(stream, Tap):\n",
        after="        if stream is not None:\n",
        promise="a line that is printed is kept once",
        tests=(
            "tests/actors/test_output.py::test_what_stands_over_a_tap_stays_and_lines_are_kept_once",
        ),
    ),
    Bug(
        name="who follows a run is not told of its answers",
        path="harness_actors/actors/driver/followed_run.py",
        before="""\
                    cursor = await runtime.position()
                    answered = await answering.answer(runtime, waiting)
""",
        after="""\
                    answered = await answering.answer(runtime, waiting)
                    cursor = await runtime.position()
""",
        promise="whoever streams a run is told all of its events",
        tests=(
            "tests/test_questions.py::test_whoever_streams_a_run_is_told_of_the_answers_that_it_gives",
        ),
    ),
    Bug(
        name="a run that goes on with its answers has no key",
        path="harness_actors/actors/driver/followed_run.py",
        before="""\
                    begin = partial(runtime.resume, [self.run_id], secrets=secrets)
""",
        after="""\
                    begin = partial(runtime.resume, [self.run_id], secrets={})
""",
        promise="a run that was answered at once goes on as it began",
        tests=(
            "tests/actors/test_followed_run.py::test_a_run_that_asks_again_is_answered_again_and_told_once",
        ),
    ),
    Bug(
        name="a run that is put aside after an answer is taken for one that waits",
        path="harness_actors/actors/driver/followed_run.py",
        before="""\
                while True:
                    asked: InputAwaited | None = None
""",
        after="""\
                asked: InputAwaited | None = None
                while True:
""",
        promise="who parks a run is told that it was parked, whatever it asked before",
        tests=(
            "tests/actors/test_followed_run.py::test_a_run_that_is_put_aside_after_it_was_answered_waits_for_nothing",
        ),
    ),
    Bug(
        name="a run that waits keeps its follower",
        path="harness_actors/actors/driver/following.py",
        before="""\
                if isinstance(event.event, RunParked | InputAwaited):
""",
        after="                if isinstance(event.event, RunParked):\n",
        promise="whoever follows several runs is done when each ended, waits or was put aside",
        tests=(
            "tests/actors/test_following.py::test_of_several_runs_each_is_followed_until_it_ends_waits_or_is_put_aside",
        ),
    ),
    Bug(
        name="what a run has cost that ends while costs are added up counts twice",
        path="harness_actors/actors/coordinator/earlier_costs.py",
        before="            if ended_since == self._coordinator.budget.ended_usd:\n",
        after="            if self._ended_usd is None:\n",
        promise="a budget counts each dollar once",
        tests=(
            "tests/actors/test_earlier_costs.py::test_what_a_run_has_cost_that_ends_while_costs_are_added_up_counts_once",
        ),
    ),
    Bug(
        name="of two answers that come at once the second counts",
        path="harness_actors/actors/coordinator/admission.py",
        before="""\
        async with self._adding:
            stored = await self._stored(run_id)
            if stored.spec""",
        after="""\
        async with asyncio.Lock():
            stored = await self._stored(run_id)
            if stored.spec""",
        promise="the first answer to a question counts",
        tests=(
            "tests/actors/test_admission.py::test_of_two_answers_that_come_at_once_the_first_counts",
        ),
    ),
    Bug(
        name="a run that was put aside goes on when its keys come",
        path="harness_actors/actors/coordinator/admission.py",
        before="""\
            if stored.end is not None or not (asked or stored.command == self.command):
""",
        after="            if stored.end is not None:\n",
        promise="a run that is put aside waits until somebody asks for it",
        tests=(
            "tests/actors/test_admission.py"
            "::test_a_run_that_is_stopped_as_somebody_comes_with_keys_is_waited_for_no_more",
        ),
    ),
    Bug(
        name="a run that is over waits for its keys, and keeps its conversation",
        path="harness_actors/actors/coordinator/admission.py",
        before="""\
            if stored.end is not None or not (asked or stored.command == self.command):
""",
        after="            if not (asked or stored.command == self.command):\n",
        promise="nothing is left of runs that are over",
        tests=(
            "tests/actors/test_admission.py"
            "::test_a_run_that_is_stopped_as_somebody_comes_with_keys_is_waited_for_no_more",
        ),
    ),
    Bug(
        name="a run goes on where another one has continued its conversation",
        path="harness_actors/actors/coordinator/idle_runs.py",
        before="""\
        if self.refusal is not None:
            raise self.refusal
""",
        after="",
        promise="a run that was cut goes on where it stood, or not at all",
        tests=(
            "tests/actors/test_admission.py::test_a_run_that_was_cut_goes_on_where_it_stood_or_not_at_all",
        ),
    ),
    Bug(
        name="a host of a user's executor that is ended for room stops its cell",
        path="harness_actors/actors/coordinator/roster.py",
        before="        self._keeping.pop(slot).cancel()\n",
        after="        del self._keeping[slot]\n",
        promise="hosts that no run needs are ended, and nobody misses them",
        tests=(
            "tests/actors/test_roster.py::test_hosts_of_users_executors_are_ended_when_many_are_idle",
        ),
    ),
    Bug(
        name="who waits for an actor whose start has a fault waits for ever",
        path="harness_actors/actors/coordinator/roster.py",
        before="""\
        seat.fail(error)
        seat.outbox.close()
        self._missing(slot, str(error))
""",
        after="""\
        seat.outbox.close()
        self._missing(slot, str(error))
""",
        promise="whoever needs an actor that does not start is told why",
        tests=(
            "tests/actors/test_kinds.py::test_a_kind_whose_start_has_a_fault_keeps_nobody_waiting",
        ),
    ),
    Bug(
        name="runs that waited for the embedded model are forgotten",
        path="harness_actors/actors/coordinator/hosted_model.py",
        before="""\
        await self.serve_or_wait(specs, then)
        await then()
""",
        after="        await self.serve_or_wait(specs, then)\n",
        promise="runs go on when the model serves that they wait for",
        tests=(
            "tests/actors/test_hosted_model.py::test_runs_of_an_earlier_term_wait_until_it_serves",
        ),
    ),
    Bug(
        name="a host that has sent all it had says nothing more",
        path="harness_actors/actors/text/speaking.py",
        before="""\
        finally:
            self._sending = None
""",
        after="""\
        finally:
            pass
""",
        promise="the text of each answer is told while it is said",
        tests=(
            "tests/actors/test_streams.py::test_who_has_sent_all_sends_again_when_there_is_more",
        ),
    ),
    Bug(
        name="another Ray is started beside what is left of the one before",
        path="harness_actors/actors/joining/losses.py",
        before="""\
        # What is left of the old one is ended first.
        await asyncio.wait([asyncio.wrap_future(lost.left)])
""",
        after="",
        promise="runs go on only when whoever served them is gone",
        tests=(
            "tests/joining/test_losses.py::test_what_is_left_of_a_ray_is_ended_before_there_is_another",
        ),
    ),
    Bug(
        name="a Ray of another user that nobody named is joined with the token of this one",
        path="harness_actors/actors/joining/address.py",
        before="        return not (self.is_ours or (self.is_named and is_allowed))\n",
        after="        return not (self.is_ours or is_allowed)\n",
        promise="only a Ray that its user has named may be somebody else's",
        tests=(
            "tests/joining/test_found.py::test_one_of_another_user_is_joined_where_it_is_named_and_trusted_or_has_a_token",
        ),
    ),
    Bug(
        name="a run that is served keeps those after it from being taken up",
        path="harness_actors/actors/coordinator/admission.py",
        before="""\
                    self.adopt(below, asked=True)
                continue
""",
        after="""\
                    self.adopt(below, asked=True)
                break
""",
        promise="each of the runs that are named goes on",
        tests=(
            "tests/actors/test_admission.py::test_of_several_runs_those_that_are_served_keep_no_other_from_being_taken_up",
        ),
    ),
    Bug(
        name="a program that comes a second time, and late, brings its old keys back",
        path="harness_actors/actors/host/host_programs.py",
        before="        if told.number <= self._newest:\n",
        after="        if told.number < 1:\n",
        promise="a run asks its model with the keys that were given last",
        tests=(
            "tests/actors/test_executor_host.py::test_a_batch_that_comes_again_late_does_not_take_keys_or_programs_back",
        ),
    ),
    Bug(
        name="behind text that was waited for in vain none is ever waited for again",
        path="harness_actors/actors/text/hearing.py",
        before="            self._wait_s = TEXT_WAIT_S\n            if spoken",
        after="            if spoken",
        promise="an answer has its text, as long as any comes",
        tests=(
            "tests/actors/test_listening.py::test_where_text_comes_again_after_a_gap_what_is_late_is_waited_for_again",
        ),
    ),
    Bug(
        name="a Ray of ours that speaks TLS is not found",
        path="harness_actors/actors/joining/address.py",
        before='        case "ray" | "locked" | "unknown":\n            return found\n',
        after='        case "ray" | "locked":\n            return found\n',
        promise="a command joins the Ray of its user that is there",
        tests=(
            "tests/joining/test_addresses.py::test_a_ray_of_ours_is_found_though_tls_keeps_anybody_from_asking_it",
        ),
    ),
    Bug(
        name="the cell of another version is not attached to",
        path="harness_actors/actors/on_ray/attach.py",
        before="    return find_cell(store) or next(others, None)\n",
        after="    return find_cell(store)\n",
        promise="who cancels, parks or answers runs reaches the cell that serves them",
        tests=(
            "tests/actors/test_attached_cells.py::test_a_cell_like_this_process_comes_before_one_of_another_version_and_that_before_none",
        ),
    ),
    Bug(
        name="the cell of a Ray that is dead keeps its journal from others",
        path="harness_actors/actors/retiring.py",
        before=" and await asyncio.to_thread(is_listened_at, address):\n",
        after=":\n",
        promise="a command waits for what ends by itself, and is not refused for it",
        tests=(
            "tests/actors/test_retiring.py::test_a_cell_is_asked_to_leave_whose_ray_is_there_and_that_may_not_stay",
        ),
    ),
    Bug(
        name="a run that is cut while its program is loaded takes that from all others",
        path="harness_actors/actors/host/host_programs.py",
        before="        workflow = await asyncio.shield(self._workflows[code])\n",
        after="        workflow = await self._workflows[code]\n",
        promise="what becomes of one run is nothing to the others",
        tests=(
            "tests/actors/test_host_programs.py::test_a_run_that_is_cut_while_its_program_is_loaded_leaves_it_to_the_others",
        ),
    ),
    Bug(
        name="a run that is over before its submission returns counts as begun for ever",
        path="harness_actors/actors/on_ray/runtime.py",
        before="        self._beginning -= over\n",
        after="",
        promise="a cell that stopped with nothing to do is replaced silently",
        tests=(
            "tests/actors/test_begun_runs.py::test_a_run_that_is_over_is_not_begun_whenever_that_is_told",
        ),
    ),
    Bug(
        name="that tools begin waits for the disk",
        path="harness_actors/actors/mailbox.py",
        before="        if self._closed or not self._tell((parcel,)):\n",
        after="        if not (self.is_idle and self._tell((parcel,))):\n",
        promise="that a run's tools begin is known before they can end their process",
        tests=(
            "tests/actors/test_mailbox.py::test_what_needs_no_answer_leaves_at_once_though_a_call_waits_for_its_answer",
        ),
    ),
    Bug(
        name="each thing to do with Ray begins a thread of its own",
        path="harness_actors/actors/joining/starter.py",
        before="                self._is_started = True\n",
        after="",
        promise="a process connects to Ray and disconnects one after the other",
        tests=(
            "tests/joining/test_starter.py::test_one_thing_is_done_at_a_time_in_the_order_in_which_they_came",
        ),
    ),
    Bug(
        name="a machine that is no node of a Ray may join it",
        path="harness_actors/actors/joining/connect.py",
        before="""\
            if here & {node.hex() for node in nodes}:
                return
""",
        after="            return\n",
        promise="a driver on a machine that is no node is told at once what to do",
        tests=(
            "tests/joining/test_nodes.py::test_a_machine_that_is_no_node_of_it_is_refused_with_what_to_do",
        ),
    ),
)
