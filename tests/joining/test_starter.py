"""The thread that connects a process to Ray and disconnects it."""

import threading

from harness_actors.actors.joining.starter import StarterThread


def test_one_thing_is_done_at_a_time_in_the_order_in_which_they_came() -> None:
    starter, second_begins = StarterThread(), threading.Event()
    first = starter.submit(second_begins.wait, 0.2)
    second = starter.submit(second_begins.set)
    assert not first.result(10), "another thread did the second meanwhile"
    second.result(10)
    assert second_begins.is_set()
