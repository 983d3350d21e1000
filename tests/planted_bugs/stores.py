"""Bugs of the journal and of what is around it."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="the last who reads removes what was made anew",
        path="harness_actors/stores/key_files.py",
        before="            if os.fstat(self._file).st_nlink:\n",
        after="            if self._name:\n",
        promise="calls of one tree that touch the same are not made at once",
        tests=(
            "tests/stores/test_key_files.py::test_a_file_that_was_made_anew_is_not_removed_by_who_had_the_old_one",
        ),
    ),
    Bug(
        name="a lock is taken on a file that is there no more",
        path="harness_actors/stores/key_files.py",
        before="os.fstat(file).st_nlink > 0:",
        after="os.fstat(file).st_nlink >= 0:",
        promise="calls of one tree that touch the same are not made at once",
        tests=(
            "tests/stores/test_key_files.py::test_a_file_that_was_removed_before_it_is_locked_is_looked_for_again",
        ),
    ),
    Bug(
        name="a process hands a key on for as long as it likes",
        path="harness_actors/stores/key_locks.py",
        before="                await asyncio.sleep(ASIDE_S)\n",
        after="",
        promise="no process keeps a key from the calls of others",
        tests=(
            "tests/stores/test_key_locks.py::test_a_process_whose_calls_always_want_a_key_lets_others_look_now_and_then",
        ),
    ),
    Bug(
        name="keys are taken in the order in which they are named",
        path="harness_actors/stores/key_locks.py",
        before="for key in sorted(set(keys))]",
        after="for key in dict.fromkeys(keys)]",
        promise="no two calls wait for each other",
        tests=(
            "tests/stores/test_key_locks.py::test_calls_that_name_the_same_keys_in_other_orders_do_not_wait_for_each_other",
        ),
    ),
    Bug(
        name="what the dead have locked stays behind",
        path="harness_actors/stores/key_files.py",
        before="            _sweep(self._folder)\n",
        after="",
        promise="locks do not grow in number",
        tests=(
            "tests/stores/test_key_files.py::test_what_the_dead_have_left_is_removed_by_the_next_to_come",
        ),
    ),
    Bug(
        name="who comes later is given a key first",
        path="harness_actors/stores/key_locks.py",
        before="held = None if queue.waiting else self._keys.take(*place, reads=reads)\n",
        after="held = self._keys.take(*place, reads=reads)\n",
        promise="who writes is not kept waiting forever by those who read",
        tests=(
            "tests/stores/test_key_locks.py::test_who_reads_comes_behind_who_writes_and_was_there_first",
        ),
    ),
    Bug(
        name="the change of a snapshot is applied once more",
        path="harness_actors/stores/queries.py",
        before=(
            '        "SELECT version, delta FROM records '
            'WHERE run = ? AND version > ? ORDER BY position",\n'
        ),
        after=(
            '        "SELECT version, delta FROM records '
            'WHERE run = ? AND version >= ? ORDER BY position",\n'
        ),
        promise="a run goes on with the state that it had",
        tests=(
            "tests/stores/test_round_trips.py::test_replaying_any_deltas_gives_the_state_that_they_made",
        ),
    ),
    Bug(
        name="a conversation expires with its oldest run",
        path="harness_actors/stores/expiry.py",
        before="    HAVING min(ended) = 1 AND max(at) < ?\n",
        after="    HAVING min(ended) = 1 AND min(at) < ?\n",
        promise="what is younger than it was asked for is kept",
        tests=("tests/stores/test_expiry.py::test_a_conversation_that_goes_on_stays_whole",),
    ),
    Bug(
        name="journals that were only looked through stay locked",
        path="harness_actors/stores/home.py",
        before="""\
            if not found and not held_before:
                release(path)
""",
        after="""\
            pass
