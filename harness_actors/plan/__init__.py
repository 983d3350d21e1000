"""What a model is shown of a conversation that has become too long for it."""

from harness_actors.plan.plan import DURABILITIES as DURABILITIES
from harness_actors.plan.plan import Action as Action
from harness_actors.plan.plan import CompactionPlan as CompactionPlan
from harness_actors.plan.plan import Durability as Durability
from harness_actors.plan.plan import Reference as Reference
from harness_actors.plan.plan import Span as Span
from harness_actors.plan.plan import ToolPolicy as ToolPolicy
from harness_actors.plan.plan import UnreadablePlanError as UnreadablePlanError
from harness_actors.plan.shown import Shown as Shown
from harness_actors.plan.shown import is_pinned as is_pinned
from harness_actors.plan.view import View as View
from harness_actors.plan.view import Viewer as Viewer
from harness_actors.plan.view import render as render
from harness_actors.plan.view import without_dropped as without_dropped
