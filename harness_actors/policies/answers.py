"""What an answer of a hook means, by its kind."""

from harness_actors.policies.hooks import HookKind
from harness_actors.policies.verdicts import (
    Allow,
    Ask,
    Change,
    Circling,
    Deny,
    EndRun,
    Novel,
    Replace,
)

Verdict = Allow | Deny | EndRun | Change | Ask | Replace | Novel | Circling

_TAKEN: dict[HookKind, tuple[type[Verdict], ...]] = {
    "session_start": (),
    "session_end": (),
    "pre_model": (),
    "post_model": (),
    "pre_tool": (Allow, Deny, Change, Ask),
    "post_tool": (Replace,),
    "agent_stop": (Allow, Deny),
    "input_guard": (Allow, Deny, EndRun),
    "output_guard": (Allow, Deny, EndRun),
    "stall": (Novel, Circling),
}


def verdict_of(kind: HookKind, answer: object) -> Verdict:
    """What a hook has answered; `Allow` where it has nothing to say.

    Raises:
        ValueError: Its kind does not take that, or it is malformed; says what was returned.

    >>> verdict_of("pre_tool", None)
    Allow()
    """
    if answer is None:
        return Allow()
    taken = _TAKEN[kind]
    if not isinstance(answer, taken):
        known = ", ".join([*(one.__name__ for one in taken), "None"])
        raise ValueError(f"returned {type(answer).__name__}, where {kind} takes {known}")
    match answer:
        case Deny(text) | EndRun(text) | Ask(text) | Replace(text) | Circling(text):
            if not isinstance(text, str):
                raise ValueError(f"returned {type(answer).__name__} of what is no text")
    return answer
