"""Bugs in how a conversation is kept within its window."""

from tests.planted_bugs.bug import Bug

LADDER = "tests/compaction/test_ladder.py::"

BUGS = (
    Bug(
        name="what no call brings back is cleared",
        path="harness_actors/plan/shown.py",
        before='        if policy.durability == "non_replayable":\n            return message\n',
        after="",
        promise="a result that nothing brings back is never cleared",
        tests=("tests/plan/test_shown.py::test_what_is_short_or_never_comes_again_stays",),
    ),
    Bug(
        name="a call that failed is named as one to make again",
        path="harness_actors/plan/shown.py",
        before=" and call is not None and not message.is_error\n",
        after=" and call is not None\n",
        promise="only what came out well is worth the same call",
        tests=("tests/plan/test_shown.py::test_a_call_that_failed_is_not_to_be_made_again",),
    ),
    Bug(
        name="a view shows what came before its plan was known",
        path="harness_actors/plan/view.py",
        before="self._log is log and self.plan.version == plan.version",
        after="self._log is log",
        promise="a conversation is shown by its newest plan",
        tests=("tests/plan/test_view.py::test_a_view_is_kept_until_there_is_another_plan_or_log",),
    ),
    Bug(
        name="the provider's count is not looked at",
        path="harness_actors/compaction/pressure.py",
        before="return min(MOST_RATIO, max(LEAST_RATIO, pressure.request_tokens / counted))",
        after="return 1.0",
        promise="room is made by what the provider counts",
        tests=("tests/compaction/test_ladder.py::test_the_providers_count_is_what_counts",),
    ),
    Bug(
        name="the newest message is dropped",
        path="harness_actors/compaction/ladder.py",
        before="            if kept and room < 0:\n",
        after="            if room < 0:\n",
        promise="what is being worked on stays in sight",
        tests=(LADDER + "test_what_is_being_worked_on_is_not_dropped_however_large_it_is",),
    ),
    Bug(
        name="a refusal is forgotten",
        path="harness_actors/turn/window.py",
        before="min(size, int(tokens * REFUSED_SHARE))",
        after="size",
        promise="the window is smaller than what was refused",
        tests=("tests/executors/test_window.py::test_a_smaller_window_than_was_said_is_found_out",),
    ),
    Bug(
        name="a plan is not written",
        path="harness_actors/stores/commit.py",
        before="        if entry.delta.plan is not None:\n",
        after="        if False and entry.delta.plan is not None:\n",
        promise="a plan is on disk with the change that adopts it",
        tests=("tests/stores/test_plans.py::test_a_conversation_has_the_newest_of_its_plans",),
    ),
    Bug(
        name="plans stay behind their runs",
        path="harness_actors/stores/expiry.py",
        before='"snapshots", "plans", "summaries", "children")',
        after='"snapshots", "summaries", "children")',
        promise="nothing stays of a run that expired",
        tests=("tests/stores/test_plans.py::test_a_plan_goes_with_its_runs",),
    ),
    Bug(
        name="summaries stay behind their runs",
        path="harness_actors/stores/expiry.py",
        before='"plans", "summaries", "children")',
        after='"plans", "children")',
        promise="nothing stays of a run that expired",
        tests=("tests/stores/test_summaries.py::test_summaries_go_with_their_runs",),
    ),
    Bug(
        name="a summary is a model call of the run",
        path="harness_actors/coordination/background.py",
        before="        used = replace(made.usage, model_calls=0)\n",
        after="        used = replace(made.usage)\n",
        promise="of its own model calls a run may make as many as it was given",
        tests=(
            "tests/coordination/test_background.py::test_a_summary_is_kept_with_what_it_cost_and_is_no_model_call_of_the_run",
        ),
    ),
    Bug(
        name="a job whose worker dies is begun again for ever",
        path="harness_actors/coordination/background.py",
        before="            if known.attempts < ATTEMPTS:\n",
        after="            if known.attempts:\n",
        promise="what kills its worker is given up",
        tests=(
            "tests/coordination/test_background.py::test_a_job_whose_worker_dies_is_begun_again_and_then_given_up",
        ),
    ),
    Bug(
        name="a chat does not wait for the summary that was asked for",
        path="harness_actors/coordination/background.py",
        before="        return awaited and run.hop.to == COMPACTION\n",
        after="        return False\n",
        promise="the next answer begins on the summary",
        tests=(
            "tests/coordination/test_background.py::test_a_run_for_which_it_was_asked_before_it_came_waits_for_its_summary",
        ),
    ),
    Bug(
        name="what a plan has dropped is never summarized",
        path="harness_actors/plan/view.py",
        before='    return _without(log, plan, ("summarize",))\n',
        after='    return _without(log, plan, ("drop", "summarize"))\n',
        promise="a summary tells of what was dropped, too",
        tests=(
            "tests/compaction/test_condensing.py::test_what_a_plan_has_dropped_is_summarized_too",
        ),
    ),
    Bug(
        name="all workers of summaries come up at once",
        path="harness_actors/coordination/background.py",
        before="            if slot not in self._proven:\n",
        after="            if not slot.kind:\n",
        promise="after a death, turns are not kept waiting by those who summarize",
        tests=("tests/coordination/test_background.py::test_workers_come_up_one_after_the_other",),
    ),
    Bug(
        name="two parts that are the same have one summary",
        path="harness_actors/compaction/condensing.py",
        before='        found = hashlib.sha256(f"{messages[0][0]} {salt}".encode())\n',
        after="        found = hashlib.sha256(salt.encode())\n",
        promise="what is on disk is what is used",
        tests=(
            "tests/compaction/test_condensing.py::test_two_parts_that_are_the_same_have_a_summary_each",
        ),
    ),
    Bug(
        name="the ladder forgets the summary",
        path="harness_actors/compaction/ladder.py",
        before="            summary=None if self._plan is None else self._plan.summary,\n",
        after="            summary=None,\n",
        promise="what is summarized stays so",
        tests=(
            "tests/compaction/test_condensing.py::test_what_is_summarized_grows_and_so_does_its_summary",
        ),
    ),
    Bug(
        name="a summary that was cut off is taken",
        path="harness_actors/compaction/chat_summarizer.py",
        before='        if response.finish_reason == "length":\n',
        after='        if response.finish_reason == "never":\n',
        promise="junk is no summary",
        tests=(
            "tests/compaction/test_chat_summarizer.py::test_an_answer_that_was_cut_off_is_not_taken",
        ),
    ),
    Bug(
        name="a summary names messages that it was not given",
        path="harness_actors/compaction/summary_form.py",
        before="        at=at if at in positions else positions[-1],\n",
        after="        at=at,\n",
        promise="whoever reads a summary finds what it names",
        tests=(
            "tests/compaction/test_chat_summarizer.py::test_messages_that_it_was_not_given_are_named_by_nobody",
        ),
    ),
    Bug(
        name="any message is read back",
        path="harness_actors/turn/log_messages.py",
        before="        if not 0 <= at < len(self._log):\n",
        after="        if at >= len(self._log):\n",
        promise="a message that is not there is told",
        tests=("tests/turn/test_log_messages.py::test_what_is_no_message_is_told",),
    ),
    Bug(
        name="a strategy that fails ends its run",
        path="harness_actors/compaction/strategies.py",
        before="        except Exception as error:  # noqa: BLE001",
        after="        except ValueError as error:  # noqa: BLE001",
        promise="room is made without a strategy that fails",
        tests=(
            "tests/compaction/test_strategies.py::test_room_is_made_without_one_that_fails",
            "tests/replay/test_compaction.py::test_a_strategy_that_fails_is_told_and_costs_nothing_else",
        ),
    ),
    Bug(
        name="a run with a strategy of its agent's own is not summarized",
        path="harness_actors/records.py",
        before="        return COMPACTION in self.custom and not asks_own\n",
        after="        return COMPACTION in self.custom\n",
        promise="strategies have their turn where no summary makes room, and not in its place",
        tests=(
            "tests/compaction/test_strategies.py::test_a_run_names_them_and_its_compaction_travels_with_the_agent",
            "tests/replay/test_compaction.py::test_a_run_with_strategies_of_its_own_is_summarized_beside",
        ),
    ),
    Bug(
        name="a run waits for the summary that its model asked for",
        path="harness_actors/coordination/coordinator.py",
        before="envelope.body.keep, effects, awaited=False)",
        after="envelope.body.keep, effects)",
        promise="a model that asks for a summary goes on meanwhile",
        tests=(
            "tests/coordination/test_background.py::test_a_run_whose_model_has_asked_does_not_wait_for_that",
        ),
    ),
    Bug(
        name="texts count as images",
        path="harness_actors/plan/shown.py",
        before="""    return sum(part.get("type") == "image_url" for part in parts)\n""",
        after="    return len(parts)\n",
        promise="of images that are left out it is told how many they were",
        tests=(
            "tests/plan/test_shown.py::test_images_of_a_message_that_is_shown_in_part_are_counted",
        ),
    ),
    Bug(
        name="a rerun forgets the plan of an executor that it does not run",
        path="harness_actors/replay/visits.py",
        before="        delta,\n        writes=tuple(write for",
        after="        delta,\n        plan=None,\n        writes=tuple(write for",
        promise="what such an executor did is taken as it is",
        tests=(
            "tests/replay/test_compaction.py::test_a_run_whose_compaction_is_a_users_own_comes_out_the_same",
        ),
    ),
)
