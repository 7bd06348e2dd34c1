"""Where a job keeps its state: in RocksDB or in memory, as the configuration says."""

from .job_settings import ROCKSDB, Settings


def state_store_of(settings: Settings, is_stateful: bool) -> str | None:
    """Return the name of the state store; None for a job without state.

    A job that ran before keeps the store that its checkpoint names, which is known once the ledger
    was read: see recovery/state_check.py.
    """
    return (settings.state_store or ROCKSDB) if is_stateful else None
