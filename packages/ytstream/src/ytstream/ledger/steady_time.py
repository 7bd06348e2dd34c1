"""The time by this host's clock, but never an earlier one than this process had before.

A clock that is corrected may go back. What a batch writes after its beginning would be older than
it, and would look like rows of a former attempt: see rejected/former_attempt.py.
"""

import threading
from datetime import UTC, datetime

_lock = threading.Lock()
_last = datetime.min.replace(tzinfo=UTC)


def now() -> datetime:
    """Return the time, in UTC."""
    global _last
    with _lock:
        _last = max(_last, datetime.now(UTC))
        return _last
