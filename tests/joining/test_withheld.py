"""Keys are not in the environments of the processes of a Ray of our own."""

import os
import subprocess
import sys

import pytest

from harness_actors.actors.joining.withheld import keys_here, keys_withheld

SHOWS = [sys.executable, "-S", "-c", "import os; print(*sorted(os.environ))"]


def test_what_ray_starts_has_no_keys_while_this_process_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray._private.services as services

    for name in ("OPENAI_API_KEY", "my_apikey", "KEYBOARD"):
        monkeypatch.setenv(name, "secret")
    plain = services.ConsolePopen
    with keys_withheld():
        given = {**os.environ, "GIVEN": "1"}
        with services.ConsolePopen(SHOWS, env=given, stdout=subprocess.PIPE) as process:
            shown = process.communicate()[0].decode().split()
        assert keys_here() == {"OPENAI_API_KEY": "secret", "my_apikey": "secret"}

    assert {"GIVEN", "KEYBOARD", "PATH"} <= set(shown)
    assert not {"OPENAI_API_KEY", "my_apikey"} & set(shown)
    assert services.ConsolePopen is plain
