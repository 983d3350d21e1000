"""Plans that were made beside a run, as its journal has them."""

from harness_actors.plan import CompactionPlan
from harness_actors.replay.visits import Visit
from harness_actors.state import REQUEST_TOKENS


def offer_in(visit: Visit, known: CompactionPlan | None) -> tuple[CompactionPlan, int] | None:
    """The plan that was offered to whoever made room in a visit, and taken.

    Args:
        visit: The visit.
        known: How the conversation was shown before.

    Returns:
        The plan, and by how many tokens the next request was smaller; None where none was taken:
        the ladder, which is climbed again, leaves alone what is summarized.
    """
    summarized = () if known is None else known.summarized
    for change in visit.changes:
        plan = change.delta.plan
        if plan is not None and plan.summarized != summarized:
            counts = (w.value for w in change.delta.writes if w.key == REQUEST_TOKENS.name)
            return plan, -next(counts, 0)
    return None
