"""Bugs of those who tell a run that goes in circles from one that works on."""

from tests.planted_bugs.bug import Bug

WATCH = "tests/progress/test_watch.py::"

BUGS = (
    Bug(
        name="a file that is read again when it has changed is a repetition",
        path="harness_actors/progress/rounds.py",
        before="    return tuple((call.asked, call.result) for call in self.calls)\n",
        after='    return tuple((call.asked, b"") for call in self.calls)\n',
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
        name="what a person says is no news",
        path="harness_actors/progress/watch.py",
        before="        self._newest.clear()\n        self._stale = 0\n",
        after="",
        promise="what a run did before somebody spoke to it is no part of a circle",
        tests=(WATCH + "test_real_agents_that_work_are_neither_stopped_nor_warned",),
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
        before="    for period in (2, 3):\n",
        after="    for period in (2,):\n",
        promise="a circle is told with all that is in it",
        tests=(WATCH + "test_a_circle_of_three_is_told_where_news_are_waited_for_longer",),
    ),
    Bug(
        name="all calls of a run are remembered",
        path="harness_actors/progress/watch.py",
        before="        while len(self._known) > REMEMBERED:\n",
        after="        while len(self._known) > 50 * REMEMBERED:\n",
        promise="what a run of any length takes is bounded",
        tests=(WATCH + "test_what_is_remembered_is_bounded",),
    ),
)
