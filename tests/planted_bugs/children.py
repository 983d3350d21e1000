"""Bugs in runs that others have begun."""

from tests.planted_bugs.bug import Bug

TREES = "tests/coordination/test_children.py::"
RUNS = "tests/subagents/test_runs.py::"
HELD = "tests/subagents/test_holding.py::"
FOLLOWED = "tests/subagents/test_followed_trees.py::"
BACKGROUND = "tests/subagents/test_background.py::"
REPLAYS = "tests/subagents/test_background_replays.py::"
PARKING = "tests/actors/test_parking_above_others.py::"

BUGS = (
    Bug(
        name="one that is queued parks before those below it",
        path="harness_actors/coordination/departures.py",
        before="        if self.has_nothing_to_finish(run):\n",
        after="        if self._has_no_round(run):\n",
        promise="no run of a tree leaves service before those below it",
        tests=(PARKING + "test_one_that_is_queued_parks_after_those_below_it",),
    ),
    Bug(
        name="one that is to park waits for the quarantine host still",
        path="harness_actors/coordination/departures.py",
        before="            self._dispatch.wait_no_more(run)\n",
        after="",
        promise="whoever leaves service has no place at a host",
        tests=(PARKING + "test_one_that_waits_for_the_quarantine_host_parks_after_those_below_it",),
    ),
    Bug(
        name="one that is to park is served when it has a place",
        path="harness_actors/coordination/children.py",
        before=" and child.held is None:\n",
        after=":\n",
        promise="a run that was asked to park begins no round",
        tests=(
            PARKING + "test_a_place_that_becomes_free_meanwhile_is_there_for_it_when_it_goes_on",
        ),
    ),
    Bug(
        name="one that goes on after all takes a place that another has",
        path="harness_actors/coordination/stopping.py",
        before="                self._children.departures.go_on(run, effects)\n",
        after="                self._dispatch.deliver(run, effects)\n",
        promise="no more are served at once than may be",
        tests=(PARKING + "test_one_that_is_queued_is_so_still_where_its_tree_goes_on_after_all",),
    ),
    Bug(
        name="who has spoken before another closes its calls when it is cancelled",
        path="harness_actors/actors/coordinator/admission.py",
        before="        return not has_begun or later is not None\n",
        after="        return not has_begun\n",
        promise="a run that is put aside with its children goes on with what they came to",
        tests=(
            "tests/actors/test_admission.py::test_a_run_that_is_cancelled_leaves_the_calls_open_of_one_that_is_aside_with_its_children",
        ),
    ),
    Bug(
        name="who has said nothing closes the calls of another when it is cancelled",
        path="harness_actors/actors/coordinator/admission.py",
        before="        return not has_begun or later is not None\n",
        after="        return later is not None\n",
        promise="a run that is put aside with its children goes on with what they came to",
        tests=(
            "tests/actors/test_admission.py::test_a_run_that_is_cancelled_leaves_the_calls_open_of_one_that_is_aside_with_its_children",
        ),
    ),
    Bug(
        name="what children came to is lost with their parent",
        path="harness_actors/coordination/children.py",
        before="            said = () if link.background else (given(came_to),)\n",
        after="            said = ()\n",
        promise="what was finished stays finished",
        tests=(
            "tests/coordination/test_children.py"
            "::test_what_children_came_to_is_told_though_their_parent_is_ended",
        ),
    ),
    Bug(
        name="what one that asks has used counts in no tree after a death",
        path="harness_actors/coordination/children.py",
        before="                self._background.setdefault(link.run_id, set()).add(run_id)\n"
        "            self.limits.joined(run)\n",
        after="                self._background.setdefault(link.run_id, set()).add(run_id)\n",
        promise="the bounds of a run hold for its tree",
        tests=(
            "tests/coordination/test_asked_below.py"
            "::test_what_it_has_used_counts_after_a_death_though_nobody_serves_it",
        ),
    ),
    Bug(
        name="a run leaves again before all that wait below it are known",
        path="harness_actors/coordination/taking_up.py",
        before="put_aside(run, effects, leaves=False)\n",
        after="put_aside(run, effects)\n",
        promise="no child outlives its parent",
        tests=(
            "tests/coordination/test_asked_below.py"
            "::test_those_that_are_aside_end_with_a_tree_that_has_nothing_left",
        ),
    ),
    Bug(
        name="whoever takes up a child is not told that its tree waits",
        path="harness_actors/actors/driver/following.py",
        before="                    waiting.discard(run_id)\n                    yield replace",
        after="                    yield replace",
        promise="a command ends when nobody goes on",
        tests=(
            "tests/subagents/test_asking.py"
            "::test_a_child_that_is_taken_up_waits_for_what_else_is_open_in_its_tree",
        ),
    ),
    Bug(
        name="one below that is answered waits until the others stand still",
        path="harness_actors/actors/coordinator/admission.py",
        before="            await self._go_on_below(stored.spec.run_id)\n",
        after="",
        promise="who is answered goes on while others do",
        tests=(
            "tests/subagents/test_asking.py::test_a_program_answers_while_the_others_go_on",
            "tests/replay/test_asking_children.py::test_one_that_was_answered_while_others_went_on",
        ),
    ),
    Bug(
        name="one below that is answered goes on in a tree that leaves service",
        path="harness_actors/coordination/active.py",
        before="        return self.parking or self.held is not None\n",
        after="        return False\n",
        promise="a tree is put aside as one",
        tests=(
            "tests/actors/test_answers_below.py"
            "::test_one_that_is_answered_while_its_tree_is_put_aside_goes_on_when_that_does",
        ),
    ),
    Bug(
        name="one below that is answered does not wait for one that leaves with its question",
        path="harness_actors/coordination/active.py",
        before="        return self.parking or self.held is not None\n",
        after="        return self.parking\n",
        promise="a tree is put aside as one",
        tests=(
            "tests/actors/test_answers_below.py"
            "::test_one_that_is_answered_below_one_that_leaves_goes_on_with_that",
        ),
    ),
    Bug(
        name="those that were put aside with one that asks stay so when it is answered",
        path="harness_actors/coordination/asked_below.py",
        before="        if run_id not in answered | between and not was_put_aside_with_one:\n",
        after="        if run_id not in answered | between:\n",
        promise="a run waits for nobody who does nothing",
        tests=(
            "tests/actors/test_answers_below.py"
            "::test_those_that_were_put_aside_with_one_that_asks_go_on_with_it",
        ),
    ),
    Bug(
        name="a child that has ended meanwhile is known as one that is aside",
        path="harness_actors/actors/coordinator/admission.py",
        before="        still = set(self._to_go_on(root_id))\n",
        after="        still = {one.spec.run_id for one in found}\n",
        promise="what is over stays over",
        tests=(
            "tests/actors/test_answers_below.py"
            "::test_those_that_end_while_answers_to_them_are_taken_stay_over",
        ),
    ),
    Bug(
        name="a tree is answered as it was before it left service",
        path="harness_actors/actors/coordinator/admission.py",
        before="                stored = await self._stored(stored.spec.run_id)\n",
        after="",
        promise="the state equals the replay of the journal",
        tests=(
            "tests/actors/test_answers_below.py::test_a_tree_that_leaves_while_arguments_are_looked_at_has_its_answers_and_its_last_words",
        ),
    ),
    Bug(
        name="a child is cancelled in a tree as that was before it left service",
        path="harness_actors/actors/coordinator/admission.py",
        before="                    stored, shared, tree = await self._stored_in_tree(run_id)\n"
        "                self.perform(",
        after="                self.perform(",
        promise="the state equals the replay of the journal",
        tests=(
            "tests/actors/test_answers_below.py"
            "::test_one_that_asks_is_cancelled_while_its_tree_leaves_service",
        ),
    ),
    Bug(
        name="a child that is over is cancelled once more",
        path="harness_actors/coordination/run_changes.py",
        before="        self.departures += 1\n",
        after="            self.departures += 1\n",
        promise="what is over stays over",
        tests=(
            "tests/actors/test_answers_below.py"
            "::test_one_that_asks_is_cancelled_once_where_others_do_so_just_then",
        ),
    ),
    Bug(
        name="who has sent others out asks on before it knows what they have used",
        path="harness_actors/turn/loop.py",
        before="        return self._prepared.delegates and self._context.get(CHILDREN) > 0\n",
        after="        return False\n",
        promise="bounds hold for a tree, but for one round of each that was in flight",
        tests=(
            "tests/turn/test_loop.py"
            "::test_where_others_use_up_what_is_left_a_round_is_on_disk_before_the_next_model_call",
        ),
    ),
    Bug(
        name="a run that left with its last child is put aside once more",
        path="harness_actors/coordination/stopping.py",
        before="            if not self._changes.serves(one):\n",
        after="            if one.spec.run_id is None:\n",
        promise="a run that is stopped does nothing",
        tests=(
            "tests/coordination/test_children.py"
            "::test_one_that_asks_and_waits_for_those_beside_it_is_put_aside_once",
        ),
    ),
    Bug(
        name="results of children are dropped with the first of them",
        path="harness_actors/turn/delegation.py",
        before="        if results and not any(plan.call.id in results for plan in left):\n",
        after="        if results:\n",
        promise="what a child came to is the result of its call, once",
        tests=(
            "tests/subagents/test_runs.py"
            "::test_results_are_told_whatever_is_left_for_the_calls_between_them",
        ),
    ),
    Bug(
        name="a parent goes on when the first of its children has ended",
        path="harness_actors/coordination/children.py",
        before="parent.waits_for_children and not self._unfinished(parent, writes)\n",
        after="parent.waits_for_children\n",
        promise="a run waits for all that it has begun",
        tests=(TREES + "test_a_run_waits_at_no_host_for_those_that_it_has_begun",),
    ),
    Bug(
        name="those below a run outlive it",
        path="harness_actors/coordination/children.py",
        before="            self.cancel(child, effects, ORPHANED)\n",
        after="            pass\n",
        promise="a run that ends takes all below it along",
        tests=(TREES + "test_a_run_that_ends_takes_all_below_it_along",),
    ),
    Bug(
        name="what is aside counts as over",
        path="harness_actors/coordination/children.py",
        before="        return len(below) + len(aside) > len(self._background.get(run_id, ()))\n",
        after="        return len(below) > len(self._background.get(run_id, ()))\n",
        promise="a child that was put aside is waited for",
        tests=(TREES + "test_a_child_that_is_aside_is_waited_for_though_the_others_have_ended",),
    ),
    Bug(
        name="who asks below a run is forgotten when that leaves service",
        path="harness_actors/coordination/children.py",
        before="        self.rests(run)\n        if (parent",
        after="        self.rests(run)\n        self._forget(run.spec.run_id)\n        if (parent",
        promise="a run waits for all that it has begun",
        tests=(
            "tests/coordination/test_asked_below.py"
            "::test_one_that_goes_on_for_an_answer_below_it_waits_for_all_others",
        ),
    ),
    Bug(
        name="a child that came back goes on though another has its place",
        path="harness_actors/coordination/departures.py",
        before="link is None or run.spec.run_id not in self._queued.get(link.run_id, ())",
        after="True",
        promise="no more are served at once than settings allow",
        tests=(
            "tests/coordination/test_asked_below.py"
            "::test_no_more_are_served_at_once_when_some_come_back_with_an_answer",
        ),
    ),
    Bug(
        name="all children are served at once",
        path="harness_actors/coordination/children.py",
        before="        while queue and len(self._below[run_id]) - len(queue) < most:\n",
        after="        while queue:\n",
        promise="no more are served at once than settings allow",
        tests=(TREES + "test_no_more_are_served_at_once_than_settings_allow",),
    ),
    Bug(
        name="what grandchildren used is lost",
        path="harness_actors/coordination/children.py",
        before="asdict(result.usage_tree))",
        after="asdict(result.usage))",
        promise="usage rolls up to the top",
        tests=(TREES + "test_what_they_used_is_the_parents_apart_and_once",),
    ),
    Bug(
        name="a child begins with a copy of its parent's template",
        path="harness_actors/coordination/child_specs.py",
        before="replace(parent, source=None, base=None, read_only=read_only)",
        after="replace(parent, base=None, read_only=read_only)",
        promise="a child works in the folder of its parent",
        tests=(TREES + "test_children_are_served_by_their_pool_and_begin_with_nothing",),
    ),
    Bug(
        name="a run that is to park begins its children",
        path="harness_actors/coordination/outcomes.py",
        before="            case Waiting() if not outcome.on_user and run.parking:\n",
        after="            case Waiting() if not outcome.on_user and run.held:\n",
        promise="after Ctrl-C nothing new starts",
        tests=(TREES + "test_one_that_is_asked_to_park_while_it_delegates_begins_nobody",),
    ),
    Bug(
        name="a child is put aside without its tree",
        path="harness_actors/coordination/stopping.py",
        before="        tree = self._children.tree_of(run)\n        if mode",
        after="        tree = [run]\n        if mode",
        promise="a tree is put aside as one",
        tests=(TREES + "test_a_tree_is_put_aside_as_one_and_goes_on_as_one",),
    ),
    Bug(
        name="the tree of a run has no bounds",
        path="harness_actors/coordination/tree_limits.py",
        before="                self._used[run.spec.root] += Usage(**write.value)\n",
        after="                pass\n",
        promise="the bounds of a run hold for its tree",
        tests=(TREES + "test_the_bounds_of_a_run_hold_for_its_tree",),
    ),
    Bug(
        name="what stands after children begins before they have ended",
        path="harness_actors/turn/waves.py",
        before="            if waves and delegates(waves[-1][-1]):\n",
        after="            if waves:\n",
        promise="calls that delegate are a wave of their own",
        tests=(RUNS + "test_calls_before_them_are_made_first_and_those_after_them_last",),
    ),
    Bug(
        name="a call that waits behind children counts as lost",
        path="harness_actors/turn/call_scheduler.py",
        before="        if len(plans) > calls:\n",
        after="        if len(plans) > calls + len(plans):\n",
        promise="what has not begun is made when the children have ended",
        tests=(RUNS + "test_what_stands_behind_children_is_made_when_they_have_ended",),
    ),
    Bug(
        name="an answer is asked to be shorter without end",
        path="harness_actors/turn/brevity.py",
        before="    context.set(BRIEFER, True)\n",
        after="",
        promise="a child is asked once for a shorter answer",
        tests=(RUNS + "test_an_answer_that_is_too_long_is_asked_for_again_once_and_then_cut",),
    ),
    Bug(
        name="an agent that only reads may write",
        path="harness_actors/subagents/child_agent.py",
        before="    return not spec.reads_only or (\n",
        after="    return True or (\n",
        promise="explore has tools that only read",
        tests=(RUNS + "test_explore_can_only_read",),
    ),
    Bug(
        name="a child has no hooks",
        path="harness_actors/subagents/child_agent.py",
        before='        hooks=getattr(above, "hooks", None),\n',
        after="",
        promise="a child can never do what its parent may not",
        tests=(RUNS + "test_children_may_not_do_what_their_parent_may_not",),
    ),
    Bug(
        name="a pool that does not start stops the cell",
        path="harness_actors/actors/coordinator/roster.py",
        before='failure == "the cell stops" and not slot.is_pool\n',
        after='failure == "the cell stops"\n',
        promise="a pool that does not start fails its children only",
        tests=(
            "tests/actors/test_roster.py::test_a_pool_that_does_not_start_stops_no_cell_and_is_tried_when_it_is_needed_again",
        ),
    ),
    Bug(
        name="a rest of time that no clock shows is waited for",
        path="harness_actors/turn/bounds.py",
        before="self.seconds <= INSTANT_S\n",
        after="self.seconds <= 0\n",
        promise="whatever waits ends in time",
        tests=("tests/turn/test_deadline.py::test_a_rest_of_time_that_no_clock_can_show_is_none",),
    ),
    Bug(
        name="a child is held to nothing",
        path="harness_actors/turn/delegation.py",
        before="        contract=delegation.contract,\n",
        after="        contract=None,\n",
        promise="a child is done when its contract is met",
        tests=(HELD + "test_a_child_is_done_when_its_contract_is_met",),
    ),
    Bug(
        name="a child without what it was held to has completed",
        path="harness_actors/subagents/reports.py",
        before='    if status == "completed" and not _is_held(link, result):\n',
        after='    if status == "completed" and not result.status:\n',
        promise="a parent is told that its child did not meet its contract",
        tests=(HELD + "test_a_contract_that_is_not_met_fails_the_call_and_says_why",),
    ),
    Bug(
        name="the words of a child stand in place of its value",
        path="harness_actors/subagents/reports.py",
        before="        said = encode_json(result.output).decode()\n",
        after="        pass\n",
        promise="the value of a child is the result of its call",
        tests=(HELD + "test_the_value_of_a_child_is_the_result_of_its_call",),
    ),
    Bug(
        name="a child that was begun before anybody followed has no path",
        path="harness_actors/actors/driver/below.py",
        before="            for event in await self._runtime.events(parent):\n",
        after="            for event in ():\n",
        promise="the path of each run below is known",
        tests=(FOLLOWED + "test_paths_are_known_of_those_that_were_begun_before_anybody_followed",),
    ),
    Bug(
        name="who is sent out in the background is waited for",
        path="harness_actors/coordination/children.py",
        before="        return len(below) + len(aside) > len(self._background.get(run_id, ()))\n",
        after="        return len(below) + len(aside) > 0\n",
        promise="a run goes on beside those that it has sent out in the background",
        tests=(BACKGROUND + "test_it_goes_on_beside_them",),
    ),
    Bug(
        name="letters are told again with each call",
        path="harness_actors/turn/mail.py",
        before="        self._context.drop(MAIL, len(letters))\n",
        after="",
        promise="what one came to is told once",
        tests=(
            BACKGROUND + "test_the_call_returns_a_handle_and_what_it_came_to_is_told_once",
            BACKGROUND + "test_a_wait_is_over_after_its_time",
        ),
    ),
    Bug(
        name="a wait for any is one for all",
        path="harness_actors/coordination/beside.py",
        before='    return any(ended) if wait["any"] else all(ended)\n',
        after="    return all(ended)\n",
        promise="whoever waits for any goes on with the first",
        tests=(BACKGROUND + "test_whoever_waits_for_any_goes_on_with_the_first",),
    ),
    Bug(
        name="a rerun does not know who was parked while it waited",
        path="harness_actors/replay/visits.py",
        before="        self._to = ENTRY if begun.hop is None or parked else begun.hop.to\n",
        after="        self._to = ENTRY if begun.hop is None else begun.hop.to\n",
        promise="a run that was parked while it waited is replayed",
        tests=(BACKGROUND + "test_a_run_that_parked_while_it_waited_for_its_child_is_replayed",),
    ),
    Bug(
        name="who is shown less is not told who is at work",
        path="harness_actors/coordination/outcomes.py",
        before="            if delta.plan is not None:\n",
        after="            if delta.plan is not None and run.held:\n",
        promise="what is in flight is said in every compacted request",
        tests=(BACKGROUND + "test_who_is_at_work_is_said_where_less_of_a_conversation_is_shown",),
    ),
    Bug(
        name="a rerun asks its user while others are in service below it",
        path="harness_actors/replay/rerun.py",
        before="        self.cell.put_aside_below()\n",
        after="",
        promise="a run that left service while others worked for it is replayed",
        tests=(REPLAYS + "test_one_that_asked_its_user_meanwhile",),
    ),
    Bug(
        name="a cell that ended while it was reached for is an error",
        path="harness_actors/actors/driver/attach.py",
        before="        if not await asyncio.to_thread(wait_until_gone, mark,",
        after="        if await asyncio.to_thread(wait_until_gone, mark,",
        promise="an answer is on disk when its command ends, whoever works on the journal",
        tests=(
            "tests/actors/test_attach.py::test_a_cell_that_has_ended_since_it_was_found_is_none",
        ),
    ),
    Bug(
        name="a Ray that is gone is looked for as long as Ray likes",
        path="harness_actors/actors/driver/attach.py",
        before="        return await reaching if reaching.done() else None\n",
        after="        return await reaching\n",
        promise="an answer is on disk when its command ends, whoever works on the journal",
        tests=(
            "tests/actors/test_attach.py::test_a_ray_that_is_looked_for_in_vain_holds_up_nobody",
        ),
    ),
    Bug(
        name="a fork delegates",
        path="harness_actors/turn/delegation.py",
        before="        if link is not None and link.forked:\n",
        after="        if link is not None and link.forked < 0:\n",
        promise="a fork does its work itself",
        tests=("tests/subagents/test_forks.py::test_it_delegates_to_nobody",),
    ),
    Bug(
        name="a fork has the prompts of others before its own",
        path="harness_actors/records.py",
        before=" if self.parent is None else self.task[self.parent.forked :]\n",
        after="\n",
        promise="who is told of a run is told what it was asked",
        tests=(
            "tests/subagents/test_forks.py::test_it_knows_what_was_said_and_begins_with_the_same_bytes",
        ),
    ),
)
