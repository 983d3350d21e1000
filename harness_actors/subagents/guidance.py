"""What a model is told of the agents to which it can delegate."""

from collections.abc import Sequence

from harness_actors.subagents.spec import SubAgentSpec

_INTRODUCTION = (
    "You can delegate, by calling {names}. Each call begins with an empty conversation: say in the "
    "prompt all that is needed, and what you want to be told. Several calls in one message are "
    "carried out at once."
)
_HINTS = {
    "explore": "Before you change something that you do not know, send out explore, with a "
    "question for each part.",
    "run_task": "Where you only need to know whether something succeeds, have run_task do it.",
    "document": "Have long documents written by document, and check them yourself.",
}
_OWN_WORK = "What your task is about, do yourself: whoever you delegate to knows nothing of it."


def guidance_of(specs: Sequence[SubAgentSpec]) -> str:
    """A paragraph for the system prompt; empty where there is nobody to delegate to."""
    if not specs:
        return ""
    names = [spec.name for spec in specs]
    named = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    hints = [_HINTS[spec.pool] for spec in specs if spec.pool in _HINTS]
    return " ".join((_INTRODUCTION.format(names=named), *hints, _OWN_WORK))
