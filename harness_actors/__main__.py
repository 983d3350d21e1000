"""`python -m harness_actors` is the `harness` command."""

from harness_actors.cli import main

if __name__ == "__main__":
    main()
