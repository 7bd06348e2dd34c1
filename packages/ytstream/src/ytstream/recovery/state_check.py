"""State and offsets belong together: refuses a checkpoint whose state does not fit the job.

Offsets without their state, or a state that is older than its offsets, give wrong figures and no
error. Spark takes the state store and the number of partitions from the checkpoint, whatever the
session says (OffsetSeqMetadata.setSessionConf).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import positions
from ..ledger.ledger_rows import Head, last_name
from ..settings.job_settings import MEMORY
from ..settings.spark_conf import STATE_STORES
from . import checkpoint_repair, spark_logs

_PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_STORES = {
    conf.value: name
    for name, listed in STATE_STORES.items()
    for conf in listed
    if conf.key == _PROVIDER
}
"""Spark's provider -> ``state_store``."""
_REWIND = (
    "restore the checkpoint as it was, or use `rewind`: `earliest` reads all rows again into an "
    "empty state (and writes their results again), `latest` begins with the next row"
)


def with_state_store(context: JobContext) -> JobContext:
    """Return the context with the state store that the job's state is in already.

    The configuration need not name one. Without any state yet the settings stay as they are.
    """
    if context.settings.state_store is not None:
        return context
    head = positions.read_head(context.settings.ledger, context.client.select_rows)
    frozen = _frozen(context, head)
    if frozen is None:
        return context
    return replace(context, settings=replace(context.settings, state_store=_store(frozen)))


def verify_state(context: JobContext, head: Head) -> None:
    """Raise JobError unless the head's folder holds the state after the head's batch."""
    frozen, job, settings = _frozen(context, head), context.job, context.settings
    if frozen is None:
        return
    wanted = str(job.shuffle_partitions)
    if (partitions := frozen.get(_PARTITIONS, wanted)) != wanted:
        raise JobError(
            f"the state in the checkpoint has {partitions} partitions, the job's "
            f"shuffle_partitions is {wanted}",
            f"set shuffle_partitions={partitions} in job.py, or use `rewind`, which starts a new "
            "checkpoint with an empty state",
            code=ErrorCode.STATE_MISMATCH,
        )
    if settings.state_store not in (None, store := _store(frozen)):
        raise JobError(
            f'the state in the checkpoint was written with state_store = "{store}", the '
            f'configuration says "{settings.state_store}", and Spark reads neither with the other',
            f'set state_store = "{store}" or leave the key out, or use `rewind`, which starts a '
            "new checkpoint with an empty state",
            code=ErrorCode.STATE_MISMATCH,
        )


def _frozen(context: JobContext, head: Head | None) -> Mapping[str, Any] | None:
    """Return the settings of Spark that the checkpoint fixes; None without a state.

    Raises JobError for a checkpoint that does not have the head's batch.
    """
    if not context.job.kind.is_stateful or head is None or head.batch < 0 or head.folder is None:
        return None
    path = checkpoint_repair.path_of(context.settings, head.folder)
    if not context.client.exists(f"{path}/offsets/{head.batch}"):
        read = sum(sum(rows.values()) for rows in head.ends.values())
        raise JobError(
            f"the ledger is at batch {last_name(head)}, after {read} rows, and the checkpoint "
            f"{path} does not have that batch: it is gone, or older, and the state with it",
            _REWIND,
            code=ErrorCode.STATE_LOST,
        )
    frozen = spark_logs.planned(context.client, path, head.batch).metadata.get("conf", {})
    return frozen if isinstance(frozen, Mapping) else {}


def _store(frozen: Mapping[str, Any]) -> str:
    return _STORES.get(str(frozen.get(_PROVIDER)), MEMORY)
