"""The codes of the errors: what programs compare, where people read the message.

A message may be worded in another way with any version. A code keeps its name and its meaning.
"""

from enum import StrEnum, auto


class ErrorCode(StrEnum):
    """What is wrong, grouped by who corrects it. docs/log.md lists them."""

    # -- The author of the job: job.py, tables.py, transform.py, sample/ -------------------------

    #: Raised by the user's code itself, which named no code.
    USER = auto()
    #: An error that the user's code did not raise on purpose.
    USER_CODE = auto()
    #: job.py: a value, or a pair of values that do not go together.
    JOB = auto()
    #: tables.py: a column, or columns that transform() does not return.
    TABLES = auto()
    #: REJECT: a condition that is not valid SQL, or gives more than one answer.
    REJECT = auto()
    #: REFERENCE, or the table that it describes.
    REFERENCE = auto()
    #: An operator of transform() that the guarantee or the processing excludes.
    PLAN = auto()
    #: A module that the job imports and that its nodes do not have.
    PACKAGES = auto()
    #: sample/ or a unit test.
    SAMPLE = auto()
    #: Two rows of one batch have the same key.
    DUPLICATE_KEY = auto()
    #: A null in a required column.
    REQUIRED_NULL = auto()
    #: A batch skips more rows than `reject_limit` allows.
    TOO_MANY_REJECTED = auto()
    #: A transaction would touch more rows of a tablet than the cluster allows.
    BATCH_TOO_LARGE = auto()
    #: Spark fails on the rows of a batch, and a retry would fail the same way.
    BATCH_FAILED = auto()
    #: The command needs another kind of job.
    NOT_FOR_THIS_JOB = auto()
    #: doctor: the path has no streaming query.
    NO_STREAM = auto()

    # -- The person at the command ---------------------------------------------------------------

    #: An argument, or two that do not go together.
    USAGE = auto()
    #: The configuration file.
    CONFIG = auto()
    #: YT_TOKEN is missing, or the cluster refuses it.
    TOKEN = auto()
    #: The configuration and the environment name different clusters, or the wrong kind of one.
    OTHER_CLUSTER = auto()
    #: A file or folder that is missing, damaged, or would be overwritten.
    FILE = auto()
    #: The command has to run in the job's repository.
    NO_REPOSITORY = auto()
    #: git does not know the commit, or nothing tells which one is deployed.
    COMMIT_UNKNOWN = auto()
    #: The address to listen on is taken.
    ADDRESS_TAKEN = auto()
    #: A command that this one called has failed.
    COMMAND_FAILED = auto()
    #: The job has never run.
    NEVER_RUN = auto()
    #: The job does not run now.
    NOT_RUNNING = auto()
    #: The ledger does not have that batch.
    NO_BATCH = auto()
    #: The command has no rows to work on.
    NO_ROWS = auto()
    #: Nothing tells when the rows were written.
    NO_TIMESTAMP = auto()
    #: The job has no watermark yet.
    NO_WATERMARK = auto()
    #: `status` found more than the limits allow: exit code 4.
    LIMIT_EXCEEDED = auto()
    #: A replay may replace newer rows by older ones.
    REPLAY_UNSAFE = auto()

    # -- Who installs: Java, Spark, SPYT, the disk -----------------------------------------------

    #: Java is missing, too old, or does not start.
    JAVA = auto()
    #: A package is not installed here.
    NOT_INSTALLED = auto()
    #: SPYT or Spark is of another version than this runtime needs.
    SPYT_VERSION = auto()
    #: SPYT's patch of Spark is not in effect.
    SPYT_PATCH = auto()
    #: A setting of Spark that excludes the guarantee, or with which Spark does not start.
    SPARK_CONF = auto()
    #: Java cannot load a library from its folder for temporary files.
    TEMPORARY_FOLDER = auto()
    #: A disk of this machine or of the driver is full.
    DISK_FULL = auto()
    #: Spark's JVM has ended or does not answer.
    JVM_ENDED = auto()

    # -- The cluster's owners --------------------------------------------------------------------

    #: An object of the job is missing or differs: `check` lists them, `provision` makes them.
    NOT_PROVISIONED = auto()
    #: A right is missing.
    PERMISSION = auto()
    #: An account, bundle, medium or pool that is missing or full.
    QUOTA = auto()
    #: The cluster runs no operations.
    NO_OPERATIONS = auto()

    # -- Who is on call: the way of the job through its queues -----------------------------------

    #: A newer instance of the job has started: exit code 3.
    SUPERSEDED = auto()
    #: Another instance of the job is running.
    ANOTHER_INSTANCE = auto()
    #: A lock stays after its instance.
    LOCKED = auto()
    #: The query failed as often as `most_failures` allows.
    GAVE_UP = auto()
    #: The job's process was killed.
    KILLED = auto()
    #: A process or operation was asked to end and has not ended in time.
    STOP_LATE = auto()
    #: The ledger has lost its head row.
    HEAD_LOST = auto()
    #: A row of the ledger is malformed.
    LEDGER_DAMAGED = auto()
    #: The job ran before there were ledgers.
    NO_LEDGER = auto()
    #: An object belongs to another job.
    FOREIGN_OBJECT = auto()
    #: An output belongs to another job, or another of its outputs.
    FOREIGN_OUTPUT = auto()
    #: An output has rows that new rows would replace.
    OUTPUT_FILLED = auto()
    #: A static output cannot be published yet.
    NOT_PUBLISHED = auto()
    #: The job differs from the one that the ledger knows: `migrate`.
    JOB_CHANGED = auto()
    #: The configuration names a queue that the job has not read.
    QUEUE_ADDED = auto()
    #: The configuration does not name a queue any more.
    QUEUE_REMOVED = auto()
    #: A queue was dropped and recreated.
    QUEUE_RECREATED = auto()
    #: A queue has other tablets than before.
    QUEUE_RESHARDED = auto()
    #: A queue's columns were altered while a batch read them.
    QUEUE_ALTERED = auto()
    #: Rows were trimmed before the job had read them.
    ROWS_TRIMMED = auto()
    #: Something else has moved the consumer.
    CONSUMER_MOVED = auto()
    #: The partitions of a queue are not those that the ledger knows.
    PARTITIONS_CHANGED = auto()
    #: Nothing tells where the job was: name a row.
    POSITION_UNKNOWN = auto()
    #: The checkpoint is missing or older than the ledger.
    STATE_LOST = auto()
    #: The state cannot be read, or was made by another transform().
    STATE_DAMAGED = auto()
    #: The state was made with other settings.
    STATE_MISMATCH = auto()
    #: An entry of the checkpoint cannot be read.
    CHECKPOINT_DAMAGED = auto()

    # -- Who deploys -----------------------------------------------------------------------------

    #: `submit` found something that must be corrected first.
    PREFLIGHT = auto()
    #: spark-submit failed.
    SUBMIT_FAILED = auto()
    #: Another `submit` is at work.
    ANOTHER_SUBMIT = auto()
    #: The driver failed before its first batch.
    FIRST_BATCH = auto()
    #: There was no batch in time.
    FIRST_BATCH_LATE = auto()
    #: The cluster does not know the operation any more.
    OPERATION_GONE = auto()
    #: This version was refused before.
    VERSION_REFUSED = auto()
    #: The running version could not be started again.
    NO_ROLLBACK = auto()
    #: The version before was started again, and has no batch.
    ROLLBACK_FAILED = auto()

    # -- Nobody: a running job tries again -------------------------------------------------------

    #: A failure without a code of its own.
    TRANSIENT = auto()
    #: The cluster does not answer.
    OUTAGE = auto()
    #: A table is not mounted.
    UNMOUNTED = auto()
    #: No batch and no task has finished for too long.
    STALLED = auto()
    #: Spark would read, or has read, other rows than the ledger says.
    OTHER_ROWS = auto()
    #: Other processes write the ledger at the same time.
    LEDGER_BUSY = auto()

    # -- The authors of this runtime -------------------------------------------------------------

    #: An exception that nothing here expects.
    UNEXPECTED = auto()
