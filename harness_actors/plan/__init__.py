"""What a model is shown of a conversation that has become too long for it."""

from typing import TYPE_CHECKING

from harness_actors.lazy import loaded_on_use

if TYPE_CHECKING:
    from harness_actors.plan.plan import DURABILITIES as DURABILITIES
    from harness_actors.plan.plan import Action as Action
    from harness_actors.plan.plan import CompactionPlan as CompactionPlan
    from harness_actors.plan.plan import Durability as Durability
    from harness_actors.plan.plan import Span as Span
    from harness_actors.plan.plan import ToolPolicy as ToolPolicy
    from harness_actors.plan.reference import Reference as Reference
    from harness_actors.plan.reference import UnreadablePlanError as UnreadablePlanError
    from harness_actors.plan.shown import Shown as Shown
    from harness_actors.plan.shown import is_pinned as is_pinned
    from harness_actors.plan.summary import Decision as Decision
    from harness_actors.plan.summary import OpenItem as OpenItem
    from harness_actors.plan.summary import Summary as Summary
    from harness_actors.plan.summary import ToolOutcome as ToolOutcome
    from harness_actors.plan.view import View as View
    from harness_actors.plan.view import Viewer as Viewer
    from harness_actors.plan.view import render as render
    from harness_actors.plan.view import without_dropped as without_dropped
    from harness_actors.plan.view import without_summarized as without_summarized

# Looked up when used: a worker process needs the names of what results are worth, and no views.
__getattr__, __dir__, __all__ = loaded_on_use(
    __name__,
    {
        "Action": "plan",
        "CompactionPlan": "plan",
        "DURABILITIES": "plan",
        "Decision": "summary",
        "Durability": "plan",
        "OpenItem": "summary",
        "Reference": "reference",
        "Shown": "shown",
        "Span": "plan",
        "Summary": "summary",
        "ToolOutcome": "summary",
        "ToolPolicy": "plan",
        "UnreadablePlanError": "reference",
        "View": "view",
        "Viewer": "view",
        "is_pinned": "shown",
        "render": "view",
        "without_dropped": "view",
        "without_summarized": "view",
    },
)
