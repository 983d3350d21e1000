"""The embedded model in an actor of its own, for all runs of a cell that ask it."""

import asyncio

from harness_actors.actors.hosted import Hosted, Place

EMBEDDED_MODEL_URL = "HARNESS_EMBEDDED_MODEL_URL"
"""The key by which a run says that its model is the embedded one. Its value is where the
cell's server is."""


class EmbeddedModelHost(Hosted):
    """Serves the embedded model to the runs of its cell.

    Args:
        place: Says where to listen; nowhere where those who ask share its process, for that
            has a server already.
    """

    def __init__(self, place: Place) -> None:
        from harness_actors.models import LocalServer
        from harness_actors.models.local_server import shared_server

        _, _, port = place.address.rpartition(":")
        self._server = LocalServer(port=int(port)) if port else shared_server()

    async def ready(self) -> None:
        """Load the model, unless that is done.

        Raises:
            ModelSetupError: It is not installed; says how to get it.
        """
        await asyncio.to_thread(self._server.start)
