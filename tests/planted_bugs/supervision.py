"""Bugs of those who start the processes of tools, and end them."""

from tests.planted_bugs.bug import Bug

BUGS = (
    Bug(
        name="a command is begun once more when it is soon done",
        path="harness_actors/tools/supervision/supervisor.py",
        before="""\
        if left := memoryview(request)[sent:]:
            self.control.sendall(left)
""",
        after="""\
        self.control.sendall(memoryview(request)[sent:])
""",
        promise="a command starts at most once",
        tests=(
            "tests/tools/test_supervision.py"
            "::test_a_keeper_that_is_done_before_its_supervisor_goes_on_has_begun",
        ),
    ),
    Bug(
        name="who asks for an end in the middle of a look gets that look's answer",
        path="harness_actors/tools/reaping.py",
        before="""\
            runs, self._waiting, self._next = self._waiting, set(), None
            return await end_carriers(self._variable, runs)
""",
        after="""\
            runs, self._waiting = self._waiting, set()
            killed = await end_carriers(self._variable, runs)
            self._next = None
            return killed
""",
        promise="a run goes on only when what an earlier process left of it is gone",
        tests=(
            "tests/tools/test_reaping.py::test_a_run_that_is_asked_for_during_a_look_gets_one_of_its_own",
        ),
    ),
    Bug(
        name="what a killed keeper had goes on",
        path="harness_actors/tools/supervision/supervisor.py",
        before="""\
                self._strays = True
                go_first()
                self._tell("lost", kept.command)
""",
        after="""\
                go_first()
                self._tell("lost", kept.command)
""",
        promise="whatever a command starts ends with it, whoever was killed before",
        tests=(
            "tests/tools/test_supervision.py::test_a_command_that_kills_its_keeper_fails_alone",
        ),
    ),
    Bug(
        name="forks of a dead actor go on",
        path="harness_actors/tools/supervision/supervisor.py",
        before="            if theirs or self._holds_channel(name):\n",
        after="            if theirs:\n",
        promise="what a tool starts past `run_command` ends with its actor on Ray",
        tests=(
            "tests/tools/test_supervision.py::test_what_an_actor_starts_past_its_supervisor_dies_with_it",
        ),
    ),
    Bug(
        name="a supervisor whose channel a fork has open goes on",
        path="harness_actors/tools/supervision/channel.py",
        before="        channel.shutdown(socket.SHUT_RDWR)\n",
        after="        pass\n",
        promise="commands end when the host that they were started for is closed",
        tests=("tests/tools/test_supervision.py::test_a_fork_of_a_host_keeps_nothing_of_it_alive",),
    ),
    Bug(
        name="a host that is closed starts another supervisor",
        path="harness_actors/tools/supervision/client.py",
        before="""\
        if self._closed:
            raise OSError(errno.ESHUTDOWN, CLOSED)
""",
        after="",
        promise="nothing is started for a host that is closed",
        tests=("tests/tools/test_supervision.py::test_a_host_that_is_closed_ends_what_it_started",),
    ),
    Bug(
        name="children of what a run has left are not looked for",
        path="harness_actors/tools/processes.py",
        before="    found += _descendants(processes, [process.pid for process in found])\n",
        after="",
        promise="what a killed supervisor leaves is ended with all that it started",
        tests=(
            "tests/tools/test_reaping.py::test_what_a_process_of_a_run_has_started_is_ended_with_it",
        ),
    ),
    Bug(
        name="a supervisor sleeps through the time of a keeper that does not end",
        path="harness_actors/tools/supervision/supervisor.py",
        before="        wait_ms = 5 if self._strays else 100 if self._has_deadlines() else None\n",
        after="        wait_ms = 5 if self._strays else None\n",
        promise="a command ends in time, also where it has stopped its keeper",
        tests=(
            "tests/tools/test_supervision.py::test_a_keeper_that_a_debugger_holds_is_killed_and_its_command_ends_alone",
        ),
    ),
    Bug(
        name="output that was not handed over stays open",
        path="harness_actors/tools/supervision/client.py",
        before="""\
        for outgoing in self._outgoing:
            outgoing.sent()
        self._outgoing.clear()
""",
        after="        self._outgoing.clear()\n",
        promise="a supervisor that dies leaves no open file",
        tests=("tests/tools/test_supervision.py::test_a_killed_supervisor_leaves_no_output_open",),
    ),
    Bug(
        name="a spare keeper that was killed refuses the next command",
        path="harness_actors/tools/supervision/supervisor.py",
        before="""\
            try:
                spare.hand_over(request, output)
                return spare
            except OSError:
                # Somebody has killed it.
                spare.control.close()
""",
        after="""\
            spare.hand_over(request, output)
            return spare
""",
        promise="what one command does to others of the machine fails no other call",
        tests=(
            "tests/tools/test_supervision.py::test_a_keeper_that_is_killed_before_it_has_a_command_is_made_up_for",
        ),
    ),
    Bug(
        name="commands ignore the signals that their supervisor ignores",
        path="harness_actors/tools/supervision/keeper.py",
        before="        setsigmask=(),\n        setsigdef=_SIGNALS,\n",
        after="        setsigmask=(),\n",
        promise="a command runs as from a shell",
        tests=(
            "tests/tools/test_run_command.py::test_commands_can_be_interrupted_though_the_harness_cannot",
        ),
    ),
    Bug(
        name="keys reach the supervisor, where commands can read them",
        path="harness_actors/tools/supervision/launch.py",
        before="""\
        name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH")
""",
        after="        name: value for name, value in os.environ.items()\n",
        promise="commands see no key of the harness",
        tests=("tests/tools/test_supervision.py::test_a_command_finds_no_key_above_it",),
    ),
    Bug(
        name="a command holds the outputs of those that wait",
        path="harness_actors/tools/supervision/supervisor.py",
        before="""\
            inherited = (CHANNEL, ACTOR, self._wake, *self._keepers, *self._outputs, *outputs)
""",
        after="            inherited = (CHANNEL, ACTOR, self._wake, *self._keepers, *outputs)\n",
        promise="a command that ends is seen to end, whatever runs beside it",
        tests=("tests/tools/test_supervision.py::test_a_command_holds_no_output_of_another_open",),
    ),
    Bug(
        name="a command starts for a supervisor that is dead",
        path="harness_actors/tools/supervision/keeper.py",
        before="        return None if hangup.poll(0) else (*message, outputs[0])\n",
        after="        return (*message, outputs[0])\n",
        promise="what is not started when its actor dies never is",
        tests=(
            "tests/tools/test_supervision.py::test_a_keeper_starts_nothing_for_a_supervisor_that_is_dead",
        ),
    ),
    Bug(
        name="why a command was stopped is forgotten with its keeper",
        path="harness_actors/tools/supervision/client.py",
        before="        self.stopped = self.stopped or reason\n",
        after="        self.stopped = reason\n",
        promise="the model is told why its command was stopped",
        tests=(
            "tests/tools/test_supervision.py::test_a_command_that_was_stopped_says_why_also_where_its_keeper_is_lost_after_that",
        ),
    ),
    Bug(
        name="a command that begins to start processes is counted as seldom as before",
        path="harness_actors/tools/supervision/keeper.py",
        before="        pause_s = 1.5 * self._pause_s if count == self._count else FIRST_COUNT_S\n",
        after="        pause_s = 1.5 * self._pause_s\n",
        promise="a command that starts ever more processes fails, before the machine does",
        tests=(
            "tests/tools/test_supervision.py::test_a_command_is_counted_often_where_the_number_of_its_processes_changes",
        ),
    ),
    Bug(
        name="a command whose keeper was killed ends before what it started",
        path="harness_actors/tools/supervision/client.py",
        before="""\
            self._killed += await end_carriers(COMMAND_VARIABLE, {self.mark})
""",
        after="            pass\n",
        promise="whatever a command starts ends with it, whoever was killed before",
        tests=(
            "tests/tools/test_supervision.py::test_the_end_of_a_command_whose_keeper_was_lost_is_that_of_all_it_started",
        ),
    ),
    Bug(
        name="each word to end a command gives its keeper another second",
        path="harness_actors/tools/supervision/supervisor.py",
        before="            if kept.command == command and kept.kill_at is None:\n",
        after="            if kept.command == command:\n",
        promise="a command ends in time, also where it has stopped its keeper",
        tests=(
            "tests/tools/test_supervision.py::test_a_command_that_is_to_end_has_the_time_of_the_first_word_alone",
        ),
    ),
    Bug(
        name="output is read on after the end of its command",
        path="harness_actors/tools/shell.py",
        before="""\
        if self._resume is not None:
            self._resume.cancel()
""",
        after="",
        promise="no file of somebody else is read",
        tests=(
            "tests/tools/test_run_command.py::test_output_that_is_closed_in_its_pause_reads_nothing_of_whoever_comes_next",
        ),
    ),
    Bug(
        name="a channel that was full once keeps its reader busy for ever",
        path="harness_actors/tools/supervision/client.py",
        before="""\
        else:
            self._loop.remove_writer(self._channel)
""",
        after="",
        promise="a host that has nothing to do does nothing",
        tests=(
            "tests/tools/test_supervision.py::test_a_channel_that_was_full_is_left_in_peace_when_all_is_sent",
        ),
    ),
    Bug(
        name="a command makes folders in the place of those that are hidden from it",
        path="harness_actors/tools/supervision/covering.py",
        before="""\
            _mount(None, folder, None, MS_REMOUNT | MS_BIND | MS_RDONLY | _EMPTY)
""",
        after="",
        promise="the way to a workspace cannot be changed from inside",
        tests=(
            "tests/tools/test_covering.py::test_the_way_to_a_workspace_cannot_be_changed_from_inside",
        ),
    ),
    Bug(
        name="a command starts uncovered that must be covered",
        path="harness_actors/tools/supervision/covering.py",
        before="        if required:\n",
        after="        if required and error.errno == errno.EPERM:\n",
        promise="where workspaces must be hidden and cannot be, no command starts",
        tests=(
            "tests/tools/test_covering.py::test_a_folder_that_does_not_hold_the_workspace_is_not_covered",
        ),
    ),
    Bug(
        name="what a user keeps in a run directory is hidden from commands",
        path="harness_actors/batch/hiding.py",
        before="    folder = run_directory if is_ours else run_directory / WORKSPACES\n",
        after="    folder = run_directory\n",
        promise="of a run directory with files of a user the workspaces alone are hidden",
        tests=(
            "tests/batch/test_hiding.py::test_all_of_a_run_directory_is_covered_where_all_of_it_is_ours",
        ),
    ),
    Bug(
        name="children of other threads are not counted",
        path="harness_actors/tools/supervision/descendants.py",
        before='        for thread in os.listdir(f"/proc/{pid}/task"):\n',
        after="        for thread in [pid]:\n",
        promise="a command may have so many processes at once, and no more",
        tests=(
            "tests/tools/test_descendants.py::test_children_that_another_thread_has_started_are_children_too",
        ),
    ),
    Bug(
        name="how a command ended is lost with its keeper",
        path="harness_actors/tools/supervision/client.py",
        before="""\
        if not self._exited.is_set():
            self._exit_code = code
            self._exited.set()
""",
        after="""\
        self._exit_code = code
        self._exited.set()
""",
        promise="a model is told how its command ended",
        tests=(
            "tests/tools/test_supervision.py::test_how_a_command_ended_stays_whatever_becomes_of_its_keeper_after_that",
        ),
    ),
    Bug(
        name="a command that cannot be started takes its supervisor with it",
        path="harness_actors/tools/supervision/client.py",
        before="                self._exit(0)\n                self._gone.set()\n",
        after="                self._exit(0)\n",
        promise="a command that fails fails alone",
        tests=(
            "tests/tools/test_supervision.py::test_a_command_that_cannot_be_started_fails_alone_and_its_supervisor_stays",
        ),
    ),
    Bug(
        name="a command that uses up the memory gets rid of its keeper",
        path="harness_actors/tools/supervision/keeper.py",
        before="        except (OSError, MemoryError):\n",
        after="        except ZeroDivisionError:\n",
        promise="all that a command started ends with it, whatever the machine has left to give",
        tests=(
            "tests/tools/test_supervision.py::test_a_keeper_without_memory_stays_until_its_command_has_ended",
        ),
    ),
    Bug(
        name="a supervisor leaves what it has no memory to end",
        path="harness_actors/tools/supervision/supervisor.py",
        before="        except (OSError, MemoryError):\n",
        after="        except ZeroDivisionError:\n",
        promise="all that a command started ends with it, whatever the machine has left to give",
        tests=(
            "tests/tools/test_supervision.py::test_a_supervisor_without_memory_starts_commands_later_and_ends_them",
        ),
    ),
    Bug(
        name="those who fork faster than they are found are counted for ever",
        path="harness_actors/tools/supervision/descendants.py",
        before="    return sum(1 for _ in islice(below(pid), most + 1))\n",
        after="    return sum(1 for _ in islice(below(pid), 50 * most))\n",
        promise="a command may have so many processes at once, and no more",
        tests=(
            "tests/tools/test_descendants.py::test_those_who_fork_faster_than_they_are_found_are_counted_up_to_the_bound",
        ),
    ),
    Bug(
        name="of a group those are killed that were found",
        path="harness_actors/tools/supervision/descendants.py",
        before="                os.killpg(group, signal.SIGKILL)\n",
        after="                pass\n",
        promise="a fork bomb is ended at the bound, or at its time limit",
        tests=(
            "tests/tools/test_descendants.py::test_a_group_is_killed_with_those_of_it_that_are_not_found_yet",
        ),
    ),
    Bug(
        name="a keeper waits for its turn among those that it is to end",
        path="harness_actors/tools/supervision/keeper.py",
        before="            go_first()\n",
        after="",
        promise="a fork bomb is ended at the bound, or at its time limit",
        tests=(
            "tests/tools/test_supervision.py"
            "::test_a_keeper_goes_first_from_the_beginning_and_its_command_does_not",
        ),
    ),
    Bug(
        name="those that were killed wait for their turn among those who fork on",
        path="harness_actors/tools/supervision/descendants.py",
        before="                    go_first(pid)\n",
        after="                    pass\n",
        promise="a fork bomb is ended at the bound, or at its time limit",
        tests=(
            "tests/tools/test_descendants.py::test_of_a_crowd_those_that_were_killed_need_not_wait_to_die",
        ),
    ),
    Bug(
        name="who kills a crowd waits for each of it that begins a program",
        path="harness_actors/tools/supervision/descendants.py",
        before="""\
            state = file.read().partition(b"\\nState:\\t")[2][:1]
""",
        after="""\
            state = (_facts(pid) or [b"X"])[0]
""",
        promise="a fork bomb is ended at the bound, or at its time limit",
        tests=(
            "tests/tools/test_descendants.py"
            "::test_nobody_who_is_to_be_killed_is_waited_for_while_it_begins_a_program",
        ),
    ),
    Bug(
        name="a keeper that has much to end is killed as late",
        path="harness_actors/tools/supervision/supervisor.py",
        before="            if late and is_stopped(kept.pid):\n",
        after="            if late:\n",
        promise="a fork bomb is ended at the bound, or at its time limit",
        tests=("tests/tools/test_supervision.py::test_a_keeper_that_works_slowly_is_not_killed",),
    ),
    Bug(
        name="a command that was stopped is said to be gone while it dies",
        path="harness_actors/tools/shell.py",
        before="        keep = leave_background and ended and not process.stopped\n",
        after="        keep = leave_background and ended\n",
        promise="what is said to be killed with all that it started is gone",
        tests=(
            "tests/tools/test_supervision.py::test_a_command_that_was_stopped_is_waited_for_until_nothing_of_it_is_left",
        ),
    ),
    Bug(
        name="of processes that were killed only the last ones are counted",
        path="harness_actors/tools/supervision/keeper.py",
        before="        self._killed |= kill_below()\n",
        after="        self._killed = kill_below()\n",
        promise="a result tells how many processes of its command were killed",
        tests=(
            "tests/tools/test_supervision.py::test_those_that_were_killed_are_counted_over_all_looks",
        ),
    ),
    Bug(
        name="what a killed keeper leaves is killed once",
        path="harness_actors/tools/supervision/supervisor.py",
        before="            self._strays = bool(kill_below(spared))\n",
        after="""\
            kill_below(spared)
            self._strays = False
""",
        promise="nothing of a command goes on when its keeper was killed",
        tests=(
            "tests/tools/test_supervision.py::test_what_a_killed_keeper_leaves_is_killed_until_none_of_it_is_seen",
        ),
    ),
    Bug(
        name="commands that are over are kept, and lost with their supervisor",
        path="harness_actors/tools/supervision/client.py",
        before="""\
                if process.is_gone:
                    del self._processes[number]
""",
        after="",
        promise="a supervisor that is killed takes along only what it had",
        tests=(
            "tests/tools/test_supervision.py::test_a_killed_supervisor_loses_no_command_that_was_over",
        ),
    ),
)