""",
        promise="a store on which nobody works is free for the next command",
        tests=(
            "tests/stores/test_shared_journals.py::test_only_the_journal_that_has_a_run_is_held_for_it",
        ),
    ),
    Bug(
        name="a lock names its owner and the one before",
        path="harness_actors/stores/lock.py",
        before="    file.truncate(0)\n",
        after="",
        promise="a command that is refused names the process that works on the store",
        tests=(
            "tests/stores/test_expiry.py::test_a_lock_names_whoever_took_it_last_and_nobody_else",
        ),
    ),
    Bug(
        name="a run is taken up to be nudged after the words of another",
        path="harness_actors/stores/taking_up.py",
        before='    return turn.ending == "text" and run.spec.config.completion != "answer"\n',
        after="    return False\n",
        promise="a run is not taken up where it would answer what was said after it",
        tests=(
            "tests/stores/test_taking_up.py::test_a_run_that_has_only_to_be_judged_goes_on_to_its_end",
        ),
    ),
    Bug(
        name="a run that its gates send back is taken up after the words of another",
        path="harness_actors/stores/taking_up.py",
        before='    if turn.findings or turn.ending == "rounds":\n',
        after='    if turn.ending == "rounds":\n',
        promise="a run is not taken up where it would answer what was said after it",
        tests=(
            "tests/stores/test_taking_up.py::test_a_run_that_has_only_to_be_judged_goes_on_to_its_end",
        ),
    ),
    Bug(
        name="an executor of the user's own is taken for one that ends the run",
        path="harness_actors/stores/taking_up.py",
        before="    if not isinstance(turn, TurnComplete) or run.spec.custom:\n",
        after="    if not isinstance(turn, TurnComplete):\n",
        promise="a run is not taken up where it would answer what was said after it",
        tests=(
            "tests/stores/test_taking_up.py::test_a_run_that_has_only_to_be_judged_goes_on_to_its_end",
        ),
    ),
    Bug(
        name="the newest conversation expires with its positions",
        path="harness_actors/stores/expiry.py",
        before="        AND max(newest) < (SELECT max(position) FROM records)\n",
        after="",
        promise="a cursor stays valid, and no position is used twice",
        tests=(
            "tests/stores/test_expiry.py::test_unfinished_and_parked_runs_stay_however_old_they_are",
        ),
    ),
    Bug(
        name="a conversation expires with a run of it that waits",
        path="harness_actors/stores/expiry.py",
        before="    HAVING min(ended) = 1 AND max(at) < ?\n",
        after="    HAVING max(ended) = 1 AND max(at) < ?\n",
        promise="a run that is parked or unfinished stays, however old it is",
        tests=("tests/stores/test_expiry.py::test_a_conversation_that_goes_on_stays_whole",),
    ),
    Bug(
        name="losses are forgotten when a run is put aside",
        path="harness_actors/stores/queries.py",
        before=(
            '        "SELECT losses FROM records WHERE run = ? AND version IS NOT NULL "\n'
            '        "ORDER BY position DESC LIMIT 1",\n'
        ),
        after=(
            '        "SELECT losses FROM records WHERE run = ? "\n'
            '        "ORDER BY position DESC LIMIT 1",\n'
        ),
        promise="a run that kills its process again and again is isolated, and ends",
        tests=("tests/stores/test_round_trips.py::test_losses_are_those_of_the_newest_change",),
    ),
    Bug(
        name="a page of events ends in the middle of a change",
        path="harness_actors/stores/queries.py",
        before="    changes.close()\n    return found\n",
        after="    changes.close()\n    return found[:limit]\n",
        promise="events of one change are never split, so none is left out",
        tests=(
            "tests/stores/test_events.py::test_paging_by_position_sees_every_event_once_and_splits_no_change",
        ),
    ),
    Bug(
        name="a run was changed last when it was changed first",
        path="harness_actors/stores/headings.py",
        before=(
            '        "(SELECT max(position) FROM records AS newest WHERE newest.run = runs.id) "\n'
        ),
        after=(
            '        "(SELECT min(position) FROM records AS newest WHERE newest.run = runs.id) "\n'
        ),
        promise="`ctl run list` says when something last happened in a run",
        tests=("tests/stores/test_reader.py::test_a_list_of_runs_says_where_each_stands",),
    ),
    Bug(
        name="runs are known that were taken back",
        path="harness_actors/stores/commit.py",
        before="""\
            # It may hold runs of the group that was just taken back.
            self._rows_of_runs.clear()
            raise
""",
        after="            raise\n",
        promise="a commit that fails leaves nothing behind",
        tests=("tests/stores/test_commits.py::test_a_failing_entry_leaves_nothing_of_its_group",),
    ),
    Bug(
        name="who holds a lock cannot be told",
        path="harness_actors/stores/lock.py",
        before="""\
    file.write(str(os.getpid()).encode())
    file.flush()
