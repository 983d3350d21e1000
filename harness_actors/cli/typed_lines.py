"""Lines of standard input: typed by a person, or of a script."""

import sys
from collections.abc import Callable
from contextlib import suppress

PROMPT = "> "


def read_line(asking: Callable[[], str], dropped: Callable[[], None], *, quiet: bool) -> str | None:
    """A line of standard input, without its margins; None where there are no more.

    Args:
        asking: Says what a person sees before it; asked again for another.
        dropped: Called where that person drops it, by Ctrl-C, and begins another.
        quiet: Show no prompt.
    """
    asks = sys.stdin.isatty() and not quiet
    while True:
        prompt = asking()
        try:
            if asks and sys.stdout.isatty():
                with suppress(ImportError):
                    # With it, `input` can edit a line and bring earlier ones back.
                    import readline  # noqa: F401
                return input(prompt).strip()
            if asks:
                print(prompt, end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            return line.strip() if line else None
        except EOFError:
            # What follows begins in a line of its own.
            print(file=sys.stderr)
            return None
        except KeyboardInterrupt:
            if not asks:
                raise
            # As in a shell: the line is dropped.
            print(file=sys.stderr)
            dropped()


def is_command(said: str) -> bool:
    """Whether a line is meant for this program, such as `/help`; a path is not."""
    return said.startswith("/") and said.count("/") == 1 and len(said.split()) == 1
