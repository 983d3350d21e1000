"""Bugs of commands."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="whether all are over is said of the last journal alone",
        path="harness_actors/cli/ctl/cancel.py",
        before="            done = done and len(ended) == len(named)\n",
        after="            done = len(ended) == len(named)\n",
        promise="cancel exits with 0 where all of the runs are over now",
        tests=(
            "tests/cli/test_ctl_command.py::test_where_one_run_of_several_is_not_over_yet_the_status_says_so",
        ),
    ),
    Bug(
        name="an option is chosen by a number that is another option",
        path="harness_actors/cli/questions.py",
        before="    if any(option.isdecimal() for option in question.options):\n",
        after="    if not question.options:\n",
        promise="what a person types is the option that it says",
        tests=(
            "tests/cli/test_asking.py::test_options_that_are_numbers_themselves_are_chosen_by_their_texts_alone",
        ),
    ),
    Bug(
        name="who has no more to say is asked the next question",
        path="harness_actors/cli/asking.py",
        before="            self._is_over = True\n",
        after="",
        promise="Ctrl-D at a question leaves all that is open waiting",
        tests=(
            "tests/cli/test_asking.py::test_the_end_of_input_at_a_question_leaves_all_that_is_open_waiting",
        ),
    ),
    Bug(
        name="a command in the background asks at the terminal of another",
        path="harness_actors/cli/asking.py",
        before="        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()\n",
        after="        return True\n",
        promise="a run whose command is in the background waits",
        tests=(
            "tests/cli/test_asking.py::test_a_command_in_the_background_asks_nobody_and_is_not_stopped",
        ),
    ),
    Bug(
        name="an answer in a file is what YAML takes it for",
        path="harness_actors/cli/ctl/given_answers.py",
        before="class _OnceLoader(yaml.BaseLoader):",
        after="class _OnceLoader(yaml.SafeLoader):",
        promise="`q1: yes` in a file of answers is the text yes",
        tests=(
            "tests/cli/test_answer_command.py::test_words_that_yaml_has_a_meaning_for_are_answers_as_they_stand",
        ),
    ),
    Bug(
        name="a run that was answered in part asks for all of it again",
        path="harness_actors/actors/driver/awaiting.py",
        before='["questions"] if q["id"] not in answered]\n',
        after='["questions"]]\n',
        promise="what a run waits for is what is open",
        tests=("tests/test_questions.py::test_what_a_function_leaves_open_is_waited_for",),
    ),
    Bug(
        name="calls are not shown behind an answer that was written",
        path="harness_actors/cli/screen.py",
        before="        if isinstance(event, AgentResponse) and self._written:\n",
        after="        if self._written:\n",
        promise="who watches sees each call",
        tests=("tests/cli/test_screen.py::test_the_calls_of_an_answer_that_was_written_are_shown",),
    ),
    Bug(
        name="a gap in one answer shows the next one twice",
        path="harness_actors/cli/screen.py",
        before="        self._missed = self._missed and not isinstance(event, AgentResponse)\n",
        after="",
        promise="the event stands in for the text that did not come, and for no other",
        tests=("tests/cli/test_screen.py::test_a_gap_is_that_of_the_answer_it_is_in_alone",),
    ),
    Bug(
        name="a list of runs is that of one journal after the other",
        path="harness_actors/cli/ctl/facts.py",
        before="    trees.sort(key=lambda runs: runs[0][1].added_at)\n",
        after="",
        promise="the newest runs of all journals are last in a list",
        tests=(
            "tests/cli/test_run_facts.py::test_the_newest_of_all_journals_are_last_and_stay_where_there_is_a_limit",
        ),
    ),
    Bug(
        name="runs that broke off are listed as running",
        path="harness_actors/cli/ctl/facts.py",
        before="heading.phase if heading.end else None",
        after="heading.phase",
        promise="--status running shows runs that somebody works on",
        tests=(
            "tests/cli/test_run_facts.py::test_each_run_stands_in_one_way_and_those_that_are_over_also_as_they_ended",
        ),
    ),
    Bug(
        name="each call that failed shows the first traceback",
        path="harness_actors/cli/ctl/whole.py",
        before='indent(waiting.pop(0), "    ")',
        after='indent(waiting[0], "    ")',
        promise="below each call that failed stands where it failed",
        tests=(
            "tests/cli/test_whole.py::test_each_call_that_failed_has_its_own_traceback_below_it",
        ),
    ),
    Bug(
        name="who expires runs of the last 0 days expires those of the last 30",
        path="harness_actors/cli/ctl/stores.py",
        before="""\
        kept = days if days is not None else days_kept() or float("inf")
""",
        after='        kept = days or days_kept() or float("inf")\n',
        promise="--days says what is kept",
        tests=(
            "tests/cli/test_ctl_store_command.py::test_all_that_is_over_may_be_removed_but_the_newest_conversation",
        ),
    ),
    Bug(
        name="Ctrl-C before anybody serves a run is forgotten",
        path="harness_actors/cli/streams.py",
        before="""\
                    if parking:
                        # Nobody served them yet when it was asked for, so it was not heard.
                        parking.append(asyncio.create_task(runtime.stop(run_ids, "park")))
""",
        after="",
        promise="the first Ctrl-C puts runs aside that are taken up, whenever it comes",
        tests=(
            "tests/cli/test_streams.py::test_ctrl_c_before_anybody_served_them_is_said_again_when_somebody_does",
        ),
    ),
)
