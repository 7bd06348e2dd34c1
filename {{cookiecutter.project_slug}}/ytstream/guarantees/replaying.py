"""Where each queue continues without transactions: Spark's checkpoint is the truth.

A batch whose ``commits/N`` is missing runs again over the very same rows. The consumer follows one
batch behind and counts alone where there is no checkpoint.
"""

from ..errors import JobError
from ..positions import Snapshot, Start


def resume(snapshot: Snapshot) -> Start:
    """Return the first row of the next batch, by queue and partition.

    Raises JobError when the consumer is ahead of the checkpoint: SPYT would then take the
    consumer's row in all partitions (YtStreamingSource.getBatch) and repeat a batch in the others.
    """
    done = snapshot.checkpoint.done
    if done is None:
        return Start([queue.consumed for queue in snapshot.queues])
    for queue, ends in zip(snapshot.queues, done.ends, strict=True):
        moved = [
            f"{queue.path}, partition {partition}: consumer at row {row}, checkpoint at "
            f"{ends.get(partition, 0)}"
            for partition, row in queue.consumed.items()
            if row > ends.get(partition, 0)
        ]
        if moved:
            raise JobError(
                f"the consumer is ahead of the checkpoint: {'; '.join(moved)}",
                "it was moved by hand: move it back, or use `rewind`, which starts a new "
                "checkpoint",
            )
    return Start(done.ends)


def adopt(snapshot: Snapshot, former: str) -> dict[tuple[str, int], int]:
    """Return where the consumer must be before a guarantee without transactions takes over.

    Raises JobError after transactional unless the consumer is where the checkpoint is: otherwise
    the last batch is in Spark's log and not in the output, and only the former guarantee can repair
    that.
    """
    done = snapshot.checkpoint.done
    if former == "transactional" and done is not None:
        for queue, ends in zip(snapshot.queues, done.ends, strict=True):
            if any(queue.consumed.get(partition, 0) != end for partition, end in ends.items()):
                raise JobError(
                    f"the consumer of {queue.path} is not where the checkpoint is",
                    "start the job once more as transactional, stop it with SIGTERM, then migrate",
                )
    return {}
