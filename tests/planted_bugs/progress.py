"""Bugs of those who tell a run that goes in circles from one that works on."""

from tests.planted_bugs.bug import Bug

STALLS = "tests/turn/test_stalls.py::"
WATCH = "tests/progress/test_watch.py::"
HOOKS = "tests/turn/test_stall_hooks.py::"

BUGS = (
    Bug(
        name="a file that is read again when it has changed is a repetition",
        path="harness_actors/progress/rounds.py",
        before="    did = tuple([call.did for call in calls])\n",
        after="    did = tuple([call.shown.encode() for call in calls])\n",
        promise="what brings something new is never told to repeat itself",
        tests=(WATCH + "test_a_file_that_changes_may_be_read_again_and_again",),
    ),
    Bug(
        name="spaces in arguments hide that a call is the same",
        path="harness_actors/progress/rounds.py",
        before="{call.comparable_arguments() or written}",
        after="{written}",
        promise="calls with equal arguments are the same, whatever their order and spaces",
        tests=(WATCH + "test_order_and_spaces_of_arguments_are_no_difference",),
    ),
    Bug(
        name="polling is a repetition",
        path="harness_actors/progress/stalls.py",
        before="""\
    newest = [round_.did if not round_.polls else () for round_ in rounds[-count:]]
""",
        after="    newest = [round_.did for round_ in rounds[-count:]]\n",
        promise="a tool whose answer changes by itself may be asked for ever",
        tests=(WATCH + "test_what_is_looked_at_beside_a_job_may_be_the_same",),
    ),
    Bug(
        name="news do not begin the count anew",
        path="harness_actors/progress/watch.py",
        before="        self._stale = 0 if is_news else self._stale + 1\n",
        after="        self._stale += not is_news\n",
        promise="a run that comes on is not told what it did long ago",
        tests=(WATCH + "test_what_was_before_news_changes_nothing",),
    ),
    Bug(
        name="what other runs of a conversation did is a part of the circle",
        path="harness_actors/progress/run_progress.py",
        before='            return place + 1\n        if message.role == "assistant":\n',
        after='            pass\n        if message.role == "assistant":\n',
        promise="what a run did before somebody spoke to it is no part of a circle",
        tests=(WATCH + "test_what_other_runs_did_before_is_no_part_of_a_circle",),
    ),
    Bug(
        name="failures of several tools are one streak",
        path="harness_actors/progress/stalls.py",
        before="""\
    if all(call.failed for call in calls) and len({call.tool for call in calls}) == 1:
""",
        after="    if all(call.failed for call in calls):\n",
        promise="only a streak of failures of one tool is told",
        tests=(WATCH + "test_failures_of_several_tools_are_no_streak",),
    ),
    Bug(
        name="a circle of three is not seen to come round",
        path="harness_actors/progress/stalls.py",
        before="    for period in range(1, min(_LONGEST_CIRCLE, len(rounds) - 1) + 1):\n",
        after="    for period in range(1, min(_LONGEST_CIRCLE, len(rounds) - 1)):\n",
        promise="a circle is told with all that is in it",
        tests=(WATCH + "test_a_circle_of_three_is_told_where_news_are_waited_for_longer",),
    ),
    Bug(
        name="who begins later reads too few rounds",
        path="harness_actors/progress/watch.py",
        before="        return looked_at(self._rules) + REMEMBERED_ROUNDS\n",
        after="        return looked_at(self._rules)\n",
        promise="whoever takes a run over says of it what the one before would have said",
        tests=(WATCH + "test_whoever_begins_later_comes_to_the_same",),
    ),
    Bug(
        name="a round is judged before its calls have their results",
        path="harness_actors/progress/run_progress.py",
        before="""\
        for call in calls:
            if call.id not in results:
                return
""",
        after="",
        promise="a round is read once, when it has ended",
        tests=(WATCH + "test_a_round_whose_calls_are_open_is_not_read",),
    ),
    Bug(
        name="a model is told after each round that it repeats itself",
        path="harness_actors/turn/stalls.py",
        before="        if stalled == 0:\n",
        after="        if stalled < self._grace:\n",
        promise="a run that repeats itself is told so once",
        tests=(STALLS + "test_the_same_call_for_ever_is_told_once_and_then_ends_the_run",),
    ),
    Bug(
        name="the same circle is told again",
        path="harness_actors/turn/stalls.py",
        before="        if another is None or another.rounds - stalled >= self._threshold:\n",
        after="        if another is None:\n",
        promise="a run that repeats itself is told so once",
        tests=(STALLS + "test_the_same_call_for_ever_is_told_once_and_then_ends_the_run",),
    ),
    Bug(
        name="who was told twice goes on for ever",
        path="harness_actors/turn/stalls.py",
        before="stalled >= 2 * self._grace",
        after="False",
        promise="a run that goes on in circles ends by that, with its words",
        tests=(STALLS + "test_who_gives_up_one_circle_for_another_is_told_of_that_too",),
    ),
    Bug(
        name="a second circle is taken for the first",
        path="harness_actors/turn/stalls.py",
        before="            another = stall.begun\n",
        after="            another = None\n",
        promise="a model is told of the circle that it is in",
        tests=(STALLS + "test_who_gives_up_one_circle_for_another_is_told_of_that_too",),
    ),
    Bug(
        name="whoever does something else is ended by what it did before",
        path="harness_actors/turn/stalls.py",
        before="                self._context.set(STALLED_ROUNDS, 0)\n",
        after="                pass\n",
        promise="whoever does something new when told begins anew",
        tests=(STALLS + "test_whoever_does_something_else_when_told_goes_on",),
    ),
    Bug(
        name="the next turn does not know that the model was told",
        path="harness_actors/executors/agent_turn.py",
        before="        STALLED_ROUNDS,\n        PRESSURE,\n",
        after="        PRESSURE,\n",
        promise="a warning counts, whoever serves the run",
        tests=(STALLS + "test_a_death_anywhere_leaves_one_warning_and_the_same_end",),
    ),
    Bug(
        name="a round that Repair has closed is judged by nobody",
        path="harness_actors/executors/repair.py",
        before="            context.set(UNJUDGED, True)\n",
        after="            pass\n",
        promise="whoever does something new when told begins anew",
        tests=(HOOKS + "test_a_round_that_a_death_cuts_off_is_judged_and_begins_the_count_anew",),
    ),
    Bug(
        name="a round that Repair has closed is judged again and again",
        path="harness_actors/turn/stalls.py",
        before="            self._context.set(UNJUDGED, False)\n",
        after="            pass\n",
        promise="a run that repeats itself is told so once",
        tests=(
            HOOKS + "test_a_round_that_a_death_cuts_off_counts_once_however_often_the_run_dies",
        ),
    ),
    Bug(
        name="tools whose answers change by themselves are watched like others",
        path="harness_actors/turn/preparation.py",
        before="for name, tool in self.by_name.items() if _is_polled(tool.spec))\n",
        after="for name in () if name)\n",
        promise="a job may be asked about for ever",
        tests=(STALLS + "test_a_job_may_be_asked_about_for_ever",),
    ),
    Bug(
        name="a run that goes in circles is ended as if it were told for its nudges",
        path="harness_actors/executors/stop_decision.py",
        before='return _end("stalled", "repetition", turn, turn.stall, {"turn": count})\n',
        after="pass\n",
        promise="a run that goes on in circles ends by that, with its words",
        tests=(STALLS + "test_the_same_call_for_ever_is_told_once_and_then_ends_the_run",),
    ),
    Bug(
        name="files may be read again and again",
        path="harness_actors/turn/preparation.py",
        before="    return spec.volatile if spec.polled is None else spec.polled\n",
        after="    return spec.volatile\n",
        promise="a model that reads the same files again and again is told so",
        tests=(STALLS + "test_whoever_reads_the_same_files_again_and_again_is_told",),
    ),
    Bug(
        name="a rerun looks for circles itself",
        path="harness_actors/replay/rerun.py",
        before="        read_stall=calls.stall,\n",
        after="",
        promise="a run with tools that the journal does not know comes out the same",
        tests=("tests/replay/test_stalls.py::test_a_run_that_was_told_comes_out_the_same",),
    ),
    Bug(
        name="all calls of a run are remembered",
        path="harness_actors/progress/watch.py",
        before="if self._seen[first] >= oldest and len(self._seen) <= REMEMBERED_CALLS:\n",
        after="if self._seen[first] >= oldest:\n",
        promise="what a run of any length takes is bounded",
        tests=(WATCH + "test_what_is_remembered_is_bounded",),
    ),
    Bug(
        name="words that are cut off for ever are a circle, too",
        path="harness_actors/turn/stalls.py",
        before="        return self._judged(None if cut_off else stall)\n",
        after="        return self._judged(stall)\n",
        promise="one answer is told one thing, and words alone end no run as a repetition",
        tests=("tests/turn/test_recovery.py::test_the_same_words_cut_off_for_ever_are_no_circle",),
    ),
    Bug(
        name="a hook that calls a round novel leaves the circle",
        path="harness_actors/turn/gates.py",
        before='        if "novel" in plain:\n            return None\n',
        after='        if "novel" in plain and stall is None:\n            return None\n',
        promise="what hooks say of a round counts, whatever the rules say",
        tests=(HOOKS + "test_what_a_hook_calls_novel_is_no_circle",),
    ),
    Bug(
        name="hooks after the one that knows have a say",
        path="harness_actors/turn/gates.py",
        before="""\
                        asked.plain["novel"] = True
                        return
""",
        after='                        asked.plain["novel"] = True\n',
        promise="the first hook that knows counts",
        tests=(HOOKS + "test_the_first_hook_that_knows_counts_and_nobody_is_asked_after_it",),
    ),
    Bug(
        name="what a hook says of words alone is not told",
        path="harness_actors/turn/stalls.py",
        before='    return SAID_AGAIN if stall.kind == "monologue" else',
        after='    return SAID_AGAIN if stall.kind != "" else',
        promise="a model is told what it repeats",
        tests=(HOOKS + "test_words_without_a_call_are_judged_too_and_told_with_the_nudge",),
    ),
    Bug(
        name="an agent packed before a kind of hooks was there cannot be unpacked",
        path="harness_actors/policies/hooks.py",
        before="@unpickled_with_defaults\n@dataclass",
        after="@dataclass",
        promise="a run goes on with the agent that it was begun with",
        tests=(
            "tests/test_pickling.py::test_what_was_pickled_before_its_newest_field_was_there_has_the_default",
        ),
    ),
)
