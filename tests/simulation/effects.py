"""What tools do: once, after their record, and in the term that is served."""

from harness_actors.actors.simulated.processes import SimulatedProcess, current_process
from harness_actors.ports import ToolContext
from harness_actors.state import AGENT_TURN
from tests.simulation.ledger import Happening, Ledger
from tests.simulation.serving import Serving


class Effects:
    """Watches the calls of tools.

    Args:
        ledger: Where they are written down.
        serving: Where their runs are.

    Attributes:
        pending: Call ids by run whose pending record is on disk, with the message that has
            them.
    """

    def __init__(self, ledger: Ledger, serving: Serving) -> None:
        self.pending: set[tuple[str, str]] = set()
        self._ledger = ledger
        self._serving = serving
        self._begun: set[str] = set()

    def called(self, kind: str, key: str, context: ToolContext, *, idempotent: bool) -> Happening:
        """A tool is called."""
        call = self._ledger.begin(self._ledger.tools, context.run_id, kind, key)
        if not key.startswith(f"{context.run_id}/"):
            self._ledger.broken("no run sees another's state", f"{context.run_id} calls {key}")
        if not idempotent:
            self._check_start(call, context.call_id)
        return call

    def _check_start(self, call: Happening, call_id: str) -> None:
        name = f"{call.key}:{call.what}"
        if name in self._begun:
            self._ledger.broken("a call that is not idempotent starts at most once", name)
        self._begun.add(name)
        if (call.run_id, call_id) not in self.pending:
            text = f"{name} starts before its pending record is on disk"
            self._ledger.broken("no effect before its pending record", text)
        self._check_term(call.process, name)

    def effect(self, key: str) -> None:
        """A tool that is not idempotent does what it is for."""
        process = current_process()
        self._ledger.effects.append(key)
        if process.run_id:
            self._check_alone(process, key)
        else:
            self._check_term(process, key)
        self._ledger.note(process, f"effect of {key}")

    def _check_alone(self, process: SimulatedProcess, what: str) -> None:
        """It is a process of its own, which may be there until its run goes on."""
        host = process.parent and process.parent.parent
        if host is not None and not host.gone:
            self._check_term(host, what)
        calls = [call for call in self._ledger.tools if call.key == what]
        # A step that began before it and stands still was put aside without having called anything.
        since = calls[-1].begun_at if calls else 0.0
        steps = [s for s in self._serving.open[process.run_id] if s.ended_at is None]
        for step in steps:
            if step.begun_at < since:
                continue
            if step.what == AGENT_TURN and step.process is not host and step.is_open:
                text = f"{what} happens in {process!r} while its run is at {step.process!r}"
                self._ledger.broken(
                    "no run goes on before the processes of its tools are gone", text
                )

    def _check_term(self, process: SimulatedProcess, what: str) -> None:
        if process.term != self._ledger.term:
            text = f"{what} happens in term {process.term}, and {self._ledger.term} is served"
            self._ledger.broken("no effect of an older term", text)
