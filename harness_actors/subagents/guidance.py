"""What a model is told of the agents to which it can delegate."""

from collections.abc import Sequence
from typing import Any

from harness_actors.subagents.child_agent import shown_to

_INTRODUCTION = "You can delegate, by calling {names}."
_EMPTY = (
    "Each call{of} begins with an empty conversation: say in the prompt all that is needed, and "
    "what you want to be told."
)
_FORKED = (
    "{names} {know} this conversation up to the call, and {have} your tools: say what to do there."
)
_AT_ONCE = "Several calls in one message are carried out at once."
_HINTS = {
    "explore": "Before you change something that you do not know, send out explore, with a "
    "question for each part.",
    "run_task": "Where you only need to know whether something succeeds, have run_task do it.",
    "document": "Have long documents written by document, and check them yourself.",
}
_BESIDE = (
    "{names} {work} in the background: the call returns a handle at once, and you go on. You are "
    "told once what each came to, without asking; wait with agent_wait only when there is nothing "
    "else to do. Tell one something with agent_send. What is still at work when you are done is "
    "cancelled, so wait first for what you need."
)
_COPIES = (
    "{names} {work} in a copy of your workspace: nothing changes in yours until you bring in what "
    "was done, with agent_apply."
)
_OWN_WORK = "What your task is about, do yourself: whoever you delegate to knows nothing of it."


def guidance_of(agent: Any) -> str:
    """A paragraph for the system prompt of an agent; empty where it has nobody to delegate to."""
    specs = shown_to(agent)
    if not specs:
        return ""
    forks = [spec.name for spec in specs if spec.fork]
    others = [spec.name for spec in specs if not spec.fork]
    words = [_INTRODUCTION.format(names=_listed([spec.name for spec in specs]))]
    if others:
        words.append(_EMPTY.format(of=f" of {_listed(others)}" if forks else ""))
    if forks:
        know, have = ("knows", "has") if len(forks) == 1 else ("know", "have")
        words.append(_FORKED.format(names=_listed(forks), know=know, have=have))
    hints = [_HINTS[spec.pool] for spec in specs if spec.pool in _HINTS]
    if beside := [spec.name for spec in specs if spec.background]:
        work = "works" if len(beside) == 1 else "work"
        hints.append(_BESIDE.format(names=_listed(beside), work=work))
    if copies := [spec.name for spec in specs if spec.workspace == "copy"]:
        work = "works" if len(copies) == 1 else "work"
        hints.append(_COPIES.format(names=_listed(copies), work=work))
    own_work = (_OWN_WORK,) if others else ()
    return " ".join((*words, _AT_ONCE, *hints, *own_work))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
