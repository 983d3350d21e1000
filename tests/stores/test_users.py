"""Whom a process runs as is asked of the system, and told by name."""

import os
import subprocess
import sys

import pytest

from harness_actors.stores.users import name_of, user_of
from tests.joining.other_users import STRANGER, can_be_another

BECOMES = "import os, sys; os.seteuid(int(sys.argv[1])); print('is', flush=True); sys.stdin.read()"


def test_a_process_runs_as_who_it_acts_as() -> None:
    assert user_of(os.getpid()) == os.geteuid()
    if not can_be_another():
        pytest.skip("needs root, to be another user")
    with subprocess.Popen(
        [sys.executable, "-I", "-c", BECOMES, str(STRANGER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"is\n"
        assert user_of(process.pid) == STRANGER
        process.kill()
    assert user_of(process.pid) is None


def test_a_user_without_a_name_is_told_by_number() -> None:
    assert name_of(0) == "root"
    assert name_of(4_000_000_001) == "user 4000000001"
