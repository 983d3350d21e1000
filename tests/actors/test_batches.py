"""Batches as bytes: plain ones plainly, and with classes that only one process knows."""

import pickle
from enum import Enum
from types import ModuleType

from harness_actors.actors.mailbox import Code, DropCode, Parcel
from harness_actors.actors.on_ray.batches import pack_batch, unpack_batch
from harness_actors.coordination.protocol import Changed, Committed, Envelope
from harness_actors.state import StateDelta, Write


def test_a_batch_arrives_as_it_left() -> None:
    batch: list[Parcel] = [
        Code("c0de", b"blob", {"KEY": "secret"}, 1),
        Envelope("run", 1, 2, 3, Committed(1)),
        DropCode("c0de", 2),
    ]
    assert unpack_batch(pack_batch(batch)) == batch


def test_a_value_of_a_class_that_no_module_holds_arrives_too() -> None:
    # As an agent's own module is, in the process that unpickled it by value.
    module = ModuleType("users_own")
    exec("from enum import Enum\nclass Colour(str, Enum):\n    RED = 'red'", module.__dict__)
    colour = module.__dict__["Colour"]
    assert issubclass(colour, Enum)
    colour.__module__ = "users_own"
    batch = [Envelope("run", 1, 2, 3, Changed(StateDelta((Write("k", "set", colour.RED),))))]
    try:
        pickle.dumps(batch)
        raise AssertionError("then this test shows nothing")
    except pickle.PicklingError:
        pass
    (arrived,) = unpack_batch(pack_batch(batch))
    assert isinstance(arrived, Envelope)
    assert isinstance(arrived.body, Changed)
    assert arrived.body.delta.writes[0].value == "red"
