"""The shipped agents to delegate to: to find out, to carry out, and to write down."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness_actors.config import Limits
from harness_actors.ports import Model
from harness_actors.subagents.spec import SubAgentSpec

EXPLORE_WORDS = 300

EXPLORE = SubAgentSpec(
    name="explore",
    description=(
        "Have an agent with an empty conversation find something out, and get its answer of at "
        f"most {EXPLORE_WORDS} words. It only reads, so several can be sent out in one message. "
        "For questions about a codebase or other material: where something is, how it hangs "
        "together, what calls it. Not for changes, nor for what one call of your own would show."
    ),
    instructions=(
        "You find things out for another agent, which sees nothing but your answer.\n"
        "- Ask for all that you need to see in as few messages as possible: calls of one "
        "message run at once. Most questions need one to three of them.\n"
        "- You can only read. If a change is wanted, say what you found, and that you made none.\n"
        f"- Answer in at most {EXPLORE_WORDS} words: facts first, each with the file and the line "
        "or the name by which it is found again. No introduction, and nothing that you have not "
        "seen. If you did not find it, say where you have looked."
    ),
    reads_only=True,
    limits=Limits(model_calls=30),
    max_words=EXPLORE_WORDS,
    pool="explore",
)
RUN_TASK = SubAgentSpec(
    name="run_task",
    description=(
        "Have an agent with an empty conversation carry out commands, such as a build, the tests "
        "or a linter, and get one line where they succeed and the whole error where they do not. "
        "It repairs nothing. Not for questions about code, and not for changes of it."
    ),
    instructions=(
        "You carry out commands for another agent, which sees nothing but your answer.\n"
        "- Do just what you are asked to, and nothing to make it succeed: repair no error, change "
        "no file for that, and suggest nothing.\n"
        "- If all of it succeeded, answer in one line, such as: all 247 tests passed.\n"
        "- If something failed, answer with the command, its exit status and its whole error "
        "output, as it was printed."
    ),
    limits=Limits(model_calls=30),
    pool="run_task",
)
DOCUMENT = SubAgentSpec(
    name="document",
    description=(
        "Have an agent with an empty conversation read deeply into something and write a document "
        "about it into the workspace; you get a short summary and the path. Tell it the topic, the "
        "files or folders to read, for whom it writes, and the path to write to."
    ),
    instructions=(
        "You write a document for another agent, which sees nothing but your summary; its readers "
        "see nothing but the document.\n"
        "- Read all that belongs to the topic before you write, not the beginnings of files alone. "
        "Name classes, functions and files as they are named there, and say nothing that you have "
        "not seen.\n"
        "- Explain how it works and why, with examples from the material, and a diagram in plain "
        "characters where several parts work together.\n"
        "- Write the document into the file that you were told, or else into one with a telling "
        "name, and read it through once.\n"
        "- Then call work_complete with what the document says in at most ten sentences, and its "
        "path."
    ),
    limits=Limits(model_calls=100),
    completion="explicit",
    pool="document",
)


def explore(
    *, model: Model | None = None, limits: Limits | None = None, background: bool = False
) -> SubAgentSpec:
    """An agent that finds things out: it only reads, and answers in at most 300 words.

    Args:
        model: Who answers it; None for the model of the agent that delegates.
        limits: Bounds of one of its runs; None for 30 model calls.
        background: Whoever delegates to it goes on beside it; see `SubAgentSpec`.
    """
    return _with(EXPLORE, model, limits, background)


def run_task(
    *, model: Model | None = None, limits: Limits | None = None, background: bool = False
) -> SubAgentSpec:
    """An agent that carries out commands: a line where they succeed, else the whole error.

    Args:
        model: As of `explore`.
        limits: As of `explore`.
        background: As of `explore`.
    """
    return _with(RUN_TASK, model, limits, background)


def document(
    *, model: Model | None = None, limits: Limits | None = None, background: bool = False
) -> SubAgentSpec:
    """An agent that reads deeply, writes a document into the workspace, and sums it up.

    Args:
        model: As of `explore`.
        limits: Bounds of one of its runs; None for 100 model calls.
        background: As of `explore`.
    """
    return _with(DOCUMENT, model, limits, background)


SHIPPED: Mapping[str, Callable[..., SubAgentSpec]] = {
    "explore": explore,
    "run_task": run_task,
    "document": document,
}
"""By name: those that an agent file can name."""


def _with(
    spec: SubAgentSpec, model: Model | None, limits: Limits | None, background: bool
) -> SubAgentSpec:
    return replace(spec, model=model, limits=limits or spec.limits, background=background)
