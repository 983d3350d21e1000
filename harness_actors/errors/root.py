"""The root of all errors that this package raises on purpose, and the facts of any error."""

from typing import Any


class HarnessError(Exception):
    """The root of all errors that this package raises on purpose.

    Every subclass takes positional arguments and hands exactly these to
    `Exception`: unpickling calls the class with `args`, and errors travel
    between processes.
    """


def error_facts(error: BaseException) -> dict[str, Any]:
    """What a result or an event says of an error: its type and one line of text."""
    text = str(error).strip() or type(error).__name__
    return {"type": type(error).__name__, "message": text[:2000]}
