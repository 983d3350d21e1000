"""Where a command is to run, judged before anything is started."""

from harness_actors.errors import BadInputError


def check_where(runtime: str, address: str | None) -> None:
    """Refuse what cannot be meant by ``--runtime`` and ``--address``.

    Args:
        runtime: ``"ray"`` or ``"local"``.
        address: That of ``--address``; None where it was not given.

    Raises:
        BadInputError: An address is given where no Ray is used, or it is none by its form,
            or ``RAY_ADDRESS`` is not, where that is what counts; or ``HARNESS_CELL_IDLE_S``
            or ``HARNESS_WARM_CELLS`` is not a number. Whether a Ray answers there is not asked:
            that is a `CellError` of whoever joins it.
    """
    if runtime == "local":
        if address:
            problem = "it names a Ray, and --runtime local uses none; leave one of them out"
            raise BadInputError("--address", (problem,))
        return
    from harness_actors.actors.cell_lifetime import idle_s, warm_cells
    from harness_actors.actors.joining.address import check_form

    check_form(address)
    idle_s()
    warm_cells()
