"""The command line: one module per command."""

import gc
import logging
import os
import sys
from traceback import format_exception


def main() -> None:
    """Entry point of `harness`."""
    # A caller may have closed them (`>&-`), and then Python has none.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for the whole process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # What is loaded stays until the end, so the collector of garbage need never look at it.
    gc.disable()
    # Imported here, so that whoever imports the package does not pay for it.
    from harness_actors.cli.app import app
    from harness_actors.printing.plain import PlainFormatter, say

    gc.freeze()
    gc.enable()

    # Neither goes through a command: what is logged where nobody looks, and what nobody caught.
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PlainFormatter())
    sys.excepthook = lambda *error: say("".join(format_exception(*error)).rstrip(), sys.stderr)
    app()
