"""The contract of a run as a gate: verified anew whenever the agent says that it is done."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

import orjson

from harness_actors.contracts import (
    ContractVerifier,
    Grounds,
    TaskContract,
    Verification,
    WorkspaceCommands,
    WorkspaceFiles,
)
from harness_actors.contracts.ledger import RequirementStatus
from harness_actors.contracts.plain import contract_of
from harness_actors.events import ContractVerified
from harness_actors.ports import ContractCommands, ContractFiles, RunContext
from harness_actors.results import LimitKind, Usage
from harness_actors.state import ANSWERS, CONTRACT, COVERAGE, TURN_COUNT, VERIFIED, Verified
from harness_actors.tools.command import runner_among
from harness_actors.turn.bounds import Bounds
from harness_actors.turn.contract_questions import with_answers
from harness_actors.turn.deadline import Allowance, Raised, TimedOut, run_within
from harness_actors.turn.judges import RunJudge
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.services import RUN_VARIABLE, AgentTurnServices
from harness_actors.turn.tool_results import LoggedResults
from harness_actors.turn.verification_record import (
    entry_of,
    is_better,
    record_of,
    statuses_in,
)
from harness_actors.turn.workplace import Workplace, cover_of

TOLD_UNMET = 20
"""Requirements that an event names."""
LOADED = 64
"""Contracts that a process keeps ready; runs of one batch often share one."""


@dataclass(frozen=True, slots=True)
class Came:
    """What a verification came to.

    Attributes:
        cause: Why the task is not over, in words for the model; empty where it is.
        better: Something stands better than at the attempt before.
        limit: The bound of the run that was reached meanwhile; None where none was.
    """

    cause: str = ""
    better: bool = False
    limit: LimitKind | None = None


@dataclass(frozen=True, slots=True)
class ContractGate:
    """The contract of one run, in one of its turns.

    Attributes:
        context: The run.
        prepared: The agent.
        meter: What the turn uses.
        services: Those of the process.
        bounds: Those of the run.
        place: Where its tools work.
    """

    context: RunContext
    prepared: PreparedAgent
    meter: TurnMeter
    services: AgentTurnServices
    bounds: Bounds
    place: Workplace

    async def at_end(self, answer: str) -> Came:
        """Verify all of it.

        What comes of it follows from what is on record of it alone, so that a rerun needs neither
        the workspace, nor a command, nor a judge.

        Args:
            answer: What the agent came to, in its own words.
        """
        before = self.context.get(VERIFIED)
        attempt = 1 if before is None else before.attempt + 1
        earlier = "" if before is None else before.marks
        made = partial(self._record, attempt, earlier, answer)
        record = await self.context.observe(CONTRACT, attempt, made)
        if "usage" in record:
            self.meter.used_aside(Usage(**record["usage"]))
        if (limit := record.get("limit")) is not None:
            # Nothing is known of this attempt, and what was found before counts for nothing.
            self._tell(attempt, satisfied=False, statuses={}, limit=limit)
            return Came(limit=limit)
        marks, cause = record["marks"], record["cause"]
        statuses = dict(zip(self._ids(), statuses_in(marks), strict=True))
        for place, notes, evidence in record["changed"]:
            name = self._ids()[place]
            self.context.put(COVERAGE, name, entry_of(statuses[name], notes, evidence))
        self.context.set(
            VERIFIED,
            Verified(attempt=attempt, at=record["at"], satisfied=not cause, marks=marks),
        )
        self._tell(attempt, satisfied=not cause, statuses=statuses)
        return Came(cause, better=is_better(marks, earlier))

    def _tell(
        self,
        attempt: int,
        *,
        satisfied: bool,
        statuses: Mapping[str, RequirementStatus],
        limit: str = "",
    ) -> None:
        needed = self._ids(optional=False)
        enough = {"met", "skipped"}
        if self._plain.get("acceptability", {}).get("allow_partial"):
            enough.add("partially_met")
        unmet = [name for name in needed if statuses.get(name) not in enough]
        self.context.emit(
            ContractVerified(
                turn=self.context.get(TURN_COUNT),
                attempt=attempt,
                satisfied=satisfied,
                met=len(needed) - len(unmet),
                required=len(needed),
                unmet=tuple(unmet[:TOLD_UNMET]),
                limit=limit,
            )
        )

    def _ids(self, *, optional: bool = True) -> list[str]:
        """Those of the requirements, or of those alone that are needed."""
        outputs = self._plain["outputs"]
        return [one["id"] for one in outputs if optional or not one.get("optional")]

    @property
    def _plain(self) -> Mapping[str, Any]:
        contract = self.context.spec.config.contract
        assert contract is not None, "else there is no gate"
        return contract

    async def _record(self, attempt: int, earlier: str, answer: str) -> dict[str, Any]:
        # Should a predicate end this process, it is known whose that was.
        self.context.tools_started(["the contract"])
        judge = RunJudge(
            self.prepared,
            self.context.spec.config,
            lambda used: self.bounds.reached(self.meter.usage + used),
        )
        wall, working_s = self.bounds.wall_due(), self.bounds.working_left(self.meter.working_s)
        outcome = await run_within(
            Allowance(wall, working_s),
            "the verification of a contract",
            partial(self._verify, attempt, answer, judge),
        )
        match outcome:
            case TimedOut(due):
                record: dict[str, Any] = {"at": self.services.clock.now(), "limit": due.kind}
            case Raised(error):
                raise error
            case returned:
                verification: Verification = returned.value
                record = record_of(verification, earlier, judge.said)
        if judge.usage.model_calls:
            record["usage"] = {n: v for n, v in asdict(judge.usage).items() if v}
        return record

    async def _verify(self, attempt: int, answer: str, judge: RunJudge) -> Verification:
        answers: dict[str, str] = self.context.get(ANSWERS)
        held = with_answers(self._plain, answers)
        verifier = loaded(orjson.dumps(held))
        return await verifier.verify(self._grounds(answer, judge), attempt=attempt)

    def _grounds(self, answer: str, judge: RunJudge) -> Grounds:
        agent = self.prepared.agent
        return Grounds(
            workspace=self.place.folder,
            files=self._files(),
            commands=self._commands(),
            answer=answer,
            tool_results=LoggedResults(self.context.log, self.context.spec.task),
            judge=judge,
            customs=getattr(agent, "predicates", None) or {},
            in_thread=self.services.in_thread,
            now=self.services.clock.now,
        )

    def _files(self) -> ContractFiles:
        if self.services.contract_files is not None:
            return self.services.contract_files(self.place.folder)
        return WorkspaceFiles(folder=self.place.folder, id=self.place.id)

    def _commands(self) -> ContractCommands | None:
        spec, folder = self.context.spec, self.place.folder
        if self.services.contract_commands is not None:
            return self.services.contract_commands(folder)
        if folder is None:
            return None
        runner = runner_among(self.prepared.by_name.values())
        return WorkspaceCommands(
            folder=folder,
            id=self.place.id,
            path=runner.path,
            bare_python=runner.bare_python,
            variables={**runner.variables, RUN_VARIABLE: spec.run_id},
            processes=self.services.processes,
            run_id=spec.run_id,
            cover=cover_of(spec.workspace, folder),
        )


@lru_cache(maxsize=LOADED)
def loaded(encoded: bytes) -> ContractVerifier:
    """What verifies a contract, given as JSON; it keeps nothing of what it finds."""
    contract: TaskContract = contract_of(orjson.loads(encoded))
    return ContractVerifier(contract)
