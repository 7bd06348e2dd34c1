"""The job's settings: one frozen value, read once, from one TOML file and the environment."""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .addresses import is_loopback, is_path, is_proxy
from .errors import JobError

DEFAULT_CONFIG = Path("config/local.toml")

#: A transaction may not touch more rows of one tablet (YTsaurus documentation, "Transactions").
ROWS_PER_TABLET_AND_TRANSACTION = 100_000

#: The metadata of a field of Settings: what is wanted, in words and as a function.
Rule = Mapping[str, Any]


def _rule(wanted: str, is_good: Callable[[Any], bool]) -> Rule:
    return {"wanted": wanted, "is_good": is_good}


def _one_of(*allowed: str) -> Rule:
    return _rule(f"one of: {', '.join(allowed)}", lambda value: value in allowed)


def _whole(low: int, high: int) -> Rule:
    return _rule(
        f"a whole number from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
    )


def _seconds(low: float, high: float, remark: str = "") -> Rule:
    return _rule(
        f"a number of seconds from {low} to {high}{remark}",
        lambda value: type(value) in (int, float) and low <= value <= high,
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


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


_PROXY_RULE = _rule("a cluster's name, host, host:port or URL", is_proxy)
_PART = _rule("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)
_TEXT = _rule("a text that is not empty", _is_text)
_TEXTS = _rule("a list of texts", lambda value: type(value) is list and all(map(_is_text, value)))
_FLAG = _rule("true or false", lambda value: isinstance(value, bool))
_PATH = _rule('a plain Cypress path such as "//home/team/job"', is_path)
_PATHS = _rule(
    "a list of one or more plain Cypress paths",
    lambda value: type(value) is list and bool(value) and all(map(is_path, value)),
)
_NAMED_PATHS = _rule(
    'a table of output names and plain Cypress paths, such as output = "//home/team/job/output"',
    lambda value: type(value) is dict and bool(value) and all(map(is_path, value.values())),
)
_CONFS = _rule(
    'Spark settings, such as spark.executor.memory = "8g"',
    lambda value: type(value) is dict and all(map(_is_conf, _flat(value).items())),
)
# More often, the driver would ask the cluster for the queues' ends in a tight loop.
_TRIGGER = _seconds(
    0.1,
    3600,
    " (AvailableNow is not offered: SPYT's source then reads everything in one batch and never "
    "moves the consumer)",
)


@dataclass(frozen=True)
class Settings:
    """Everything that differs between clusters. Paths are Cypress paths."""

    proxy: str = field(metadata=_PROXY_RULE)
    queues: tuple[str, ...] = field(metadata=_PATHS)
    consumer: str = field(metadata=_PATH)
    checkpoint: str = field(metadata=_PATH)
    ledger: str = field(metadata=_PATH)
    #: Name of an output in tables.OUTPUTS -> its table.
    outputs: Mapping[str, str] = field(metadata=_NAMED_PATHS)
    #: For a join: the table that rows are enriched from, and the seconds until it is read again.
    reference: str | None = field(default=None, metadata=_PATH)
    reference_refresh: float = field(default=3600.0, metadata=_seconds(1, 7 * 24 * 3600))
    allow_env_proxy: bool = field(default=False, metadata=_FLAG)
    create_queues: bool = field(default=False, metadata=_FLAG)
    start_from: str = field(default="earliest", metadata=_one_of("earliest", "latest"))
    on_data_loss: str = field(default="fail", metadata=_one_of("fail", "skip"))
    trigger_seconds: float = field(default=5.0, metadata=_TRIGGER)
    max_rows_per_partition: int = field(default=20_000, metadata=_whole(1, 10_000_000))
    #: None: the guarantee chooses it for the queues' size.
    dyn_batch_size: int | None = field(
        default=None, metadata=_whole(1, ROWS_PER_TABLET_AND_TRANSACTION)
    )
    #: A query that finishes no batch for so long, though rows wait, is started anew.
    stall_seconds: float = field(default=600.0, metadata=_seconds(60, 24 * 3600))
    account: str | None = field(default=None, metadata=_TEXT)
    tablet_cell_bundle: str | None = field(default=None, metadata=_TEXT)
    medium: str | None = field(default=None, metadata=_TEXT)
    #: Milliseconds; the Queue Agent wants whole seconds.
    output_retention: int | None = field(default=None, metadata=_whole(1_000, 10**13))
    pool: str | None = field(default=None, metadata=_TEXT)
    proxy_role: str | None = field(default=None, metadata=_TEXT)
    spyt_version: str = field(default="2.11.2", metadata=_TEXT)
    accept: tuple[str, ...] = field(default=(), metadata=_TEXTS)
    #: The part of a micro-batch's rows that REJECT or the watermark may keep out; more of them end
    #: the job.
    reject_limit: float = field(default=0.5, metadata=_PART)
    #: Spark settings of the user's own; those that a guarantee needs are refused.
    spark: Mapping[str, Any] = field(default_factory=dict, metadata=_CONFS)

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
    def aside(self) -> str:
        """The folder in which tables of static outputs wait for their publication."""
        return aside_of(self.ledger)

    @property
    def checkpoint_uri(self) -> str:
        """The checkpoint's folder as Spark names it; below it is one for each epoch."""
        return f"yt:/{self.checkpoint}"


def aside_of(ledger: str) -> str:
    """Return the folder of the tables that the ledger at this path may name."""
    return f"{ledger}-aside"


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read ``path``. Raises JobError with all that is wrong with it, or with ``YT_PROXY``."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(
            f"cannot read the configuration {path}: {error.strerror}",
            "name an existing file with --config, e.g. --config config/production.toml",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"{path} is not valid TOML: {error}", "correct that line") from None
    values, problems = _checked(raw)
    if problems:
        raise JobError(
            f"{path}: " + f"\n{path}: ".join(problems), "correct the file; nothing was started"
        )
    settings = Settings(**values)
    wanted = environment.get("YT_PROXY", "").strip() or settings.proxy
    if wanted != settings.proxy and not (settings.allow_env_proxy and is_loopback(wanted)):
        raise JobError(
            f"YT_PROXY={wanted} in the environment, but {path} says proxy = {settings.proxy!r}"
            + (" and takes addresses of this machine only" if settings.allow_env_proxy else ""),
            "unset YT_PROXY, or name the configuration of that cluster with --config",
        )
    return replace(settings, proxy=wanted)


def token(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """Return the token, from the environment alone (SPYT puts it into the vault on the cluster).

    Raises JobError when a cluster needs a token, as all but the loopback do, and none is set.
    """
    found = environment.get("YT_TOKEN") or environment.get("YT_SECURE_VAULT_YT_TOKEN")
    if found or is_loopback(settings.proxy):
        return found or "minicluster-needs-no-token"
    raise JobError(
        f"no token for {settings.proxy}: YT_TOKEN is not set",
        "export YT_TOKEN=... in the shell (never in a file of this repository)",
    )


def late_rows_of(queue: str) -> str:
    """Return the entry of `accept` that lets a queue join a state though its rows may be late."""
    return f"late:{queue}"


def _checked(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values that are good, and what is wrong with the file."""
    keys = {key.name: key for key in fields(Settings)}
    problems = [_unknown(name, list(keys)) for name in raw if name not in keys]
    values: dict[str, Any] = {}
    for name, key in keys.items():
        if name not in raw:
            problems += [f"missing key {name!r}"] if _is_needed(key) else []
        elif key.metadata["is_good"](raw[name]):
            # Sorted: a checkpoint knows its queues by their position alone, and a start has to
            # move it for those in another order.
            values[name] = tuple(sorted(raw[name])) if isinstance(raw[name], list) else raw[name]
        else:
            problems.append(f"{name} = {raw[name]!r}: wanted {key.metadata['wanted']}")
    paths = [*values.get("queues", ()), *values.get("outputs", {}).values()]
    paths += [values[name] for name in values if keys[name].metadata == _PATH]
    problems += [f"{path} is named twice" for path in dict.fromkeys(paths) if paths.count(path) > 1]
    pairs = ((path, other) for path in paths for other in paths)
    problems += [f"{path} is inside {o}" for path, o in pairs if path.startswith(f"{o}/")]
    own = aside_of(values["ledger"]) if "ledger" in values else "//"
    problems += [
        f"{path}: {own} is the job's own, for tables of static outputs"
        for path in paths
        if f"{path}/".startswith(f"{own}/")
    ]
    return values, problems


def _is_needed(key: Field[Any]) -> bool:
    return key.default is MISSING and key.default_factory is MISSING


def _unknown(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known are: {', '.join(sorted(known))}"
    return f"unknown key {name!r}; {hint}"
