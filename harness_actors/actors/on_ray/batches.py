"""Batches as bytes: what an actor calls another with on Ray."""

import pickle
from collections.abc import Sequence

import cloudpickle

from harness_actors.actors.mailbox import Parcel


def pack_batch(batch: Sequence[Parcel]) -> bytes:
    """The batch as one argument that Ray passes on as it is.

    Its own way, cloudpickle, takes twice as long. It is needed only where a user's
    executor has put a value into a change whose class no other process can import.
    """
    try:
        return pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        packed: bytes = cloudpickle.dumps(batch)
        return packed


def unpack_batch(packed: bytes) -> Sequence[Parcel]:
    """What `pack_batch` made."""
    batch: Sequence[Parcel] = pickle.loads(packed)
    return batch
