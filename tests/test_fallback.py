"""Fallback models as a user meets them: whole runs over real HTTP, and their replays."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessConfig, HarnessResult
from harness_actors.cli.ctl.whole import fallback_rows, fallbacks
from harness_actors.config import Limits
from harness_actors.errors import ModelError, RunParkedError
from harness_actors.events import Event, ModelFellBack, RoundCompleted, TextDelta
from harness_actors.models import Backoff, Fallback, OpenAIModel, Price
from harness_actors.policies import Redact
from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel, faults
from harness_actors.testing.faults import BreakOff, Fault, NeverAnswer
from harness_actors.tools import tool

AT_ONCE = Backoff(first_s=0.001, longest_s=0.002)
CHEAP, DEAR = Price(1.0, 1.0, 1.0), Price(100.0, 100.0, 100.0)


@pytest.fixture(autouse=True)
def no_ambient_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of whoever runs the tests must not reach them."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@tool(effect="read_only")
async def look(text: str) -> str:
    """Look at something.

    Args:
        text: What.
    """
    return f"saw {text}"


@tool
async def write(text: str) -> str:
    """Write something; not idempotent.

    Args:
        text: What.
    """
    return f"wrote {text}"


DONE = Reply.call("work_complete", {"summary": "it is done"})
WORK = [Reply.call("look", {"text": "a"}), Reply.call("write", {"text": "b"}), DONE]


def scripted(replies: Sequence[Reply]) -> Any:
    """A server's script: the first reply to a conversation without an answer, and so on."""

    def reply(body: Mapping[str, Any]) -> Reply:
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        said: Reply = replies[spoken]
        return said

    return reply


def model(server: LoopbackServer, name: str, **settings: Any) -> OpenAIModel:
    given = {"backoff": AT_ONCE, "max_retries": 1, "price": CHEAP, **settings}
    return OpenAIModel(name, base_url=server.base_url, **given)


@dataclass
class Ran:
    """What came of a run."""

    result: HarnessResult
    events: list[Event]
    texts: list[TextDelta]
    store: Path

    def happened(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def run(agent: ChatAgent, folder: Path, runtime: Any = "local", **settings: Any) -> Ran:
    """A run that is read along, and its rerun, which is to be the same without any code."""
    store, events, texts, result = folder / "runs.db", list[Event](), list[TextDelta](), None
    config = HarnessConfig(**settings)
    async with AgentHarness(agent, runtime=runtime, store=store, config=config) as harness:
        async for item in harness.run_stream("work"):
            match item:
                case HarnessResult():
                    result = item
                case TextDelta():
                    texts.append(item)
                case _:
                    events.append(getattr(item, "event", item))  # type: ignore[arg-type]
    assert result is not None
    again = await replay(load_recording(JournalReader(store), result.run_id))
    assert again.differences == ()
    assert again.same
    return Ran(result, events, texts, store)


@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=pytest.mark.ray)])
async def test_the_next_model_answers_where_the_first_has_failed_for_good(
    runtime: Any, tmp_path: Path
) -> None:
    async with (
        LoopbackServer(faults=faults.always(faults.SERVER_ERROR)) as broken,
        LoopbackServer(scripted(WORK)) as sound,
    ):
        agent = ChatAgent(
            models=[model(broken, "first"), model(sound, "second")], tools=[look, write]
        )
        ran = await run(agent, tmp_path, runtime)

    assert (ran.result.status, ran.result.output_text) == ("done", "it is done")
    # Its retries, once: the turn stays with who has answered.
    assert (broken.requests, sound.requests) == (2, 3)
    told = ran.happened(ModelFellBack)
    assert [(one.turn, one.round, one.model) for one in told] == [
        (1, number, "second") for number in (1, 2, 3)
    ]
    assert [[(one["model"], one["why"]) for one in event.failed] for event in told] == [
        [("first", "error")],
        [],
        [],
    ]
    assert "The server had an error" in told[0].failed[0]["problem"]
    assert ran.result.usage.model_calls == 3
    # The same request, in the words of each.
    asked = [orjson.loads(server.seen[0].body) for server in (broken, sound)]
    assert [body.pop("model") for body in asked] == ["first", "second"]
    assert asked[0] == {**asked[1], "stream": asked[0].get("stream")}
    shown = fallback_rows(fallbacks(JournalReader(ran.store), ran.result.run_id))
    assert [text.partition(",")[0] for _, text in shown] == [
        "first did not answer once",
        "second answered 3 rounds in its place",
    ]


