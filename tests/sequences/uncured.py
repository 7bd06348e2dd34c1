"""What is known to be broken, and left out of the sequences until it is cured.

An entry goes with its cure; then the sequences have the operation, and found.py's example runs.
"""

from __future__ import annotations

from collections.abc import Mapping

#: An operation of World, or a part of one -> what it breaks.
UNCURED: Mapping[str, str] = {
    "late move": "an older driver's SPYT moves the consumer after the newer one's start",
    "queue_in": "a queue that was taken out comes back where its consumer is, a batch behind",
    "queues of a state": "a state refuses queues that come or go",
    "recreate": "rows of a recreated queue replace others of the same positions",
    "recreate beside an older driver": "a driver that was paused before it read writes rows of the "
    "recreated queue over those of its successor, before the audit ends its batch",
    "forget": "a table whose batch row is gone is removed as an orphan",
    "lose": "without ledger and consumer the job begins anew",
}
