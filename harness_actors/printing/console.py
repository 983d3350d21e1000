"""A console for tables and bars: its own escape sequences pass, those in texts do not."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from harness_actors.printing.plain import printable


class PlainConsole(Console):
    """Prints as any console of Rich, and shows what is harmful in a text."""

    def render_str(self, text: str, **options: Any) -> Text:
        # Before it is measured, so that columns stay where they are.
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # What is no string was not cleaned above; what moves the cursor is our own.
            text = segment.text if segment.control else printable(segment.text)
            yield segment if text is segment.text else Segment(text, segment.style)


def print_table(table: Table | str, *, wide: int) -> None:
    """Print a table on stdout.

    Args:
        table: The table, or what is said where there is none.
        wide: Columns where stdout is no terminal: into a file or a pipe nothing is cut to the
            width of one.
    """
    console = PlainConsole()
    (console if console.is_terminal else PlainConsole(width=wide)).print(table)
