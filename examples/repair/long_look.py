"""The expert where it looks at everything a hundred times first, in a window that is far too small.

It shows that a conversation of any length is kept within its window: a request over that is not
answered with the repair, so that the task's check fails.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from examples.repair.build import Fix
from examples.repair.expert import ChatMessage, calling, expert_reply

MODEL = "expert-long"
STEPS = 100
WINDOW_BYTES = 4 * 8_000
"""Of a request: some four to a token."""
_STEP = re.compile(r"echo step (\d+);")


def long_reply(
    messages: Sequence[ChatMessage], fixes: Mapping[str, Fix], size: int
) -> dict[str, Any]:
    """The next assistant message; which step it is at, the newest of those it is shown says.

    Args:
        messages: As of `expert_reply`.
        fixes: As of `expert_reply`.
        size: Of the request, in bytes.
    """
    if size > WINDOW_BYTES:
        return {"role": "assistant", "content": f"A request of {size:,} bytes is over my window."}
    step = 1 + max(map(int, _STEP.findall(json.dumps(list(messages)))), default=0)
    if step > STEPS:
        return expert_reply(messages, fixes)
    command = f"echo step {step}; cat README.md solution.py"
    return calling(step, ("run_command", {"command": command}))
