"""The `run_command` of the repairing agents.

Its `python` has the standard library alone: the package with the problems' solutions, which is
installed beside this project, cannot be imported. It is no sandbox; see `interpreter.py`.
"""

from harness_actors.tools import CommandRunner

run_command = CommandRunner(bare_python=True).as_tool()
