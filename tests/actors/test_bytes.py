"""Cost follows the change: what the coordinator sends per round does not grow with the log."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness_actors.actors.local import LocalHostPeer, LocalRuntime
from harness_actors.actors.mailbox import Parcel
from harness_actors.config import HarnessConfig
from harness_actors.coordination.protocol import Envelope
from tests.actors.followers import results, submit
from tests.actors.tasks import look_then_complete


class CountingPeer:
    """Stands before a host's peer and adds up what it is handed, pickled."""

    def __init__(self, peer: LocalHostPeer) -> None:
        self._receive = peer.receive
        self.bytes = 0

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        self.bytes += len(pickle.dumps(batch))
        told: Sequence[Envelope] = await self._receive(batch)
        return told


async def bytes_of_a_run(store: Path, rounds: int, rounds_per_turn: int) -> int:
    """What the coordinator sends to all hosts in a run of so many rounds."""
    runtime = await LocalRuntime.open(store, "counting")
    program = look_then_complete(rounds=rounds)
    config = HarnessConfig(max_turns=rounds + 2, max_rounds_per_turn=rounds_per_turn)
    warm, counted = (program.spec("task", config) for _ in range(2))
    await submit(runtime, program, [warm])
    await results(runtime, [warm.run_id])
    counters = []
    for peer in runtime.starter.hosts.values():
        counters.append(CountingPeer(peer))
        peer.receive = counters[-1].receive  # type: ignore[method-assign]
    await submit(runtime, program, [counted])
    result = (await results(runtime, [counted.run_id]))[counted.run_id]
    await runtime.close()
    assert result.status == "done"
    assert result.usage.model_calls == rounds + 1
    return sum(counter.bytes for counter in counters)


@pytest.mark.parametrize("rounds_per_turn", [1, 40])
async def test_a_round_at_200_costs_the_coordinator_what_one_at_10_does(
    tmp_path: Path, rounds_per_turn: int
) -> None:
    # A whole turn at least, so that both windows have the same number of turns in them.
    window = max(10, rounds_per_turn)

    async def per_round(around: int) -> float:
        first = around - 5
        fewer = await bytes_of_a_run(tmp_path / f"{first}-a.db", first, rounds_per_turn)
        more = await bytes_of_a_run(tmp_path / f"{first}-b.db", first + window, rounds_per_turn)
        return (more - fewer) / window

    early, late = await per_round(10), await per_round(200)

    # Whether a commit is told with an answer or by itself depends on the moment.
    some = 100
    assert late <= 1.2 * early + some, f"{late:.0f} bytes at round 200, {early:.0f} at round 10"
