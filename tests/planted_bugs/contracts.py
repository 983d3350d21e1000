"""Bugs of contracts and their verification."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="what was met once stays met",
        path="harness_actors/contracts/verifier.py",
        before="""\
            if known.entries[output.id].status != "skipped"
""",
        after="""\
            if known.entries[output.id].status not in ("skipped", "met")
""",
        promise="everything is looked at anew at each attempt",
        tests=(
            "tests/contracts/test_verifier.py::test_nothing_is_taken_over_from_an_earlier_attempt",
        ),
    ),
    Bug(
        name="not of what cannot be told is met",
        path="harness_actors/contracts/combining.py",
        before='        case "unmet":\n',
        after='        case "unmet" | "unknown":\n',
        promise="what cannot be told is not met, and neither is its opposite",
        tests=(
            "tests/contracts/test_predicates.py::test_a_predicate_is_told_by_what_is_in_the_workspace",
        ),
    ),
    Bug(
        name="one unknown part is left out of all",
        path="harness_actors/contracts/combining.py",
        before="""\
    verdict = deciding if deciding in verdicts else "unknown" if unknown else else_
""",
        after="""\
    verdict = deciding if deciding in verdicts else else_ if else_ in verdicts else "unknown"
""",
        promise="what cannot be told of a part leaves the whole untold",
        tests=(
            "tests/contracts/test_predicates.py::test_what_cannot_be_told_of_a_part_leaves_the_whole_untold_unless_others_decide",
        ),
    ),
    Bug(
        name="a command that was not found counts as one that failed",
        path="harness_actors/contracts/looking.py",
        before="            if end.exit_code >= NOT_RUN:\n",
        after="            if end.exit_code > 255:\n",
        promise="a command that could not be run has found nothing",
        tests=(
            "tests/contracts/test_predicates.py::test_a_predicate_is_told_by_what_is_in_the_workspace",
        ),
    ),
    Bug(
        name="any success of a tool will do",
        path="harness_actors/contracts/looking.py",
        before="        if newest.is_error:\n",
        after="        if newest.is_error and not newest.text:\n",
        promise="the newest result of the tool is a success",
        tests=(
            "tests/contracts/test_predicates.py::test_a_tool_has_succeeded_if_its_newest_result_is_a_success",
        ),
    ),
    Bug(
        name="a judge that says nothing clear is taken to agree",
        path="harness_actors/contracts/judging.py",
        before="""\
    if not isinstance(plain, dict) or not isinstance(plain.get("met"), bool):
""",
        after="""\
    if not isinstance(plain, dict) or "met" not in plain:
""",
        promise="a judge is taken at its word only if it says yes or no",
        tests=(
            "tests/contracts/test_predicates.py::test_a_judge_is_taken_at_its_word_if_it_gives_one",
        ),
    ),
    Bug(
        name="the size of a file is not looked at",
        path="harness_actors/contracts/file_findings.py",
        before="    if fact.size_bytes < predicate.min_bytes:\n",
        after="    if fact.size_bytes < 0:\n",
        promise="a file has as many bytes as is required",
        tests=(
            "tests/contracts/test_predicates.py::test_a_predicate_is_told_by_what_is_in_the_workspace",
        ),
    ),
    Bug(
        name="another folder in the place of the workspace is looked into",
        path="harness_actors/contracts/workspace.py",
        before="        with open_workspace(self.folder, self.id) as root:\n",
        after="        with open_workspace(self.folder, None) as root:\n",
        promise="nothing is looked at in a folder that took the place of the workspace",
        tests=(
            "tests/contracts/test_predicates.py::test_another_folder_in_the_place_of_the_workspace_is_not_looked_into",
        ),
    ),
    Bug(
        name="a schema may name another document",
        path="harness_actors/contracts/schemas.py",
        before="""\
        if name in _REFERENCES and isinstance(value, str) and not value.startswith("#"):
""",
        after="""\
        if name in _REFERENCES and isinstance(value, str) and value.startswith("http"):
""",
        promise="a schema that refers to another document is refused",
        tests=(
            "tests/contracts/test_contract.py::test_a_schema_that_needs_another_document_is_refused",
        ),
    ),
    Bug(
        name="a repeat in an alternative of a repeat is taken",
        path="harness_actors/contracts/patterns.py",
        before="""\
        case "BRANCH":
            return any(_repeats_repeats(branch, within=within) for branch in value[1])
""",
        after="""\
        case "BRANCH":
            return any(_repeats_repeats(branch, within=False) for branch in value[1])
""",
        promise="patterns that may never end are refused before anything runs",
        tests=(
            "tests/contracts/test_contract.py::test_a_value_that_cannot_be_is_refused_where_it_is_made",
        ),
    ),
    Bug(
        name="open questions are never too many",
        path="harness_actors/contracts/gaps.py",
        before="            needs_answers=len(unanswered) > criteria.max_known_unknowns,\n",
        after="            needs_answers=len(unanswered) > criteria.max_known_unknowns + 1,\n",
        promise="no more questions stay open than may",
        tests=("tests/contracts/test_verifier.py::test_a_report_says_what_to_do_next",),
    ),
    Bug(
        name="what only a run can tell is assumed where more is missing",
        path="harness_actors/contracts/combining.py",
        before="""\
        needs_run=verdict == "unknown" and all(part.needs_run for part in unknown),
""",
        after="""\
        needs_run=any(part.needs_run for part in unknown),
""",
        promise="only what a run alone can tell is assumed",
        tests=(
            "tests/contracts/test_predicates.py::test_what_cannot_be_told_of_a_part_leaves_the_whole_untold_unless_others_decide",
        ),
    ),
    Bug(
        name="files are looked at before commands",
        path="harness_actors/contracts/verifier.py",
        before="""\
                last[place] = leaf
""",
        after="""\
                found[place] = await looks.at(leaf)
""",
        promise="what is found of files is so after the last command",
        tests=(
            "tests/contracts/test_verifier.py::test_files_are_looked_at_after_the_commands_that_may_change_them",
        ),
    ),
    Bug(
        name="a contract that is not met ends with status 0",
        path="harness_actors/cli/contract.py",
        before="    raise typer.Exit(ALL_DONE if verification.satisfied else NOT_ALL_DONE)\n",
        after="    raise typer.Exit(NOT_ALL_DONE if verification.gaps.doubt else ALL_DONE)\n",
        promise="the exit status says whether the contract is met",
        tests=(
            "tests/cli/test_contract_command.py::test_what_is_missing_is_shown_and_told_by_the_exit_status",
        ),
    ),
    Bug(
        name="what there was nothing to judge of counts as judged",
        path="harness_actors/contracts/looking.py",
        before='Finding(verdict="unknown", why=cut(f"nothing to judge: {read.told}"))',
        after='Finding(verdict="unmet", why=cut(f"nothing to judge: {read.told}"))',
        promise="the opposite of what nobody has judged does not hold",
        tests=(
            "tests/contracts/test_predicates.py::test_a_judge_is_not_asked_about_a_file_that_is_not_there",
        ),
    ),
)
