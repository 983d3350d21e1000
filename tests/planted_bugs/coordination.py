"""Bugs of the coordinator's state machine."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="executors of a user are passed by where ours would have nothing to do",
        path="harness_actors/coordination/at_once.py",
        before=" or to not in OURS or to in run.spec.custom:\n",
        after=" or to not in OURS:\n",
        promise="an executor of the user's own is asked in each cycle",
        tests=(
            "tests/coordination/test_hops_at_once.py"
            "::test_executors_of_a_user_are_asked_whatever_they_are_to_do",
        ),
    ),
    Bug(
        name="what a run has cost counts before it is seen that it is done",
        path="harness_actors/coordination/coordinator.py",
        before="""\
            if self._dispatch.at_once.due:
                # Before what it has cost counts: one that is done is to end as done.
                self._dispatch.at_once.settle(effects)
""",
        after="",
        promise="a run that is done ends as done",
        tests=(
            "tests/coordination/test_hops_at_once.py"
            "::test_a_run_that_is_done_ends_as_done_though_it_has_spent_what_was_left",
        ),
    ),
    Bug(
        name="runs of a tree go on one by one as it is taken up",
        path="harness_actors/coordination/coordinator.py",
        before="""\
            self._taking_up.take_up(stored, effects, asked=asked)
        return effects
""",
        after="""\
            self._taking_up.take_up(stored, effects, asked=asked)
        return self._settled(effects)
""",
        promise="a run that waits goes on when all of its children have ended",
        tests=(
            "tests/coordination/test_hops_at_once.py"
            "::test_no_run_of_a_tree_goes_on_before_all_of_it_is_taken_up",
        ),
    ),
    Bug(
        name="a run that is taken up after a death is not repaired",
        path="harness_actors/executors/at_once.py",
        before="            return resumed or bool(values.get(OPEN_CALLS.name))\n",
        after="            return bool(values.get(OPEN_CALLS.name))\n",
        promise="what its tools have left is ended before a run goes on",
        tests=("tests/executors/test_at_once.py::test_whoever_has_something_to_do_is_asked",),
    ),
    Bug(
        name="a plan that is offered is passed by",
        path="harness_actors/coordination/at_once.py",
        before=" and (to != COMPACTION or run.offer is None)\n",
        after="\n",
        promise="what was prepared in the background is taken",
        tests=(
            "tests/coordination/test_background.py"
            "::test_an_offer_is_given_to_whoever_makes_room_where_others_need_not_be_asked",
        ),
    ),
    Bug(
        name="whoever parks as room was made has none",
        path="harness_actors/coordination/run_changes.py",
        before="        last = replace(delta, writes=writes, events=(*delta.events, event))\n",
        after="        last = StateDelta(writes, delta.messages, (*delta.events, event))\n",
        promise="what was compacted stays so, whatever becomes of the run",
        tests=(
            "tests/coordination/test_stops.py"
            "::test_room_that_was_made_is_kept_by_a_run_that_is_put_aside",
        ),
    ),
    Bug(
        name="a new incarnation forgets the budget",
        path="harness_actors/coordination/taking_up.py",
        before="        self._closing.note(run, effects, restored=ours)\n",
        after="        self._closing.note(run, effects)\n",
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
        path="harness_actors/coordination/stopping.py",
        before="""\
            self._cut(run, effects)
            self._changes.end(run, _uncounted(run, now), limit_reached(kind, run), effects)
""",
        after="""\
            self._changes.end(run, _uncounted(run, now), limit_reached(kind, run), effects)
