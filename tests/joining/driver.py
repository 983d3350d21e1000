"""A driver as a user writes one: two runs on the Ray that an address stands for.

python -m tests.joining.driver STORE [ADDRESS]
"""

import asyncio
import json
import sys

from harness_actors import AgentHarness
from tests.joining.agents import repeats


async def drive(store: str, address: str | None) -> list[str]:
    async with AgentHarness(repeats(), store=store, address=address) as harness:
        return [(await harness.run(f"task {number}")).output_text for number in range(2)]


if __name__ == "__main__":
    texts = asyncio.run(drive(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
    import ray

    joined = ray.get_runtime_context().gcs_address
    print(json.dumps({"texts": texts, "ray": joined}))
