"""Three agents repair one program at once, each in a copy of it; what they did is merged.

    python -m examples.merged_copies

An agent sends out three others in one message, a fault for each. Each works in a copy of the
program, edits it, and runs the test of its own fault. Two of them edit the same file, and two the
same line. The agent looks at what each has changed and brings it in: one patch is taken as it is,
one is merged, and one is in conflict. That line the agent settles itself, with both patches in
sight, and runs all tests in its own folder.

The models are scripts here; copies, patches, merges (by git, which must be there) and tests are
real.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness_actors import AgentHarness, ChatAgent, HarnessResult, Message
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools

LEAD = "You lead a repair."
SHOP = '''\
def total(prices):
    result = 0
    for price in prices[1:]:
        result += price
    return result


def discounted(amount, percent):
    """The amount less so many percent."""
    return amount - percent
'''
TESTS = """\
import unittest

from shop import discounted, total


class Shop(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_nothing(self):
        self.assertEqual(total(None), 0)

    def test_discounted(self):
        self.assertEqual(discounted(50, 10), 45)
"""
REPAIRS = {
    "test_total": ("in prices[1:]:", "in prices:"),
    "test_discounted": ("return amount - percent", "return amount * (100 - percent) / 100"),
    "test_nothing": ("in prices[1:]:", "in (prices or [])[1:]:"),
}
"""By test: the line at fault, and what is put in its place."""
BOTH = ("in prices:", "in prices or []:")


def lead(messages: Sequence[Message]) -> Reply:
    """Sends out the others, looks at each patch, brings it in, and settles what is in conflict."""
    results = [message.text for message in messages if message.role == "tool"]
    asked = [call for message in messages for call in message.tool_calls]
    if not results:
        return Reply.calls([("fix", {"prompt": f"Repair what {one} shows."}) for one in REPAIRS])
    handles = re.findall(r"\[(fix-\d+) has worked in a copy", "\n".join(results))
    steps = [
        Reply.calls([("agent_changes", {"agent": one}) for one in handles]),
        *(Reply.call("agent_apply", {"agent": one}) for one in handles),
    ]
    if "In conflict" in results[-1]:
        old, new = BOTH
        return Reply.call("edit_file", {"path": "shop.py", "old_text": old, "new_text": new})
    if (done := sum(message.role == "assistant" for message in messages) - 1) < len(steps):
        return steps[done]
    if asked[-1].name != "run_command":
        return Reply.call("run_command", {"command": f"{sys.executable} -m unittest -q"})
    passed = "OK" in results[-1]
    return Reply.call("work_complete", {"summary": "all tests pass" if passed else results[-1]})


def fix(messages: Sequence[Message]) -> Reply:
    """Edits one line, and runs the test that it is about."""
    test = re.findall(r"test_\w+", next(m.text for m in messages if m.role == "user"))[0]
    old, new = REPAIRS[test]
    command = f"{sys.executable} -m unittest -q test_shop.Shop.{test}"
    steps = [
        Reply.call("edit_file", {"path": "shop.py", "old_text": old, "new_text": new}),
        Reply.call("run_command", {"command": command}),
        Reply.text(f"{test} passes."),
    ]
    return steps[sum(message.role == "assistant" for message in messages)]


def scripted(messages: Sequence[Message]) -> Reply:
    return (lead if messages[0].text.startswith(LEAD) else fix)(messages)


async def repaired(folder: Path) -> tuple[HarnessResult, list[str]]:
    """Repair the program in a folder; how that ended, and the results of all calls."""
    program = folder / "program"
    program.mkdir()
    (program / "shop.py").write_text(SHOP)
    (program / "test_shop.py").write_text(TESTS)
    fixer = SubAgentSpec(
        name="fix",
        description="Have an agent repair one fault, in a copy of the program.",
        instructions="You repair one fault.",
        workspace="copy",
    )
    agent = ChatAgent(
        model=ScriptedModel(scripted),
        instructions=LEAD,
        tools=coding_tools(),
        sub_agents=[fixer],
    )
    store = folder / "runs.db"
    async with AgentHarness(agent, store=store, workspace=program, runtime="local") as harness:
        result = await harness.run("Repair the shop.")
        talk = await harness.conversation(result.run_id)
    return result, [str(one["content"]) for one in talk if one["role"] == "tool"]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="merged-copies-") as name:
        folder = Path(name)
        result, results = asyncio.run(repaired(folder))
        for text in results:
            print(text.strip(), end="\n\n")
        print((folder / "program" / "shop.py").read_text())
    print(f"{result.status}({result.reason.kind}): {result.output_text}")
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
