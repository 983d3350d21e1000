"""Whether as many runs as a batch holds may call their models at once."""

import os

from harness_actors.models.sockets import file_limit, sockets_allowed


def crowding(concurrency: int, *, tasks: int | None, one_process: bool) -> str | None:
    """What is to be said of a batch whose runs have not a socket each.

    Args:
        concurrency: How many it is to hold.
        tasks: How many it has, epochs counted; None where nobody knows yet.
        one_process: All runs are in this process; else each two cores have one for them.

    Returns:
        A sentence; None where each run may have one. It goes by the limits of this process,
        which Ray's take over where we start it.
    """
    wanted = concurrency if tasks is None else min(concurrency, tasks)
    processes = 1 if one_process else max(1, len(os.sched_getaffinity(0)) // 2)
    allowed = processes * sockets_allowed()
    if wanted <= allowed:
        return None
    return (
        f"{wanted} runs at once, but only {allowed} calls of models: the limit of open files, "
        f"{file_limit()}, allows no more sockets, and the other runs wait; raise it with "
        f"`ulimit -Hn {wanted * 2}` as root, then `ulimit -n {wanted * 2}`"
    )
