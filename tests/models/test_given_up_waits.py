"""Waits of a model that are given up, as by Ctrl-C."""

import pytest

from harness_actors.models.waits import NotAskedAgainError, metered, waiting


async def test_no_wait_begins_after_they_were_given_up() -> None:
    begun = False
    with metered() as meter:
        # The call is in flight; it is refused afterwards.
        meter.give_up()
        with pytest.raises(NotAskedAgainError), waiting():
            begun = True
    assert not begun
