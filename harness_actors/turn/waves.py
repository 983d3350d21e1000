"""Which calls of a message may run at the same time."""

from collections.abc import Sequence

from harness_actors.turn.delegation import delegates
from harness_actors.turn.keys import LONG_ARGUMENTS, arguments_in, filled
from harness_actors.turn.one_call import PlannedCall

NO_KEYS: frozenset[str] = frozenset()


def waves_of(plans: Sequence[PlannedCall]) -> list[Sequence[PlannedCall]]:
    """Part the calls of a message into waves; the calls of one may run at the same time.

    A wave is as many neighbouring calls as only read and have no resource key in common.
    Whatever may write, asks the user, or ends the run is a wave of its own. A call that must not
    run at all stands in nobody's way. Neighbouring calls that are done by runs of their own are a
    wave, too.

    Args:
        plans: The calls, in the order of their message.

    Returns:
        All of them in the same order, in waves of at least one call.
    """
    if len(plans) == 1:
        return [plans]
    waves: list[list[PlannedCall]] = []
    taken: set[str] | None = None
    for plan in plans:
        if delegates(plan):
            if waves and delegates(waves[-1][-1]):
                waves[-1].append(plan)
            else:
                waves.append([plan])
            taken = None
            continue
        keys = shared_keys(plan)
        if keys is None or taken is None or not taken.isdisjoint(keys):
            waves.append([plan])
            taken = None if keys is None else set(keys)
        else:
            waves[-1].append(plan)
            taken |= keys
    return list(waves)


def shared_keys(plan: PlannedCall) -> frozenset[str] | None:
    """What a call touches that may run beside others; None where it must run alone.

    It must where it may write, and where a key cannot be filled with its arguments, because then
    nobody knows what it touches.
    """
    if plan.tool is None:
        return NO_KEYS
    spec = plan.tool.spec
    if plan.alone or spec.effect != "read_only":
        return None
    if not spec.resource_keys:
        return NO_KEYS
    return _filled(spec.resource_keys, plan.given.arguments)


def _filled(templates: Sequence[str], arguments: str) -> frozenset[str] | None:
    if len(arguments) > LONG_ARGUMENTS:
        return None
    given = arguments_in(arguments)
    if given is None:
        return None
    keys = frozenset(filled(template, given) for template in templates)
    return None if None in keys else frozenset(key for key in keys if key is not None)
