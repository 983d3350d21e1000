"""The garbage collector in a process that is an actor of ours, and nothing else."""

import gc

YOUNG_OBJECTS = 5_000
"""So many more objects than before, and the collector looks at the new ones. Python's 700 are
reached within a round of a few dozen runs, whose messages are all alive still."""


def collect_seldom() -> None:
    """Spare the collector what stays: whatever is imported by now is not looked at again.

    Ray and what we import are 77,000 objects, of which none is garbage; each full collection
    of them takes some 60 ms in which an actor serves nobody.
    """
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
