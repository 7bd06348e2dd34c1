"""Error codes: what programs compare instead of the message.

A message may change with any version. A code keeps its name and its meaning.
"""

from enum import StrEnum, auto


class ErrorCode(StrEnum):
    """What is wrong, grouped by who fixes it. docs/api.md lists them, from these comments."""

    # -- the job's author ------------------------------------------------------------------------

    #: Your own code raised a JobError without a code.
    USER = auto()
    #: Your code failed with another exception.
    USER_CODE = auto()
    #: job.py: a value is invalid, or two values do not go together.
    JOB = auto()
    #: tables.py: a column is invalid, or transform() returns other columns.
    TABLES = auto()
    #: REJECT: a condition is not valid SQL, or not deterministic.
    REJECT = auto()
    #: REFERENCE, or its table, is invalid.
    REFERENCE = auto()
    #: transform() uses an operator that the guarantee or processing type excludes, runs an action,
    #: or starts a query.
    PLAN = auto()
    #: The job imports a module, or reads a file, that the nodes do not have.
    PACKAGES = auto()
    #: sample/ or a unit test is invalid.
    SAMPLE = auto()
    #: Two rows of one batch have the same key.
    DUPLICATE_KEY = auto()
    #: A required column has a null.
    REQUIRED_NULL = auto()
    #: A batch skips more rows than `reject_limit` allows.
    TOO_MANY_REJECTED = auto()
    #: A batch has more late rows than `late_limit` allows.
    TOO_MANY_LATE = auto()
    #: A transaction would write more rows to a tablet than the cluster allows.
    BATCH_TOO_LARGE = auto()
    #: Spark fails on the rows of a batch, and a retry would fail the same way.
    BATCH_FAILED = auto()
    #: The command does not work with this processing type or guarantee.
    NOT_FOR_THIS_JOB = auto()
    #: doctor: the path has no streaming query.
    NO_STREAM = auto()

    # -- you, at the command ---------------------------------------------------------------------

    #: An argument is invalid, or two do not go together.
    USAGE = auto()
    #: The configuration file is invalid.
    CONFIG = auto()
    #: YT_TOKEN is missing, or the cluster refuses it.
    TOKEN = auto()
    #: The configuration and the environment name different clusters, or the wrong kind of one.
    OTHER_CLUSTER = auto()
    #: A file or folder is missing or damaged, or would be overwritten.
    FILE = auto()
    #: The command must run in the job's repository.
    NO_REPOSITORY = auto()
    #: git does not know the commit, or the deployed commit is unknown.
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
    #: It is unknown when the rows were written.
    NO_TIMESTAMP = auto()
    #: The job has no watermark yet.
    NO_WATERMARK = auto()
    #: `status` found more than the limits allow: exit code 4.
    LIMIT_EXCEEDED = auto()
    #: A replay may replace newer rows by older ones.
    REPLAY_UNSAFE = auto()

    # -- who installs Java, Spark and SPYT -------------------------------------------------------

    #: Java is missing, too old, or does not start.
    JAVA = auto()
    #: A package is not installed.
    NOT_INSTALLED = auto()
    #: This runtime needs another version of SPYT or Spark.
    SPYT_VERSION = auto()
    #: SPYT's patch of Spark is not in effect.
    SPYT_PATCH = auto()
    #: A Spark setting breaks the guarantee, or Spark does not start with it.
    SPARK_CONF = auto()
    #: Java cannot load a library from its temporary folder.
    TEMPORARY_FOLDER = auto()
    #: A disk of this machine or of the driver is full.
    DISK_FULL = auto()
    #: The process may not open as many files as it needs.
    OPEN_FILES = auto()
    #: Spark's JVM has ended or does not answer.
    JVM_ENDED = auto()

    # -- the cluster's administrators ------------------------------------------------------------

    #: An object of the job is missing or differs. `check` lists them, `provision` creates them.
    NOT_PROVISIONED = auto()
    #: A permission is missing.
    PERMISSION = auto()
    #: An account, bundle, medium or pool is missing or full.
    QUOTA = auto()
    #: The cluster runs no operations.
    NO_OPERATIONS = auto()

    # -- who is on call --------------------------------------------------------------------------

    #: A newer instance of the job has started: exit code 3.
    SUPERSEDED = auto()
    #: Another instance of the job is running.
    ANOTHER_INSTANCE = auto()
    #: A lock outlives its instance.
    LOCKED = auto()
    #: The query failed as often as `most_failures` allows.
    GAVE_UP = auto()
    #: The job's process was killed.
    KILLED = auto()
    #: A process or operation did not end in time.
    STOP_LATE = auto()
    #: The ledger has lost its head row.
    HEAD_LOST = auto()
    #: A row of the ledger is malformed.
    LEDGER_DAMAGED = auto()
    #: The job ran with a version that had no ledger.
    NO_LEDGER = auto()
    #: An object belongs to another job.
    FOREIGN_OBJECT = auto()
    #: An output belongs to another job, or another of its outputs.
    FOREIGN_OUTPUT = auto()
    #: An output has rows that new rows would replace.
    OUTPUT_FILLED = auto()
    #: A static output cannot be published yet.
    NOT_PUBLISHED = auto()
    #: The job has changed since its last start: `migrate`.
    JOB_CHANGED = auto()
    #: The configuration names a queue that the job has not read.
    QUEUE_ADDED = auto()
    #: The configuration no longer names a queue.
    QUEUE_REMOVED = auto()
    #: A queue was dropped and recreated.
    QUEUE_RECREATED = auto()
    #: A queue was resharded.
    QUEUE_RESHARDED = auto()
    #: A queue's columns were altered while a batch read them.
    QUEUE_ALTERED = auto()
    #: Rows were trimmed before the job had read them.
    ROWS_TRIMMED = auto()
    #: Something else has moved the consumer.
    CONSUMER_MOVED = auto()
    #: The partitions of a queue differ from those in the ledger.
    PARTITIONS_CHANGED = auto()
    #: It is unknown how far the job was: name a row.
    POSITION_UNKNOWN = auto()
    #: The checkpoint is missing or older than the ledger.
    STATE_LOST = auto()
    #: The state cannot be read, or another transform() made it.
    STATE_DAMAGED = auto()
    #: The state needs other settings.
    STATE_MISMATCH = auto()
    #: An entry of the checkpoint cannot be read.
    CHECKPOINT_DAMAGED = auto()

    # -- who deploys -----------------------------------------------------------------------------

    #: `submit` found something that must be corrected first.
    PREFLIGHT = auto()
    #: spark-submit failed.
    SUBMIT_FAILED = auto()
    #: Another `submit` is running.
    ANOTHER_SUBMIT = auto()
    #: The driver failed before its first batch.
    FIRST_BATCH = auto()
    #: The first batch did not come in time.
    FIRST_BATCH_LATE = auto()
    #: The cluster no longer knows the operation.
    OPERATION_GONE = auto()
    #: This version was rolled back before.
    VERSION_REFUSED = auto()
    #: The running version could not be restored.
    NO_ROLLBACK = auto()
    #: The previous version was restored, but has no batch.
    ROLLBACK_FAILED = auto()

    # -- nobody: the job retries -----------------------------------------------------------------

    #: Any other failure.
    TRANSIENT = auto()
    #: The cluster does not answer.
    OUTAGE = auto()
    #: A table is not mounted.
    UNMOUNTED = auto()
    #: No batch and no task has finished for too long.
    STALLED = auto()
    #: Spark would read other rows than the ledger says.
    OTHER_ROWS = auto()
    #: Other processes write the ledger at the same time.
    LEDGER_BUSY = auto()

    # -- us: please report it --------------------------------------------------------------------

    #: An unexpected exception.
    UNEXPECTED = auto()
