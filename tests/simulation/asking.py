"""What models are asked: what is on disk, of a run that is wanted, and by nobody else's."""

from collections.abc import Mapping, Sequence

from harness_actors.actors.simulated.cell import EPOCH
from harness_actors.conversation import repaired
from harness_actors.events import QuestionAnswered, RunParked
from harness_actors.messages import Message
from harness_actors.records import RunChanged
from tests.simulation.ledger import PROMPT_S, Happening, Ledger, root_of
from tests.simulation.places import run_at
from tests.simulation.questions import FIRST_WORDS
from tests.simulation.serving import Serving

OWN_WORDS = "no run answers what was said to another"


class Asking:
    """Watches the calls of models."""

    def __init__(self, ledger: Ledger, serving: Serving) -> None:
        self._ledger = ledger
        self._disk = ledger.disk
        self._serving = serving

    def asked(self, run_id: str, messages: Sequence[Message]) -> Happening:
        """A model is asked."""
        call = self._ledger.begin(self._ledger.models, run_id, "model")
        log = list(messages[1:])
        self._check_addressee(run_id, call)
        if repaired(log)[1]:
            text = f"{run_id} asks with {[shortly(message) for message in log]}"
            self._ledger.broken("every call of the log has exactly one result", text)
        self._check_owner(run_id, log)
        run = run_at(self._ledger.coordinator, call.process, run_id)
        steps = self._serving.open[run_id]
        if run is not None and any(step.number == run.hop_number for step in steps):
            self._check_ahead(run_id, log)
        if self._ledger.prompt and self._serving.is_served_by(call.process):
            self._check_wanted(run_id)
        return call

    def check_keys(self, run_id: str, needed: Sequence[str], given: Mapping[str, str]) -> None:
        """The model that is asked was given the keys that it needs."""
        missing = [name for name in needed if name not in given]
        if missing:
            text = f"{run_id} asks a model that has no {', '.join(missing)}"
            self._ledger.broken("no run goes on without its keys", text)

    def _check_addressee(self, run_id: str, call: Happening) -> None:
        """Whoever asks is the run whose task was said last."""
        steps = self._serving.open.get(run_id, ())
        if not any(step.process is call.process and step.is_open for step in steps):
            text = f"a model is asked at {call.process!r} about {run_id}, which is not served there"
            self._ledger.broken(OWN_WORDS, text)

    def _check_wanted(self, run_id: str) -> None:
        """A run that was stopped some time ago asks no model."""
        since, run = self._ledger.loop.time() - PROMPT_S, self._disk.runs[run_id]
        requests = self._ledger.requests_of(run_id)
        resumes = [request for request in requests if request.what == "resume"]
        parked_at = _parked_at(run.changes)
        if run.end is not None and run.changes[-1][1].at - EPOCH < since:
            self._ledger.broken("a run that is stopped does nothing", f"{run_id} is over")
        elif 0 < parked_at < since and not (
            any(resume.is_open_at(parked_at) for resume in resumes)
            or self._is_answered_since(run_id, parked_at)
        ):
            self._ledger.broken("a run that is stopped does nothing", f"{run_id} is parked")
        # To park a child that is over parks nobody.
        own = (run_id, root_of(run_id))
        stops = [r for r in requests if r.what == "cancel" or r.run_id in own]
        stop = next((r for r in reversed(stops) if r.what != "resume" and not r.in_vain), None)
        if stop is None or stop.done_at is None or stop.done_at > since:
            return
        if not any(resume.is_open_at(stop.asked_at) for resume in resumes):
            text = f"{run_id} goes on after {stop.what!r} was acknowledged"
            self._ledger.broken("what was acknowledged is on disk", text)

    def _is_answered_since(self, run_id: str, parked_at: float) -> bool:
        """Whether its tree was answered since it was put aside, perhaps with one that asked."""
        changes = self._disk.runs[root_of(run_id)].changes
        return any(
            isinstance(event, QuestionAnswered)
            for _, change in reversed(changes)
            if change.at - EPOCH >= parked_at
            for event in change.delta.events
        )

    def _check_owner(self, run_id: str, log: Sequence[Message]) -> None:
        talk = run_id.split("-")[1]
        for message in log:
            text = message.text
            if message.role == "tool" and text.startswith("done "):
                text = text.removeprefix("done ")
            elif message.role == "tool" and text.startswith(FIRST_WORDS):
                text = text.removeprefix(FIRST_WORDS)
            elif message.role == "user" and text.startswith("[run-"):
                text = text[1:]
            else:
                continue
            if text.split("-")[1] != talk:
                self._ledger.broken("no run sees another's state", f"{run_id} sees {text!r}")

    def _check_ahead(self, run_id: str, log: Sequence[Message]) -> None:
        disk = self._disk.logs[self._disk.runs[run_id].spec.conversation_id]
        if disk != log[: len(disk)]:
            text = f"{run_id} asks without what is on disk"
            self._ledger.broken("the state equals the replay of the journal", text)
        link = self._disk.runs[run_id].spec.parent
        # What a fork begins with is on disk as its task.
        begun = max(len(disk), 0 if link is None else link.forked)
        rounds = sum(message.role == "assistant" for message in log[begun:])
        if rounds > 1:
            text = f"{run_id} is {rounds} rounds ahead of the disk"
            self._ledger.broken("at most one round is not on disk", text)


def _parked_at(changes: Sequence[tuple[int, RunChanged]]) -> float:
    """When a run was last put aside, in virtual seconds; 0 for never."""
    for _, change in reversed(changes):
        if any(isinstance(event, RunParked) for event in change.delta.events):
            return change.at - EPOCH
    return 0.0


def shortly(message: Message) -> str:
    """A message, for a person."""
    calls = ",".join(f"{call.id}:{call.name}" for call in message.tool_calls)
    return f"{message.role}:{message.tool_call_id or calls or message.text[:20]}"
