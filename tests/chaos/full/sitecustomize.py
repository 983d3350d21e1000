"""Makes journals full: imported by every Python that is started with this folder on its path.

SQLite itself refuses to let a file grow beyond `PRAGMA max_page_count`, with the very error that
a full disk gives it, on every machine and with no rights at all. The setting is a connection's,
so it is made where connections are made.
"""

import os
import sqlite3
from typing import Any

_pages = os.environ.get("CHAOS_MAX_PAGES")
_connect = sqlite3.connect


def _connect_to_little(*arguments: Any, **options: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = _connect(*arguments, **options)
    if "runs.db" in str(arguments[0]):
        connection.execute(f"PRAGMA max_page_count = {int(_pages or 0)}")
    return connection


if _pages:
    sqlite3.connect = _connect_to_little  # type: ignore[assignment]