""",
        after="    file.write(str(os.getpid()).encode())\n",
        promise="who is refused is told which process works there",
        tests=(
            "tests/stores/test_expiry.py::test_a_lock_names_whoever_took_it_last_and_nobody_else",
        ),
    ),
    Bug(
        name="a commit to a file that is nowhere is a commit",
        path="harness_actors/stores/sqlite.py",
        before="""\
            # After it, too: what follows from a commit must not leave if that is nowhere.
            if (size := self._files.check()) > self._log_bytes:
                self._move_log(size)
""",
        after="",
        promise="committed means on the disk, where others find it",
        tests=(
            "tests/stores/test_standing.py::test_nothing_is_committed_any_more_and_the_error_says_what_happened",
        ),
    ),
    Bug(
        name="changes are read without the tracebacks of their calls",
        path="harness_actors/stores/codec.py",
        before="        _with_facts(messages, further),\n",
        after="        tuple(messages),\n",
        promise="who looks at a run sees where its tools failed",
        tests=(
            "tests/stores/test_round_trips.py::test_a_traceback_comes_back_wherever_its_message_is_read",
        ),
    ),
    Bug(
        name="what removed runs cost is that of the last removal",
        path="harness_actors/stores/expiry.py",
        before="""\
    connection.execute("UPDATE removed SET cost_usd = cost_usd + ?", (cost_usd,))
""",
        after='    connection.execute("UPDATE removed SET cost_usd = ?", (cost_usd,))\n',
        promise="a budget is spent by what runs cost, those included that were removed",
        tests=(
            "tests/stores/test_expiry.py::test_what_is_removed_bit_by_bit_leaves_its_sum_and_no_log",
        ),
    ),
    Bug(
        name="a journal whose log was moved waits for nobody any more",
        path="harness_actors/stores/sqlite.py",
        before="""\
            self._writer.execute(f"PRAGMA busy_timeout = {int(self._busy_s * 1000)}")
""",
        after="            pass\n",
        promise="a commit waits for those who lock the file for a moment",
        tests=(
            "tests/stores/test_growth.py::test_a_journal_waits_for_others_as_before_when_its_log_was_moved",
        ),
    ),
    Bug(
        name="each process says once more that a log is at its limit",
        path="harness_actors/stores/logs.py",
        before='                data = data.ljust(room, b"\\n")\n',
        after="",
        promise="the log of a run is bounded",
        tests=("tests/stores/test_logs.py::test_a_log_at_its_limit_says_so_once_whoever_writes",),
    ),
    Bug(
        name="what a removed run printed stays",
        path="harness_actors/stores/expiry.py",
        before="        remove_logs(path, runs)\n",
        after="",
        promise="what a run printed is removed with it",
        tests=(
            "tests/stores/test_expiry.py::test_what_is_removed_bit_by_bit_leaves_its_sum_and_no_log",
        ),
    ),
    Bug(
        name="of runs that are removed together only the last has cost something",
        path="harness_actors/stores/expiry.py",
        before="        cost_usd += 0.0 if end is None else end.usage.cost_usd\n",
        after="        cost_usd = 0.0 if end is None else end.usage.cost_usd\n",
        promise="what removed runs cost stays known, as one sum: a budget counts it",
        tests=(
            "tests/stores/test_expiry.py::test_what_is_removed_at_once_leaves_the_sum_of_it_all",
        ),
    ),
    Bug(
        name="what a program asks with is dropped though a run names it",
        path="harness_actors/stores/expiry.py",
        before="        unnamed = [row for row in stored if program_of(row[0]) not in named]\n",
        after="        unnamed = [row for row in stored if row[0] not in named]\n",
        promise="a conversation is exported with its system prompt and its tools",
        tests=("tests/stores/test_expiry.py::test_compacting_drops_code_that_no_run_names",),
    ),
    Bug(
        name="how a call failed is not stored",
        path="harness_actors/stores/codec.py",
        before=(
            "    return int(message.is_error) if message.failure is None "
            "else _OF_FAILURES[message.failure]\n"
        ),
        after="    return int(message.is_error)\n",
        promise="what became of a call is read wherever its result is",
        tests=(
            "tests/stores/test_round_trips.py::test_what_became_of_a_call_comes_back_wherever_its_result_is_read",
        ),
    ),
    Bug(
        name="a log that another process moves is taken for moved",
        path="harness_actors/stores/marks.py",
        before="    if pages != moved or moved < 0:\n",
        after="    if pages != moved:\n",
        promise="a journal that two processes open at once stays whole",
        tests=(
            "tests/stores/test_processes.py::test_a_journal_that_is_opened_while_another_process_moves_its_log_stays_whole",
        ),
    ),
)