FAULTS: dict[str, Fault] = {
    "429": faults.rate_limited(),
    "500": faults.SERVER_ERROR,
    "503": faults.OVERLOADED,
    "key": faults.WRONG_KEY,
    "no such model": faults.UNKNOWN_MODEL,
    "no money": faults.OUT_OF_QUOTA,
    "cut before": BreakOff("before_headers"),
    "cut within": BreakOff("in_body"),
    "stall": NeverAnswer(),
    "no answer": faults.EMPTY_CHOICES,
    "no JSON": faults.NOT_JSON,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_whatever_a_provider_fails_by_the_next_is_asked(fault: Fault, tmp_path: Path) -> None:
    async with (
        LoopbackServer(faults=faults.always(fault)) as broken,
        LoopbackServer(lambda _: DONE) as sound,
    ):
        first = model(broken, "first", timeout_s=0.3)
        ran = await run(ChatAgent(models=[first, model(sound, "second")]), tmp_path)

    assert ran.result.status == "done"
    assert sound.requests == 1


async def test_a_server_that_is_not_there_is_fallen_back_from(tmp_path: Path) -> None:
    async with LoopbackServer() as gone:
        first = model(gone, "first")
    async with LoopbackServer(lambda _: DONE) as sound:
        ran = await run(ChatAgent(models=[first, model(sound, "second")]), tmp_path)

    assert ran.result.status == "done"
    assert "cannot connect" in ran.happened(ModelFellBack)[0].failed[0]["problem"]


OPTIONAL = {"refusal": faults.CONTENT_FILTERED, "overflow": faults.CONTEXT_OVERFLOW}


@pytest.mark.parametrize("cause", OPTIONAL)
@pytest.mark.parametrize("asked_for", [False, True])
async def test_refusals_and_overflow_fall_back_where_they_are_asked_for(
    cause: Any, asked_for: bool, tmp_path: Path
) -> None:
    async with (
        LoopbackServer(faults=faults.always(OPTIONAL[cause])) as first,
        LoopbackServer(lambda _: DONE) as second,
    ):
        agent = ChatAgent(
            models=[model(first, "first"), model(second, "second")],
            fallback=Fallback(on=("errors", cause)) if asked_for else None,
        )
        ran = await run(agent, tmp_path)

    assert second.requests == asked_for
    kinds = [one["why"] for event in ran.happened(ModelFellBack) for one in event.failed]
    assert kinds == [cause] * asked_for
    ended = {"refusal": ("failed", "model_error"), "overflow": ("limit", "context")}[cause]
    reached = (ran.result.status, ran.result.reason.kind)
    assert reached == (("done", "completed") if asked_for else ended)


@pytest.mark.parametrize("asked_for", [False, True])
async def test_an_answer_that_a_filter_has_stopped_is_paid_for(
    asked_for: bool, tmp_path: Path
) -> None:
    stopped = Reply.text("I must not", finish_reason="content_filter")
    async with (
        LoopbackServer(lambda _: stopped) as first,
        LoopbackServer(lambda _: DONE) as second,
    ):
        agent = ChatAgent(
            models=[model(first, "first", price=DEAR), model(second, "second")],
            fallback=Fallback(on=("errors", "refusal")) if asked_for else None,
        )
        ran = await run(agent, tmp_path)

    usage = ran.result.usage
    if not asked_for:
        assert (ran.result.status, ran.result.reason.kind) == ("failed", "model_error")
        assert ran.result.reason.error_facts["type"] == "ModelRefusedError"
        assert usage.cost_usd == pytest.approx(usage.tokens * 100 / 1e6) != 0.0
        return
    (event,) = ran.happened(RoundCompleted)
    told = ran.happened(ModelFellBack)[0].failed[0]
    refused_tokens = told["input_tokens"] + told["output_tokens"]
    answered_tokens = event.input_tokens + event.output_tokens - refused_tokens
    # Each at its own price, and both are the run's.
    assert refused_tokens > 0 < answered_tokens
    assert told["cost_usd"] == pytest.approx(refused_tokens * 100 / 1e6)
    assert usage.cost_usd == event.cost_usd
    assert usage.cost_usd == pytest.approx(told["cost_usd"] + answered_tokens / 1e6)
    assert usage.tokens == refused_tokens + answered_tokens


async def test_where_no_model_answers_the_run_ends_with_what_each_has_said(tmp_path: Path) -> None:
    async with (
        LoopbackServer(faults=faults.always(faults.SERVER_ERROR)) as first,
        LoopbackServer(faults=faults.always(faults.WRONG_KEY)) as second,
    ):
        agent = ChatAgent(models=[model(first, "first"), model(second, "second")])
        ran = await run(agent, tmp_path)

    reason = ran.result.reason
    assert (ran.result.status, reason.kind) == ("failed", "model_error")
    assert reason.error_facts["type"] == "ModelsFailedError"
    assert "The server had an error" in reason.message
    assert "wants a key" in reason.message
    (told,) = ran.happened(ModelFellBack)
    assert (told.model, [one["model"] for one in told.failed]) == ("", ["first", "second"])


async def test_a_busy_first_and_a_small_second_are_no_overflow_of_the_run(tmp_path: Path) -> None:
    async with (
        LoopbackServer(faults=faults.always(faults.SERVER_ERROR)) as first,
        LoopbackServer(faults=faults.always(faults.CONTEXT_OVERFLOW)) as second,
    ):
        agent = ChatAgent(models=[model(first, "first"), model(second, "second")])
        ran = await run(agent, tmp_path)

    assert (ran.result.status, ran.result.reason.kind) == ("failed", "model_error")


async def test_what_a_broken_stream_has_said_is_void_when_the_next_model_speaks(
    tmp_path: Path,
) -> None:
    long, short = "the first says this and that " * 40, "the second says it"
    async with (
        LoopbackServer(lambda _: Reply.text(long), faults=faults.always(BreakOff("in_body"))) as a,
        LoopbackServer(lambda _: Reply.text(short)) as b,
    ):
        agent = ChatAgent(models=[model(a, "first"), model(b, "second")])
        ran = await run(agent, tmp_path, completion="answer")

    assert ran.result.output_text == short
    last = max(piece.attempt for piece in ran.texts)
    assert "".join(piece.text for piece in ran.texts if piece.attempt == last) == short
    void = "".join(piece.text for piece in ran.texts if piece.attempt < last)
    assert void
    assert long.startswith(void[: len("the first")])


async def test_a_secret_is_in_nothing_that_is_told_of_the_next_model(tmp_path: Path) -> None:
    answer = Reply.text("the key is sk-abcdefghijklmnop1234 and that is it")
    async with (
        LoopbackServer(faults=faults.always(faults.SERVER_ERROR)) as broken,
        LoopbackServer(lambda _: answer) as sound,
    ):
        models = [model(broken, "first"), model(sound, "second")]
        agent = ChatAgent(models=models, middleware=[Redact()])
        ran = await run(agent, tmp_path, completion="answer")

    told = "".join(piece.text for piece in ran.texts)
    assert ran.result.output_text == told == "the key is [redacted] and that is it"


async def test_a_run_out_of_time_asks_no_further_model(tmp_path: Path) -> None:
    async with (
        LoopbackServer(faults=faults.always(NeverAnswer())) as first,
        LoopbackServer(lambda _: DONE) as second,
    ):
        agent = ChatAgent(models=[model(first, "first"), model(second, "second")])
        ran = await run(agent, tmp_path, limits=Limits(time_s=1.0))

    assert (ran.result.status, ran.result.reason.kind) == ("limit", "time")
    assert second.requests == 0


async def test_a_run_out_of_time_at_its_second_model_comes_out_the_same_again(
    tmp_path: Path,
) -> None:
    async with (
        LoopbackServer(faults=faults.always(faults.WRONG_KEY)) as first,
        LoopbackServer(faults=faults.always(NeverAnswer())) as second,
    ):
        agent = ChatAgent(models=[model(first, "first"), model(second, "second")])
        ran = await run(agent, tmp_path, limits=Limits(time_s=1.0))

    assert (ran.result.status, ran.result.reason.kind) == ("limit", "time")
    (told,) = ran.happened(ModelFellBack)
    assert (told.model, [one["model"] for one in told.failed]) == ("", ["first"])


async def test_the_next_turn_begins_with_the_first_model_again(tmp_path: Path) -> None:
    replies = [Reply.text("hm"), Reply.call("look", {"text": "a"}), DONE]
    async with (
        LoopbackServer(
            scripted(replies), faults=faults.first(2, faults.SERVER_ERROR)
        ) as recovering,
        LoopbackServer(scripted(replies)) as sound,
    ):
        agent = ChatAgent(models=[model(recovering, "first"), model(sound, "second")], tools=[look])
        ran = await run(agent, tmp_path)

    assert ran.result.status == "done"
    assert (recovering.requests, sound.requests) == (2 + 2, 1)
    assert [event.turn for event in ran.happened(ModelFellBack)] == [1]


async def test_the_first_is_asked_again_where_the_second_breaks_in_the_same_turn(
    tmp_path: Path,
) -> None:
    async with (
        LoopbackServer(scripted(WORK), faults=faults.first(2, faults.SERVER_ERROR)) as first,
        LoopbackServer(
            scripted(WORK), faults=lambda number, _: faults.SERVER_ERROR if number > 1 else None
        ) as second,
    ):
        agent = ChatAgent(
            models=[model(first, "first"), model(second, "second")], tools=[look, write]
        )
        ran = await run(agent, tmp_path)

    assert ran.result.status == "done"
    told = ran.happened(ModelFellBack)
    assert [(one.round, one.model) for one in told] == [(1, "second"), (2, "first")]


async def test_after_a_pause_is_asked_for_no_further_model_is_asked(tmp_path: Path) -> None:
    async with (
        LoopbackServer(faults=faults.always(faults.WRONG_KEY)) as first,
        LoopbackServer(lambda _: DONE) as second,
    ):
        first.hold()
        agent = ChatAgent(models=[model(first, "first"), model(second, "second")])
        store = tmp_path / "runs.db"
        async with AgentHarness(agent, runtime="local", store=store) as harness:
            running = asyncio.ensure_future(harness.run("work"))
            await asyncio.wait_for(first.until_open(1), 20)
            run_id = harness.run_id
            assert run_id is not None
            await harness.park()
            first.release()
            with pytest.raises(RunParkedError):
                await asyncio.wait_for(running, 20)
            asked = (first.requests, second.requests)
            result = await harness.resume(run_id)

    assert asked == (1, 0)
    assert result.status == "done"
    assert (first.requests, second.requests) == (2, 1)


async def test_scripted_models_and_models_of_ones_own_may_be_in_a_chain(tmp_path: Path) -> None:
    failing = ScriptedModel(lambda _: Reply.error(ModelError("own", "out of order")), name="own")
    agent = ChatAgent(models=[failing, ScriptedModel(WORK)], tools=[look, write])
    ran = await run(agent, tmp_path)

    assert ran.result.status == "done"
    assert ran.happened(ModelFellBack)[0].failed[0]["problem"] == "model 'own': out of order"


async def test_an_agent_with_one_model_tells_nothing_of_others(tmp_path: Path) -> None:
    ran = await run(ChatAgent(models=[ScriptedModel(WORK)], tools=[look, write]), tmp_path)

    assert ran.result.status == "done"
    assert ran.happened(ModelFellBack) == []
