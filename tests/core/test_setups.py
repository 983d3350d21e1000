"""What makes another set-up, what does not, and what is said of the difference."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.executors.repair import Repair
from harness_actors.models import OpenAIModel, Price
from harness_actors.policies import Approvals, Hook, Redact
from harness_actors.ports import Tool
from harness_actors.setups import Setup, differences
from harness_actors.testing import an_agent
from harness_actors.tools import coding_tools, tool

URL = "http://127.0.0.1:9/v1"


def refund(effect: Literal["read_only", "destructive"] = "destructive") -> Tool:
    @tool(effect=effect, name="refund")
    def refund(order: str) -> str:
        """Refund an order."""
        return order

    return refund


@tool(name="refund", effect="destructive")
def in_parts(order: str, cents: int) -> str:
    """Refund an order."""
    return f"{order} {cents}"


def an_openai_agent(
    model: OpenAIModel | None = None, *, instructions: str = "Be kind.", tools: Sequence[Tool] = ()
) -> ChatAgent:
    return ChatAgent(
        model=model or OpenAIModel("m", base_url=URL, settings={"temperature": 0, "top_p": 0.5}),
        instructions=instructions,
        tools=tools or [refund()],
    )


async def looked_at(event: object) -> None: ...


def setup(agent: ChatAgent | None = None, config: HarnessConfig | None = None) -> Setup:
    return Program.of(agent or an_openai_agent()).setup.within(config or HarnessConfig())


OTHERS: dict[str, Callable[[], Setup]] = {
    "model": lambda: setup(an_openai_agent(OpenAIModel("n", base_url=URL))),
    "endpoint": lambda: setup(an_openai_agent(OpenAIModel("m", base_url="http://127.0.0.1:8/v1"))),
    "setting": lambda: setup(
        an_openai_agent(OpenAIModel("m", base_url=URL, settings={"temperature": 1, "top_p": 0.5}))
    ),
    "instructions": lambda: setup(an_openai_agent(instructions="Be quick.")),
    "one tool more": lambda: setup(an_openai_agent(tools=[refund(), *coding_tools()])),
    "effect": lambda: setup(an_openai_agent(tools=[refund("read_only")])),
    "schema": lambda: setup(an_openai_agent(tools=[in_parts])),
    "limit": lambda: setup(config=HarnessConfig(limits=Limits(tokens=5))),
    "setting of runs": lambda: setup(config=HarnessConfig(completion="answer")),
    "no stall rules": lambda: setup(config=HarnessConfig(stall=None)),
    "no compaction": lambda: setup(config=HarnessConfig(compaction=None)),
    "window": lambda: setup(config=HarnessConfig(max_input_tokens=9_000)),
    "no nudges": lambda: setup(config=HarnessConfig(continuation=None)),
    "workflow": lambda: Program.of(
        HarnessWorkflowBuilder(an_openai_agent()).replace("repair", Repair()).build()
    ).setup.within(HarnessConfig()),
    "hook": lambda: setup(replace(an_openai_agent(), hooks={"pre_tool": looked_at})),
    "patience with a hook": lambda: setup(
        replace(an_openai_agent(), hooks={"pre_tool": Hook(looked_at, timeout_s=3)})
    ),
    "middleware": lambda: setup(replace(an_openai_agent(), middleware=[Redact()])),
    "setting of middleware": lambda: setup(
        replace(an_openai_agent(), middleware=[Redact(patterns=["cust-[0-9]{6}"])])
    ),
    "capabilities": lambda: setup(replace(an_openai_agent(), capabilities=[])),
    "approvals": lambda: setup(replace(an_openai_agent(), approvals=Approvals.of_autonomy("low"))),
    "when approvals expire": lambda: setup(
        replace(an_openai_agent(), approvals=replace(Approvals.of_autonomy("low"), expires_s=9))
    ),
    "workspace": lambda: Program.of(an_openai_agent()).setup.within(
        HarnessConfig(), workspace="/a"
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_makes_another_setup(what: str) -> None:
    other = OTHERS[what]()

    assert other.hash != setup().hash
    assert differences(setup().parts, other.parts)


def test_what_makes_none() -> None:
    model = OpenAIModel(
        "m",
        base_url=URL + "/",
        settings={"top_p": 0.5, "temperature": 0.0},
        api_key="sk-secret",
        price=Price(1.0, None, 2.0),
        timeout_s=5,
        max_retries=0,
        max_connections=9,
    )
    agent = ChatAgent(model=model, instructions="Be kind.", tools=[refund()], name="other")

    assert setup(agent).hash == setup().hash
    assert setup(agent).agent == "other"


def test_what_an_agent_without_gates_is_made_of_says_nothing_of_them() -> None:
    bare = replace(an_openai_agent(), hooks={}, middleware=[], capabilities=None, approvals=None)

    assert setup(bare).parts == setup().parts
    names = " ".join(setup().parts)
    assert not {"hooks", "middleware", "capabilities", "approvals"} & set(
        names.replace(".", " ").split()
    )


def test_each_setting_of_a_gate_makes_another() -> None:
    hashes = [OTHERS[what]().hash for what in OTHERS]
    assert len(set(hashes)) == len(hashes)


def test_the_order_of_tools_makes_none() -> None:
    tools = coding_tools()

    assert (
        setup(an_openai_agent(tools=tools)).hash == setup(an_openai_agent(tools=tools[::-1])).hash
    )


def test_no_key_is_in_its_parts() -> None:
    model = OpenAIModel(
        "m",
        base_url=URL + "?key=sk-one",
        api_key="sk-two",
        settings={"extra": {"api_key": "sk-three"}, "access_token": "sk-four", "max_tokens": 7},
    )

    parts = setup(an_openai_agent(model)).parts

    assert "sk-" not in json.dumps(parts)
    assert parts["model.settings.max_tokens"] == 7
    assert parts["model.base_url"] == URL


PROGRAM = """
from harness_actors.agents import Program
from harness_actors.config import HarnessConfig
from harness_actors.testing import an_agent
from harness_actors.tools import coding_tools
agent = an_agent(tools=coding_tools())
print(Program.of(agent).setup.within(HarnessConfig()).hash)
"""


def test_it_is_the_same_in_every_process() -> None:
    def hash_of(seed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    here = Program.of(an_agent(tools=coding_tools())).setup.within(HarnessConfig()).hash
    assert {hash_of("1"), hash_of("2")} == {here}


def test_the_difference_is_said_in_a_line_for_each_part() -> None:
    before = setup()
    model = OpenAIModel("n", base_url=URL, settings={"temperature": 0})
    agent = an_openai_agent(model, tools=[refund("read_only"), *coding_tools()[:1]])
    now = setup(agent, HarnessConfig(max_turns=9, limits=Limits(tokens=5)))

    told = differences(before.parts, now.parts)

    assert told[0] == "model 'm' → 'n'"
    assert f"tools.{coding_tools()[0].spec.name} is new" in told
    assert "tools.refund: effect 'destructive' → 'read_only', idempotent false → true" in told
    assert "max_turns 50 → 9" in told
    assert "limits.tokens 5 is new" in told
    assert "model.settings.top_p is gone" in told
    assert differences(now.parts, now.parts) == ()


def test_of_long_texts_it_shows_where_they_begin_to_differ() -> None:
    one, other = ({"instructions": "word " * 99 + end} for end in ("red", "green"))

    (told,) = differences(one, other)

    assert told.endswith("red' → '…word word word word green'")
    assert len(told) < 200


LONG = "word " * 40
END = "…word word word word "


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (LONG, LONG + "more", f"'{END}' → '{END}more'"),
        (LONG + "more", LONG, f"'{END}more' → '{END}'"),
        ("a " + LONG, "b " + LONG, f"'a {LONG[:58]}…' → 'b {LONG[:58]}…'"),
        ("red", LONG, f"'red' → '{LONG[:60]}…'"),
        ([*range(30)], [1], "[" + ",".join(map(str, range(23))) + ",… → [1]"),
        ({"a": 1}, "red", "{\"a\":1} → 'red'"),
    ],
    ids=["longer", "shorter", "at the start", "short", "no text", "another kind"],
)
def test_what_is_long_is_cut_around_what_differs(before: Any, now: Any, said: str) -> None:
    assert differences({"part": before}, {"part": now}) == (f"part {said}",)


def test_a_run_remembers_what_it_is_made_with() -> None:
    spec = Program.of(an_openai_agent()).spec("hello", HarnessConfig())

    assert spec.made_with == setup().made_with
    assert (setup().agent, setup().model) == ("agent", "m")
