"""OpenAI Agents SDK; its check is a loop around the agent that gives feedback until it is content.

So its page on orchestrating via code has it, and its example of a judge. An output guardrail would
only end the run. Unless told, `max_turns` is 10, and a call of an unknown tool raises; there it is
told, as its run configuration offers.
"""

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from benchmarks.peers.checked import (
    ATTEMPTS,
    INSTRUCTIONS,
    KEY,
    MODEL,
    MOST_CALLS,
    CheckedTask,
    NotDoneError,
)

# Its advice for whoever has no key of the provider's platform.
set_tracing_disabled(True)
TOLERANT = RunConfig(tool_not_found_behavior="return_error_to_model")


def _agent(task: CheckedTask) -> Agent:
    client = AsyncOpenAI(base_url=task.base_url, api_key=KEY, timeout=task.timeout_s)
    return Agent(
        name="Files",
        instructions=INSTRUCTIONS,
        model=OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
        tools=[function_tool(tool) for tool in task.tools],
    )


async def defaults(task: CheckedTask) -> None:
    await Runner.run(_agent(task), task.prompt)


async def checked(task: CheckedTask) -> None:
    agent = _agent(task)
    said = [{"role": "user", "content": task.prompt}]
    for _ in range(ATTEMPTS):
        result = await Runner.run(agent, said, max_turns=MOST_CALLS, run_config=TOLERANT)
        gap = task.gap()
        if gap is None:
            return
        said = [*result.to_input_list(), {"role": "user", "content": f"Feedback: {gap}"}]
    raise NotDoneError(gap)
