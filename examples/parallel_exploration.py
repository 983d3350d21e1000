"""Several agents explore this repository at once, with real file tools.

    python -m examples.parallel_exploration [--embedded]

A model that has a question for each part sends out `explore` four times in one message. Each is a
run of its own: it searches the code, reads where it was found, and answers with file and line. The
run that has sent them out reads nothing; its conversation grows by four calls and four answers.

The models are scripts here, and know no file of the repository: what is printed, they have found
with their tools. With `--embedded`, the model of 135M parameters explores in their place. Of one of
this size nothing is to be expected; what it answers is held against the truth all the same.
"""

import argparse
import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from harness_actors import AgentHarness, ChatAgent, HarnessResult, Limits, LocalModel, Message
from harness_actors.events import ChildEnded, ChildrenStarted, RunEvent
from harness_actors.subagents import explore
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools

REPOSITORY = Path(__file__).resolve().parents[1]
CODE = "harness_actors"
PARENT = "You find out how a program hangs together."
QUESTIONS = {
    "slot_for": "Who decides at which host a run is served? It is called `slot_for`.",
    "child_result": "What is a run told of a child that has ended? It is made by `child_result`.",
    "read_file": "How does an agent read a file? The tool is `read_file`.",
    "JournalReader": "Who looks at a journal while others write it? It is `JournalReader`.",
}
READING = ("read_file", "grep_files", "list_directory")
LINES = 12
"""Of a definition that are read."""
BEGAN = time.monotonic()

_DEFINED = re.compile(r"^  (\d+): *(?:async )?(?:class|def) ", re.MULTILINE)


def ask(messages: Sequence[Message]) -> Reply:
    """The model that sends out others, and then says what they have found."""
    answers = [message.text for message in messages if message.role == "tool"]
    if not answers:
        return Reply.calls([("explore", {"prompt": question}) for question in QUESTIONS.values()])
    return Reply.call("work_complete", {"summary": "\n".join(answers)})


def find(messages: Sequence[Message]) -> Reply:
    """The model that explores: it searches, reads what it has found, and says what that is."""
    name = re.findall(r"`(\w+)`", next(m.text for m in messages if m.role == "user"))[0]
    results = [message.text for message in messages if message.role == "tool"]
    if not results:
        where = {"path": CODE, "file_glob": "*.py", "max_results": 50}
        defined = {"pattern": rf"^ *(async )?(class|def) {name}\b", **where}
        used = {"pattern": rf"\b{name}\(", "include_lines": False, **where}
        return Reply.calls([("grep_files", defined), ("grep_files", used)])
    path, _, lines = results[0].partition("\n")
    found = _DEFINED.search(lines)
    if found is None:
        return Reply.text(f"{name}: nothing below {CODE}/ defines it.")
    line = int(found[1])
    if len(results) == 2:
        span = {"path": path, "start_line": line, "end_line": line + LINES}
        return Reply.call("read_file", span)
    said = re.search(r'"""(.*?)(?:"""|$)', results[2], re.MULTILINE)
    users = [one for one in results[1].splitlines() if one.endswith(".py") and one != path]
    return Reply.text(
        f"{name} is in {path}:{line}: {said[1] if said else 'it has no docstring.'} "
        f"Called in {', '.join(users) or 'no other module'}."
    )


def scripted(messages: Sequence[Message]) -> Reply:
    """Both of them: who it is that is asked, the system prompt says."""
    return (ask if messages[0].text.startswith(PARENT) else find)(messages)


def where_defined(name: str) -> str:
    """The file that defines a name, found without any agent."""
    defines = re.compile(rf"^ *(?:async )?(?:class|def) {name}\b", re.MULTILINE)
    paths = sorted((REPOSITORY / CODE).rglob("*.py"))
    found = [path for path in paths if defines.search(path.read_text(encoding="utf-8"))]
    return str(found[0].relative_to(REPOSITORY))


def say(what: str) -> None:
    print(f"{time.monotonic() - BEGAN:5.1f} s  {what}", flush=True)


async def main(*, embedded: bool) -> None:
    few = Limits(model_calls=4, time_s=60)
    agent = ChatAgent(
        model=ScriptedModel(scripted),
        instructions=PARENT,
        tools=[one for one in coding_tools() if one.spec.name in READING],
        sub_agents=[explore(model=LocalModel(), limits=few) if embedded else explore()],
    )
    run = ""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.db"
        async with AgentHarness(
            agent, runtime="local", store=store, workspace=REPOSITORY
        ) as harness:
            async for told in harness.run_stream("How does it hang together?", text=False):
                match told:
                    case RunEvent(event=ChildrenStarted(children=children)):
                        say(f"{len(children)} explore at once")
                    case RunEvent(event=ChildEnded(run_id=run_id, status=status)):
                        say(f"number {run_id.rpartition('.')[2]} {status}")
                    case HarnessResult():
                        run = told.run_id
            talk = await harness.conversation(run)
    answers = [one["content"] for one in talk if one["role"] == "tool"][: len(QUESTIONS)]
    right = 0
    for (name, question), answer in zip(QUESTIONS.items(), answers, strict=True):
        right += where_defined(name) in answer
        print(f"\n{question}\n  {answer}")
    print(f"\n{right} of {len(QUESTIONS)} answers name the right file.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Several agents explore this repository at once.")
    parser.add_argument("--embedded", action="store_true", help="the embedded model explores")
    asyncio.run(main(embedded=parser.parse_args().embedded))
