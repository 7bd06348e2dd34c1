"""What is known to be broken, and left out of the sequences until it is fixed.

An entry goes with its fix; then the sequences have the operation, and found.py's example runs.
"""

from __future__ import annotations

from collections.abc import Mapping

#: An operation of World, or a part of one -> what it breaks.
UNFIXED: Mapping[str, str] = {
    "recreate beside an older driver": "a driver that was paused before it read writes rows of the "
    "recreated queue over those of its successor, before the audit ends its batch",
}
