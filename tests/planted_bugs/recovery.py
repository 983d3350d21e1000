"""Bugs of what a model is told of its own faults."""

from tests.planted_bugs.bug import Bug

TESTS = "tests/turn/test_recovery.py"

BUGS = (
    Bug(
        name="a text that was cut off is taken for a whole one",
        path="harness_actors/turn/recovery.py",
        before="""\
    if response.finish_reason == CUT_SHORT:
        return (CUT_AGAIN,)
""",
        after="",
        promise="an answer that was cut at its length limit is never accepted as final",
        tests=(f"{TESTS}::test_a_text_that_is_cut_off_ever_again_is_never_accepted[answer]",),
    ),
    Bug(
        name="a model that is cut off is told so for ever in one turn",
        path="harness_actors/turn/recovery.py",
        before="    return None if _was_told(log) else CUT_TEXT\n",
        after="    return CUT_TEXT\n",
        promise="what does not help is told once, and then the turn is judged",
        tests=(f"{TESTS}::test_a_text_that_is_cut_off_ever_again_is_never_accepted[explicit]",),
    ),
    Bug(
        name="an empty text ends a run as its answer",
        path="harness_actors/turn/recovery.py",
        before='    if completion == "answer" and not (response.text or "").strip():\n',
        after='    if completion == "answer" and response.text is None:\n',
        promise="an empty answer is no answer",
        tests=(f"{TESTS}::test_an_empty_answer_is_no_answer",),
    ),
    Bug(
        name="that a text was cut off is not on record",
        path="harness_actors/turn/answers.py",
        before="    if response.finish_reason == CUT_SHORT:\n",
        after="    if calls and response.finish_reason == CUT_SHORT:\n",
        promise="a replay comes out the same to the byte",
        tests=("tests/replay/test_replay.py::test_a_run_comes_out_the_same",),
    ),
    Bug(
        name="of arguments that break the schema only the fault is told",
        path="harness_actors/tools/arguments.py",
        before="            if name in at_fault:\n",
        after="            if name not in at_fault:\n",
        promise="a model is told what the schema wants where its arguments break it",
        tests=(
            "tests/tools/test_arguments_and_results.py::test_arguments_that_cannot_be_used_are_an_error_that_says_what_was_expected",
        ),
    ),
)
