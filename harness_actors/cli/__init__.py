"""The command line: one module per command."""

import os
import sys


def main() -> None:
    """Entry point of `harness`."""
    # A caller may have closed them (`>&-`), and then Python has none.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for the whole process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # Imported here, so that whoever imports the package does not pay for it.
    from harness_actors.cli.app import app

    app()