""",
        promise="a limit ends a run from the middle of a call, and its processes with it",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_whose_time_is_over_ends_wherever_it_hangs",
        ),
    ),
    Bug(
        name="a pending record forgives losses",
        path="harness_actors/coordination/run_changes.py",
        before='            if "tool" in [message.role for message in delta.messages]:\n',
        after="            if delta.messages:\n",
        promise="a run that kills its process again and again is isolated, and ends",
        tests=("tests/coordination/test_losses.py::test_after_two_losses_a_run_is_served_alone",),
    ),
    Bug(
        name="a run that parked as it was resumed stays parked",
        path="harness_actors/coordination/stopping.py",
        before="            run.parking, run.unparked_in = False, run.hop_number\n",
        after="            run.parking = False\n",
        promise="a run that is resumed goes on, also where it was about to park",
        tests=(
            "tests/coordination/test_stop_requests.py::test_an_answer_that_it_parked_crosses_the_request_to_go_on",
        ),
    ),
    Bug(
        name="a run that was put aside still belongs to its command",
        path="harness_actors/coordination/run_changes.py",
        before="""\
        effects.entries.append(
            RunAdded(spec=run.spec, command="", at=self._clock.now(), again=True)
        )
        self._forget(run, effects)
""",
        after="        self._forget(run, effects)\n",
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
        path="harness_actors/coordination/taking_up.py",
        before="""\
        if ours and not asked and run.state.values.get(PARKING.name):
            self._changes.put_aside(run, StateDelta(), effects)
            return
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
        name="a run that parks for lack of money waits to be taken up",
        path="harness_actors/coordination/outcomes.py",
        before="""\
            case Parked() | Waiting() if run.closing is not None:
                self._changes.end(run, delta, run.closing, effects)
""",
        after="",
        promise="a run ends limit(budget) where its budget is spent",
        tests=(
            "tests/coordination/test_budget.py::test_a_spent_budget_ends_all_runs_after_their_round",
        ),
    ),
    Bug(
        name="tools of a dead host are taken for those of the next one",
        path="harness_actors/coordination/dispatch.py",
        before="""\
        run.busy_since = None
        if slot.index == QUARANTINE and not self._router.isolate(run_id):
""",
        after="        if slot.index == QUARANTINE and not self._router.isolate(run_id):\n",
        promise="only a death in the middle of a tool counts as a loss",
        tests=(
            "tests/coordination/test_losses.py::test_a_host_that_dies_before_it_did_anything_is_no_loss_after_one_that_was",
        ),
    ),
    Bug(
        name="a message that comes twice is taken twice",
        path="harness_actors/coordination/coordinator.py",
        before="        elif envelope.seq > run.received:\n",
        after="        elif envelope.seq >= run.received:\n",
        promise="whatever is delivered again, it happened once",
        tests=("tests/coordination/test_coordinator.py::test_what_was_heard_twice_is_taken_once",),
    ),
    Bug(
        name="a new budget forgets what ended runs have cost",
        path="harness_actors/coordination/budget.py",
        before="""\
        self.spent_usd = spent_usd + self.ended_usd + sum(self._unfinished_usd.values())
""",
        after="        self.spent_usd = spent_usd + sum(self._unfinished_usd.values())\n",
        promise="a budget is spent by what runs cost, whenever it is set",
        tests=(
            "tests/coordination/test_budget.py::test_a_budget_that_is_raised_is_held_as_the_first_one_was",
        ),
    ),
    Bug(
        name="a run that ended as it waited is let into the quarantine",
        path="harness_actors/coordination/dispatch.py",
        before="""\
        self._router.released(run_id)
        self._router.forget(run_id)
""",
        after="        self._router.forget(run_id)\n",
        promise="the quarantine serves one run at a time, and then the next",
        tests=(
            "tests/coordination/test_losses.py::test_a_run_that_waits_for_quarantine_can_be_stopped",
        ),
    ),
    Bug(
        name="a run hears of its commit before it hears that all is spent",
        path="harness_actors/coordination/coordinator.py",
        before="""\
                # Before it hears that its round is on disk, and begins another.
                self._close_if_spent(run, effects)
                self._dispatch.post(run, Committed(envelope.seq), effects)
""",
        after="""\
                self._dispatch.post(run, Committed(envelope.seq), effects)
                self._close_if_spent(run, effects)
""",
        promise="where a budget is spent, no run makes a further model call",
        tests=(
            "tests/coordination/test_budget.py::test_a_run_hears_that_all_is_spent_before_it_hears_that_its_round_is_on_disk",
        ),
    ),
    Bug(
        name="losses are forgotten with the coordinator",
        path="harness_actors/coordination/taking_up.py",
        before="""\
    return ActiveRun(stored.spec, stored.state, hop, stored.added_at, stored.losses)
""",
        after="    return ActiveRun(stored.spec, stored.state, hop, stored.added_at)\n",
        promise="a run that kills its process again and again is isolated, and ends",
        tests=("tests/coordination/test_losses.py::test_losses_survive_the_coordinator",),
    ),
    Bug(
        name="a run that parks between two executors goes back to the first",
        path="harness_actors/coordination/outcomes.py",
        before="            self._park(run, delta, effects, moved=True)\n",
        after="            self._park(run, delta, effects)\n",
        promise="a run that is taken up goes on where it was",
        tests=(
            "tests/coordination/test_stops.py::test_a_run_that_parks_between_two_executors_keeps_its_place",
        ),
    ),
    Bug(
        name="tools are taken for running after their round",
        path="harness_actors/coordination/run_changes.py",
        before="""\
                    if run.state.values[OPEN_CALLS.name]:
                        self.busy(run)
""",
        after="                    self.busy(run)\n",
        promise="only a death in the middle of a tool counts as a loss",
        tests=(
            "tests/coordination/test_losses.py::test_a_death_after_a_round_that_was_announced_is_no_loss",
        ),
    ),
    Bug(
        name="the second tool of a message is not known to run",
        path="harness_actors/coordination/run_changes.py",
        before="""\
            for write in delta.writes:
                if write.key == OPEN_CALLS.name and not run.slot.code:
                    # Announced, in this hop: what an earlier one left open does not run.
                    run.busy_since = None
                    if run.state.values[OPEN_CALLS.name]:
                        self.busy(run)
""",
        after="",
        promise="a run that kills its process again and again is isolated, and ends",
        tests=(
            "tests/coordination/test_losses.py::test_a_death_between_two_calls_of_a_message_is_a_loss",
        ),
    ),
    Bug(
        name="a run that ends leaves its state behind",
        path="harness_actors/coordination/run_changes.py",
        before="        if run.snapshot_due and end is None and not _is_long(run.state.values):\n",
        after="        if run.snapshot_due and not _is_long(run.state.values):\n",
        promise="the snapshot of a run is dropped when the run ends",
        tests=(
            "tests/coordination/test_coordinator.py::test_a_run_that_ends_where_its_state_would_be_stored_leaves_no_snapshot",
        ),
    ),
    Bug(
        name="runs that are over are never counted as ended",
        path="harness_actors/coordination/run_changes.py",
        before="        self._budget.end(run.spec.run_id)\n",
        after="",
        promise="what ended before there was a budget is counted once",
        tests=(
            "tests/actors/test_unfinished_costs.py::test_what_ended_before_there_was_a_budget_counts_once",
        ),
    ),
    Bug(
        name="a host is sent again what it added with its answer",
        path="harness_actors/coordination/run_changes.py",
        before="            replica.messages = len(run.state.log)\n",
        after="            replica.messages = len(run.state.log) - len(delta.messages)\n",
        promise="what a run costs follows what changes, and not how long it is",
        tests=(
            "tests/coordination/test_traffic.py::test_what_a_host_adds_with_its_answer_does_not_come_back_to_it",
        ),
    ),
    Bug(
        name="a run that was looked at in vain is never looked at again",
        path="harness_actors/coordination/deadlines.py",
        before="""\
                # Its work went on, or waits, since it was put down to be looked at.
                self.watch(run)
""",
        after="""\
                # Its work went on, or waits, since it was put down to be looked at.
                pass
""",
        promise="a limit ends a run wherever it hangs",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_whose_tools_ended_in_time_still_ends_when_its_wall_time_is_over",
        ),
    ),
    Bug(
        name="a budget that was spent while a host asks for the log is not told with it",
        path="harness_actors/coordination/dispatch.py",
        before="            parking=run.parking or run.closing is not None,\n",
        after="            parking=run.parking,\n",
        promise="where a budget is spent, no run makes a further model call",
        tests=("tests/coordination/test_at_once.py::test_whatever_befalls_a_run_at_once",),
    ),
    Bug(
        name="a run without budget that is resumed goes on",
        path="harness_actors/coordination/stopping.py",
        before="            elif run.closing is None and run.makes_rounds:\n",
        after="            elif run.makes_rounds:\n",
        promise="where a budget is spent, no run makes a further model call",
        tests=("tests/coordination/test_at_once.py::test_whatever_befalls_a_run_at_once",),
    ),
    Bug(
        name="a bound that is nearer than the one before is not looked at",
        path="harness_actors/coordination/deadlines.py",
        before='        if at < self._watched.get(run_id, float("inf")):\n',
        after="        if run_id not in self._watched:\n",
        promise="a limit ends a run wherever it hangs",
        tests=("tests/coordination/test_schedules.py::test_runs_survive_any_schedule",),
    ),
    Bug(
        name="a request to park that was taken back by another command outlives that",
        path="harness_actors/coordination/taking_up.py",
        before="""\
        if run.state.values.get(PARKING.name):
            self._changes.change(run, entry(PARKING, False), effects)
        if closed""",
        after="        if closed",
        promise="a run that is taken up goes on, whoever dies",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_asked_to_park_that_is_taken_up_goes_on_whoever_dies",
        ),
    ),
    Bug(
        name="an executor that dies is told of with the tools of the turn before",
        path="harness_actors/coordination/losses.py",
        before="            tools = () if slot.code else run.tools\n",
        after="            tools = run.tools\n",
        promise="who is told of a death is told what ran",
        tests=(
            "tests/coordination/test_losses.py::test_a_users_repair_that_dies_is_not_told_of_with_the_calls_that_it_is_to_close",
        ),
    ),
    Bug(
        name="a run that died in its last turn has no turn left to go on with",
        path="harness_actors/coordination/ceilings.py",
        before="""\
        if values.get(TURN.name) is not None:
            return None
""",
        after="",
        promise="a run that is taken up goes on where it was",
        tests=("tests/coordination/test_at_once.py::test_whatever_befalls_a_run_at_once",),
    ),
    Bug(
        name="a run that is taken up brings back the budget that it began under",
        path="harness_actors/coordination/closing.py",
        before="        if restored and self._budget.limit_usd is None:\n",
        after="        if restored:\n",
        promise="the newest budget holds",
        tests=("tests/coordination/test_at_once.py::test_whatever_befalls_a_run_at_once",),
    ),
    Bug(
        name="a run that hangs has all of its working time once more",
        path="harness_actors/coordination/active.py",
        before="""\
            worked_s = self.state.values.get(USAGE.name, {}).get("working_s", 0.0)
""",
        after="""\
            worked_s = 0.0
""",
        promise="a run that reaches a limit has its result within a second",
        tests=(
            "tests/coordination/test_stop_requests.py::test_a_run_that_hangs_has_the_working_time_that_earlier_rounds_left",
        ),
    ),
    Bug(
        name="the end of a run is told to the host that served it first",
        path="harness_actors/coordination/dispatch.py",
        before="""\
        last = next((slot for slot in reversed(run.replicas) if _speaks(slot)), None)
""",
        after="        last = next((slot for slot in run.replicas if _speaks(slot)), None)\n",
        promise="session_end hooks hear of an end in the process that served the run last",
        tests=(
            "tests/coordination/test_losses.py::test_the_end_of_a_run_is_told_where_it_was_served_last",
        ),
    ),
    Bug(
        name="what is over ends what has begun since",
        path="harness_actors/coordination/coordinator.py",
        before="                if run.busy_since is None and run.started_after >= envelope.seq:\n",
        after="                if run.busy_since is None and False:\n",
        promise="a run that kills its process again and again is isolated, and ends",
        tests=(
            "tests/coordination/test_losses.py::test_that_tools_begin_is_known_though_it_overtakes_the_round_before",
        ),
    ),
    Bug(
        name="tools whose results are there begin",
        path="harness_actors/coordination/run_changes.py",
        before="        if after >= max(run.received, run.started_after):\n",
        after="        if after >= run.started_after:\n",
        promise="a run is blamed for a death only where its own tools ran",
        tests=(
            "tests/coordination/test_losses.py::test_that_tools_begin_is_old_news_once_their_results_are_there",
        ),
    ),
)
