"""The programs that a host has loaded, each with the keys of its model."""

import asyncio
import os

from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.joining.withheld import is_key
from harness_actors.actors.mailbox import Code, DropCode
from harness_actors.actors.packing import unpack
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import AgentCodeError, error_facts
from harness_actors.models.chain import models_of
from harness_actors.ports import Agent
from harness_actors.records import RunSpec
from harness_actors.subagents import agent_at, models_below


class LoadedPrograms:
    """Workflows by the hash of their code, each loaded once."""

    def __init__(self) -> None:
        self._workflows: dict[str, asyncio.Future[Workflow | AgentCodeError]] = {}
        self._below: dict[tuple[str, str], tuple[Workflow, Agent]] = {}
        """The agents of children, by code and path, with the program that they are of."""
        self._newest = 0

    def take(self, told: Code | DropCode) -> None:
        """Begin to load a program, or forget one; of what comes again, or late, take nothing."""
        if told.number <= self._newest:
            return
        self._newest = told.number
        if isinstance(told, Code):
            self._learn(told)
        else:
            self._workflows.pop(told.code, None)
            for known in [one for one in self._below if one[0] == told.code]:
                del self._below[known]

    def _learn(self, code: Code) -> None:
        # Runs that need it wait for it. In a thread: what a user's modules import may take longer
        # than a process may be silent.
        loop = asyncio.get_running_loop()
        self._workflows[code.code] = loop.run_in_executor(None, _load, code)

    def loading(self, code: str) -> "asyncio.Future[Workflow | AgentCodeError] | None":
        """The program with this hash, once it is loaded; None where it was not sent here."""
        return self._workflows.get(code)

    async def find(self, code: str) -> Workflow | None:
        """The program with this hash; None where it was not sent here.

        Raises:
            AgentCodeError: It cannot be loaded.
        """
        if code not in self._workflows:
            return None
        # Shielded: the others that wait for it are not cut with this run.
        workflow = await asyncio.shield(self._workflows[code])
        if isinstance(workflow, AgentCodeError):
            # Each time anew: else its traceback grows with each run that it is told to.
            raise workflow.with_traceback(None)
        return workflow

    def agent_of(self, spec: RunSpec, workflow: Workflow) -> Agent:
        """The agent of a run: that of its program, or of a child one of those below it.

        Raises:
            AgentCodeError: There is none such.
        """
        if spec.parent is None:
            return workflow.agent
        key = spec.code, spec.parent.agent
        known = self._below.get(key)
        if known is None or known[0] is not workflow:
            # One object for all runs of it, by which what is made of it is found again.
            self._below[key] = known = (workflow, agent_at(workflow.agent, spec.parent.agent))
        return known[1]


def _load(code: Code) -> Workflow | AgentCodeError:
    """The program of a blob, its model with its keys; or why there is none.

    The reason is told to each run that needs it, as its result.
    """
    for name in filter(is_key, code.keys):
        # In memory: what others can read of the environment is that which a process began with.
        os.environ.setdefault(name, code.keys[name])
    try:
        workflow = unpack(code.blob)
    except AgentCodeError as error:
        return error
    try:
        models = models_of(workflow.agent.model)
        summarizer = getattr(workflow.agent, "summarizer", None)
        asked_aside = getattr(summarizer, "model", None)
        below = [one for model in models_below(workflow.agent) for one in models_of(model)]
        aside = () if asked_aside is None else models_of(asked_aside)
        for model in (*models, *aside, *below):
            if EMBEDDED_MODEL_URL in code.keys and getattr(model, "needs_local_host", False):
                model.connect(code.keys[EMBEDDED_MODEL_URL])  # type: ignore[attr-defined]
            elif hasattr(model, "use_keys"):
                model.use_keys(code.keys)
        for judge in (getattr(workflow.agent, "judges", None) or {}).values():
            if hasattr(judge, "use_keys"):
                judge.use_keys(code.keys)
    except Exception as error:  # noqa: BLE001 - whatever a user's model does with its keys
        facts = error_facts(error)
        reason = f"it does not take its keys: {facts['type']}: {facts['message']}"
        return AgentCodeError("the model", reason)
    for model in models:
        if hasattr(model, "preload"):
            model.preload()
    return workflow
