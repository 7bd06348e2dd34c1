"""What guarantees without transactions share: Spark's checkpoint is the truth.

A batch whose ``commits/N`` is missing runs again over the very same rows. The consumer follows one
batch behind and counts alone where there is no checkpoint.
"""

from collections.abc import Mapping

from ..config import Settings
from ..errors import JobError
from ..positions import Snapshot, Start


class Replaying:
    """Each ``modify_rows`` is a transaction of its own; a batch that was cut off is replayed."""

    in_transaction = False

    def write_batch(self, settings: Settings, tablets: Mapping[str, int]) -> int:
        """Return a number far below the 100 000 rows of a tablet that a transaction may touch."""
        return 10_000

    def sizing_problem(
        self, settings: Settings, tablets: Mapping[str, int], output_tablets: int
    ) -> None:
        """Return None: no transaction holds more than one ``modify_rows``."""

    def resume(self, snapshot: Snapshot) -> Start:
        """Continue where the checkpoint ends.

        Raises JobError when the consumer is ahead of the checkpoint: SPYT would then take the
        consumer's row in all partitions (YtStreamingSource.getBatch) and repeat a batch in the
        others.
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

    def adopt(self, snapshot: Snapshot, former: str) -> dict[tuple[str, int], int]:
        """Leave the consumer where it is.

        Raises JobError after transactional unless the consumer is where the checkpoint is:
        otherwise the last batch is in Spark's log and not in the output, and only the former
        guarantee can repair that.
        """
        done = snapshot.checkpoint.done
        if former == "transactional" and done is not None:
            for queue, ends in zip(snapshot.queues, done.ends, strict=True):
                if any(queue.consumed.get(partition, 0) != end for partition, end in ends.items()):
                    raise JobError(
                        f"the consumer of {queue.path} is not where the checkpoint is",
                        "start the job once more as transactional, stop it with SIGTERM, then "
                        "migrate",
                    )
        return {}
