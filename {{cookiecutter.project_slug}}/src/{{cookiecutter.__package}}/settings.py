"""The job's settings: one frozen value, read once, from one TOML file and the environment."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .errors import JobError

DEFAULT_CONFIG = Path("config/local.toml")

#: One or more components; no attributes, no rich prefix, no trailing slash: SPYT finds the
#: consumer's rows by string equality on the queue's path (YtQueueOffset.getCurrentOffset), so it
#: must be canonical.
CYPRESS_PATH = re.compile(r"//[^/@&*\[\]{}<>\s\\]+(/[^/@&*\[\]{}<>\s\\]+)*")

#: A transaction may not touch more rows of one tablet (YTsaurus documentation, "Transactions").
ROWS_PER_TABLET_AND_TRANSACTION = 100_000


@dataclass(frozen=True)
class Settings:
    """Everything that differs between clusters. Paths are Cypress paths."""

    proxy: str
    queues: tuple[str, ...]
    consumer: str
    output: str
    checkpoint: str
    allow_env_proxy: bool = False
    create_queues: bool = False
    start_from: str = "earliest"
    on_data_loss: str = "fail"
    trigger_seconds: float = 5.0
    max_rows_per_partition: int = 20_000
    dyn_batch_size: int = 10_000
    account: str | None = None
    tablet_cell_bundle: str | None = None
    medium: str | None = None
    output_retention: int | None = None
    pool: str | None = None
    proxy_role: str | None = None
    spyt_version: str = "2.11.2"
    accept: tuple[str, ...] = ()

    @property
    def checkpoint_uri(self) -> str:
        """The checkpoint as Spark names it; with three slashes SPYT's YtFs renames atomically."""
        return f"yt:/{self.checkpoint}"


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read ``path``; all problems of the file are reported together.

    Raises JobError for a file that is missing or not TOML, an unknown or missing key, a value of
    the wrong type or out of bounds, and a ``YT_PROXY`` that contradicts the file.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(
            f"cannot read the configuration {path}: {error.strerror}",
            "name an existing file with --config, e.g. --config config/production.toml",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"{path} is not valid TOML: {error}", "correct that line") from None

    known = {field.name for field in fields(Settings)}
    problems = [
        f"unknown key {key!r}; known are: {', '.join(sorted(known))}"
        for key in raw
        if key not in known
    ]
    values: dict[str, Any] = {}
    for name, parse in _PARSERS.items():
        if name in raw:
            try:
                values[name] = parse(raw[name])
            except ValueError as error:
                problems.append(f"{name} = {raw[name]!r}: {error}")
        elif name in _REQUIRED:
            problems.append(f"missing key {name!r}")
    problems += _contradictions(values)
    if problems:
        raise JobError(
            f"{path}: " + f"\n{path}: ".join(problems), "correct the file; nothing was started"
        )
    return _with_environment(Settings(**values), path, environment)


def token(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """The token, from the environment alone; a cluster on the loopback needs none.

    ``YT_SECURE_VAULT_YT_TOKEN`` is where SPYT puts it for drivers and executors on the cluster.
    Raises JobError when a cluster needs a token and none is there.
    """
    for name in ("YT_TOKEN", "YT_SECURE_VAULT_YT_TOKEN"):
        if environment.get(name):
            return environment[name]
    if is_loopback(settings.proxy):
        return "minicluster-needs-no-token"
    raise JobError(
        f"no token for {settings.proxy}: YT_TOKEN is not set",
        "export YT_TOKEN=... in the shell (never in a file of this repository)",
    )


def is_loopback(proxy: str) -> bool:
    """Whether the proxy is on this machine, as the minicluster is."""
    host = re.sub(r"^https?://", "", proxy).rsplit(":", 1)[0]
    return host in {"127.0.0.1", "localhost", "[::1]"}


def _with_environment(settings: Settings, path: Path, environment: Mapping[str, str]) -> Settings:
    wanted = environment.get("YT_PROXY", "")
    if not wanted or wanted == settings.proxy:
        return settings
    if not settings.allow_env_proxy:
        raise JobError(
            f"YT_PROXY={wanted} in the environment, but {path} says proxy = {settings.proxy!r}",
            "unset YT_PROXY, or name the configuration of that cluster with --config",
        )
    return Settings(**{**vars(settings), "proxy": wanted})


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    named = [(name, values[name]) for name in _OBJECTS if name in values]
    named += [("queues", queue) for queue in values.get("queues", ())]
    seen: dict[str, str] = {}
    problems = []
    for name, path in named:
        if path in seen:
            problems.append(f"{path} is named twice: as {seen[path]} and as {name}")
        seen[path] = name
    return problems


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("wanted a text that is not empty")
    return value


def _cypress_path(value: object) -> str:
    if not isinstance(value, str) or not CYPRESS_PATH.fullmatch(value):
        raise ValueError('wanted a plain Cypress path such as "//home/team/job"')
    return value


def _queues(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("wanted a list with at least one Cypress path")
    # Sorted, because a checkpoint knows its queues by their position alone: SPYT ignores the path
    # in a stored offset, and swapped queues lose and repeat rows.
    return tuple(sorted(_cypress_path(path) for path in value))


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("wanted a list of texts")
    return tuple(_text(item) for item in value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("wanted true or false")
    return value


def _one_of(*allowed: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in allowed:
            raise ValueError(f"wanted one of: {', '.join(allowed)}")
        return str(value)

    return parse


def _integer(low: int, high: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"wanted a whole number from {low} to {high}")
        return value

    return parse


def _seconds(low: float, high: float) -> Callable[[object], float]:
    def parse(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError("wanted a number of seconds")
        if not low <= value <= high:
            raise ValueError(f"wanted a number of seconds from {low} to {high}")
        return float(value)

    return parse


_OBJECTS = ("consumer", "output", "checkpoint")
_REQUIRED = frozenset({"proxy", "queues", *_OBJECTS})
_PARSERS: Mapping[str, Callable[[object], Any]] = {
    "proxy": _text,
    "allow_env_proxy": _flag,
    "queues": _queues,
    "consumer": _cypress_path,
    "output": _cypress_path,
    "checkpoint": _cypress_path,
    "create_queues": _flag,
    "start_from": _one_of("earliest", "latest"),
    "on_data_loss": _one_of("fail", "skip"),
    # Below, the driver would ask the cluster for the queues' ends in a tight loop.
    "trigger_seconds": _seconds(0.1, 3600),
    "max_rows_per_partition": _integer(1, 10_000_000),
    "dyn_batch_size": _integer(1, ROWS_PER_TABLET_AND_TRANSACTION),
    "account": _text,
    "tablet_cell_bundle": _text,
    "medium": _text,
    # Milliseconds; the Queue Agent wants whole seconds.
    "output_retention": _integer(1_000, 10**13),
    "pool": _text,
    "proxy_role": _text,
    "spyt_version": _text,
    "accept": _texts,
}
