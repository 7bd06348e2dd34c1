"""Which guarantee goes with which processing, and why not with the others.

Standard library only, so that the template can read it when it checks the answers.
"""

from collections.abc import Mapping

#: Why rows with a key of the user's own need the transaction. Elsewhere the head is verified before
#: and after the outputs of a batch, and nothing fences the writes in between: a driver that was
#: paused there continues when its successor has written later batches. The end of a batch does not
#: end its tasks either: one that waits for a reply of the cluster is in CompletableFuture.join
#: under YtDynamicTableWriter.<init> (SPYT), where Spark's cancelling does not reach it, and it
#: writes on, in a new transaction, when the reply comes. Appended rows repeat then, which
#: at_least_once allows; under a key older values replace newer ones for good. To wait for old tasks
#: is no cure: an executor may be cut off from its driver alone. One transaction with the head is
#: the cure, and that is `transactional`.
KEYED = (
    "an output with a key of your own needs the transaction; without it a paused driver, or a task "
    "of a batch that failed, may write after later batches, and its older values would replace "
    "theirs"
)

#: Why an upsert by position is not exactly once for the other kinds of processing.
_NO_POSITION: Mapping[str, str] = {
    "window": "a window is made of many queue rows, so no one position can be its key",
    "join": "the reference may change between a write and its replay, and the row with it",
    "deduplicate": "which of several rows is kept depends on state, so a replay may keep another",
    "aggregate": "a total is made of many queue rows, so no one position can be its key",
    "sessions": "a session is made of many queue rows, so no one position can be its key",
}


def problem(guarantee: str, processing: str) -> str | None:
    """Return why this guarantee cannot hold for this processing; None when it can."""
    if guarantee == "idempotent" and processing in _NO_POSITION:
        reason = _NO_POSITION[processing]
        return (
            f"guarantee idempotent goes with processing map only, not with {processing}: {reason}"
        )
    if guarantee == "at_least_once" and processing == "aggregate":
        return (
            "processing aggregate goes with guarantee transactional only, not with at_least_once: "
            f"{KEYED}"
        )
    return None
