"""What must hold after a batch was under fire: nothing lost, nothing twice, nothing late."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_actors.conversation import UNKNOWN_OUTCOME, repaired
from harness_actors.errors import HarnessError
from harness_actors.events import ExecutorLost, InputAwaited
from harness_actors.messages import Message
from harness_actors.records import RunHeading
from harness_actors.stores import JournalReader
from tests.chaos.command import BatchCommand
from tests.chaos.logs import ToolLine, read_tool_log
from tests.chaos.model import Asked
from tests.chaos.people import Answers, payments_of, questions_of
from tests.chaos.plans import AGENTS, ASK, PAY, WAIT, RunPlan
from tests.chaos.strikes import Strike
from tests.chaos.trees import Tree, faults_in

WORDS = (
    "lost",
    "doubled",
    "started twice",
    "unanswered",
    "late",
    "wrongly ended",
    "malformed",
    "ran though denied",
)
"""What can be found; every finding is of one of these."""
LATE_AFTER_S = 0.05
"""A line is stamped before it is written, and a signal takes a moment to arrive."""
AGAIN = ("look", "put", ASK, WAIT, *AGENTS)
"""Calls whose outcome is never unknown: they are made again, or nothing has begun with them."""
ONCE = ("note", "work", PAY)
"""Calls that must not be made twice."""
DONE = ("noted in ", "worked in ", "paid in ")
"""How their results begin."""
SURVIVES_S = 1.0
"""How long a process that a tool has started may outlive its host."""


@dataclass(slots=True)
class Findings:
    """What was found, by kind; and what was counted without being wrong.

    Attributes:
        broken: Sentences that say what is wrong, each with its kind.
        calls: Calls in the logs of all runs.
        unknown: Calls whose outcome a death has hidden.
        repeated: Idempotent calls that ran more than once.
        waited: Runs that waited for their user.
        questions: What they asked.
        decided: Calls that people decided about.
        children: Runs that were delegated.
        waves: How often calls of one run, and one process, began to run beside others.
    """

    broken: list[tuple[str, str]] = field(default_factory=list)
    calls: int = 0
    unknown: int = 0
    repeated: int = 0
    waited: int = 0
    questions: int = 0
    decided: int = 0
    children: int = 0
    waves: int = 0

    def add(self, word: str, sentence: str) -> None:
        assert word in WORDS
        self.broken.append((word, sentence))

    def count(self, word: str) -> int:
        return sum(found == word for found, _ in self.broken)


def check(
    command: BatchCommand,
    strikes: Sequence[Strike] = (),
    asked: Sequence[Asked] = (),
    answers: Answers | None = None,
) -> Findings:
    """Look at all that a batch left behind, when its command has ended."""
    findings = Findings()
    answers = answers or Answers()
    results = check_results(command, findings)
    lines = read_tool_log(command.tool_log)
    try:
        journal = JournalReader(command.store)
        headings = journal.headings()
        trees = Tree.of(journal, headings)
        for heading in headings:
            log = journal.load_conversation(heading.conversation_id)
            tree = trees[heading.run_id]
            plan = tree.plan
            _check_log(heading, plan, log, lines, findings)
            _check_losses(heading, plan, journal, findings)
            findings.children += tree.is_child
            for word, sentence in faults_in(tree, log):
                findings.add(word, f"{plan.name}: {sentence}")
            told = [one.event for one in journal.load_events(0, run_id=heading.run_id)]
            findings.waited += any(isinstance(event, InputAwaited) for event in told)
            findings.questions += len(questions_of(log))
            findings.decided += len(payments_of(log))
            check_denied(heading.run_id, log, lines, findings)
            for word, sentence in answers.faults_in(log):
                findings.add(word, f"{heading.run_id}: {sentence}")
    except HarnessError as error:
        findings.add("lost", f"the journal cannot be read: {error}")
        return findings
    _check_runs(headings, results, findings)
    check_tools(lines, strikes, findings)
    check_steps(asked, findings)
    return findings


def check_results(command: BatchCommand, findings: Findings) -> dict[str, dict[str, Any]]:
    """One whole line for each task, and no other; returns them by task."""
    path = command.results_path
    raw = path.read_bytes() if path.exists() else b""
    if raw and not raw.endswith(b"\n"):
        findings.add("malformed", f"{path} ends in a torn line")
    results: list[dict[str, Any]] = []
    for number, line in enumerate(raw.splitlines(), start=1):
        try:
            results.append(json.loads(line))
        except ValueError:
            findings.add("malformed", f"{path}:{number} is no JSON")
    counts = Counter(str(result["id"]) for result in results)
    for name in command.plans.keys() - counts.keys():
        findings.add("lost", f"{name} has no line in {path}")
    for name, count in counts.items():
        if name not in command.plans:
            findings.add("malformed", f"{path} has a line of {name!r}, which is no task")
        elif count > 1:
            findings.add("doubled", f"{name} has {count} lines in {path}")
    for result in results:
        _check_ending(result, command.plans, findings)
    return {str(result["id"]): result for result in results}


def _check_ending(
    result: Mapping[str, Any], plans: Mapping[str, RunPlan], findings: Findings
) -> None:
    plan = plans.get(result["id"])
    ending = (result["status"], result["reason"]["kind"])
    expected = ("failed", "executor_lost") if plan and plan.poison else ("done", "completed")
    if ending != expected:
        said = result["reason"]["message"]
        findings.add("wrongly ended", f"{result['id']} ended {ending}, not {expected}: {said}")


def _check_runs(
    headings: Sequence[RunHeading],
    results: Mapping[str, Mapping[str, Any]],
    findings: Findings,
) -> None:
    """One run for each task, the one that its line names."""
    runs = Counter(str(one.metadata["task_id"]) for one in headings if not one.root)
    for name, count in runs.items():
        if count > 1:
            findings.add("doubled", f"{name} had {count} runs")
    known = {heading.run_id: heading for heading in headings}
    for name, result in results.items():
        heading = known.get(result["run_id"])
        if heading is None or heading.end is None:
            findings.add("lost", f"the journal does not have {name}'s run as ended")


def _check_log(
    heading: RunHeading,
    plan: RunPlan,
    log: Sequence[Message],
    lines: Iterable[ToolLine],
    findings: Findings,
) -> None:
    said = [message for message in log if message.role == "assistant"]
    calls = [tuple((call.name, call.arguments) for call in message.tool_calls) for message in said]
    _check_steps_of(plan, calls, findings)
    if (repairs := repaired(log)[1]) and not plan.poison:
        findings.add("malformed", f"the log of {plan.name} needs {repairs} repairs")
    _check_answers(plan, log, findings)
    _check_known(heading, log, lines, findings)


def _check_steps_of(
    plan: RunPlan, calls: Sequence[tuple[tuple[str, str], ...]], findings: Findings
) -> None:
    """The log has the steps of the plan in their order, each once."""
    steps = len(calls) if plan.poison else len(calls) - 1
    expected = plan.calls(steps)
    if calls != (expected[:steps] if plan.poison else expected):
        findings.add("lost", f"{plan.name}: its log has not the steps of its plan")
    elif not plan.poison and (steps < plan.rounds or (steps > plan.rounds and not plan.patient)):
        word = "lost" if steps < plan.rounds else "doubled"
        findings.add(word, f"{plan.name} made {steps} steps and not {plan.rounds}")


def _check_losses(
    heading: RunHeading, plan: RunPlan, journal: JournalReader, findings: Findings
) -> None:
    """A run that crashes its process is lost three times, the last time alone, and then ends.

    Before that it may have been lost as its neighbours were.
    """
    if not plan.poison:
        return
    events = [one.event for one in journal.load_events(0, run_id=heading.run_id)]
    lost = [event for event in events if isinstance(event, ExecutorLost)]
    said = [(event.losses, event.executor) for event in lost]
    if [losses for losses, _ in said[-3:]] != [1, 2, 3] or not said[-1][1].endswith("[quarantine]"):
        findings.add(
            "wrongly ended", f"{plan.name} was lost {said}, not thrice, the last in quarantine"
        )


def _check_answers(plan: RunPlan, log: Sequence[Message], findings: Findings) -> None:
    """Every call has exactly one result, and no result was made up."""
    made = Counter(call.id for message in log for call in message.tool_calls)
    told = Counter(str(message.tool_call_id) for message in log if message.role == "tool")
    findings.calls += made.total()
    unanswered = made - told
    # Its last calls are what it was lost with.
    if unanswered and not plan.poison:
        names = ", ".join(unanswered)
        findings.add("unanswered", f"{plan.name}: no result for {names}")
    if doubled := told - made:
        findings.add("doubled", f"{plan.name}: too many results for {', '.join(doubled)}")
    for message in log:
        if message.text.startswith("worked in ") and " with 0 " not in message.text:
            findings.add("lost", f"{plan.name}: {message.tool_call_id} {message.text[:80]!r}")
    sorts = {call.id: call.name for message in log for call in message.tool_calls}
    for message in log:
        if message.role != "tool" or not message.is_error:
            continue
        if message.disposition == "denied" and sorts.get(str(message.tool_call_id)) == PAY:
            # As somebody has decided; it is looked at with what they said.
            continue
        findings.unknown += message.text == UNKNOWN_OUTCOME
        if message.text != UNKNOWN_OUTCOME or sorts.get(str(message.tool_call_id)) in AGAIN:
            findings.add("lost", f"{plan.name}: {message.tool_call_id} got {message.text[:80]!r}")


def _check_known(
    heading: RunHeading, log: Sequence[Message], lines: Iterable[ToolLine], findings: Findings
) -> None:
    """A call that must not be made twice is in the log if it began, and ended if the log has it."""
    named = {call.id for message in log for call in message.tool_calls}
    own = [line for line in lines if line.run_id == heading.run_id and line.sort in ONCE]
    for line in own:
        if line.call_id not in named:
            findings.add("lost", f"{line.task}: {line.call_id} was begun, its log has no such call")
    ended = {line.call_id: line.pid for line in own if not line.begins}
    for message in log:
        if message.role == "tool" and message.text.startswith(DONE):
            pid = int(message.text.split()[2])
            if ended.get(str(message.tool_call_id)) != pid:
                findings.add("lost", f"{heading.run_id}: {message.tool_call_id} was not done")


def check_denied(
    run_id: str, log: Sequence[Message], lines: Iterable[ToolLine], findings: Findings
) -> None:
    """A call that was denied has never begun."""
    paid = payments_of(log)
    denied = {str(m.tool_call_id) for m in log if m.role == "tool" and m.disposition == "denied"}
    for line in lines:
        if line.run_id == run_id and line.call_id in denied & paid.keys():
            findings.add("ran though denied", f"{line.task}: {line.call_id} in {line.pid}")


def count_waves(lines: Iterable[ToolLine]) -> int:
    """How often a second call of a run began in a process while another one ran there."""
    count, open_calls = 0, dict[tuple[str, int], set[str]]()
    for line in lines:
        beside = open_calls.setdefault((line.run_id, line.pid), set())
        if not line.begins:
            beside.discard(line.call_id)
            continue
        beside.add(line.call_id)
        count += len(beside) == 2
    return count


def check_tools(lines: Sequence[ToolLine], strikes: Sequence[Strike], findings: Findings) -> None:
    """What must not be done twice was begun once; what was struck did nothing afterwards."""
    begun = Counter((line.call, line.sort, line.task) for line in lines if line.begins)
    for ((_, call_id), sort, task), count in begun.items():
        if count > 1 and sort in ("look", "put"):
            findings.repeated += 1
        elif count > 1:
            findings.add("started twice", f"{task}: {sort} {call_id} began {count} times")
    findings.waves += count_waves(lines)
    for strike in strikes:
        _check_late(lines, strike, findings)


def _check_late(lines: Sequence[ToolLine], strike: Strike, findings: Findings) -> None:
    taken_over: set[str] = set()
    for line in lines:
        if line.at <= strike.at:
            continue
        where = f"{line.task}: {line.sort} {line.call_id} in process {line.pid}"
        if line.pid in strike.struck and line.at > _last_moment(line, strike):
            findings.add("late", f"{where} after that got {strike.kind.signal.name}")
        elif line.pid not in strike.replaced:
            taken_over.add(line.run_id)
        elif line.run_id in taken_over:
            findings.add("late", f"{where}, when another had gone on with its run")


def _last_moment(line: ToolLine, strike: Strike) -> float:
    """When a process that was struck may have done something for the last time."""
    if line.sort != "work":
        return strike.at + LATE_AFTER_S
    # What it had begun in a process of its own goes on while it is stopped.
    return strike.gone_at + SURVIVES_S


def check_steps(asked: Sequence[Asked], findings: Findings) -> None:
    """A death costs a run at most the round in progress and one that was finished before."""
    furthest: Counter[str] = Counter()
    for one in asked:
        if one.spoken < furthest[one.run] - 1:
            step = f"from step {furthest[one.run]} to {one.spoken}"
            findings.add("lost", f"{one.run} was thrown back {step}")
        furthest[one.run] = max(furthest[one.run], one.spoken)
