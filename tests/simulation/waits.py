"""Runs that wait for their users: at no host, answered once, and in the order of their calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from harness_actors.actors.simulated.cell import EPOCH
from harness_actors.conversation import UNKNOWN_OUTCOME, Conversation
from harness_actors.events import InputAwaited
from harness_actors.messages import Message, ToolCall
from harness_actors.records import CHILD_MARK, RunAdded, RunChanged
from harness_actors.results import HarnessResult
from harness_actors.state import (
    AGENT_TURN,
    ANSWERS,
    ASKED_BELOW,
    AWAITED,
    QUESTIONS,
    WAITING_SINCE,
    observed_by,
)
from tests.simulation.approvals import key_in_question
from tests.simulation.ledger import PROMPT_S, Happening, Ledger
from tests.simulation.places import keepers_of
from tests.simulation.questions import FIRST_WORDS, key_of
from tests.simulation.replies import FIRST, Answered, Replies
from tests.simulation.trees import only_reads

NOWHERE = "a run that waits is at no host and in no memory"
STILL = "a run that waits does nothing until it is taken up"
GIVEN_ONCE = "an answer is given to the model once, or the run ended without it"
OWN_CALLS = "an open call that waits is closed by nobody else"
IN_ORDER = "nothing begins before the questions before it are answered"
TOGETHER = "the questions of a message are put at once"
STANDS_STILL = "the time of a run stands still while it waits"
EQUAL_S = 1e-6


@dataclass
class Wait:
    """A run that waits.

    Attributes:
        since: From when, in virtual seconds.
        held: Ids of the calls that were open then.
    """

    since: float
    held: frozenset[str]


class Waits:
    """Watches runs that wait, by what is on disk and what their users are told."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._disk = ledger.disk
        self._waits: dict[str, Wait] = {}
        self._runs: dict[str, Answered] = {}
        self._said: dict[tuple[str, int], Message] = {}
        self.replies = Replies(ledger, self)

    def waited_s(self, run_id: str) -> float:
        """For how long a run has waited so far."""
        wait = self._waits.get(run_id)
        going_on = 0.0 if wait is None else self._ledger.loop.time() - wait.since
        return self.of(run_id).waited_s + going_on

    def is_waiting(self, run_id: str) -> bool:
        """Whether it waits, by what is on disk."""
        return run_id in self._waits

    def of(self, run_id: str) -> Answered:
        """What is known of the questions of a run."""
        return self._runs.setdefault(run_id, Answered())

    # ---- on disk ----------------------------------------------------------------------

    def changed(self, change: RunChanged) -> None:
        """A change is on disk."""
        run_id, known = change.run_id, self.of(change.run_id)
        self._check_calls(change)
        if run_id in self._waits:
            self._check_still(change)
        if self._disk.runs[run_id].values.values.get(WAITING_SINCE.name) is None:
            self._goes_on(run_id, change.at)
        self._take_answers(run_id, known)
        self._take_back(run_id, known)
        for event in change.delta.events:
            if isinstance(event, InputAwaited):
                self._asks(change, event, known)
        if self._disk.runs[run_id].values.values.get(WAITING_SINCE.name) is not None:
            # With those below it.
            self._waits.setdefault(run_id, Wait(change.at - EPOCH, frozenset()))
        if change.end is not None:
            self._ends(change, change.end, known)
        questions = self._disk.runs[run_id].values.values.get(QUESTIONS.name) or {}
        if run_id not in self._waits:
            # Of what waited, a part may begin before the rest.
            known.held &= frozenset(questions.get("held") or ())
        self.replies.look_at(run_id)

    def added(self, entry: RunAdded) -> None:
        """A run begins to be served, is taken up, or belongs to no command any more."""
        if entry.command:
            self._goes_on(entry.spec.run_id, entry.at)
        self.replies.look_at(entry.spec.run_id)

    def _goes_on(self, run_id: str, at: float) -> None:
        """It waits no more, if it did."""
        wait = self._waits.get(run_id)
        if wait is not None:
            self._check_taking_up(run_id, wait)
            del self._waits[run_id]
            self.of(run_id).waited_s += at - EPOCH - wait.since

    def _asks(self, change: RunChanged, event: InputAwaited, known: Answered) -> None:
        run_id = change.run_id
        for question in event.questions:
            known.asked[question["id"]] = key_in_question(question)
            if question.get("kind") == "approval":
                known.calls.add(question["id"])
            known.expires[question["id"]] = question.get("expires_at")
            known.options[question["id"]] = question["options"]
        if run_id in self._waits:
            return  # it was asked for too early, and says it again
        log = self._disk.logs[self._disk.runs[run_id].spec.conversation_id]
        left = Conversation(log).open_calls()
        held = frozenset(call.id for call in left)
        wait = self._waits[run_id] = Wait(change.at - EPOCH, held)
        known.held = held
        told = {known.asked[question["id"]] for question in event.questions}
        values = self._disk.runs[run_id].values.values
        late = _denied_late(values)
        untold = {key for call in left if call.id not in late and (key := _key_asked(call))} - told
        by_itself = not values.get(AWAITED.name)
        link = self._disk.runs[run_id].spec.parent
        may_ask = link is None or not only_reads(link.agent)
        # Of calls that may be too many, some are refused.
        if (
            untold
            and by_itself
            and may_ask
            and self._disk.runs[run_id].spec.config.limits.tool_calls is None
        ):
            self._broken(TOGETHER, f"{run_id} asks {told}, and not {untold}")
        known.waits += by_itself
        self._check_memory(run_id)
        self._ledger.loop.call_later(
            PROMPT_S, self._check_hosts, run_id, wait, context=self._ledger.loop.world.context
        )

    def _take_answers(self, run_id: str, known: Answered) -> None:
        given = self._disk.runs[run_id].values.values.get(ANSWERS.name) or {}
        for question_id, text in known.given.items():
            if given.get(question_id) != text:
                found = given.get(question_id)
                self._broken(FIRST, f"{run_id}: {question_id} has {found!r} behind {text!r}")
        known.given = dict(given)

    def _take_back(self, run_id: str, known: Answered) -> None:
        """Of those below it that are over nobody is asked any more."""
        below = self._disk.runs[run_id].values.values.get(ASKED_BELOW.name)
        if below is None:
            return
        asked = {one["id"] for questions in below.values() for one in questions or ()}
        for number in [one for one in known.asked if CHILD_MARK in one]:
            if number not in asked and number not in known.given:
                del known.asked[number]

    def _check_still(self, change: RunChanged) -> None:
        """It waits: people may answer and cancel it, and nothing else."""
        if change.end is not None and change.end.status != "cancelled":
            reason = change.end.reason.kind
            name = STANDS_STILL if reason == "time" else STILL
            self._broken(name, f"{change.run_id} ends {change.end.status}({reason})")
        elif change.hop is not None or (change.delta.messages and change.end is None):
            self._broken(STILL, f"{change.run_id} goes on to {change.hop}")

    def _check_taking_up(self, run_id: str, wait: Wait) -> None:
        known = self.of(run_id)
        missing = [number for number in known.asked if number not in known.given]
        if missing:
            self._broken(IN_ORDER, f"{run_id} goes on without an answer to {missing}")
        if self._disk.runs[run_id].spec.parent is not None:
            return  # it goes on with its tree, or when it was answered
        asked = (r for r in self._ledger.requests_of(run_id) if r.what == "resume")
        if self._ledger.prompt and not any(request.is_open_at(wait.since) for request in asked):
            self._broken(STILL, f"{run_id} goes on, and nobody asked it to")

    def _check_memory(self, run_id: str) -> None:
        host = self._ledger.coordinator
        if host is None or host.term != self._disk.term:
            return
        inside = host._coordinator
        places = {
            "in service": inside.runs,
            "with its conversation": inside._conversations.values(),
            "at home": inside._dispatch._router._home,
            "with a deadline": inside._deadlines._watched,
        }
        for where, runs in places.items():
            if run_id in runs:
                self._broken(NOWHERE, f"{run_id} waits, and its coordinator has it {where}")

    def _check_hosts(self, run_id: str, wait: Wait) -> None:
        host, process = self._ledger.coordinator, self._ledger.coordinator_process
        asked = (r for r in self._ledger.requests_of(run_id) if r.what == "resume")
        if (
            host is None
            or process is None
            or process.gone
            or not self._ledger.prompt
            or self._waits.get(run_id) is not wait
            or any(request.is_open_at(wait.since) for request in asked)
        ):
            return
        for keeper in keepers_of(host, run_id):
            self._broken(NOWHERE, f"{run_id} waits, and {keeper!r} has it")

    def _check_calls(self, change: RunChanged) -> None:
        """What of a message waits is answered by its user, or closed with its run."""
        results = [message for message in change.delta.messages if message.role == "tool"]
        talk = self._disk.runs[change.run_id].spec.conversation_id
        for run_id, wait in self._waits.items():
            own_end = run_id == change.run_id and change.end is not None
            if own_end or self._disk.runs[run_id].spec.conversation_id != talk:
                continue
            for result in results:
                if result.tool_call_id in wait.held:
                    text = f"{change.run_id} closes {result.tool_call_id} of {run_id}, which waits"
                    self._broken(OWN_CALLS, text)
        held = self.of(change.run_id).held
        for result in results if change.end is None else ():
            if result.tool_call_id in held and result.text == UNKNOWN_OUTCOME:
                text = f"{result.tool_call_id} of {change.run_id} is lost before it has begun"
                self._broken(OWN_CALLS, text)

    def _ends(self, change: RunChanged, end: HarnessResult, known: Answered) -> None:
        run_id, at = change.run_id, change.at - EPOCH
        wait = self._waits.pop(run_id, None)
        if wait is not None:
            known.waited_s += at - wait.since
        run = self._disk.runs[run_id]
        lived_s = max(0.0, change.at - run.added_at - known.waited_s)
        if abs(end.wall_s - lived_s) > EQUAL_S:
            text = f"{run_id} took {end.wall_s:.3f} s, which was {lived_s:.3f} s"
            self._broken(STANDS_STILL, text)
        time_s = run.spec.config.limits.time_s
        if end.reason.kind == "time" and time_s is not None and lived_s < time_s - EQUAL_S:
            text = f"the time of {run_id} is over behind {lived_s:.3f} of {time_s:.3f} s"
            self._broken(STANDS_STILL, text)
        if end.status == "done" and run.spec.config.on_question == "wait":
            log = self._disk.logs[run.spec.conversation_id]
            self._check_given(run_id, log)

    # ---- at hosts ---------------------------------------------------------------------

    def served(self, step: Happening) -> None:
        """An executor begins with a run that the newest coordinator has sent it."""
        if step.run_id in self._waits:
            text = f"{step.what} begins at {step.process!r} with {step.run_id}, which waits"
            self._broken(NOWHERE, text)

    def said(self, run_id: str, position: int, message: Message) -> None:
        """A model has answered, as the message of this number of its conversation."""
        self._said[run_id, position] = message

    def asked(self, run_id: str, log: Sequence[Message]) -> None:
        """A model is asked, with this conversation."""
        self._check_given(run_id, log)

    def called(self, call: Happening) -> None:
        """A tool is called: the questions of its message that stand before it are answered."""
        run = self._disk.runs[call.run_id]
        link = run.spec.parent
        if run.spec.config.on_question != "wait" or (link is not None and only_reads(link.agent)):
            return
        given = self.of(call.run_id).by_key()
        for key in map(_key_asked, self.calls_before(call)):
            if key and not given.get(key):
                self._broken(IN_ORDER, f"{call.what} of {call.key} begins before {key} is answered")

    def calls_before(self, call: Happening) -> Sequence[ToolCall]:
        """The calls that stand before one in its message."""
        _, position, place = call.key.split("/")
        run = self._disk.runs[call.run_id]
        log, at = self._disk.logs[run.spec.conversation_id], int(position) - 1
        message = log[at] if at < len(log) else self._said.get((call.run_id, int(position)))
        return () if message is None else message.tool_calls[: int(place)]

    def _check_given(self, run_id: str, log: Sequence[Message]) -> None:
        """The answers in a conversation are those that were given, each as one result."""
        known = self.of(run_id).by_key()
        for message, results in _rounds(log):
            for call in message.tool_calls:
                key, result = _key_asked(call), results.get(call.id)
                if result is None or not key.startswith(f"{run_id}/"):
                    continue
                answer = known.get(key)
                right = result.is_error if answer is None else result.text == answer
                if not right:
                    text = f"{key} has the result {result.text!r}, and was answered {answer!r}"
                    self._broken(GIVEN_ONCE, text)
        answers = [m.text for m in log if m.role == "tool" and m.text.startswith(FIRST_WORDS)]
        if len(set(answers)) != len(answers):
            self._broken(GIVEN_ONCE, f"{run_id} is given an answer twice: {answers}")

    def _broken(self, invariant: str, text: str) -> None:
        self._ledger.broken(invariant, text)


def _rounds(log: Sequence[Message]) -> Iterator[tuple[Message, dict[str, Message]]]:
    """The messages of a model that call something, each with the results there are, by id."""
    latest: tuple[Message, dict[str, Message]] | None = None
    for message in log:
        if message.role == "tool" and latest is not None and message.tool_call_id is not None:
            latest[1][message.tool_call_id] = message
        elif message.tool_calls:
            if latest is not None:
                yield latest
            latest = message, {}
    if latest is not None:
        yield latest


def _denied_late(values: Mapping[str, Any]) -> set[str]:
    """Ids of the calls that hooks denied because the time of their run was over."""
    return {
        one["question"][1]
        for one in values.get(observed_by(AGENT_TURN)) or ()
        if one["kind"] == "pre_tool" and one["answer"].get("failed")
    }


def _key_asked(call: ToolCall) -> str:
    """Which call asks its user, by run, message and place; empty where it asks nothing."""
    if call.name != "ask_user":
        return ""
    question: str = orjson.loads(call.arguments)["question"]
    return key_of(question).strip()
