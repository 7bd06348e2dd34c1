"""The job's settings: one frozen value, read once, from one TOML file and the environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from . import toml_file
from .addresses import is_loopback, is_path, is_proxy
from .submit_section import SubmitSection, submit_of
from .validators import FLAG, PATH, TEXT, TEXTS, one_of, problems_of, rule, seconds, whole

DEFAULT_CONFIG = Path("config/local.toml")

OWN, SPYT = "own", "spyt"
"""Values of ``connector``: the runtime's own reader, writer and commit, or SPYT's."""
ROCKSDB, MEMORY = "rocksdb", "memory"
"""Values of ``state_store``: Spark's providers of the same names."""

ROWS_PER_TABLET_AND_TRANSACTION = 100_000
"""A transaction may not touch more rows of one tablet (YTsaurus documentation, "Transactions")."""


def _is_conf(conf: tuple[str, object]) -> bool:
    return re.fullmatch(r"spark[.][\w.-]+", conf[0]) is not None and isinstance(
        conf[1], str | int | float
    )


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Join the keys of nested tables: TOML reads the dots of ``spark.x.y = 1`` as tables."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        more = _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        found |= more
    return found


_URL = rule(
    "an address that begins with http:// or https:// and has no # in it",
    lambda value: isinstance(value, str) and re.fullmatch(r"https?://[^\s#]+", value) is not None,
)
_PROXY_RULE = rule("a cluster's name, host, host:port or URL", is_proxy)
_PART = rule("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)
_PATHS = rule(
    "a list of one or more plain Cypress paths",
    lambda value: type(value) is list and bool(value) and all(map(is_path, value)),
)
_NAMED_PATHS = rule(
    'a table of output names and plain Cypress paths, such as output = "//home/team/job/output"',
    lambda value: type(value) is dict and bool(value) and all(map(is_path, value.values())),
)
_NAMED_REFERENCES = rule(
    'a table of reference names and plain Cypress paths, such as auctions = "//home/auctions"',
    lambda value: type(value) is dict and all(map(is_path, value.values())),
)
_CONFS = rule(
    'Spark settings, such as spark.executor.memory = "8g"',
    lambda value: type(value) is dict and all(map(_is_conf, _flat(value).items())),
)
_SUBMIT = rule("a table: [submit]", lambda value: type(value) is dict)
# More often, the driver would ask the cluster for the queues' ends in a tight loop.
_TRIGGER = seconds(
    0.1,
    3600,
    " (AvailableNow is not offered: SPYT's source then reads everything in one batch and never "
    "moves the consumer)",
)
# A tablet transaction ends after 20 to 30 s.
_BATCH_SECONDS = seconds(0.5, 20, " (the transaction of a micro-batch does not live much longer)")


@dataclass(frozen=True)
class Settings:
    """Everything that differs between clusters. Paths are Cypress paths."""

    proxy: str = field(metadata=_PROXY_RULE)
    """The cluster: name, host, `host:port` or URL."""
    queues: tuple[str, ...] = field(metadata=_PATHS)
    """The Cypress paths of the queues, in any order. All queues have the same columns."""
    consumer: str = field(metadata=PATH)
    """The job's consumer: it stores how far the job has read each queue."""
    checkpoint: str = field(metadata=PATH)
    """The folder of Spark's checkpoint. `map` and `join` keep their checkpoint on the driver's
    disk: then it has an empty folder for each start."""
    ledger: str = field(metadata=PATH)
    """The job's own table that records how far it is and what each batch did."""
    outputs: Mapping[str, str] = field(metadata=_NAMED_PATHS)
    """The table or folder of each output, by its name in OUTPUTS."""
    reference: str | None = field(default=None, metadata=PATH)
    """For a join: the reference table."""
    references: Mapping[str, str] = field(default_factory=dict, metadata=_NAMED_REFERENCES)
    """The table, or a link to it, of each reference by its name in REFERENCES."""
    reference_refresh: float = field(default=3600.0, metadata=seconds(1, 7 * 24 * 3600))
    """After how many seconds a reference that is read whole is read again."""
    reference_cache_mb: int = field(default=64, metadata=whole(0, 65_536))
    """How many MiB of rows an executor keeps of references that `make reference` has built. Nobody
    writes to these tables, so the rows stay true. 0 keeps none."""
    allow_env_proxy: bool = field(default=False, metadata=FLAG)
    """Whether `YT_PROXY` may name another address of this machine. true in `local.toml`."""
    create_queues: bool = field(default=False, metadata=FLAG)
    """Whether `provision` creates missing queues. true in `local.toml`."""
    start_from: str = field(default="earliest", metadata=one_of("earliest", "latest"))
    """Where a new consumer begins. It has no effect on queues that the job has read before."""
    on_data_loss: str = field(default="fail", metadata=one_of("fail", "skip"))
    """What to do if rows were trimmed before the job read them: stop, or skip them."""
    trigger_seconds: float = field(default=5.0, metadata=_TRIGGER)
    """How often a micro-batch starts. With `connector = "own"` the next one starts at once while
    more rows wait than a batch may read."""
    max_rows_per_partition: int = field(default=20_000, metadata=whole(1, 10_000_000))
    """The most rows of each queue tablet in one micro-batch."""
    batch_seconds: float | None = field(default=None, metadata=_BATCH_SECONDS)
    """How long a micro-batch should take. Each batch then reads as many rows as that takes, up to
    `max_rows_per_partition`. The first start begins with 1,000 rows of each tablet, a later one
    where the last batch was. Needs `connector = "own"`. Without it, each batch reads all waiting
    rows up to the limit."""
    dyn_batch_size: int | None = field(
        default=None, metadata=whole(1, ROWS_PER_TABLET_AND_TRANSACTION)
    )
    """How many rows one write request brings to one tablet. Without it, a request has up to 6 MiB.
    With `connector = "spyt"`, the runtime then computes it from the number of tablets."""
    connector: str = field(default=OWN, metadata=one_of(OWN, SPYT))
    """What reads, writes and moves the consumer: "own" is ytstream's Java, compiled where the job
    runs. "spyt" uses SPYT's classes."""
    state_store: str | None = field(default=None, metadata=one_of(ROCKSDB, MEMORY))
    """For jobs with state: "rocksdb" keeps it on the executors' disks, "memory" in their heaps. A
    new job uses "rocksdb". A job that has state stays with the store that wrote it."""
    stall_seconds: float = field(default=600.0, metadata=seconds(60, 24 * 3600))
    """The job restarts a query that finishes no batch for this long although rows wait."""
    account: str | None = field(default=None, metadata=TEXT)
    """The account that pays for new tables. By default that of the parent folder."""
    tablet_cell_bundle: str | None = field(default=None, metadata=TEXT)
    """The tablet cells that serve new tables. By default those of the parent folder."""
    medium: str | None = field(default=None, metadata=TEXT)
    """Where new tables are stored, such as "ssd_blobs". By default as the parent folder says."""
    output_retention: int | None = field(default=None, metadata=whole(1_000, 10**13))
    """After how many milliseconds rows of dynamic outputs may be removed. Without it, never."""
    deleted_keep: int = field(default=604_800_000, metadata=whole(60_000, 10**13))
    """With `apply_as_deletes` in MERGE: how many milliseconds the job remembers a delete. In that
    time no update that is not newer brings the row back."""
    pool: str | None = field(default=None, metadata=TEXT)
    """The scheduler pool of driver and executors."""
    proxy_role: str | None = field(default=None, metadata=TEXT)
    """The role of the RPC proxies that the job uses."""
    spyt_version: str = field(default="2.11.2", metadata=TEXT)
    """The SPYT release on the cluster. By default the one that this runtime was tested with."""
    open_periods: int = field(default=48, metadata=whole(1, 1_000))
    """The most periods that rows of one micro-batch may have in an archive (Hourly() and its like
    in STATIC). A micro-batch with rows of more periods ends the job."""
    runbook_url: str | None = field(default=None, metadata=_URL)
    """The address of `docs/operations.md` on the web. Alerts and the operation link to it."""
    accept: tuple[str, ...] = field(default=(), metadata=TEXTS)
    """Problems that you have checked and want to ignore, by name: see below."""
    reject_limit: float = field(default=0.5, metadata=_PART)
    """The part of a micro-batch's rows that may be rejected. If there are more (and more than 20),
    the job ends. Late rows count as well, unless job.py has `late="reject"`."""
    late_limit: float | None = field(default=None, metadata=_PART)
    """With `late="reject"` in job.py: the part of a micro-batch's rows that may be late. If there
    are more (and more than 20), the job ends. Without it, there is no limit."""
    spark: Mapping[str, Any] = field(default_factory=dict, metadata=_CONFS)
    """Your own Spark settings. Settings that the guarantee needs are an error."""
    submit: SubmitSection = field(default_factory=SubmitSection, metadata=_SUBMIT)
    """How `make submit` starts the job: see below."""

    @property
    def spark_confs(self) -> dict[str, str]:
        """The settings of ``spark`` as Spark wants them, by their whole keys."""
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in _flat(self.spark).items()
        }

    @property
    def output(self) -> str:
        """The path of the first output."""
        return self.outputs["output"]

    @property
    def staging(self) -> str:
        """The folder in which tables of static outputs wait for their publication."""
        return staging_of(self.ledger)

    @property
    def files(self) -> str:
        """The folder of the files that `submit` ships: a cleaner of //tmp does not reach it."""
        return files_of(self.ledger)

    @property
    def versions(self) -> str:
        """The folder of the records of what was submitted."""
        return versions_of(self.ledger)

    @property
    def alias(self) -> str:
        """The alias of the job's operation; no two that run have the same."""
        return self.submit.alias or f"*{self.ledger.removeprefix('//')}"

    @property
    def checkpoint_uri(self) -> str:
        """The checkpoint's folder as Spark names it; below it is one for each epoch."""
        return f"yt:/{self.checkpoint}"


