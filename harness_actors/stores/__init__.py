"""Where runs survive: the journals, which answer the `Journal` port."""

from harness_actors.stores.reader import JournalReader
from harness_actors.stores.sqlite import SqliteJournal

__all__ = ["JournalReader", "SqliteJournal"]
