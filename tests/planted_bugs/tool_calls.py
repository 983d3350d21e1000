"""Bugs of tools that are any function: progress, resources, retries, and worker processes."""

from tests.planted_bugs.bug import Bug

WORKERS = "tests/tools/test_workers.py"
RESOURCES = "tests/tools/test_resources.py"

BUGS = (
    Bug(
        name="a worker whose call is stopped goes on with it",
        path="harness_actors/tools/workers/pool.py",
        before="""\
            cancelled.add_note(KILLED)
            # On a busy machine that takes longer than whoever stops a call waits for it.
            await asyncio.wait((self._begin(worker.end()),), timeout=KILL_AWAITED_S)
            raise
""",
        after="""\
            cancelled.add_note(KILLED)
            raise
""",
        promise="the process of a call that is stopped is gone within a second",
        tests=(f"{WORKERS}::test_a_call_that_ignores_its_deadline_is_killed_within_a_second",),
    ),
    Bug(
        name="a worker says that it serves the run that it was started for",
        path="harness_actors/tools/workers/process.py",
        before='            mark(job.facts["environment"])\n            tool',
        after="            tool",
        promise="what is left of a run is found and ended, and what serves another run is not",
        tests=(
            f"{WORKERS}::test_whoever_looks_for_a_run_finds_the_worker_while_it_serves_it_and_not_later",
        ),
    ),
    Bug(
        name="an idle worker says that it serves its last run",
        path="harness_actors/tools/workers/process.py",
        before='            mark(dict.fromkeys(job.facts["environment"], ""))\n',
        after="",
        promise="what is left of a run is found and ended, and what serves no run is not",
        tests=(
            f"{WORKERS}::test_whoever_looks_for_a_run_finds_the_worker_while_it_serves_it_and_not_later",
        ),
    ),
    Bug(
        name="the fork of a tool answers its call",
        path="harness_actors/tools/workers/channel.py",
        before="        if os.getpid() != self._pid:\n",
        after="        if os.getpid() < 0:\n",
        promise="each call has one answer, which is its own",
        tests=(f"{WORKERS}::test_a_fork_that_comes_back_answers_nothing",),
    ),
    Bug(
        name="a worker that a call has left something in is used again",
        path="harness_actors/tools/workers/worker.py",
        before='                self.behaves = bool(answer["behaves"]) and self.is_alive\n',
        after="                self.behaves = self.is_alive\n",
        promise="what a call of a worker leaves running ends with it",
        tests=(f"{WORKERS}::test_a_process_that_a_call_leaves_ends_with_it",),
    ),
    Bug(
        name="more workers than there may be",
        path="harness_actors/tools/workers/pool.py",
        before="        self._places = asyncio.Semaphore(self.most)\n",
        after="        self._places = asyncio.Semaphore(4 * self.most)\n",
        promise="an actor has as many workers as cores at most; calls wait for a free one",
        tests=(f"{WORKERS}::test_calls_wait_for_a_free_worker",),
    ),
    Bug(
        name="an opening that failed stays",
        path="harness_actors/tools/open_resources.py",
        before="            if last and not is_open and",
        after="            if (opened.users == 0) and",
        promise="a resource that could not be opened is opened by the next call that needs it",
        tests=(
            f"{RESOURCES}::test_a_failed_opening_fails_its_calls_and_is_tried_again",
            f"{RESOURCES}::test_an_opening_that_hangs_is_given_up_with_the_last_who_waits",
        ),
    ),
    Bug(
        name="one user who is stopped takes the opening from the others",
        path="harness_actors/tools/open_resources.py",
        before="            return await asyncio.shield(opened.opening)\n",
        after="            return await opened.opening\n",
        promise="a call that is stopped changes nothing for others",
        tests=(f"{RESOURCES}::test_one_user_who_leaves_takes_it_from_nobody",),
    ),
    Bug(
        name="whatever fails is tried again",
        path="harness_actors/tools/retrying.py",
        before="if tries > options.retries or not isinstance(error, options.retry_on):\n",
        after="if tries > options.retries:\n",
        promise="a call is made again after the failures that its tool names, and after no other",
        tests=("tests/tools/test_retries.py::test_another_failure_is_not_tried_again",),
    ),
    Bug(
        name="what is told after the end of a call is told",
        path="harness_actors/turn/emission.py",
        before=" or self._deadline.cancelled or not text:\n",
        after=" or not text:\n",
        promise="whoever comes late changes nothing",
        tests=(
            "tests/tools/test_bad_calls.py::test_what_is_told_after_the_end_of_a_call_is_refused",
        ),
    ),
    Bug(
        name="the progress of a call whose message is on disk is not heard",
        path="harness_actors/actors/text/hearing.py",
        before="            if spoken.place <= self._on_disk and not self._goes_on(spoken):\n",
        after="            if spoken.place <= self._on_disk:\n",
        promise="whoever reads along is told how a call goes on, whatever it may change",
        tests=(
            "tests/actors/test_tool_workers.py::test_what_a_call_tells_is_read_along_and_not_stored",
        ),
    ),
    Bug(
        name="a generator is left open when its call is stopped",
        path="harness_actors/tools/invocation.py",
        before="            check_stopped()\n            _tell(last, context, name)\n",
        after="            _tell(last, context, name)\n",
        promise="a generator that does not end is closed at its deadline",
        tests=(
            "tests/tools/test_any_function.py::test_a_generator_without_end_is_closed_at_its_deadline",
        ),
    ),
    Bug(
        name="an image is lost on the way into the conversation",
        path="harness_actors/turn/call_scheduler.py",
        before="            images=result.images,\n",
        after="",
        promise="the model is given the images that a tool returns",
        tests=(
            "tests/actors/test_tool_workers.py::test_an_image_is_in_the_conversation_and_a_rerun_gives_the_same",
        ),
    ),
)
