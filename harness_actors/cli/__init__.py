"""The command line: one module per command."""

import gc
import logging
import os
import sys
import threading
from traceback import format_exception
from typing import Any


def main() -> None:
    """Entry point of `harness`."""
    # A caller may have closed them (`>&-`), and then Python has none.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for the whole process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # What is loaded stays until the end, so the collector of garbage need never look at it.
    gc.disable()
    # Imported here, so that whoever imports the package does not pay for it.
    from harness_actors.cli.app import app
    from harness_actors.printing.plain import PlainFormatter

    gc.freeze()
    gc.enable()

    # None goes through a command: what is logged where nobody looks, and what nobody caught.
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PlainFormatter())
    sys.excepthook = lambda *error: _tell("", *error)
    threading.excepthook = _tell_of_thread
    sys.unraisablehook = _tell_of_unraisable
    app()


def _tell(where: str, *error: Any) -> None:
    from harness_actors.printing.plain import say

    say(where + "".join(format_exception(*error)).rstrip(), sys.stderr)


def _tell_of_thread(fault: threading.ExceptHookArgs) -> None:
    """As Python does, of a thread that a tool has begun."""
    if not issubclass(fault.exc_type, SystemExit):
        name = "a thread" if fault.thread is None else fault.thread.name
        where = f"Exception in thread {name}:\n"
        _tell(where, fault.exc_type, fault.exc_value, fault.exc_traceback)


def _tell_of_unraisable(fault: "sys.UnraisableHookArgs") -> None:
    """As Python does, of an error that nobody can catch, such as that of a `__del__`."""
    where = f"{fault.err_msg or 'Exception ignored in'}: {fault.object!r}\n"
    _tell(where, fault.exc_type, fault.exc_value, fault.exc_traceback)
