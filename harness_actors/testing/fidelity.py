"""How much of a conversation is left after it was summarized again and again.

``python -m harness_actors.testing.fidelity`` prints it for the summarizers that are shipped, and
for two ways to do without one. Ten cycles, in each of which a window is filled and summarized: 50
facts that must stay, 50 results that no call brings back, and 50 decisions in the words of somebody
who has not seen the rules by which they are found.
"""

import argparse
import asyncio
import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from harness_actors.compaction import Condensation, DeterministicSummarizer
from harness_actors.config import CompactionConfig
from harness_actors.conversation import Conversation
from harness_actors.errors import ModelError, SummaryError
from harness_actors.messages import Message, ToolCall
from harness_actors.plan import CompactionPlan, Shown, ToolPolicy, View, without_summarized
from harness_actors.ports import Summarizer, SummaryRequest
from harness_actors.results import Usage
from harness_actors.state import Pressure

CYCLES = 10
PER_CYCLE = 5
WINDOW_TOKENS = 32_000
OVERHEAD_TOKENS = 1_000
READ_TOKENS = 2_000
READS = 2
CHARS_PER_TOKEN = 4
POLICIES = {
    "read_file": ToolPolicy(durability="replayable"),
    "web_search": ToolPolicy(durability="non_replayable"),
}
SHOWN = Shown(POLICIES)
FACTS = tuple(
    f"The {thing} of site {number} is {number * 7919 % 9973}."
    for number in range(1, 11)
    for thing in ("port", "budget", "deadline code", "gate", "quota")
)
"""Sentences that must stay, word for word."""
SETTINGS = CompactionConfig(summaries=True, facts=FACTS)
WORDS = "the log shows that the step was done in time and that nothing else was said of it "


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """What is left in the request of the last cycle.

    Attributes:
        name: By whom it was summarized.
        facts: Facts that stand in it word for word.
        results: Results that were read back by at most two reads, from references in it.
        decisions: Decisions that stand in it.
        lost: The words of those that do not.
        tokens: How large it is.
        usage: What was used for the summaries.
        problem: Why there is nothing of all that: the summarizer gave no summary. Empty for none.
    """

    name: str
    facts: int = 0
    results: int = 0
    decisions: int = 0
    lost: tuple[str, ...] = ()
    tokens: int = 0
    usage: Usage = field(default_factory=Usage)
    problem: str = ""


@cache
def decisions() -> tuple[tuple[str, str], ...]:
    """What is said, and the words in it that a summary must have."""
    plain = json.loads(files(__package__).joinpath("decisions.json").read_text())
    return tuple((one["said"], one["decides"]) for one in plain)


@cache
def narration() -> tuple[str, ...]:
    """What is said and decides nothing."""
    said: list[str] = json.loads(files(__package__).joinpath("narration.json").read_text())
    return tuple(said)


def nugget(number: int) -> str:
    """What is to be known of a result."""
    return f"nugget-{number * 104729 % 99991}"


