"""An SQLite file that one process has to itself: what is committed is there after a kill, the rest never was.

Its mode is the write-ahead log under an exclusive lock: one sync a commit, and no shared memory beside the file, which
a network file system has not (docs/decisions/0029).
"""

import sqlite3
from pathlib import Path


def opened(path: Path, form: str, tables: str, *, durable: bool) -> sqlite3.Connection:
    """A connection for any thread, one at a time; makes the file where there is none. Raises sqlite3.Error.

    Args:
        path: the file; its directory must be there.
        form: NAME/NUMBER of what it holds; the number is its `user_version`.
        tables: makes what is not there yet, in SQL.
        durable: whether the disk holds what was committed. Otherwise a crash of the machine may take the latest.
    """
    database = sqlite3.connect(path, timeout=0, check_same_thread=False)
    try:
        # The number first: in the log it would not be seen by those who read the file's head.
        database.executescript(
            f"PRAGMA locking_mode = EXCLUSIVE; PRAGMA user_version = {form.rpartition('/')[2]}; "
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}; "
            f"PRAGMA journal_size_limit = 4194304; {tables}"
        )
    except sqlite3.Error:
        database.close()
        raise
    return database