def staging_of(ledger: str) -> str:
    """Return the folder of the tables that the ledger at this path may name."""
    return f"{ledger}-aside"


def files_of(ledger: str) -> str:
    """Return the folder of the shipped files of the job with the ledger at this path."""
    return f"{ledger}-files"


def versions_of(ledger: str) -> str:
    """Return the folder of the records of the versions of the job with the ledger at this path."""
    return f"{ledger}-versions"


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read ``path``. Raises JobError with all that is wrong with it, or with ``YT_PROXY``."""
    values, problems = _checked(toml_file.read(path).values)
    if problems:
        raise JobError(
            f"{path}: " + f"\n{path}: ".join(problems),
            "correct the file; nothing was started",
            code=ErrorCode.CONFIG,
        )
    settings = Settings(**values)
    wanted = environment.get("YT_PROXY", "").strip() or settings.proxy
    if wanted != settings.proxy and not (settings.allow_env_proxy and is_loopback(wanted)):
        raise JobError(
            f"YT_PROXY={wanted} in the environment, but {path} says proxy = {settings.proxy!r}"
            + (" and takes addresses of this machine only" if settings.allow_env_proxy else ""),
            "unset YT_PROXY, or name the configuration of that cluster with --config",
            code=ErrorCode.OTHER_CLUSTER,
        )
    return replace(settings, proxy=wanted)


def token(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """Return the token, only from the environment (SPYT puts it into the vault on the cluster).

    Raises JobError when a cluster needs a token, as all but the loopback do, and none is set.
    """
    found = environment.get("YT_TOKEN") or environment.get("YT_SECURE_VAULT_YT_TOKEN")
    if found or is_loopback(settings.proxy):
        return found or "minicluster-needs-no-token"
    raise JobError(
        f"no token for {settings.proxy}: YT_TOKEN is not set",
        "export YT_TOKEN=... in the shell (never in a file of this repository)",
        code=ErrorCode.TOKEN,
    )


def late_rows_of(queue: str) -> str:
    """Return the entry of `accept` that lets a queue join a state though its rows may be late."""
    return f"late:{queue}"


def one_tablet_of(output: str) -> str:
    """Return the entry of `accept` that says where the rows of each key of an output are.

    All of them are in one tablet of one queue.
    """
    return f"one_tablet:{output}"


def _checked(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values that are good, and what is wrong with the file."""
    keys = {key.name: key for key in fields(Settings)}
    problems = list(problems_of(Settings, raw))
    submit = raw.get("submit", {})
    problems += problems_of(SubmitSection, submit, "submit.") if isinstance(submit, dict) else ()
    # Sorted: a checkpoint knows its queues only by their position, and a start must move it for
    # those in another order.
    values: dict[str, Any] = {
        name: tuple(sorted(value)) if isinstance(value, list) else value
        for name, value in raw.items()
        if name in keys and keys[name].metadata["is_good"](value)
    }
    if not problems and "submit" in values:
        values["submit"] = submit_of(submit)
    paths = [*values.get("queues", ()), *values.get("outputs", {}).values()]
    paths += values.get("references", {}).values()
    paths += [values[name] for name in values if keys[name].metadata == PATH]
    problems += [f"{path} is named twice" for path in dict.fromkeys(paths) if paths.count(path) > 1]
    pairs = ((path, other) for path in paths for other in paths)
    problems += [f"{path} is inside {o}" for path, o in pairs if path.startswith(f"{o}/")]
    owned = {
        staging_of: "tables of static outputs",
        files_of: "the files that `submit` ships",
        versions_of: "the records of what was submitted",
    }
    problems += [
        f"{path}: {own} is the job's own, for {what}"
        for of, what in owned.items()
        for own in [of(values["ledger"]) if "ledger" in values else "//"]
        for path in paths
        if f"{path}/".startswith(f"{own}/")
    ]
    return values, problems
