"""Calls that a person must approve: asked once, made at most once, whatever dies meanwhile."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.policies import (
    ApprovalRule,
    Approvals,
    Approve,
    Ask,
    BeforeTool,
    Change,
    Deny,
    Hooks,
    Refuse,
    Respond,
)
from harness_actors.policies.approvals import NO_OBJECT
from harness_actors.policies.decisions import Decision, decision_text
from harness_actors.ports import Tool, ToolContext
from harness_actors.signals import RunEnd, Waiting
from harness_actors.state import (
    ANSWERS,
    OPEN_CALLS,
    QUESTIONS,
    STANDING,
    USAGE,
    StateDelta,
    Write,
    observed_by,
    unanswered,
)
from harness_actors.tools import ask_user
from harness_actors.turn.approvals import TOO_MUCH
from harness_actors.turn.one_call import NO_CALLS_LEFT
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    calls,
    finishes,
)

ASKS_TO_WRITE = Approvals(rules=[ApprovalRule(decide="ask", tools=["write"], why="it is dear")])
YES, NO = Approve(), Refuse("too dear")


@dataclass(frozen=True)
class ApprovedAgent(SimpleAgent):
    hooks: Any = None
    approvals: Any = None


@dataclass
class Person:
    """Decides about calls by their arguments, and remembers what it was asked."""

    decisions: Mapping[int, Decision | str] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def decide(self, question: Mapping[str, Any]) -> str:
        if question.get("call") is None:
            return "blue"
        number = json.loads(question["call"]["arguments"])["n"]
        self.asked.append(number)
        decision = self.decisions.get(number, YES)
        return decision if isinstance(decision, str) else decision_text(decision)


class ApprovingDriver(Driver):
    """A driver whose user sees all of a question."""

    person: Person = Person()

    def take_answers(self, answer: Callable[[str], str]) -> None:
        for one in unanswered(self.state.values):
            given = [one["id"], self.person.decide(one)]
            self._apply(StateDelta((Write(ANSWERS.name, "put", given),)))


def n(number: int) -> str:
    return json.dumps({"n": number})


def write(number: int) -> tuple[str, str, str]:
    return f"w{number}", "write", n(number)


def a_driver(
    *script: Any,
    approvals: Any = ASKS_TO_WRITE,
    person: Person | None = None,
    hooks: Any = None,
    waits: bool = False,
    **more: Any,
) -> ApprovingDriver:
    async def act(arguments: str, _: ToolContext) -> str:
        await driver.step()
        return f"did {json.loads(arguments)['n']}"

    tools: list[Tool] = [
        SimpleTool("write", act),
        SimpleTool("read", act, idempotent=True),
        ask_user,
    ]
    agent = ApprovedAgent(
        RecordingModel([*script, finishes()]), tools, hooks=hooks, approvals=approvals
    )
    driver = ApprovingDriver(agent, **more)
    driver.person = person or Person()
    driver.answer = None if waits else str
    return driver


def made(driver: Driver, tool: str = "write") -> list[int]:
    found = next(one for one in driver.agent.tools if one.spec.name == tool)
    assert isinstance(found, SimpleTool)
    return [json.loads(arguments)["n"] for arguments in found.calls]


def texts(driver: Driver) -> list[str]:
    return [message.text for message in driver.results()][:-1]


async def ended(driver: Driver) -> RunEnd:
    end = await driver.run()
    assert isinstance(end, RunEnd)
    driver.check_log()
    return end


async def goes_on(driver: Driver) -> None:
    """Somebody takes a run up that waits, with its answers."""
    driver.take_answers(str)
    assert isinstance(await driver.run(resumed=True), RunEnd)


async def test_a_call_is_made_once_it_is_approved() -> None:
    driver = a_driver(calls(write(1)), waits=True)

    assert isinstance(await driver.run(), Waiting)
    (asked,) = unanswered(driver.state.values)
    assert asked["text"] == "May write be called?"
    assert (asked["why"], asked["options"]) == ("it is dear", [])
    assert asked["call"] == {"tool": "write", "arguments": n(1)}
    assert made(driver) == []

    await goes_on(driver)
    assert (made(driver), texts(driver)) == ([1], ["did 1"])
    assert driver.person.asked == [1]


@pytest.mark.parametrize(
    ("decision", "told", "calls_made"),
    [
        (YES, "did 1", [1]),
        ("yes", "did 1", [1]),
        (Approve({"n": 7}), "did 7", [7]),
        (NO, "The call was not made: its user did not approve of it: too dear", []),
        ("no", "The call was not made: its user did not approve of it.", []),
        (Respond("it is done already"), "it is done already", []),
    ],
)
async def test_a_person_decides(decision: Any, told: str, calls_made: list[int]) -> None:
    driver = a_driver(calls(write(1)), person=Person({1: decision}))

    await ended(driver)

    assert (texts(driver), made(driver)) == ([told], calls_made)
    is_refused = "not made" in told
    assert driver.results()[0].disposition == ("denied" if is_refused else "done")
    assert driver.state.log[1].tool_calls[0].arguments == n(1), "the model's own words"
    assert driver.value(QUESTIONS) is None


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (NO, "The call was not made: its user did not approve of it: too dear"),
        (YES, NO_CALLS_LEFT),
        (Respond("it is done already"), NO_CALLS_LEFT),
    ],
)
async def test_a_call_that_was_refused_is_told_so_though_none_are_left_by_then(
    decision: Decision, told: str
) -> None:
    driver = a_driver(
        calls(write(1)), waits=True, limits={"tool_calls": 1}, person=Person({1: decision})
    )
    await driver.run()
    # As those below it do, while its user thinks.
    driver._apply(StateDelta((Write(USAGE.name, "increment", {"tool_calls": 1}),)))

    await goes_on(driver)

    assert made(driver) == []
    assert driver.results()[0].text == told


async def test_the_answer_to_a_question_is_no_decision_though_no_calls_are_left_by_then() -> None:
    question = calls(("q", "ask_user", '{"question": "Which?"}'))
    driver = a_driver(question, waits=True, limits={"tool_calls": 1})
    await driver.run()
    driver._apply(StateDelta((Write(USAGE.name, "increment", {"tool_calls": 1}),)))

    await goes_on(driver)

    assert driver.results()[0].text == NO_CALLS_LEFT


async def test_all_of_a_message_are_asked_at_once_and_what_stands_before_them_is_made() -> None:
    message = calls(
        ("r", "read", n(0)), write(1), ("q", "ask_user", '{"question": "Which?"}'), write(2)
    )
    driver = a_driver(message, waits=True)

    await driver.run()

    asked = unanswered(driver.state.values)
    assert [(one["id"], one.get("call") is None) for one in asked] == [
        ("q1", False),
        ("q2", True),
        ("q3", False),
    ]
    assert (made(driver, "read"), made(driver)) == ([0], [])
    driver.person = Person({2: NO})
    await goes_on(driver)
    assert made(driver) == [1]
    assert texts(driver)[:3] == ["did 0", "did 1", "blue"]


async def test_what_hooks_have_changed_is_what_is_decided_about() -> None:
    async def doubled(event: BeforeTool) -> Change:
        return Change({"n": event.arguments["n"] * 100})

    dear = Approvals(rules=[ApprovalRule(decide="ask", arguments={"n": "^[0-9]{3}$"})])
    driver = a_driver(
        calls(write(1)), calls(write(20)), approvals=dear, hooks=Hooks(pre_tool=doubled)
    )

    await ended(driver)

    assert driver.person.asked == [100]
    assert made(driver) == [100, 2000]


async def test_whom_a_hook_denies_nobody_is_asked_about_and_what_it_asks_waits_too() -> None:
    async def hook(event: BeforeTool) -> Ask | Deny | None:
        match event.arguments["n"]:
            case 1:
                return Deny("never")
            case 2:
                return Ask("just this one")
        return None

    message = calls(write(1), write(2), write(3))
    driver = a_driver(message, approvals=None, hooks=Hooks(pre_tool=hook))

    await ended(driver)

    assert driver.person.asked == [2]
    assert texts(driver) == ["The call was not made: never", "did 2", "did 3"]


async def test_a_policy_denies_what_a_hook_would_have_asked() -> None:
    async def hook(event: BeforeTool) -> Ask:
        return Ask("may it?")

    driver = a_driver(
        calls(write(1)), approvals=Approvals(otherwise="deny"), hooks=Hooks(pre_tool=hook)
    )

    await ended(driver)

    assert texts(driver) == ["The call was not made: the approvals of this agent do not allow it"]


async def test_the_end_and_questions_are_never_asked_about() -> None:
    async def hook(event: BeforeTool) -> Ask:
        return Ask("may it?")

    question = calls(("q", "ask_user", '{"question": "Which?"}'))
    driver = a_driver(question, approvals=Approvals(otherwise="ask"), hooks=Hooks(pre_tool=hook))

    assert (await ended(driver)).status == "done"
    assert driver.person.asked == []
    assert texts(driver) == ["blue"]


async def test_a_call_without_arguments_is_one() -> None:
    driver = a_driver(calls(("c", "write", "")), waits=True)

    await driver.run()

    (asked,) = unanswered(driver.state.values)
    assert asked["call"] == {"tool": "write", "arguments": "{}"}


@pytest.mark.parametrize("arguments", ["no json", "[1]", "null"])
async def test_nobody_is_asked_about_what_is_no_call(arguments: str) -> None:
    driver = a_driver(calls(("c", "write", arguments)))

    await ended(driver)

    assert (texts(driver), driver.person.asked) == ([f"The call was not made: {NO_OBJECT}"], [])


@pytest.mark.parametrize("by", ["policy", "hook"])
async def test_where_nobody_may_be_asked_the_model_is_told_so(by: str) -> None:
    async def hook(event: BeforeTool) -> Ask:
        return Ask("may it?")

    gates: dict[str, Any] = (
        {"approvals": None, "hooks": Hooks(pre_tool=hook)} if by == "hook" else {}
    )
    driver = a_driver(calls(write(1), ("r", "read", n(2))), on_question="deny", **gates)

    await ended(driver)

    assert "nobody is there to be asked" in texts(driver)[0]
    assert driver.results()[0].disposition == "denied"
    assert made(driver) == []


async def test_a_run_that_must_not_ask_fails_and_closes_its_calls() -> None:
    message = calls(("w0", "write", n(0)), write(1), write(2))
    rules = [ApprovalRule(decide="auto", arguments={"n": "0"}), ApprovalRule(decide="ask")]
    driver = a_driver(message, approvals=Approvals(rules=rules), on_question="fail")

    end = await ended(driver)

    assert (end.status, end.reason.kind) == ("failed", "agent_error")
    assert end.reason.details["error"]["type"] == "ApprovalAsked"
    assert "'write'" in end.reason.message
    assert made(driver) == [0]
    assert driver.value(OPEN_CALLS) == ()
    assert driver.value(QUESTIONS) is None


@pytest.mark.parametrize(
    ("decision", "later", "asked", "calls_made"),
    [
        (Approve(standing="tool"), [2, 1], [1], [1, 2, 1]),
        (Approve(standing="arguments"), [2, 1], [1, 2], [1, 2, 1]),
        (Refuse("no", standing="tool"), [2, 1], [1], []),
        (Refuse("no", standing="arguments"), [2, 1], [1, 2], [2]),
        (YES, [2, 1], [1, 2, 1], [1, 2, 1]),
    ],
)
async def test_a_decision_may_stand_for_later_calls(
    decision: Decision, later: list[int], asked: list[int], calls_made: list[int]
) -> None:
    script = [calls(write(1)), *(calls(write(number)) for number in later)]
    driver = a_driver(*script, person=Person({1: decision}))

    await ended(driver)

    assert (driver.person.asked, made(driver)) == (asked, calls_made)
    assert bool(driver.value(STANDING)) is bool(decision.standing)  # type: ignore[union-attr]


async def test_a_decision_stands_for_equal_arguments_in_whatever_order() -> None:
    first, second = ("a", "write", '{"n": 1, "m": [2, 3]}'), ("b", "write", '{"m":[2,3],"n":1}')
    driver = a_driver(
        calls(first), calls(second), person=Person({1: Approve(standing="arguments")})
    )

    await ended(driver)

    assert driver.person.asked == [1]


async def test_it_stands_for_later_messages_and_not_for_others_of_its_own() -> None:
    decisions: dict[int, Decision] = {1: Refuse(standing="tool"), 2: YES}
    driver = a_driver(calls(write(1), write(2)), calls(write(3)), person=Person(decisions))

    await ended(driver)

    assert (driver.person.asked, made(driver)) == ([1, 2], [2])


async def test_of_two_decisions_that_stand_the_newest_counts() -> None:
    decisions: dict[int, Decision] = {1: Approve(standing="tool"), 2: Refuse(standing="tool")}
    driver = a_driver(calls(write(1), write(2)), calls(write(3)), person=Person(decisions))

    await ended(driver)

    assert (driver.person.asked, made(driver)) == ([1, 2], [1])


async def test_what_was_said_of_the_arguments_comes_before_what_was_said_of_the_tool() -> None:
    decisions: dict[int, Decision] = {
        1: Approve(standing="arguments"),
        2: Refuse(standing="tool"),
    }
    driver = a_driver(calls(write(1)), calls(write(2)), calls(write(1)), person=Person(decisions))

    await ended(driver)

    assert (driver.person.asked, made(driver)) == ([1, 2], [1, 1])


async def test_calls_that_only_read_and_could_be_made_at_once_wait_all_the_same() -> None:
    reads = Approvals(rules=[ApprovalRule(decide="ask", tools=["read"])])
    message = calls(("a", "read", n(1)), ("b", "read", n(2)), ("c", "read", n(3)))
    driver = a_driver(message, approvals=reads, waits=True, person=Person({2: NO}))

    await driver.run()

    assert made(driver, "read") == []
    await goes_on(driver)
    assert made(driver, "read") == [1, 3]


async def test_asking_about_the_first_call_of_a_message_is_one_commit() -> None:
    driver = a_driver(calls(write(1)), waits=True)

    await driver.run()

    written = [write.key for delta in driver.deltas for write in delta.writes]
    assert written.count(OPEN_CALLS.name) == written.count(QUESTIONS.name) == 1


async def test_a_call_that_only_reads_is_made_again_where_somebody_decides_about_it() -> None:
    reads = Approvals(rules=[ApprovalRule(decide="ask", tools=["read"])])
    driver = a_driver(calls(("a", "read", n(1))), calls(("b", "read", n(1))), approvals=reads)

    await ended(driver)

    assert made(driver, "read") == [1, 1]


async def test_an_approval_that_expires_carries_when_and_what_counts_then() -> None:
    approvals = Approvals(otherwise="ask", expires_s=60, on_expiry="approve")
    driver = a_driver(calls(write(1)), approvals=approvals, waits=True)
    driver.clock.advance(5)

    await driver.run()

    (asked,) = unanswered(driver.state.values)
    assert asked["call"]["expires_at"] == driver.clock.now() + 60
    assert json.loads(asked["call"]["default"])["decision"] == "approve"


async def test_too_much_to_be_kept_is_denied_and_not_too_much_to_be_borne() -> None:
    why = "\N{GREEK SMALL LETTER ALPHA}" * 500
    driver = a_driver(
        calls(*(write(number) for number in range(30))),
        approvals=Approvals(rules=[ApprovalRule(decide="ask", why=why)]),
    )

    await ended(driver)

    assert texts(driver) == [f"The call was not made: {TOO_MUCH}"] * 30


async def test_an_agent_without_approvals_has_nothing_of_them_on_record() -> None:
    plain, auto = a_driver(calls(write(1)), approvals=None), a_driver(calls(write(1)))
    auto.person = Person()

    await ended(plain)
    await ended(auto)

    assert (
        not {STANDING.name, QUESTIONS.name, observed_by("agent_turn")} & plain.state.values.keys()
    )
    assert "call" not in json.dumps(plain.state.values.get(QUESTIONS.name))
    assert observed_by("agent_turn") in auto.state.values


async def test_plain_questions_are_written_as_ever() -> None:
    driver = a_driver(calls(("q", "ask_user", '{"question": "Which?"}')), waits=True)

    await driver.run()

    assert unanswered(driver.state.values) == (
        {"id": "q1", "call_id": "q", "text": "Which?", "options": [], "why": ""},
    )


MESSAGES: dict[str, tuple[Any, ...]] = {
    "one": (write(1),),
    "several": (write(1), write(2), write(3)),
    "after what only reads": (("r", "read", n(0)), write(1), ("s", "read", n(9))),
    "after what writes": (("x", "other", n(0)), write(1), ("y", "other", n(9)), write(2)),
    "beside a question": (
        ("x", "other", n(0)),
        ("q", "ask_user", '{"question": "Which?"}'),
        ("y", "other", n(9)),
        write(1),
        ("z", "other", n(8)),
    ),
    "beside what cannot be asked": (
        ("q", "ask_user", "{}"),
        ("y", "other", n(9)),
        write(1),
    ),
}
DECISIONS: dict[int, Decision] = {
    1: Approve({"n": 70}),
    2: Refuse("no", standing="arguments"),
    3: Respond("done by hand"),
}


def crashing(message: tuple[Any, ...], decisions: Mapping[int, Decision]) -> ApprovingDriver:
    driver = a_driver(calls(*message), calls(("w4", "write", n(4))), person=Person(decisions))

    async def act(arguments: str, _: ToolContext) -> str:
        await driver.step()
        return f"did {json.loads(arguments)['n']}"

    object.__setattr__(driver.agent, "tools", [*driver.agent.tools, SimpleTool("other", act)])
    return driver


def check_crashed(driver: ApprovingDriver, message: tuple[Any, ...]) -> None:
    driver.check_log()
    wanted = [json.loads(call[2])["n"] for call in message if call[1] == "write"]
    assert [one for one in driver.person.asked if one != 4] == wanted, "all were asked, and once"
    assert driver.person.asked.count(4) == 1
    for tool in ("write", "other"):
        begun = made(driver, tool)
        assert len(begun) == len(set(begun)), "no call began twice"
    refused = {number for number, said in driver.person.decisions.items() if said != YES}
    assert not refused & set(made(driver)), "nothing was made as the model wanted it"
    for call, result in zip(message, driver.results(), strict=False):
        if call[1] == "write" and json.loads(call[2])["n"] in (2, 3):
            assert result.disposition != "unknown", "it was never begun, and all know that"


@pytest.mark.parametrize("name", MESSAGES)
async def test_wherever_its_process_dies_a_call_is_asked_once_and_made_at_most_once(
    name: str,
) -> None:
    message = MESSAGES[name]
    whole = crashing(message, DECISIONS)
    await ended(whole)
    check_crashed(whole, message)
    steps = whole.crash.steps
    assert steps > 5

    for step in range(steps):
        for again in (None, 0, 1, 2, 3):
            driver = crashing(message, DECISIONS)
            died = (step,) if again is None else (step, again)
            assert isinstance(await driver.run_through_crashes(*died), RunEnd)
            check_crashed(driver, message)


async def test_a_call_for_which_none_were_left_before_a_crash_is_asked_about_after_it() -> None:
    policy = Approvals(rules=[ApprovalRule(decide="ask", tools=["read"])])
    message = (write(1), ("r", "read", n(2)))
    for step in range(8):
        driver = a_driver(calls(*message), approvals=policy, limits={"tool_calls": 1})
        await driver.run_through_crashes(step)
        driver.check_log()
        assert made(driver, "read") in ([], driver.person.asked)


CALLS = st.sampled_from(["write", "other", "read", "ask_user"])
SAID = st.sampled_from([YES, NO, Approve({"n": 700}), Respond("x"), Approve(standing="tool")])


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(CALLS, min_size=1, max_size=5),
    said=st.lists(SAID, min_size=5, max_size=5),
    crashes=st.lists(st.integers(0, 12), max_size=3),
)
async def test_whatever_is_asked_and_said_and_dies(
    names: list[str], said: list[Decision], crashes: list[int]
) -> None:
    message = tuple(
        (f"c{at}", name, '{"question": "Which?"}' if name == "ask_user" else n(at + 10))
        for at, name in enumerate(names)
    )
    decisions = {at + 10: one for at, one in enumerate(said)}
    driver = crashing(message, decisions)

    assert isinstance(await driver.run_through_crashes(*crashes), RunEnd)

    driver.check_log()
    asked = [one for one in driver.person.asked if one != 4]
    assert len(asked) == len(set(asked)), "nobody is asked twice"
    for tool in ("write", "other"):
        begun = [one for one in made(driver, tool) if one != 700]
        assert len(begun) == len(set(begun)), "no call began twice"
    approved = {number for number in asked if isinstance(decisions[number], Approve)}
    assert {one for one in made(driver) if one not in (4, 700)} <= approved
