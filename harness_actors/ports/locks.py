"""What the harness expects of whoever keeps the calls of a tree of runs apart."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class ResourceLocks(Protocol):
    """Locks of resource keys, which all processes share that serve runs of a journal."""

    def held(
        self, root: str, keys: Collection[str], *, reads: bool
    ) -> AbstractAsyncContextManager[None]:
        """Hold keys for as long as the block lasts; they are free again when its process is gone.

        Entering waits while another call of the tree holds one of them, unless both only read. It
        does not block the event loop, and a cancellation ends it.

        Args:
            root: The run at the top of the tree. Keys of two trees have nothing in common.
            keys: What the call touches; two are the same if the texts are.
            reads: It only reads.

        Raises:
            ToolError: On entering: they cannot be locked at all; says why, and what to do.
        """
        ...