def cycle(number: int, rounds: int = 40) -> Iterator[Message]:
    """The messages of a cycle: some say or find what counts, the others fill the window."""
    said, found = iter(_part(decisions(), number)), iter(range(PER_CYCLE))
    for place in range(rounds):
        at = number * rounds + place
        if place % (rounds // PER_CYCLE) == 1:
            yield from _search(number * PER_CYCLE + next(found))
        text = next(said)[0] if place % (rounds // PER_CYCLE) == 2 else _said(at)
        call = ToolCall(f"r{at}", "read_file", json.dumps({"path": f"logs/{at}.txt"}))
        yield _counted(Message.assistant(text, [call]))
        yield _counted(Message.tool_result(call.id, f"{at}: {WORDS * 14}"))


def _part(all_of: Sequence[tuple[str, str]], number: int) -> Sequence[tuple[str, str]]:
    return all_of[number * PER_CYCLE : (number + 1) * PER_CYCLE]


def _said(at: int) -> str:
    return narration()[at % len(narration())]


def _search(number: int) -> Iterator[Message]:
    call = ToolCall(f"w{number}", "web_search", json.dumps({"query": f"topic {number}"}))
    yield _counted(Message.assistant(None, [call]))
    text = f"Of topic {number}: {WORDS * 10} It is {nugget(number)}. {WORDS * 10}"
    yield _counted(Message.tool_result(call.id, text))


def _counted(message: Message) -> Message:
    return Message(
        message.role,
        message.encoded,
        len(message.encoded) // CHARS_PER_TOKEN + 4,
        by_harness=message.by_harness,
    )


Shows = Callable[[Conversation], Sequence[Message]]
"""What a model is shown of a conversation."""


async def measure(summarizer: Summarizer, *, cycles: int = CYCLES) -> Fidelity:
    """What is left of a conversation by the plans of this harness.

    Args:
        summarizer: Who summarizes.
        cycles: How often, at least 1 and at most 10.

    Raises:
        SummaryError: It cannot.
        ModelError: A model that it asks does not answer.
    """
    log, plan, usage = _begun(), None, Usage()
    for number in range(cycles):
        log.extend(cycle(number))
        plan, used = await _condensed(log, plan, summarizer)
        usage += used
    assert plan is not None, "there is something to summarize in each cycle"
    shown = View(log, plan).messages()
    return _scored(summarizer.name, log, shown, cycles, usage)


async def _condensed(
    log: Conversation, plan: CompactionPlan | None, summarizer: Summarizer
) -> tuple[CompactionPlan | None, Usage]:
    shown = log.tokens if plan is None else View(log, plan).tokens
    pressure = Pressure(
        window_tokens=WINDOW_TOKENS,
        request_tokens=shown + OVERHEAD_TOKENS,
        overhead_tokens=OVERHEAD_TOKENS,
    )
    condensation = Condensation(without_summarized(log, plan), plan, pressure, SETTINGS, SHOWN)
    made, usage = {}, Usage()
    for block in condensation.blocks(summarizer.name, summarizer.most_tokens):
        request = SummaryRequest(messages=block.messages, shown=SHOWN, facts=FACTS)
        answer = await summarizer.summarize(request)
        made[block.key] = answer.summary
        usage += answer.usage
    proposed = condensation.proposal(made)
    return (plan if proposed is None else proposed[0]), usage


def measure_without(name: str, shows: Shows, *, cycles: int = CYCLES) -> Fidelity:
    """What is left where the conversation is shown otherwise, without summaries."""
    log = _begun()
    for number in range(cycles):
        log.extend(cycle(number))
    return _scored(name, log, shows(log), cycles, Usage())


def _begun() -> Conversation:
    task = "Go through the logs. These must be kept in mind: " + " ".join(FACTS)
    # Said by the harness, and not by the user: whose words stay in any case.
    return Conversation([_counted(Message.user("Go on.")), _counted(Message.told(task))])


def truncated(log: Conversation) -> list[Message]:
    """Each message cut to so many characters that all of them fit."""
    most = max(20, CHARS_PER_TOKEN * (WINDOW_TOKENS - OVERHEAD_TOKENS) // len(log) - 60)
    return [_cut(message, most) for message in log]


def _cut(message: Message, most: int) -> Message:
    if len(message.text) <= most:
        return message
    body = {**message.body, "content": message.text[:most]}
    return Message(message.role, json.dumps(body).encode(), most // CHARS_PER_TOKEN)


def without_oldest(log: Conversation) -> list[Message]:
    """The newest messages that fit, as they are."""
    room, kept = WINDOW_TOKENS - OVERHEAD_TOKENS, list[Message]()
    for message in reversed(log):
        room -= message.tokens
        if room < 0:
            break
        kept.insert(0, message)
    return kept


def _scored(
    name: str, log: Conversation, shown: Sequence[Message], cycles: int, usage: Usage
) -> Fidelity:
    request = "\n".join(message.text for message in shown)
    there = [words for _, words in decisions()[: cycles * PER_CYCLE]]
    lost = tuple(words for words in there if _plain(words) not in _plain(request))
    return Fidelity(
        name=name,
        facts=sum(fact in request for fact in FACTS),
        results=sum(_is_read(log, request, number) for number in range(cycles * PER_CYCLE)),
        decisions=len(there) - len(lost),
        lost=lost,
        tokens=sum(message.tokens for message in shown) + OVERHEAD_TOKENS,
        usage=usage,
    )


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text)).casefold()


def _is_read(log: Conversation, request: str, number: int) -> bool:
    """Whether a reader that wants a result finds it by what it is shown: the line that tells of its
    call names a message, of which it reads no more than it may."""
    if nugget(number) in request:
        return True
    asked = re.compile(rf"^(?=.*\btopic {number}\b).*?\bm(\d+)\b", re.MULTILINE)
    places = [int(found[1]) for found in asked.finditer(request)]
    texts = [log[at].text for at in places[:READS] if at < len(log)]
    return any(nugget(number) in text[: READ_TOKENS * CHARS_PER_TOKEN] for text in texts)


WITHOUT: Mapping[str, Shows] = {
    "plain truncation": truncated,
    "dropping the oldest": without_oldest,
}


async def measure_all(more: Sequence[Summarizer] = (), *, cycles: int = CYCLES) -> list[Fidelity]:
    """All that are shipped and need no provider, and these."""
    found = [await _tried(one, cycles) for one in (DeterministicSummarizer(), *more)]
    found += [measure_without(name, shows, cycles=cycles) for name, shows in WITHOUT.items()]
    return found


async def _tried(summarizer: Summarizer, cycles: int) -> Fidelity:
    try:
        return await measure(summarizer, cycles=cycles)
    except (SummaryError, ModelError) as error:
        return Fidelity(name=summarizer.name, problem=str(error))


def _embedded() -> Summarizer:
    from harness_actors.compaction.chat_summarizer import ChatClientSummarizer
    from harness_actors.models import LocalModel

    # It takes 4,096 tokens, its answer included.
    return ChatClientSummarizer(LocalModel(), window_tokens=3_000)


def _named(name: str) -> Summarizer:
    module, _, function = name.partition(":")
    made: Summarizer = getattr(importlib.import_module(module), function)()
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m harness_actors.testing.fidelity",
        description="What is left of a conversation after ten cycles.",
    )
    parser.add_argument(
        "--summarizer",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="one of your own: a function that makes it",
    )
    parser.add_argument("--embedded", action="store_true", help="the embedded model as well")
    parser.add_argument("--cycles", type=int, default=CYCLES, choices=range(1, CYCLES + 1))
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    options = parser.parse_args()
    more = [_named(name) for name in options.summarizer]
    more += [_embedded()] if options.embedded else []
    for one in asyncio.run(measure_all(more, cycles=options.cycles)):
        print(json.dumps(_told(one)) if options.json else _line(one, options.cycles))


def _told(one: Fidelity) -> dict[str, object]:
    return {
        "name": one.name,
        "facts": one.facts,
        "results": one.results,
        "decisions": one.decisions,
        "lost": list(one.lost),
        "tokens": one.tokens,
        "summaries_tokens": one.usage.tokens,
        "summaries_cost_usd": one.usage.cost_usd,
        "problem": one.problem,
    }


def _line(one: Fidelity, cycles: int) -> str:
    if one.problem:
        return f"{one.name}: no summary: {one.problem}"
    of = cycles * PER_CYCLE
    counts = f"facts {one.facts}/{len(FACTS)}, results {one.results}/{of}"
    lost = f"\n    not found: {'; '.join(one.lost)}" if one.lost and one.decisions else ""
    return (
        f"{one.name}: {counts}, decisions {one.decisions}/{of}, {one.tokens:,} of "
        f"{WINDOW_TOKENS:,} tokens{lost}"
    )


if __name__ == "__main__":
    main()
