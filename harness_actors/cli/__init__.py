"""The command line: one module per command."""


def main() -> None:
    """Entry point of `harness`."""
    # Imported here, so that whoever imports the package does not pay for it.
    from harness_actors.cli.app import app

    app()
