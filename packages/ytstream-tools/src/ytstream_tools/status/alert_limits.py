"""The limits of the alerts, which `why` and `fleet` share: above them, somebody should look."""

STALLED_SECONDS, LATE_SECONDS = 600, 300
"""A job is stalled without a batch for so long, and late when a row has waited for so long."""
UNSEALED_SECONDS = 3600
"""A period of an archive is not sealed so long after it could be complete."""
STARTS_PER_HOUR = 3
"""Starts of an hour that are no reason to look."""
FULL_BATCHES = 10
"""Batches of the most rows that a partition may give: so many rows wait at most."""
REJECTED_SHARE = 0.05
"""The part of the rows that may be rejected."""
LATE_SHARE_OF_LIMIT = 0.5
"""The part of `late_limit`, above which a batch ends the job."""
MISSING_CHANGE = 0.1
"""How far the part of lookups that find nothing may move away from that of the last day."""
LARGE_STATE_ROWS = 100_000
"""A state that grows is worth a look from so many rows on."""
TOTAL_SHARE = 0.6
"""The part of its 64 bits that a sum may use up. Bounds that nobody has seen stay at a half."""
ACCOUNT_SHARE = 0.98
"""The part of an account's quota above which the cluster soon refuses what the job writes."""
