"""Runs and those that they have begun: each call that delegates has one run, and its answer; of one
in the background the run was told once what it came to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness_actors.messages import Message
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from tests.chaos.plans import AGENTS, BESIDE, WAIT, RunPlan


@dataclass(slots=True, kw_only=True)
class Tree:
    """A run, and what it has begun.

    Attributes:
        plan: What it was to do.
        is_child: Another one has begun it.
        ends: How the runs ended that it has begun, by the calls that have; None for one that did
            not.
    """

    plan: RunPlan
    is_child: bool
    ends: dict[str, list[HarnessResult | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, journal: JournalReader, headings: Sequence[RunHeading]) -> "Mapping[str, Tree]":
        """All runs of a journal, by id."""
        trees: dict[str, Tree] = {}
        # Parents first: they were there before.
        for heading in headings:
            stored = journal.load_run(heading.run_id)
            assert stored is not None, "its heading was read"
            link = stored.spec.parent
            plan = RunPlan.of_task(stored.spec.task[0].text)
            trees[heading.run_id] = cls(plan=plan, is_child=link is not None)
            if link is not None:
                trees[link.run_id].ends.setdefault(link.call_id, []).append(heading.end)
        return trees


def faults_in(tree: Tree, log: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """What is wrong with the runs that one has begun, each with its kind.

    Args:
        tree: The run.
        log: What was said in it.
    """
    calls = {call.id: call.name for one in log for call in one.tool_calls}
    called = {call_id for call_id, name in calls.items() if name in AGENTS}
    told = {str(one.tool_call_id): one.text for one in log if one.role == "tool"}
    for call_id in called - tree.ends.keys():
        yield "lost", f"{call_id} delegates, and has begun no run"
    for call_id, ends in tree.ends.items():
        if call_id not in called:
            yield "lost", f"{call_id} has begun a run, and its log has no such call"
        elif len(ends) > 1:
            yield "doubled", f"{call_id} has begun {len(ends)} runs"
        elif (end := ends[0]) is None:
            yield "lost", f"the run of {call_id} did not end"
        elif end.status != "done":
            yield "wrongly ended", f"the run of {call_id} ended {end.status}: {end.reason.message}"
        elif calls[call_id] == BESIDE:
            times = sum(one.by_harness and end.output_text in one.text for one in log)
            if times > 1:
                yield "doubled", f"it was told {times} times what {call_id} came to"
            elif not times and _was_to_be_told(log, call_id):
                yield "lost", f"it was never told what {call_id} came to"
        elif told.get(call_id) != end.output_text:
            yield "lost", f"{call_id} has {told.get(call_id)!r}, its run said {end.output_text!r}"


def _was_to_be_told(log: Sequence[Message], call_id: str) -> bool:
    """Whether a run has waited for those in the background, and its model spoke after that."""
    order = [one for one in log if one.role in ("assistant", "tool")]
    waits = {call.id for one in log for call in one.tool_calls if call.name == WAIT}
    begun = next(at for at, one in enumerate(order) if one.tool_call_id == call_id)
    over = [at for at, one in enumerate(order) if at > begun and one.tool_call_id in waits]
    return bool(over) and any(one.role == "assistant" for one in order[over[0] :])
