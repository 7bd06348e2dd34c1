"""Error codes: what programs compare instead of the message.

A message may change with any version. A code keeps its name and its meaning.
"""

from enum import StrEnum, auto


class ErrorCode(StrEnum):
    """What is wrong, grouped by who fixes it. docs/api.md lists them, from these comments."""

    # -- the job's author ------------------------------------------------------------------------

    USER = auto()
    """Your own code raised a JobError without a code."""
    USER_CODE = auto()
    """Your code failed with another exception."""
    JOB = auto()
    """job.py: a value is invalid, or two values do not go together."""
    TABLES = auto()
    """tables.py: a column is invalid, or transform() returns other columns."""
    REJECT = auto()
    """REJECT: a condition is not valid SQL, or not deterministic."""
    REFERENCE = auto()
    """REFERENCE, or its table, is invalid."""
    PLAN = auto()
    """transform() uses an operator that the guarantee or processing type excludes, runs an action,
    or starts a query."""
    PACKAGES = auto()
    """The job imports a module, or reads a file, that the nodes do not have."""
    SAMPLE = auto()
    """sample/ or a unit test is invalid."""
    DUPLICATE_KEY = auto()
    """Two rows of one batch have the same key."""
    REQUIRED_NULL = auto()
    """A required column has a null."""
    TOO_MANY_REJECTED = auto()
    """A batch skips more rows than `reject_limit` allows."""
    TOO_MANY_LATE = auto()
    """A batch has more late rows than `late_limit` allows."""
    BATCH_TOO_LARGE = auto()
    """A transaction would write more rows to a tablet than the cluster allows."""
    BATCH_FAILED = auto()
    """Spark fails on the rows of a batch, and a retry would fail the same way."""
    NOT_FOR_THIS_JOB = auto()
    """The command does not work with this processing type or guarantee."""
    NO_STREAM = auto()
    """doctor: the path has no streaming query."""

    # -- you, at the command ---------------------------------------------------------------------

    USAGE = auto()
    """An argument is invalid, or two do not go together."""
    CONFIG = auto()
    """The configuration file is invalid."""
    TOKEN = auto()
    """YT_TOKEN is missing, or the cluster refuses it."""
    OTHER_CLUSTER = auto()
    """The configuration and the environment name different clusters, or the wrong kind of one."""
    FILE = auto()
    """A file or folder is missing or damaged, or would be overwritten."""
    NO_REPOSITORY = auto()
    """The command must run in the job's repository."""
    COMMIT_UNKNOWN = auto()
    """git does not know the commit, or the deployed commit is unknown."""
    ADDRESS_TAKEN = auto()
    """The address to listen on is taken."""
    COMMAND_FAILED = auto()
    """A command that this one called has failed."""
    NEVER_RUN = auto()
    """The job has never run."""
    NOT_RUNNING = auto()
    """The job does not run now."""
    NO_BATCH = auto()
    """The ledger does not have that batch."""
    NO_ROWS = auto()
    """The command has no rows to work on."""
    NO_TIMESTAMP = auto()
    """It is unknown when the rows were written."""
    NO_WATERMARK = auto()
    """The job has no watermark yet."""
    LIMIT_EXCEEDED = auto()
    """`status` found more than the limits allow: exit code 4."""
    REPLAY_UNSAFE = auto()
    """A replay may replace newer rows by older ones."""

    # -- who installs Java, Spark and SPYT -------------------------------------------------------

    JAVA = auto()
    """Java is missing, too old, or does not start."""
    NOT_INSTALLED = auto()
    """A package is not installed."""
    SPYT_VERSION = auto()
    """This runtime needs another version of SPYT or Spark."""
    SPYT_PATCH = auto()
    """SPYT's patch of Spark is not in effect."""
    SPARK_CONF = auto()
    """A Spark setting breaks the guarantee, or Spark does not start with it."""
    TEMPORARY_FOLDER = auto()
    """Java cannot load a library from its temporary folder."""
    DISK_FULL = auto()
    """A disk of this machine or of the driver is full."""
    OPEN_FILES = auto()
    """The process may not open as many files as it needs."""
    JVM_ENDED = auto()
    """Spark's JVM has ended or does not answer."""

    # -- the cluster's administrators ------------------------------------------------------------

    NOT_PROVISIONED = auto()
    """An object of the job is missing or differs. `check` lists them, `provision` creates them."""
    PERMISSION = auto()
    """A permission is missing."""
    QUOTA = auto()
    """An account, bundle, medium or pool is missing or full."""
    NO_OPERATIONS = auto()
    """The cluster runs no operations."""

    # -- who is on call --------------------------------------------------------------------------

    SUPERSEDED = auto()
    """A newer instance of the job has started: exit code 3."""
    ANOTHER_INSTANCE = auto()
    """Another instance of the job is running."""
    LOCKED = auto()
    """A lock outlives its instance."""
    GAVE_UP = auto()
    """The query failed as often as `most_failures` allows."""
    KILLED = auto()
    """The job's process was killed."""
    STOP_LATE = auto()
    """A process or operation did not end in time."""
    HEAD_LOST = auto()
    """The ledger has lost its head row."""
    LEDGER_DAMAGED = auto()
    """A row of the ledger is malformed."""
    NO_LEDGER = auto()
    """The job ran with a version that had no ledger."""
    FOREIGN_OBJECT = auto()
    """An object belongs to another job."""
    FOREIGN_OUTPUT = auto()
    """An output belongs to another job, or another of its outputs."""
    OUTPUT_FILLED = auto()
    """An output has rows that new rows would replace."""
    NOT_PUBLISHED = auto()
    """A static output cannot be published yet."""
    JOB_CHANGED = auto()
    """The job has changed since its last start: `migrate`."""
    QUEUE_ADDED = auto()
    """The configuration names a queue that the job has not read."""
    QUEUE_REMOVED = auto()
    """The configuration no longer names a queue."""
    QUEUE_RECREATED = auto()
    """A queue was dropped and recreated."""
    QUEUE_RESHARDED = auto()
    """A queue was resharded."""
    QUEUE_ALTERED = auto()
    """A queue's columns were altered while a batch read them."""
    ROWS_TRIMMED = auto()
    """Rows were trimmed before the job had read them."""
    CONSUMER_MOVED = auto()
    """Something else has moved the consumer."""
    PARTITIONS_CHANGED = auto()
    """The partitions of a queue differ from those in the ledger."""
    POSITION_UNKNOWN = auto()
    """It is unknown how far the job was: name a row."""
    STATE_LOST = auto()
    """The checkpoint is missing or older than the ledger."""
    STATE_DAMAGED = auto()
    """The state cannot be read, or another transform() made it."""
    STATE_MISMATCH = auto()
    """The state needs other settings."""
    CHECKPOINT_DAMAGED = auto()
    """An entry of the checkpoint cannot be read."""

    # -- who deploys -----------------------------------------------------------------------------

    PREFLIGHT = auto()
    """`submit` found something that must be corrected first."""
    SUBMIT_FAILED = auto()
    """spark-submit failed."""
    ANOTHER_SUBMIT = auto()
    """Another `submit` is running."""
    FIRST_BATCH = auto()
    """The driver failed before its first batch."""
    FIRST_BATCH_LATE = auto()
    """The first batch did not come in time."""
    OPERATION_GONE = auto()
    """The cluster no longer knows the operation."""
    VERSION_REFUSED = auto()
    """This version was rolled back before."""
    NO_ROLLBACK = auto()
    """The running version could not be restored."""
    ROLLBACK_FAILED = auto()
    """The previous version was restored, but has no batch."""

    # -- nobody: the job retries -----------------------------------------------------------------

    TRANSIENT = auto()
    """Any other failure."""
    OUTAGE = auto()
    """The cluster does not answer."""
    UNMOUNTED = auto()
    """A table is not mounted."""
    STALLED = auto()
    """No batch and no task has finished for too long."""
    OTHER_ROWS = auto()
    """Spark would read other rows than the ledger says."""
    LEDGER_BUSY = auto()
    """Other processes write the ledger at the same time."""

    # -- us: please report it --------------------------------------------------------------------

    UNEXPECTED = auto()
    """An unexpected exception."""
