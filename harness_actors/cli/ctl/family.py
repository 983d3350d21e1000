"""What `harness ctl run show` tells of runs that others have begun, and of those that have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_actors.cli.ctl.facts import RunFacts
    from harness_actors.records import StoredRun
    from harness_actors.stores import JournalReader

MOST_SHOWN = 20


def family(journal: "JournalReader", facts: "RunFacts", stored: "StoredRun") -> dict[str, Any]:
    """The ``parent`` of a run, and its ``children`` with the usage of all below it; nothing of a
    run that has neither.

    Args:
        journal: Its journal.
        facts: What the list says of it.
        stored: All of it.
    """
    from harness_actors.cli.ctl.facts import word_of
    from harness_actors.records import CHILD_MARK
    from harness_actors.state import CHILDREN

    told: dict[str, Any] = {}
    if (link := stored.spec.parent) is not None:
        told["parent"] = {"run_id": link.run_id, "call_id": link.call_id, "agent": link.agent}
    if not stored.state.values.get(CHILDREN.name) and not (stored.end and stored.end.children):
        return told
    run_id = stored.spec.run_id
    below = {one.run_id: one for one in journal.headings(f"{run_id}{CHILD_MARK}")}
    told["children"] = [
        {
            **child,
            "status": word_of(heading, served=facts.served),
            "reason": None if heading.end is None else heading.end.reason.kind,
        }
        for child in _begun(journal, run_id)
        if (heading := below.get(child["run_id"])) is not None
    ]
    tree = sum((one.usage for one in below.values()), start=facts.usage)
    told["usage_tree"] = tree.as_mapping()
    return told


def family_rows(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same for a person; a row without a name belongs to the one before."""
    from harness_actors.cli.event_lines import tree_used
    from harness_actors.printing.plain import one_line
    from harness_actors.results import Usage

    rows: list[tuple[str, str]] = []
    if parent := told.get("parent"):
        rows.append(("begun by", f"{parent['run_id']}, with its call {parent['call_id']}"))
        rows.append(("agent path", one_line(parent["agent"])))
    if not (children := told.get("children")):
        return rows
    rows.append(("with children", tree_used(Usage(**told["usage_tree"]))))
    for at, child in enumerate(children[:MOST_SHOWN]):
        reason = "" if child["reason"] is None else f"({child['reason']})"
        said = f"{child['run_id']} {one_line(child['agent'])} {child['status']}{reason}"
        rows.append(("children" if at == 0 else "", said))
    if (more := len(children) - MOST_SHOWN) > 0:
        rows.append(("", f"and {more} more, see `harness ctl run list --tree`"))
    return rows


def _begun(journal: "JournalReader", run_id: str) -> list[dict[str, Any]]:
    from harness_actors.cli.ctl.whole import events_of
    from harness_actors.events import ChildrenStarted

    return [
        dict(child)
        for event in events_of(journal, run_id)
        if isinstance(event, ChildrenStarted)
        for child in event.children
    ]
