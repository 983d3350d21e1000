"""Bugs of what runs at once in a turn, of what is not made again, and of a turn's own bounds."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="the second of two calls with one key runs beside the first",
        path="harness_actors/turn/waves.py",
        before="            taken |= keys\n",
        after="",
        promise="two calls that touch the same do not run at once",
        tests=("tests/turn/test_waves.py::test_a_key_is_taken_by_whichever_call_of_a_wave_has_it",),
    ),
    Bug(
        name="a call of which nobody knows what it touches runs beside others",
        path="harness_actors/turn/waves.py",
        before="""\
    return None if None in keys else frozenset(key for key in keys if key is not None)
""",
        after="""\
    return frozenset(key for key in keys if key is not None)
""",
        promise="a call whose keys cannot be filled runs alone",
        tests=(
            "tests/turn/test_waves.py::test_a_call_of_which_nobody_knows_what_it_touches_is_alone",
        ),
    ),
    Bug(
        name="calls of a wave go on when their turn is cut",
        path="harness_actors/turn/lanes.py",
        before="""\
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
""",
        after="""\
    for task in tasks:
        task.cancel()
""",
        promise="a run that is cut does nothing any more",
        tests=(
            "tests/turn/test_lanes.py::test_a_caller_that_is_cancelled_waits_until_all_have_cleaned_up",
        ),
        seeds=1000,
    ),
    Bug(
        name="a wave leaves the index of open calls like one call",
        path="harness_actors/turn/call_scheduler.py",
        before="                self._context.drop(OPEN_CALLS, len(wave))\n",
        after="                self._context.drop(OPEN_CALLS)\n",
        promise="the index of open calls has those that are open",
        tests=(
            "tests/turn/test_at_once.py::test_a_wave_of_a_fenced_message_is_written_as_one_when_it_has_ended",
        ),
    ),
    Bug(
        name="what another run of the conversation has read is not read again",
        path="harness_actors/turn/repeats.py",
        before="""\
            if message.encoded == begins_behind:
                return
""",
        after="",
        promise="a call is answered by one of its own run",
        tests=(
            "tests/turn/test_repeats.py::test_what_another_run_of_the_conversation_has_read_is_read_again",
        ),
    ),
    Bug(
        name="large numbers that differ are the same",
        path="harness_actors/messages.py",
        before="            values = values_in(self.arguments)\n",
        after="            values = json.loads(self.arguments, parse_int=float)\n",
        promise="a call is answered by an earlier one with the same arguments, and by no other",
        tests=("tests/turn/test_repeats.py::test_what_is_not_known_to_be_the_same_is_made",),
    ),
    Bug(
        name="what comes late counts when the turn is over",
        path="harness_actors/turn/state.py",
        before="            self._writes_open = False\n",
        after="",
        promise="whoever comes late changes nothing",
        tests=(
            "tests/turn/test_state.py::test_when_the_turn_is_over_nothing_counts_and_whoever_works_is_told",
        ),
    ),
    Bug(
        name="a turn that may use little makes no model call",
        path="harness_actors/turn/budget.py",
        before="""\
        if not self._meter.rounds:
            return False
""",
        after="",
        promise="each turn has a model call",
        tests=("tests/turn/test_budget.py::test_a_turn_is_not_over_before_its_first_model_call",),
    ),
    Bug(
        name="a turn that was put aside begins with all that a turn may use",
        path="harness_actors/executors/agent_turn.py",
        before="""\
            if begun is not None:
                return begun
""",
        after="""\
            if begun is not None:
                return begun
        elif context.spec.config.turn_limits is not None:
            context.set(TURN_BEGAN, context.get(USAGE))
""",
        promise="a turn that goes on is the same turn, with what it had left",
        tests=(
            "tests/turn/test_budget.py::test_a_turn_that_was_put_aside_has_what_it_had_not_used",
        ),
    ),
    Bug(
        name="a write makes calls of its turn old, and those of earlier turns new again",
        path="harness_actors/turn/repeats.py",
        before="            self._places = {}\n",
        after="            self._places = None\n",
        promise="what may have changed is read again",
        tests=(
            "tests/turn/test_repeats.py::test_what_an_earlier_turn_has_read_is_as_old_as_what_this_one_has",
        ),
    ),
)
