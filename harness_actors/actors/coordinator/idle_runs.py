"""Runs of the journal that nobody serves, with what stands in the way of their going on."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness_actors.errors import BadInputError, ConversationBusyError, ConversationMovedOnError
from harness_actors.ports import Journal
from harness_actors.records import StoredRun
from harness_actors.stores.taking_up import check_run


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRun:
    """A run as the journal has it.

    Attributes:
        stored: The run.
        waiting: Another run of its conversation that waits for its user; empty where none does.
        refusal: Why it may not be taken up where it was cut; None where it may.
    """

    stored: StoredRun
    waiting: str
    refusal: BadInputError | ConversationMovedOnError | None

    def check(self) -> None:
        """Refuse it, if somebody asks for it now.

        Raises:
            ConversationBusyError: Another run of its conversation waits for its user.
            ConversationMovedOnError: Another run has continued its conversation.
            BadInputError: Its workspace is gone.
        """
        if self.waiting:
            raise ConversationBusyError(self.stored.spec.conversation_id, self.waiting)
        if self.refusal is not None:
            raise self.refusal


def look_at(journal: Journal, stored: StoredRun) -> IdleRun:
    """What stands in the way of a run, by its journal."""
    spec = stored.spec
    waiting = journal.waiting_in(spec.conversation_id) or ""
    refusal: BadInputError | ConversationMovedOnError | None = None
    try:
        check_run(journal, stored)
    except (BadInputError, ConversationMovedOnError) as error:
        refusal = error
    beside = "" if waiting == spec.run_id else waiting
    return IdleRun(stored=stored, waiting=beside, refusal=refusal)


def look_up(journal: Journal, run_ids: Sequence[str]) -> dict[str, IdleRun]:
    """Runs by their ids, as far as the journal knows them."""
    found = ((run_id, journal.load_run(run_id)) for run_id in run_ids)
    return {run_id: look_at(journal, stored) for run_id, stored in found if stored is not None}
