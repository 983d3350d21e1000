"""Bugs in the copies in which runs work for others, and in how these come back."""

from tests.planted_bugs.bug import Bug

MERGES = "tests/subagents/test_merging.py::"
COPIES = "tests/subagents/test_copies.py::"
READING = "tests/subagents/test_workspaces.py::"

BUGS = (
    Bug(
        name="what was merged before is merged again",
        path="harness_actors/tools/merging.py",
        before="        return (path, theirs, ours) in self._known\n",
        after="        return False\n",
        promise="the same call again changes nothing",
        tests=(MERGES + "test_lines_that_were_merged_before_are_not_taken_twice",),
    ),
    Bug(
        name="a file that is deleted in a copy is deleted whatever the workspace has of it",
        path="harness_actors/tools/merging.py",
        before="        if is_same(path, mine, (self._base, before)):\n",
        after="        if after is None or is_same(path, mine, (self._base, before)):\n",
        promise="nothing of the workspace is lost",
        tests=(MERGES + "test_a_conflict_is_named_and_the_file_stays",),
    ),
    Bug(
        name="a link that leads out of the workspace comes into it",
        path="harness_actors/tools/merging.py",
        before='    if not stays(path.count("/"), after.text):\n',
        after='    if after.text.startswith("/"):\n',
        promise="a copy brings no link that leads out of the workspace",
        tests=(MERGES + "test_a_conflict_is_named_and_the_file_stays",),
    ),
    Bug(
        name="an earlier run's news is taken for that of this one",
        path="harness_actors/turn/child_copies.py",
        before="                return False\n",
        after="                continue\n",
        promise="a copy is brought in when whoever worked in it has ended",
        tests=(COPIES + "test_a_handle_is_of_one_run_of_a_conversation",),
    ),
    Bug(
        name="those below one that only reads write",
        path="harness_actors/coordination/child_specs.py",
        before='    read_only = parent.read_only or start.workspace == "read_only"\n',
        after='    read_only = start.workspace == "read_only"\n',
        promise="below one that only reads, nobody writes but in copies",
        tests=(READING + "test_those_below_one_that_only_reads_write_nothing_in_its_workspace",),
    ),
    Bug(
        name="who only reads brings in what was done in a copy",
        path="harness_actors/subagents/bringing_in.py",
        before="        check_writable(root)\n",
        after="",
        promise="nothing is written for an agent whose workspace is read-only",
        tests=(READING + "test_one_that_only_reads_brings_nothing_in",),
    ),
)
