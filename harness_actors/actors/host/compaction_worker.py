"""What runs inside a compaction worker's actor: it summarizes for many runs at once."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from harness_actors.actors.host.host_programs import LoadedPrograms
from harness_actors.actors.hosted import Hosted, Place
from harness_actors.actors.mailbox import Code, DropCode, Outbox, Parcel, SeenEnvelopes
from harness_actors.compaction import Condensation, DeterministicSummarizer, policies_of
from harness_actors.compaction.condensing import Block
from harness_actors.coordination.protocol import (
    Cut,
    Envelope,
    FromWorker,
    Offer,
    Proposed,
    Summarize,
    Summarized,
)
from harness_actors.errors import AgentCodeError, SummaryError, error_facts
from harness_actors.plan import Shown, Summary
from harness_actors.policies.redaction import Redactor
from harness_actors.ports import Agent, MadeSummary, Summarizer, SummaryRequest, TokenCounter
from harness_actors.state import Pressure
from harness_actors.turn import PreparedAgent, prepare

logger = logging.getLogger(__name__)

BLOCK_S = 300.0
"""How long a summarizer may take for one block."""
BLOCKS_AT_ONCE = 4
"""Of one job: a provider that is asked for more says that it is busy."""


class CompactionWorker(Hosted):
    """Makes plans with summaries for the runs that its coordinator names.

    Args:
        place: Where it is.
        counter_for: What counts tokens as a model of a name does.
    """

    def __init__(self, place: Place, counter_for: Callable[[str], TokenCounter]) -> None:
        self._counter_for = counter_for
        self._term = place.term
        self._outbox = Outbox()
        self._outbox.connect(place.coordinator)
        self._seen = SeenEnvelopes()
        self._programs = LoadedPrograms()
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}
        """By run: the number of its job, and who does it."""
        self._prepared: dict[str, PreparedAgent] = {}
        self._redactor = Redactor()

    async def receive(self, batch: Sequence[Parcel]) -> tuple[Envelope, ...]:
        for parcel in batch:
            if isinstance(parcel, Code | DropCode):
                self._programs.take(parcel)
                self._prepared.clear()
            elif parcel.term == self._term and self._seen.is_new(parcel):
                self._take(parcel)
        return ()

    def close(self) -> None:
        self._outbox.close()
        for _, task in self._tasks.values():
            task.cancel()

    def _take(self, envelope: Envelope) -> None:
        run_id, number = envelope.run_id, envelope.hop_number
        match envelope.body:
            case Summarize() as job:
                self._cut(run_id)
                task = asyncio.get_running_loop().create_task(self._work(run_id, number, job))
                self._tasks[run_id] = number, task
                task.add_done_callback(partial(self._over, run_id, number))
            case Cut():
                if self._tasks.get(run_id, (0,))[0] == number:
                    self._cut(run_id)
                elif run_id not in self._tasks:
                    self._seen.forget(run_id)
            case _:
                logger.warning("a compaction worker got %r, which is for others", envelope)

    def _cut(self, run_id: str) -> None:
        if run_id in self._tasks:
            self._tasks[run_id][1].cancel()

    def _over(self, run_id: str, number: int, _task: asyncio.Task[None]) -> None:
        if self._tasks.get(run_id, (0,))[0] == number:
            del self._tasks[run_id]
            self._seen.forget(run_id)

    async def _work(self, run_id: str, number: int, job: Summarize) -> None:
        telling = _Telling(self._outbox, run_id, self._term, number)
        try:
            proposed = Proposed(await self._offer(job, telling))
        except Exception as error:
            logger.info("summarizing %s failed", run_id, exc_info=True)
            facts = error_facts(error)
            proposed = Proposed(problem=f"{facts['type']}: {facts['message']}")
        telling.tell(proposed)

    async def _offer(self, job: Summarize, telling: "_Telling") -> Offer | None:
        settings = job.spec.config.compaction
        agent = await self._agent(job.spec.code)
        if settings is None:
            return None
        prepared = await self._ready(job, agent)
        policies = policies_of(tool.spec for tool in prepared.by_name.values())
        shown = Shown(policies)
        pressure = Pressure(
            window_tokens=job.window_tokens,
            request_tokens=job.request_tokens,
            overhead_tokens=prepared.overhead_tokens,
        )
        condensation = Condensation(job.log, job.plan, pressure, settings, shown, asked=job.asked)
        summarizer: Summarizer = getattr(agent, "summarizer", None) or DeterministicSummarizer()
        blocks = condensation.blocks(summarizer.name, summarizer.most_tokens, job.keep)
        made = dict(job.known)
        failed: list[Exception] = []
        at_once = asyncio.Semaphore(BLOCKS_AT_ONCE)

        async def summarize(block: Block) -> None:
            request = SummaryRequest(
                messages=block.messages, shown=shown, facts=settings.facts, keep=job.keep
            )
            try:
                async with at_once:
                    answer = await _summarized(summarizer, request)
            except Exception as error:  # noqa: BLE001 - what is done besides is kept
                failed.append(error)
                return
            made[block.key] = summary = self._redacted(answer.summary)
            telling.tell(Summarized(block.key, summary, answer.usage))

        missing = [block for block in blocks if block.key not in made]
        await asyncio.gather(*map(summarize, missing))
        if failed:
            raise failed[0]
        found = condensation.proposal({block.key: made[block.key] for block in blocks})
        return None if found is None else Offer(*found)

    async def _agent(self, code: str) -> Agent:
        workflow = await self._programs.find(code)
        if workflow is None:
            raise AgentCodeError("the agent of a compaction worker", "the journal has it not")
        return workflow.agent

    async def _ready(self, job: Summarize, agent: Agent) -> PreparedAgent:
        """An agent as its turns have it: what stands before the conversation takes room."""
        code = job.spec.code
        if code not in self._prepared:
            counter = self._counter_for(agent.model.name)
            self._prepared[code] = await prepare(agent, job.spec.config, counter)
        return self._prepared[code]

    def _redacted(self, summary: Summary) -> Summary:
        """A summary without secrets of known forms."""
        return Summary.from_plain(_each_text(summary.as_plain(), self._redactor))


class _Telling:
    """Tells the coordinator of one job, in order."""

    def __init__(self, outbox: Outbox, run_id: str, term: int, number: int) -> None:
        self._outbox, self._run_id = outbox, run_id
        self._term, self._number, self._sent = term, number, 0

    def tell(self, body: FromWorker) -> None:
        self._sent += 1
        envelope = Envelope(self._run_id, self._term, self._number, self._sent, body)
        self._outbox.post(envelope)


async def _summarized(summarizer: Summarizer, request: SummaryRequest) -> MadeSummary:
    try:
        async with asyncio.timeout(BLOCK_S):
            answer = await summarizer.summarize(request)
    except TimeoutError:
        raise SummaryError(summarizer.name, f"no answer within {BLOCK_S:.0f} s") from None
    if not isinstance(answer, MadeSummary):
        raise SummaryError(summarizer.name, f"must answer MadeSummary(...), not {answer!r:.80}")
    return answer


def _each_text(value: object, redactor: Redactor) -> object:
    """A plain value with each text in it redacted."""
    match value:
        case str():
            return redactor.text(value)
        case dict():
            return {name: _each_text(one, redactor) for name, one in value.items()}
        case list() | tuple():
            return [_each_text(one, redactor) for one in value]
    return value


def host_worker(place: Place) -> CompactionWorker:
    """A worker that counts tokens as the models of its runs do."""
    from harness_actors.models.tokens import counter_for

    return CompactionWorker(place, counter_for)
