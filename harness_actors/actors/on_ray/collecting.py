"""The garbage collector in a process that is an actor of ours, and nothing else."""

import gc

YOUNG_OBJECTS = 5_000
"""So many more objects than before, and the collector looks at the new ones. Python's 700 are
reached within a round of a few dozen runs, whose messages are all alive still."""

OLD_LOOKS = 30
"""So many looks at what has outlived one, of ten looks at the young each, and the collector goes
through all. With the runs of 5,000 that takes half a second, in which an actor serves nobody; what
it may find until then are at most 1.5 million objects."""


def collect_seldom() -> None:
    """Spare the collector what stays: whatever is imported by now is not looked at again.

    Ray and what we import are 77,000 objects, of which none is garbage; each full collection
    of them takes some 60 ms in which an actor serves nobody.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, gc.get_threshold()[1], OLD_LOOKS)
