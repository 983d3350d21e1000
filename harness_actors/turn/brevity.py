"""An answer that is longer than whoever waits for it wants to read."""

from dataclasses import replace

from harness_actors.ports import RunContext
from harness_actors.signals import TurnComplete
from harness_actors.state import BRIEFER
from harness_actors.subagents import words_in

TOO_LONG = (
    "your answer has {words} words, and whoever waits for it reads {most}: say the same in at most "
    "{most} words, the most important first"
)


def briefer(context: RunContext, ended: TurnComplete) -> TurnComplete:
    """The end of a turn that says that it is done: not accepted once, where it is a child that says
    too much."""
    link = context.spec.parent
    if link is None or link.most_words is None or context.get(BRIEFER):
        return ended
    words = words_in(ended.text)
    if words <= link.most_words:
        return ended
    context.set(BRIEFER, True)
    finding = TOO_LONG.format(words=words, most=link.most_words)
    return replace(ended, findings=(*ended.findings, finding))
