"""Recorded runs that nobody cuts: what the model says, and under which settings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness_actors.agents import Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import ContextOverflowError, ModelBusyError, ModelRefusedError
from harness_actors.messages import Message
from harness_actors.testing import Reply, ScriptedModel, an_agent
from tests.data import recorded as conversations
from tests.data.corpus.agents import (
    CORPUS_TOOLS,
    CachingModel,
    HeldModel,
    Notes,
    OwnTurn,
    TimelyModel,
    endless,
    tools_of,
    two_lookups,
)
from tests.replay.recorded_runs import CountingModel, done

Task = str | tuple[Message, ...]
Plan = tuple[Any, dict[str, Any]]
"""A model, a list of its replies or a whole program, and the settings of the run."""

WRITE = Reply.call("write", {"text": "a"})
READ = Reply.call("read", {"text": "a"})
HANG = Reply.calls([("read", {"text": "a"}), ("hang", {}), ("write", {"text": "b"})])
PEEK = Reply.calls([("read", {"text": "a"}), ("peek", {}), ("put", {"key": "b"})])

ENDINGS: dict[str, Plan] = {
    "done-at-once": ([done()], {}),
    "rounds-of-every-kind": (
        [
            READ,
            WRITE,
            Reply.calls([("write", {"text": "b"}), ("read", {"text": "c"})], said="both"),
            Reply.calls([("put", {"key": str(n)}) for n in range(12)]),
            done(),
        ],
        {},
    ),
    "failing-tools": (
        [
            Reply.calls([("fail", {"how": "told"}), ("fail", {"how": "raised"})]),
            Reply.calls([("slow", {}), ("send", {"to": "nobody"}), ("say", {"what": "odd"})]),
            Reply.call("say", {"what": "refusal"}),
            done("in spite of all"),
        ],
        {},
    ),
    "bad-arguments": (
        [
            Reply.calls([("write", {"wrong": 1}), ("write", {"text": 1}), ("write", {})]),
            Reply.calls([("write", "no json"), ("read", ""), ("put", "[1, 2]"), ("put", '"x"')]),
            Reply.calls([("put", {"key": "k", "value": ["x"]}), ("put", '{"key": "a", "key": 1}')]),
            done(),
        ],
        {},
    ),
    "unknown-tools": (
        [
            Reply.call("delete"),
            Reply.calls([("read", {"text": "x"}), ("Read", {"text": "x"}), ("", {})]),
            done(),
        ],
        {},
    ),
    "long-results": (
        [
            Reply.calls([("long", {"characters": n}) for n in (29_999, 30_000, 30_001, 99_999)]),
            Reply.call("say", {"what": "lines"}),
            Reply.call("say", {"what": "nothing"}),
            done("word " * 3000),
        ],
        {},
    ),
    "characters": (
        [
            Reply.call("say", {"what": "characters"}, said="Größe 漢字 🧑‍🚀\u2028\u0000\u001b[1m"),
            Reply.call("say", '{"what": "sur\\u0072ogate", "\\ud83d": 1}'),
            Reply.call("say", {"what": "surrogate"}),
            Reply.call("write", '{"text":"\\u00e9 \\ud83d\\ude80 \\/ \\n"  }'),
            Reply.text("\ufeff  \n\n\t"),
            done("überprüft ✓ \u202e"),
        ],
        {},
    ),
    "ids-used-again": (
        [
            Reply.calls([("write", {"text": "1"}), ("write", {"text": "2"})], ids=["a", "a"]),
            Reply.calls([("write", {"text": "3"})], ids=["a"]),
            Reply.calls([("read", {"text": "4"})], ids=[""]),
            done(),
        ],
        {},
    ),
    "answers-cut-by-their-length": (
        [
            replace(Reply.call("write", '{"text": "never end'), finish_reason="length"),
            Reply.text("and then", finish_reason="length"),
            done(),
        ],
        {},
    ),
    "completion-refused": (
        [
            Reply.calls([("work_complete", {"summary": "early"}), ("write", {"text": "x"})]),
            Reply.calls([("fail", {"how": "told"}), ("work_complete", {"summary": "late"})]),
            Reply.calls([("work_complete", {"summary": " "})]),
            Reply.calls([("read", {"text": "x"}), ("work_complete", {"summary": "at last"})]),
        ],
        {},
    ),
    "nudged": (
        [Reply.text("I think"), WRITE, Reply.text("that is all"), Reply.text(""), done()],
        {},
    ),
    "nudges-spent": ([Reply.text(f"no {n}") for n in range(9)], {}),
    "nudges-spent-strictly": (
        [Reply.text("one"), READ, READ, *(Reply.text(f"no {n}") for n in range(3))],
        {
            "max_rounds_per_turn": 1,
            "continuation": {"max_prompts": 2},
            "stop_policy": "strict_automation",
        },
    ),
    "no-nudges": ([READ, Reply.text("well")], {"continuation": None}),
    "answered": ([READ, Reply.text("it is a")], {"completion": "answer"}),
    "many-turns": (
        [*(Reply.calls([("read", {"text": str(n)})]) for n in range(40)), done()],
        {"max_rounds_per_turn": 3},
    ),
    "under-pressure": (
        [Reply.text("hm"), Reply.call("long", {"characters": 2000}), Reply.text("so"), done()],
        {"max_input_tokens": 300},
    ),
    "model-refused": (
        [WRITE, Reply.error(ModelRefusedError("scripted", "filtered – ß", 400))],
        {},
    ),
    "model-busy": ([READ, Reply.error(ModelBusyError("scripted", "try later", 429))], {}),
    "model-without-words": ([WRITE], {}),
    "cached": (CachingModel([*two_lookups()[:2], Reply.text("hm"), done()]), {}),
    "timely": (TimelyModel(two_lookups()), {"limits": {"time_s": 60.0, "working_s": 50.0}}),
}

LIMITS: dict[str, Plan] = {
    "limit-turns": (endless(Reply.text("more")), {"max_turns": 2}),
    "limit-model-calls": (endless(READ), {"limits": {"model_calls": 3}}),
    "limit-tool-calls": (
        endless(Reply.calls([("write", {"text": "a"}), ("read", {"text": "b"})])),
        {"limits": {"tool_calls": 3}},
    ),
    "limit-calls-per-message": (
        [READ, Reply.calls([("read", {"text": str(n)}) for n in range(5)])],
        {"limits": {"calls_per_message": 4}},
    ),
    "limit-tokens": (CountingModel(endless(READ)), {"limits": {"tokens": 250}}),
    "limit-cost": (CountingModel(endless(WRITE)), {"limits": {"cost_usd": 0.025}}),
    "limit-context": (
        [WRITE, Reply.error(ContextOverflowError("scripted", "too long"))],
        {},
    ),
    "limit-time-in-a-fenced-call": ([WRITE, HANG, done()], {"limits": {"time_s": 0.3}}),
    "limit-time-in-an-idempotent-call": ([WRITE, PEEK, done()], {"limits": {"time_s": 0.3}}),
    "limit-working-time-in-a-call": ([READ, HANG, done()], {"limits": {"working_s": 0.3}}),
    "limit-time-between-rounds": (TimelyModel(endless(READ)), {"limits": {"time_s": 2.5}}),
    "limit-working-time-between-rounds": (
        TimelyModel(endless(WRITE)),
        {"limits": {"working_s": 1.5}},
    ),
    "limit-time-before-an-answer": (HeldModel([WRITE, READ], 1), {"limits": {"time_s": 0.3}}),
}


def own_programs() -> dict[str, Plan]:
    """Workflows with executors of a user."""
    once = an_agent(ScriptedModel([Reply.text("hm"), WRITE, done()]), CORPUS_TOOLS)
    always = an_agent(ScriptedModel(endless(Reply.text("hm"))), CORPUS_TOOLS)

    def noted(agent: Any, **options: Any) -> Program:
        builder = HarnessWorkflowBuilder(agent).insert_after("repair", Notes(**options))
        return Program.of(builder.build())

    own = HarnessWorkflowBuilder(once).replace("agent_turn", OwnTurn(parks=False)).build()
    return {
        "own-executor": (noted(once), {}),
        "own-executor-that-fails": (noted(always, tired_after=3), {}),
        "own-agent-turn": (Program.of(own), {}),
    }


REAL_ROUNDS = 15
"""Answers of a recorded conversation that a run repeats, the beginning ones."""


def real_runs() -> Iterator[tuple[str, Task, Program]]:
    """Recorded conversations as runs: their models and tools say again what they said."""
    for conversation in conversations():
        messages = conversation.messages
        begins = next(i for i, m in enumerate(messages) if m.role == "assistant")
        task = tuple(m for m in messages[:begins] if m.role == "user") or (Message.user("go on"),)
        replies = list(_replies(messages[begins:]))[:REAL_ROUNDS]
        model = ScriptedModel([*replies, done()])
        program = Program.of(an_agent(model, tools_of(messages)))
        yield conversation.id.replace("/", "-"), task, program


def _replies(messages: Sequence[Message]) -> Iterator[Reply]:
    for message in messages:
        if message.role == "assistant":
            yield Reply(
                said=message.text,
                asked=tuple((call.name, call.arguments) for call in message.tool_calls),
                ids=tuple(call.id for call in message.tool_calls),
            )
