"""The job's settings: one frozen value, read once, from one TOML file and the environment."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import JobError

#: What a value must satisfy, and how that is said.
Rule = tuple[Callable[[Any], bool], str]

DEFAULT_CONFIG = Path("config/local.toml")

#: One or more components; no attributes, no rich prefix, no trailing slash: SPYT finds the
#: consumer's rows by string equality on the queue's path (YtQueueOffset.getCurrentOffset), so it
#: must be canonical.
CYPRESS_PATH = re.compile(r"//[A-Za-z0-9_.+=~-]+(/[A-Za-z0-9_.+=~-]+)*")

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
    dyn_batch_size: int | None = None  # None: chosen by the guarantee for the queues' size
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

    known = ", ".join(sorted(_RULES))
    problems = [f"unknown key {key!r}; known are: {known}" for key in raw if key not in _RULES]
    values: dict[str, Any] = {}
    for name in _RULES:
        if name in raw:
            try:
                values[name] = _parsed(name, raw[name])
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
    paths = [*(values[name] for name in _OBJECTS if name in values), *values.get("queues", ())]
    return [f"{path} is named twice" for path in dict.fromkeys(paths) if paths.count(path) > 1]


def _parsed(name: str, value: Any) -> Any:
    is_good, wanted = _RULES[name]
    if not is_good(value):
        raise ValueError(f"wanted {wanted}")
    if name == "queues":
        # Sorted, because a checkpoint knows its queues by their position alone: SPYT ignores the
        # path in a stored offset, and swapped queues lose and repeat rows.
        return tuple(sorted(value))
    return tuple(value) if isinstance(value, list) else value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_path(value: object) -> bool:
    return isinstance(value, str) and CYPRESS_PATH.fullmatch(value) is not None


def _among(*allowed: str) -> Rule:
    return (lambda value: value in allowed), f"one of: {', '.join(allowed)}"


def _whole(low: int, high: int) -> Rule:
    return (
        lambda value: type(value) is int and low <= value <= high,
        f"a whole number from {low} to {high}",
    )


_TEXT: Rule = (_is_text, "a text that is not empty")
_PATH: Rule = (_is_path, 'a plain Cypress path such as "//home/team/job"')
_FLAG: Rule = (lambda value: isinstance(value, bool), "true or false")
_OBJECTS = ("consumer", "output", "checkpoint")
_REQUIRED = frozenset({"proxy", "queues", *_OBJECTS})
_RULES: Mapping[str, Rule] = {
    "proxy": _TEXT,
    "allow_env_proxy": _FLAG,
    "queues": (
        lambda value: isinstance(value, list) and bool(value) and all(map(_is_path, value)),
        "a list of one or more plain Cypress paths",
    ),
    "consumer": _PATH,
    "output": _PATH,
    "checkpoint": _PATH,
    "create_queues": _FLAG,
    "start_from": _among("earliest", "latest"),
    "on_data_loss": _among("fail", "skip"),
    # Below, the driver would ask the cluster for the queues' ends in a tight loop.
    "trigger_seconds": (
        lambda value: type(value) in (int, float) and 0.1 <= value <= 3600,
        "a number of seconds from 0.1 to 3600 (AvailableNow is not offered: SPYT's source then "
        "reads everything in one batch and never moves the consumer)",
    ),
    "max_rows_per_partition": _whole(1, 10_000_000),
    "dyn_batch_size": _whole(1, ROWS_PER_TABLET_AND_TRANSACTION),
    "account": _TEXT,
    "tablet_cell_bundle": _TEXT,
    "medium": _TEXT,
    # Milliseconds; the Queue Agent wants whole seconds.
    "output_retention": _whole(1_000, 10**13),
    "pool": _TEXT,
    "proxy_role": _TEXT,
    "spyt_version": _TEXT,
    "accept": (
        lambda value: isinstance(value, list) and all(map(_is_text, value)),
        "a list of texts",
    ),
}
