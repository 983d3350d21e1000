"""`work_complete` where a run is to come to a value: it takes that beside the summary."""

from functools import cached_property

from harness_actors.errors import ToolError
from harness_actors.outputs.output_type import OutputType
from harness_actors.ports import ToolContext, ToolSpec
from harness_actors.tools.completion import work_complete


class TypedCompletion:
    """Ends a run by a summary and a value that fits.

    Args:
        output: The form of the value.
        checked: Others have a say in whether the run is over.
    """

    def __init__(self, output: OutputType, *, checked: bool) -> None:
        self._output = output
        self._checked = checked

    @cached_property
    def spec(self) -> ToolSpec:
        """To a model it is the tool that all runs end by."""
        return ToolSpec(
            name=work_complete.spec.name,
            description=work_complete.spec.description,
            parameters=self._output.parameters,
            effect="read_only",
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Do one call; see `Tool.run`.

        Raises:
            OutputCodeError: Code of a user that looks at the value failed.
        """
        summary = (await self._output.read_arguments(arguments, context.in_thread)).strip()
        if not summary:
            raise ToolError("summary is empty; say in a few sentences what was done")
        if self._checked:
            return "Noted; it is being checked."
        return f"Work recorded as complete: {summary}"
