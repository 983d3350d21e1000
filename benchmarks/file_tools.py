"""The tools of a model that works on files, as plain functions of the standard library alone.

For loops by hand and for frameworks that bring none: what goes wrong is told to the model as a
result, so that nobody has to translate an exception.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

FileTool = Callable[..., Awaitable[str]]


def file_tools(folder: Path, *, prefix: str = "") -> list[FileTool]:
    """Tools that write, read and edit the files of a folder, and run commands in it.

    Args:
        folder: Where paths and commands begin.
        prefix: Of their names, for a framework that has tools of these names itself.
    """

    async def write_file(path: str, content: str) -> str:
        """Write a text file.

        Args:
            path: The file.
            content: Its whole content.
        """
        try:
            (folder / path).write_text(content)
        except OSError as error:
            return f"error: {error}"
        return f"wrote {path}"

    async def read_file(path: str) -> str:
        """Read a text file.

        Args:
            path: The file.
        """
        try:
            return (folder / path).read_text()
        except (OSError, ValueError) as error:
            return f"error: {error}"

    async def edit_file(path: str, old_text: str, new_text: str) -> str:
        """Replace a text that stands in a file once.

        Args:
            path: The file.
            old_text: What stands there.
            new_text: What is to stand there.
        """
        try:
            text = (folder / path).read_text()
            if (times := text.count(old_text)) != 1:
                return f"error: old_text stands in the file {times} times"
            (folder / path).write_text(text.replace(old_text, new_text))
        except (OSError, ValueError) as error:
            return f"error: {error}"
        return f"edited {path}"

    async def run_command(command: str) -> str:
        """Run a shell command in the folder.

        Args:
            command: The command.
        """
        process = await asyncio.create_subprocess_shell(
            command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        return f"exit code {process.returncode}\n{said.decode('utf-8', 'replace')}"

    tools: list[FileTool] = [write_file, read_file, edit_file, run_command]
    for tool in tools:
        tool.__name__ = f"{prefix}{tool.__name__}"
    return tools
