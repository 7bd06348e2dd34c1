"""The protocol as a table: what a start and a batch do, in their order, and what shows each step.

The harnesses read it, each what it needs: the model names and functions, the two drivers requests,
the sweep the parts of a life and what a fault explains. Whoever changes the order of the runtime
changes it here and in HOW_A_BATCH_TRAVELS.md. sequences/test_protocol.py compares the table with
that page, with the model and with both simulated drivers.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.faults.after_requests import Request

RAISE, BEGIN, OPEN = "raise", "begin", "open"
LIFE = (RAISE, BEGIN, OPEN)
"""The parts of a driver's life before its first batch. The first commit of the ledger ends the
first one, the second commit the second one, the first look at a queue's ends the third one. Each
later commit of the ledger ends a batch."""
BATCH, IDLE = "batch", "idle"


class Step(NamedTuple):
    """What a driver does in one go."""

    function: str
    """Who does it: a function of the runtime, or words on Spark or SPYT, which no test imports."""
    place: str
    """The part of a driver's life."""
    request: Request | None = None
    """What shows it on the cluster. Braces are fields of ``paths`` in two_drivers/job_site.py."""
    leaves: str = ""
    """What a driver that dies after it has left on the cluster."""
    is_in_transaction: bool = False
    """Whether SPYT's transaction undoes it, where there is one."""


STEPS = {
    "raise_epoch": Step(
        "ytstream.recovery.epoch.raise_epoch", RAISE, Request("ModifyRows", {"path": "{ledger}"})
    ),
    "read_positions": Step("ytstream.ledger.positions.read", BEGIN),
    "new_folder": Step(
        "ytstream.recovery.checkpoint_repair.new_folder",
        BEGIN,
        Request(("commit_tx", "commit_transaction"), when="after"),
    ),
    "begin": Step(
        "ytstream.recovery.start.begin", BEGIN, Request("ModifyRows", {"path": "{ledger}"})
    ),
    "read logs": Step("spark: MicroBatchExecution.populateStartOffsets", OPEN),
    "plan": Step("spark: MicroBatchExecution.constructNextBatch", BATCH),
    "write offsets": Step(
        "spark: OffsetSeqLog.add",
        BATCH,
        Request("MoveNode", {"destination_path": "*/offsets/*"}, "after"),
        leaves="offsets",
    ),
    "confirm": Step(
        "spyt: YtStreamingSource.commit, which moves the consumer without old_offset", BATCH
    ),
    "open T": Step(
        "spyt: MicroBatchExecutionDecorators, before runBatch",
        BATCH,
        Request("StartTransaction", {"type": 1}),  # a tablet transaction (ETransactionType)
    ),
    "verify_head": Step("ytstream.query.batch.verify_head", BATCH),
    "verify_start": Step("ytstream.query.offset_check.verify_start", BATCH),
    "write_outputs": Step(
        "ytstream.outputs.sink.write_outputs",
        BATCH,
        Request("ModifyRows", {"path": "{output}"}),
        is_in_transaction=True,
    ),
    "write state": Step(
        "spark: StateStore.commit",
        BATCH,
        Request("WriteFile", {"path": "*/state/0/*"}),
        leaves="state",
    ),
    "audit": Step(
        "ytstream.query.read_audit.audit",
        BATCH,
        # Each batch asks for the queue once all outputs are written (audit.verify_queues).
        Request("get", {"path": "{queue}/@"}),
    ),
    "write_head": Step(
        "ytstream.ledger.batch_commit.write_head",
        BATCH,
        Request("ModifyRows", {"path": "{ledger}"}),
        leaves="head",
        is_in_transaction=True,
    ),
    "write commits": Step(
        "spark: CommitLog.add",
        BATCH,
        Request("MoveNode", {"destination_path": "*/commits/*"}, "after"),
        leaves="commits",
    ),
    "advance": Step(
        "spyt: MicroBatchExecutionDecorators, AdvanceConsumer in T without old_offset",
        BATCH,
        Request("AdvanceConsumer", when="after"),
        is_in_transaction=True,
    ),
    "commit T": Step(
        "spyt: MicroBatchExecutionDecorators, CommitTransaction",
        BATCH,
        Request("CommitTransaction"),
        leaves="head",
    ),
    "publish": Step("ytstream.staging.staged_tables.publish", IDLE),
    "remove": Step("ytstream.staging.staged_tables.remove", OPEN),
    "watch": Step("ytstream.query.stall_watchdog.Watchdog", IDLE),
    "purge": Step("spyt: MicroBatchExecutionDecorators, CommitLog.purgeAfter", BATCH),
}

START = ("raise_epoch", "read_positions", "new_folder", "begin")
"""The steps before each query, in their order."""

ORDER = {
    True: (
        "plan", "write offsets", "open T", "verify_head", "verify_start", "write_outputs",
        "write state", "audit", "write_head", "write commits", "advance", "commit T",
    ),
    False: (
        "plan", "write offsets", "confirm", "verify_head", "verify_start", "write_outputs",
        "write state", "audit", "verify_head", "write_head", "write commits",
    ),
}  # fmt: skip
"""The steps of a batch with state, in SPYT's transaction T and without one. Where the runtime
computes the rows before it writes them (outputs/output_frames.py), it audits them in between."""

PAGE = {
    "Verify": ("verify_head", "verify_start"),
    "Write": ("write_outputs",),
    "Audit": ("audit",),
    "Record": ("write_head",),
}
"""The steps that HOW_A_BATCH_TRAVELS.md numbers, and what the runtime does in each."""


def request(step: str) -> Request:
    """Return the request that shows the step."""
    found = STEPS[step].request
    assert found is not None, step
    return found


def leaves(*, in_transaction: bool) -> tuple[str, ...]:
    """Return what a batch leaves on the cluster, in its order."""
    steps = [STEPS[name] for name in ORDER[in_transaction]]
    seen = [step for step in steps if not (in_transaction and step.is_in_transaction)]
    return tuple(step.leaves for step in seen if step.leaves)


class Explained(NamedTuple):
    """What a fault explains of a job with it. More than that counts against the job."""

    drivers: int = 1
    """Drivers that were started since, the first one included."""
    failures: int = 0
    """Failures that they have counted."""
    batches: int = 1
    """Batches whose rows may be there twice under at_least_once, if the fault has cut one off."""


EXPLAINED = {
    # The driver that meets the fault, and the next one.
    "overtaken": Explained(drivers=2),
    "token-expired": Explained(drivers=2),
    "altered": Explained(drivers=2),
    "paused": Explained(drivers=2, failures=1),
    # By the cluster's clock its transaction is over.
    "transaction-gone": Explained(failures=1),
    "clock-60-s": Explained(failures=1),
    "slow": Explained(batches=0),
}
"""By fault; the others explain what the defaults say. Transport, proxies and a full account are
waited for, and count as no failure."""


def explained(fault: str) -> Explained:
    """Return what a fault of the sweep explains."""
    return EXPLAINED.get(fault, Explained())
